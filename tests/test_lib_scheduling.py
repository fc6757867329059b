"""The plain loop against steps worked by hand and what holds for any schedule; the fast-forward against the loop."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.bill import Account, bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.schedule import Part, Schedule
from lib.scheduling import Entry, Order, Policy, Request, chunked, continuous, fixed_batch, walk
from lib.step_time import FIT, Fit, LaunchBound, device
from tests.loads import MODELS, random_load, random_policy

MS = 10**6
FOUR = [
    Request(0, 2048, 8, name="r0"),
    Request(0, 2048, 2, name="r1"),
    Request(20 * MS, 8192, 2, name="r2"),
    Request(30 * MS, 2048, 4, name="r3"),
]
SEEDS = st.integers(0, 2**32)

# What each step of the worked example holds, by hand: prompts as (request, tokens, context), decodes as (request,
# context); and how long it takes, in units of 0.1 us.
FIRST_TWO = [
    ("P0 2048@0 P1 2048@0", 1633275),
    ("D0@2048 D1@2048", 262931),
]
BY_HAND = {
    "fixed": [
        *FIRST_TWO,
        *((f"D0@{context}", 262566) for context in range(2049, 2055)),
        ("P2 8192@0 P3 2048@0", 4444861),
        ("D2@8192 D3@2048", 263115),
        ("D3@2049", 262566),
        ("D3@2050", 262566),
    ],
    "continuous": [
        *FIRST_TWO,
        ("D0@2049 P2 8192@0", 3759689),
        ("D0@2050 D2@8192", 263115),
        ("D0@2051 P3 2048@0", 948103),
        ("D0@2052 D3@2048", 262931),
        ("D0@2053 D3@2049", 262931),
        ("D0@2054 D3@2050", 262931),
    ],
    "chunked": [
        *FIRST_TWO,
        ("D0@2049 P2 2048@0", 948103),
        ("D0@2050 P2 2048@2048", 1073932),
        ("D0@2051 P2 2048@4096", 1199761),
        ("D0@2052 P2 2048@6144", 1325590),
        ("D0@2053 D2@8192", 263115),
        ("D0@2054 P3 2048@0", 948103),
        ("D3@2048", 262565),
        ("D3@2049", 262566),
        ("D3@2050", 262566),
    ],
}
POLICIES = {"fixed": fixed_batch(2), "continuous": continuous(2), "chunked": chunked(2, 2048, 4096)}
TOTALS = {"fixed": 870_470_636, "continuous": 765_590_636, "chunked": 844_250_636}
# Length, whose, after which output.
LONGEST = {"fixed": (26_311_526, 2, 1), "continuous": (375_968_934, 0, 2), "chunked": (132_559_023, 0, 5)}


def told(schedule: Schedule) -> list[tuple[str, int]]:
    return [
        (
            " ".join(
                [f"D{part.place}@{part.context}" for part in step.decodes]
                + [f"P{part.place} {part.new_tokens}@{part.context}" for part in step.prompts]
            ),
            round((step.end_ns - step.start_ns) / 100),
        )
        for step in schedule.steps()
    ]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("run", [walk, simulate], ids=["walk", "simulate"])
def test_the_worked_example_runs_as_by_hand(name: str, run: object) -> None:
    assert callable(run)
    schedule = run(FOUR, POLICIES[name])
    assert told(schedule) == BY_HAND[name]
    assert schedule.total_ns == TOTALS[name]
    length, place, output = LONGEST[name]
    assert schedule.longest_interval() == (place, output, length)


def test_who_waits_and_what_stands_idle() -> None:
    fixed, steady, pieces = (walk(FOUR, policy) for policy in POLICIES.values())
    assert [round(time / MS) for time in (fixed.ttft_ns[2], steady.ttft_ns[2], pieces.ttft_ns[2])] == [772, 546, 624]
    assert [(run.idle_rows, run.row_steps) for run in (fixed, steady, pieces)] == [(8, 24), (0, 16), (3, 22)]
    assert fixed.peak_kv_tokens == 8192 + 2048 + 2
    longest = steady.longest_interval()
    assert longest is not None and list(steady.steps_of(longest)) == [2]


def test_the_rows_pass_from_one_request_to_the_next() -> None:
    assert walk(FOUR, continuous(2)).rows_by_step()[1:6] == [(0, 1), (0, 2), (0, 2), (0, 3), (0, 3)]
    assert walk(FOUR, fixed_batch(2)).rows_by_step()[1:3] == [(0, 1), (0, None)]


def check_limits(schedule: Schedule, load: list[Request], policy: Policy) -> None:
    computed = [request.cached_prefix for request in load]
    outputs = [0] * len(load)
    now = running = 0
    started: list[int] = []
    for step in schedule.steps():
        assert step.start_ns == now or (step.start_ns > now and not running)
        now = step.end_ns
        assert len(step.parts) == len({part.place for part in step.parts}) > 0
        assert sum(part.new_tokens for part in step.parts) <= policy.most_per_step
        assert all(part.new_tokens <= policy.most_per_request for part in step.parts)
        for part in step.parts:
            request = load[part.place]
            if part.place not in started:
                assert request.arrival_ns <= step.start_ns
                started.append(part.place)
            assert part.context == computed[part.place]
            assert (part in step.decodes) == (outputs[part.place] > 0)
            computed[part.place] += part.new_tokens
            if computed[part.place] == request.prompt + outputs[part.place]:
                outputs[part.place] += 1
                times = schedule.output_times_ns(part.place)
                assert times[outputs[part.place] - 1] == now
        running = sum(1 for place in started if outputs[place] < load[place].output)
        assert running <= policy.max_running
    assert outputs == [request.output for request in load]
    assert started == sorted(started)
    assert now == schedule.total_ns


@given(SEEDS)
def test_a_schedule_keeps_its_limits(seed: int) -> None:
    draw = Random(seed)
    load = random_load(draw)
    policy = random_policy(draw, load)
    check_limits(walk(load, policy), load, policy)


@given(SEEDS)
def test_first_token_and_intervals_make_up_the_request(seed: int) -> None:
    draw = Random(seed)
    load = random_load(draw)
    schedule = simulate(load, random_policy(draw, load), draw.choice(MODELS))
    for place, request in enumerate(load):
        intervals = schedule.intervals_ns(place)
        assert len(intervals) == request.output - 1
        assert schedule.longest_interval_ns[place] == max(intervals, default=0)
        whole = schedule.finish_ns[place] - request.arrival_ns
        assert schedule.ttft_ns[place] + sum(intervals) == whole
        assert 0 <= schedule.queue_ns[place] < schedule.ttft_ns[place]
        assert bill(schedule, place).total_ns == whole


def check_equal(seed: int) -> None:
    draw = Random(seed)
    load = random_load(draw)
    policy, model = random_policy(draw, load), draw.choice(MODELS)
    plain, fast = walk(load, policy, model), simulate(load, policy, model)
    assert list(fast.started_step) == list(plain.started_step)
    assert list(fast.first_output_step) == list(plain.first_output_step)
    assert list(fast.last_output_step) == list(plain.last_output_step)
    assert fast.skipped == plain.skipped
    assert (fast.total_ns, fast.step_count) == (plain.total_ns, plain.step_count)
    for column in ("started_ns", "first_token_ns", "finish_ns", "queue_ns", "ttft_ns", "longest_interval_ns"):
        assert np.array_equal(getattr(fast, column), getattr(plain, column)), column
    assert fast.longest_interval() == plain.longest_interval()
    assert fast.idle_rows == plain.idle_rows
    assert fast.peak_kv_tokens == plain.peak_kv_tokens
    assert list(fast.steps()) == list(plain.steps())


@pytest.mark.parametrize("block", range(5))
def test_fast_forward_equals_the_plain_loop(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        check_equal(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_fast_forward_equals_the_plain_loop_on_ten_thousand_loads(block: int) -> None:
    for seed in range(1000 + block * 1000, 2000 + block * 1000):
        check_equal(seed)


def test_long_runs_are_few_stretches() -> None:
    load = [Request(0, 2048, 100_000), Request(10**12, 100, 5)]
    schedule = simulate(load, continuous(2))
    assert len(schedule.stretches) < 10
    assert schedule.step_count == 100_000
    assert schedule.longest_interval_ns[0] > FIT.fixed_ns


@given(SEEDS)
def test_in_order_of_admission_is_decodes_first(seed: int) -> None:
    """Who gets tokens in a step gets some in every later one, so those in decode are never cut off by a prompt."""
    draw = Random(seed)
    load = random_load(draw)
    policy = replace(random_policy(draw, load), order=Order.DECODES_FIRST)
    one, other = walk(load, policy), walk(load, replace(policy, order=Order.BY_ADMISSION))
    assert list(one.steps()) == [step._replace(prompts=step.prompts, decodes=step.decodes) for step in other.steps()]


def test_prompts_first_makes_those_in_decode_wait() -> None:
    load = [Request(0, 10, 5), Request(10 * MS, 400, 2)]
    later = walk(load, chunked(2, 100, 100, Order.PROMPTS_FIRST))
    at_once = walk(load, chunked(2, 100, 100, Order.DECODES_FIRST))
    assert later.skipped == {0: [1, 2, 3, 4]} and at_once.skipped == {}
    assert later.longest_interval_ns[0] > 4 * FIT.fixed_ns > at_once.longest_interval_ns[0]
    assert list(simulate(load, chunked(2, 100, 100, Order.PROMPTS_FIRST)).steps()) == list(later.steps())


def test_a_group_waits_until_it_is_full_or_has_waited_enough() -> None:
    load = [Request(0, 10, 1), Request(30 * MS, 10, 1), Request(200 * MS, 10, 1)]
    assert list(walk(load, fixed_batch(2, 50 * MS)).started_ns) == [30 * MS, 30 * MS, 250 * MS]
    assert list(walk(load, fixed_batch(2, 20 * MS)).started_ns[:1]) == [20 * MS]
    assert list(walk(load, fixed_batch(2)).started_ns[:1]) == [0]
    assert walk(load, fixed_batch(2, 50 * MS)).ttft_ns[0] == 30 * MS + FIT.fixed_ns + 20 * 30_400 + 110 * 3


def test_a_cached_prefix_is_not_computed_but_its_history_is_read() -> None:
    step = next(walk([Request(0, 2048, 1, cached_prefix=1536)], continuous(1)).steps())
    assert step.prompts == (Part(0, 512, 1536),)
    assert walk([Request(0, 2048, 1, cached_prefix=2047)], continuous(1)).peak_kv_tokens == 2048


def test_a_step_bound_by_the_host_lasts_as_long_as_the_host() -> None:
    schedule = simulate([Request(0, 8, 50)], continuous(1), LaunchBound(26 * MS, device()))
    assert schedule.intervals_ns(0) == [26 * MS] * 49
    assert len(schedule.stretches) == 2


def test_a_request_is_billed_for_what_others_brought_in() -> None:
    schedule = simulate(FOUR, continuous(2))
    booked = bill(schedule, 0).booked_ns
    prompt_of_r2 = 8192 * 30_400 + 8192 * 8193 // 2 * 3
    assert booked[2] == prompt_of_r2
    assert booked[1] == booked[3] == 2048 * 30_400 + 2048 * 2049 // 2 * 3
    assert booked[Account.OWN_PREFILL] == FIT.fixed_ns + booked[1]
    assert booked[Account.QUEUE] == 0
    assert bill(schedule, 3).booked_ns[Account.QUEUE] == schedule.started_ns[3] - 30 * MS


def test_a_bill_holds_for_a_step_time_that_is_no_sum() -> None:
    schedule = simulate(FOUR, chunked(2, 2048, 4096), LaunchBound(13 * MS, device()))
    for place in range(4):
        assert bill(schedule, place).total_ns == schedule.finish_ns[place] - schedule.arrival_ns[place]


LATE = [Request(5, 8, 2), Request(4, 8, 2)]
WRONG = (
    (lambda: Request(-1, 8, 2), "arrival_ns"),
    (lambda: Request(2**63, 8, 2), "arrival_ns"),
    (lambda: Request(0, 0, 2), "prompt"),
    (lambda: Request(0, 8, 0), "output"),
    (lambda: Request(0, 8, 3, max_output=2), "output"),
    (lambda: Request(0, 8, 3, cached_prefix=8), "cached_prefix"),
    (lambda: Request(0.5, 8, 3), "arrival_ns"),  # type: ignore[arg-type]
    (lambda: Request(0, 8, 3, cached_prefix=None), "cached_prefix"),  # type: ignore[arg-type]
    (lambda: Request(0, 8, 3, cached_prefix=0.0), "cached_prefix"),  # type: ignore[arg-type]
    (lambda: chunked(4, 8, 3), "token_budget"),
    (lambda: chunked(4, 0, 8), "chunk"),
    (lambda: Policy(2, wait_to_fill_ns=5), "wait_to_fill_ns"),
    (lambda: Policy(2, entry="soon"), "entry"),  # type: ignore[arg-type]
    (lambda: Policy(2, order="mine"), "order"),  # type: ignore[arg-type]
    (lambda: walk([], continuous(2)), "requests"),
    (lambda: simulate([], continuous(2)), "requests"),
    (lambda: walk(LATE, continuous(2)), "arrival_ns"),
    (lambda: simulate(LATE, continuous(2)), "arrival_ns"),
    (lambda: walk([1, 2], continuous(2)), "requests"),  # type: ignore[list-item]
    (lambda: simulate(3, continuous(2)), "requests"),  # type: ignore[arg-type]
    (lambda: simulate(FOUR, "continuous"), "policy"),  # type: ignore[arg-type]
    (lambda: walk([Request(2**63 - 1, 8, 2)], continuous(2)), "end of the last step"),
    (lambda: simulate([Request(2**63 - 1, 8, 2)], continuous(2)), "end of the last step"),
    (lambda: simulate([Request(0, 2**40, 2**40)], continuous(2)), "end of the last step"),
    (lambda: bill(walk(FOUR, continuous(2)), 4), "place"),
)


@pytest.mark.parametrize(("call", "parameter"), WRONG)
def test_what_makes_no_sense_is_refused_by_name(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.parameter == parameter


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_numbers_out_of_arrays_count_as_exactly_as_others(kind: type[np.signedinteger]) -> None:
    load = [Request(kind(0), kind(60_000), kind(10**7)), Request(kind(5), kind(5), kind(10**7))]  # type: ignore[arg-type]
    policy = Policy(kind(2), chunk=kind(50_000), token_budget=kind(50_000))  # type: ignore[arg-type]
    terms = Fit(kind(26_220_000), kind(30_400), kind(3))  # type: ignore[arg-type]
    plain = [Request(0, 60_000, 10**7), Request(5, 5, 10**7)]
    assert list(simulate(load, policy, terms).finish_ns) == list(
        simulate(plain, chunked(2, 50_000, 50_000), FIT).finish_ns
    )
    with pytest.raises(InputError):
        simulate([Request(0, np.int64(2**32), 1)], continuous(2))  # type: ignore[arg-type]


def test_the_refusal_of_a_budget_says_why() -> None:
    with pytest.raises(InputError, match=r"^token_budget is 3; allowed: at least max_running, 4: each running request"):
        chunked(4, 8, 3)


def test_entry_names_are_those_of_the_figure() -> None:
    assert Policy(2, Entry.WHEN_ALL_ENDED) == fixed_batch(2)
