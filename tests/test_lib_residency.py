"""Runs in a pool: gates, growth, preemption, users who go away; recorded runs come out, fast equals plain."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.bill import bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.paging import Findable
from lib.residency import Departure, Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Policy, Request, chunked, continuous, walk
from lib.step_time import Fit
from tests.loads import MODELS, random_policy, random_pool, random_pooled_load

MS = 10**6
RECORDED = chunked(max_running=4, chunk=512, token_budget=512)
LONG = [Request(0, 1536, 512)] * 4
# One block of the recorded pool of 455 was kept back.
SMALL, LARGE = PoolSetup(454), PoolSetup(910)


def check_equal(seed: int) -> Schedule:
    draw = Random(seed)
    load = random_pooled_load(draw)
    pool, policy, model = random_pool(draw, load), random_policy(draw, load), draw.choice(MODELS)
    plain, fast = walk(load, policy, model, pool), simulate(load, policy, model, pool)
    for field in ("started_step", "first_output_step", "last_output_step", "preemptions", "cancellations", "refused"):
        assert list(getattr(fast, field)) == list(getattr(plain, field)), field
    for field in ("skipped", "peak_blocks", "peak_kv_tokens", "total_ns", "idle_rows", "scheduled_tokens"):
        assert getattr(fast, field) == getattr(plain, field), field
    for column in ("started_ns", "first_token_ns", "finish_ns", "queue_ns", "ttft_ns", "longest_interval_ns"):
        assert np.array_equal(getattr(fast, column), getattr(plain, column)), column
    assert list(fast.steps()) == list(plain.steps())
    assert fast.rows_by_step() == plain.rows_by_step()
    return fast


@pytest.mark.parametrize("block", range(4))
def test_fast_forward_equals_the_plain_loop_in_a_pool(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        check_equal(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_fast_forward_equals_the_plain_loop_in_ten_thousand_pools(block: int) -> None:
    runs = [check_equal(seed) for seed in range(1000 + block * 1000, 2000 + block * 1000)]
    assert any(run.preemptions for run in runs) and any(run.cancellations for run in runs)
    assert any(run.refused for run in runs)


def held_tokens(schedule: Schedule, load: Sequence[Request]) -> list[int]:
    """Tokens in KV of those with a row, after each step, counted part by part."""
    held, found = dict[int, int](), []
    lost = {(one.step, one.place) for one in (*schedule.preemptions, *schedule.cancellations)}
    for number, step in enumerate(schedule.steps()):
        held = {place: tokens for place, tokens in held.items() if (number, place) not in lost}
        held |= {part.place: part.context + part.new_tokens for part in step.parts}
        found.append(sum(held.values()))
        held = {place: tokens for place, tokens in held.items() if schedule.last_output_step[place] != number}
        held |= {one.place: 0 for one in schedule.cancellations if one.step == number + 1}
    return found


@given(st.integers(0, 10**6))
def test_what_is_computed_is_computed_once_but_for_what_was_lost(seed: int) -> None:
    draw = Random(seed)
    load = [request for request in random_pooled_load(draw) if request.cancel_ns is None] or [Request(0, 5, 5)]
    pool, policy = random_pool(draw, load), random_policy(draw, load)
    schedule = walk(load, policy, draw.choice(MODELS), pool)
    served = schedule.requests
    assert schedule.completed.all() and len(served) + len(schedule.refused) == len(load)
    found = 0
    for place, stays in enumerate(schedule.stays()):
        for stay in stays:
            first = next(schedule.steps(stay.start, stay.start + 1))
            found += next(part.context for part in first.parts if part.place == place)
    needed = sum(request.prompt + request.output - 1 for request in served)
    assert schedule.scheduled_tokens == needed + sum(one.lost_tokens for one in schedule.preemptions) - found
    assert schedule.peak_kv_tokens == max(held_tokens(schedule, served))
    for place, request in enumerate(served):
        assert len(schedule.output_times_ns(place)) == request.output
        assert bill(schedule, place).total_ns == schedule.finish_ns[place] - request.arrival_ns
    for rows in schedule.rows_by_step():
        assert len(rows) == policy.max_running


def test_the_recorded_preemption_comes_out() -> None:
    small, large = (walk(LONG, RECORDED, pool=pool) for pool in (SMALL, LARGE))
    assert list(small.preemptions) == [
        Departure(small.preemptions[0].step, 3, 270, 1536 + 270 - 1, small.preemptions[0].at_ns)
    ]
    assert small.preemptions[0].lost_tokens == 1805 == small.scheduled_tokens - large.scheduled_tokens
    assert (small.scheduled_tokens, large.scheduled_tokens) == (9993, 8188)
    assert (small.peak_blocks, large.peak_blocks) == (454, 512)
    assert not large.preemptions
    again = small.stays()[3][1]
    assert small.first_output_step[0] < small.preemptions[0].step < again.start
    assert again.start == min(small.last_output_step[:3]) + 1, "once a finished one has given back its blocks"


def test_a_user_who_goes_away_gives_back_the_blocks_when_the_step_is_done() -> None:
    whole = simulate(LONG, RECORDED, pool=SMALL)
    seen = whole.output_times_ns(3)[127]  # 128 outputs had come
    load = [*LONG[:3], Request(0, 1536, 512, cancel_ns=seen + 1)]
    run = simulate(load, RECORDED, pool=SMALL)
    (gone,) = run.cancellations
    assert (gone.place, gone.lost_tokens) == (3, 1664)
    assert SMALL.blocks_for(gone.lost_tokens) == 104
    assert (run.scheduled_tokens, run.peak_blocks, list(run.preemptions)) == (7805, 419, [])
    assert run.completed.tolist() == [True, True, True, False]
    assert len(run.output_times_ns(3)) == 129, "the step in flight is finished"
    assert list(walk(load, RECORDED, pool=SMALL).steps()) == list(run.steps())


def test_a_user_who_goes_away_before_anything_came_leaves_no_times() -> None:
    load = [Request(0, 10, 50), Request(1, 10, 5, cancel_ns=2)]
    run = simulate(load, continuous(1))
    assert run.cancellations == [Departure(1, 1, 0, 0, int(run.start_of([1])[0]))]
    assert run.started_ns[1] == run.first_token_ns[1] == run.finish_ns[1] == run.ttft_ns[1] == run.queue_ns[1] == -1
    assert run.output_times_ns(1) == [] and run.longest_interval_ns[1] == 0


def test_what_can_never_fit_is_refused_and_the_others_are_served() -> None:
    load = [Request(0, 40, 10), Request(5, 10, 4), Request(5, 10, 4, max_output=60)]
    run = simulate(load, continuous(4), pool=PoolSetup(4, 4))
    assert run.refused == (load[0], load[2]) and run.requests == (load[1],)
    assert run.completed.all()
    with pytest.raises(InputError, match="blocks is 4"):
        walk([load[0]], continuous(4), pool=PoolSetup(4, 4))


def test_gates_open_for_more_or_less() -> None:
    load = [Request(0, 32, 33), Request(0, 32, 33)]
    runs = {
        gate: simulate(load, continuous(2), pool=PoolSetup(10, 8, gate))
        for gate in (Gate.WHOLE_SEQUENCE, Gate.FINAL_SIZE)
    }
    assert [len(run.preemptions) for run in runs.values()] == [1, 0]
    assert runs[Gate.WHOLE_SEQUENCE].started_step[1] == 0 < runs[Gate.FINAL_SIZE].started_step[1]
    reserve = simulate(load, continuous(2), pool=PoolSetup(10, 8, Gate.RESERVE, 3))
    assert reserve.started_step[1] == runs[Gate.FINAL_SIZE].started_step[1]
    assert simulate(load, continuous(2), pool=PoolSetup(10, 8, Gate.RESERVE, 2)).started_step[1] == 0


def test_the_gate_on_the_first_chunk_lets_in_what_is_soon_thrown_out() -> None:
    load = [Request(0, 64, 40), Request(0, 64, 40), Request(0, 64, 40)]
    policy = chunked(3, 8, 32)
    thrown = {
        gate: len(walk(load, policy, pool=PoolSetup(14, 8, gate)).preemptions)
        for gate in (Gate.FIRST_CHUNK, Gate.WHOLE_SEQUENCE, Gate.FINAL_SIZE)
    }
    assert thrown[Gate.FIRST_CHUNK] > thrown[Gate.WHOLE_SEQUENCE] >= thrown[Gate.FINAL_SIZE] == 0


def test_prompts_of_one_step_share_by_one_rule_and_not_by_the_other() -> None:
    load = [Request(0, 64, 4, ids=[*range(64)])] * 4
    shared = {
        findable: simulate(load, continuous(4), pool=PoolSetup(64, 16, findable=findable)).scheduled_tokens
        for findable in Findable
    }
    assert shared == {
        Findable.ON_ADMISSION: 4 * (64 + 3) - 3 * 48,
        Findable.ONCE_DONE: 4 * (64 + 3),
        Findable.NEVER: 4 * (64 + 3),
    }


def test_a_preempted_request_finds_its_own_blocks_again() -> None:
    load = [Request(0, 40, 30), Request(0, 40, 30)]
    lost = {
        findable: simulate(load, continuous(2), pool=PoolSetup(12, 8, findable=findable)).scheduled_tokens
        for findable in (Findable.NEVER, Findable.ONCE_DONE)
    }
    assert lost[Findable.ONCE_DONE] < lost[Findable.NEVER]


def test_who_was_preempted_is_next_and_nobody_enters_in_that_step() -> None:
    load = [Request(0, 40, 30), Request(0, 40, 30), Request(5, 8, 2)]
    run = walk(load, continuous(3), pool=PoolSetup(12, 8))
    for one in run.preemptions:
        assert not any(stay.start == one.step for stays in run.stays() for stay in stays)
    first = run.preemptions[0]
    assert first.place == max(place for place in range(3) if any(first.step - 1 in stay for stay in run.stays()[place]))


def test_times_of_a_preempted_request_go_on_after_the_gap() -> None:
    run = simulate([Request(0, 40, 30), Request(0, 40, 30)], continuous(2), Fit(MS, 0, 0), PoolSetup(12, 8))
    (lost,) = run.preemptions
    intervals = run.intervals_ns(lost.place)
    again = run.stays()[lost.place][1].start
    assert len(intervals) == 29
    assert max(intervals) == (again - lost.step + 2) * MS - MS


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: PoolSetup(0), "blocks"),
        (lambda: PoolSetup(8, 0), "block_tokens"),
        (lambda: PoolSetup(2**13, 2**14), "block_tokens"),
        (lambda: PoolSetup(8, gate="first"), "gate"),
        (lambda: PoolSetup(8, reserve_blocks=1), "reserve_blocks"),
        (lambda: PoolSetup(8, gate=Gate.RESERVE, reserve_blocks=8), "reserve_blocks"),
        (lambda: PoolSetup(8, findable="always"), "findable"),
        (lambda: Request(0, 4, 2, ids=[1, 2, 3]), "ids"),
        (lambda: Request(0, 4, 2, ids=range(7)), "tokens"),
        (lambda: Request(0, 4, 2, ids=[1, 2, 3, 2**62]), "ids"),
        (lambda: Request(0, 4, 2, ids=[1, 2, 3, -4]), "tokens"),
        (lambda: Request(7, 4, 2, cancel_ns=7), "cancel_ns"),
        (lambda: walk([Request(0, 4, 2, cached_prefix=2)], continuous(1), pool=PoolSetup(8)), "cached_prefix"),
        (lambda: simulate([Request(0, 4, 2)], continuous(1), pool=8), "pool"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: object, named: str) -> None:
    with pytest.raises(InputError, match=f"^{named} is"):
        wrong()  # type: ignore[operator]


def test_policies_and_pools_go_together() -> None:
    run = walk([Request(0, 20, 3)] * 3, Policy(2), pool=PoolSetup(6, 8))
    assert run.completed.all() and run.peak_blocks is not None and run.peak_blocks <= 6
