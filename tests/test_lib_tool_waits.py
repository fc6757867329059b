"""Requests that wait for tools: cases worked by hand, a plain run beside the loop, and what holds for any run."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from lib.bill import Account, bill
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.little import Occupancy, Phase, Span, in_system, kv_held, left_ns, seen, spans
from lib.paging import Findable
from lib.replay import replay
from lib.residency import Departure, Gate, PoolSetup
from lib.schedule import Absence, Round, Schedule
from lib.scheduling import Entry, Policy, Request, ToolWait, chunked, continuous, fixed_batch, walk
from lib.speculation_setup import PLAIN, DrawnAcceptance, GivenAcceptance, SpeculationSetup
from lib.step_time import FIT, Fit, StepPlan, StepTime, step_plan, verifying
from tests.loads import MODELS, random_policy, random_pool, random_pooled_load
from tests.plain_waits import AT_TOOL, BACK, GONE, QUEUED, WITH_ROW, PlainWaits, plain_waits

STEP = Fit(10, 0, 0)
AWAY = (ToolWait(2, 35),)
PHASES = {QUEUED: Phase.QUEUED, WITH_ROW: Phase.COMPUTING, AT_TOOL: Phase.HOLDING, BACK: Phase.QUEUED}


def with_tools(load: Sequence[Request], draw: Random, often: float = 0.7) -> list[Request]:
    """The same requests, many of which call tools after some of their outputs, for longer or shorter than a step."""
    found = []
    for request in load:
        calls = draw.sample(range(1, request.output), draw.randint(0, min(3, request.output - 1)))
        longest = draw.choice([1, 3 * 10**7, 10**9])
        waits = tuple(ToolWait(output, draw.randint(1, longest)) for output in sorted(calls))
        found.append(replace(request, tool_waits=waits if draw.random() < often else ()))
    return found


# By hand


def test_another_has_the_row_while_a_tool_works() -> None:
    run = simulate([Request(0, 4, 4, tool_waits=AWAY), Request(0, 4, 3)], continuous(1), STEP)
    assert run.rows_by_step() == [(0,), (0,), (1,), (1,), (1,), (0,), (0,)]
    assert run.stays() == [[range(2), range(5, 7)], [range(2, 5)]] and run.residences()[0] == [range(7)]
    assert run.absences == {0: [Absence(2, 5, 55)]} and run.skipped == {0: [2, 3, 4]}
    assert run.output_times_ns(0) == [10, 20, 65, 75], "nobody runs from 50 to 55"
    assert run.intervals_ns(0) == [10, 45, 10] and list(run.longest_interval_ns) == [45, 10]
    assert (run.step_count, run.idle_rows, run.peak_kv_tokens) == (7, 0, 5 + 6)
    assert spans(run)[0] == (Span(Phase.COMPUTING, 0, 20), Span(Phase.HOLDING, 20, 55), Span(Phase.COMPUTING, 55, 75))
    assert spans(run)[1] == (Span(Phase.QUEUED, 0, 20), Span(Phase.COMPUTING, 20, 50))


def test_alone_it_leaves_the_device_idle() -> None:
    run = walk([Request(0, 4, 4, tool_waits=AWAY)], continuous(1), STEP, PoolSetup(4, 2))
    assert run.output_times_ns(0) == [10, 20, 65, 75] and run.skipped == {}
    assert run.absences == {0: [Absence(2, 2, 55)]} and run.stays() == [[range(2), range(2, 4)]]
    longest = run.longest_interval()
    assert longest == (0, 2, 45) and longest and list(run.steps_of(longest)) == [2]
    booked = bill(run, 0).booked_ns
    assert booked[Account.TOOL] == 35 and booked[Account.OWN_DECODE] == 30 and booked[Account.QUEUE] == 0


def test_who_comes_back_takes_a_row_before_those_who_queue() -> None:
    load = [Request(0, 4, 4, tool_waits=(ToolWait(2, 15),)), Request(0, 4, 3), Request(0, 4, 3), Request(0, 4, 1)]
    run = walk(load, continuous(1), STEP)
    assert run.rows_by_step() == [(0,), (0,), (1,), (1,), (1,), (0,), (0,), (2,), (2,), (2,), (3,)]
    booked = bill(run, 0).booked_ns
    assert (booked[Account.TOOL], booked[Account.QUEUE]) == (15, 15), "back at 35, the row is free at 50"
    assert spans(run)[0][1:3] == (Span(Phase.HOLDING, 20, 35), Span(Phase.QUEUED, 35, 50))


def test_two_who_come_back_take_rows_in_the_order_of_their_return() -> None:
    load = [
        Request(0, 4, 3, tool_waits=(ToolWait(1, 25),)), Request(0, 4, 3, tool_waits=(ToolWait(1, 21),)),
        Request(0, 4, 4),
    ]  # fmt: skip
    run = walk(load, continuous(2), STEP)
    assert run.rows_by_step() == [(0, 1), (2, None), (2, None), (2, None), (2, 1), (0, 1), (0, None)]


def test_a_tool_that_returns_within_the_step_still_costs_a_border() -> None:
    load = [Request(0, 4, 3, tool_waits=(ToolWait(1, 1),)), Request(0, 4, 4)]
    assert walk(load, continuous(2), STEP).output_times_ns(0) == [10, 30, 40]
    assert walk(load[:1], continuous(2), STEP).output_times_ns(0) == [10, 21, 31]


def test_kv_that_waits_keeps_others_out_until_the_tool_returns() -> None:
    """The pool holds one of them. While the first waits for its tool, nobody computes, and the second may not enter."""
    load = [Request(0, 4, 4, tool_waits=(ToolWait(2, 1000),)), Request(15, 4, 2)]
    run = walk(load, continuous(2), STEP, PoolSetup(4, 2))
    assert list(run.started_ns) == [0, 1040] and run.finish_ns[0] == 1040
    assert in_system(run).area(Phase.HOLDING) == 1000 and kv_held(run).area(Phase.HOLDING) == 5 * 1000
    roomy = walk(load, continuous(2), STEP, PoolSetup(7, 2))
    assert roomy.started_ns[1] == 20


def test_the_gate_on_the_final_size_counts_those_who_wait() -> None:
    load = [Request(0, 4, 9, tool_waits=(ToolWait(1, 1000),)), Request(20, 4, 5)]
    starts = {
        gate: walk(load, continuous(2), STEP, PoolSetup(9, 2, gate)).started_ns[1]
        for gate in (Gate.WHOLE_SEQUENCE, Gate.FINAL_SIZE)
    }
    assert starts == {Gate.WHOLE_SEQUENCE: 20, Gate.FINAL_SIZE: 1090}


def test_only_who_has_a_row_is_preempted_if_need_be_the_last() -> None:
    """Both fit at first; then the one with a row cannot grow, as the other holds three of six blocks and waits."""
    load = [Request(0, 5, 7, tool_waits=(ToolWait(1, 500),)), Request(0, 4, 9)]
    run = walk(load, continuous(2), STEP, PoolSetup(6, 2))
    assert list(run.preemptions) == [Departure(3, 1, 3, 6, 30)]
    assert run.stays() == [[range(1), range(3, 9)], [range(3), range(9, 15)]]
    assert run.completed.all() and [len(run.output_times_ns(place)) for place in range(2)] == [7, 9]
    booked = bill(run, 1).booked_ns
    assert booked[Account.QUEUE] == 510 - 30 and booked[Account.OTHERS_DECODE] == 60
    assert in_system(run).area(Phase.QUEUED) == (510 - 30) + 60


def test_who_comes_back_and_cannot_grow_is_preempted_at_once() -> None:
    """Two wait; the second comes back first, has no block for its next token, and nobody is left to be preempted."""
    load = [Request(0, 4, 5, tool_waits=(ToolWait(1, 500),)), Request(0, 4, 4, tool_waits=(ToolWait(1, 100),))]
    run = walk(load, continuous(2), STEP, PoolSetup(4, 2))
    assert list(run.preemptions) == [Departure(1, 1, 1, 4, 110)]
    assert run.absences == {0: [Absence(1, 1, 510)], 1: [Absence(1, 1, 110)]}
    assert run.stays()[1] == [range(1), range(5, 8)] and run.completed.all()
    assert spans(run)[1][:3] == (
        Span(Phase.COMPUTING, 0, 10), Span(Phase.HOLDING, 10, 110), Span(Phase.QUEUED, 110, 550),
    )  # fmt: skip
    assert bill(run, 1).booked_ns[Account.TOOL] == 100
    assert kv_held(run, 2).within(100, 120).by_phase[Phase.HOLDING].tolist() == [4, 2]


@pytest.mark.parametrize(("cancel", "starts"), [(500, 500), (15, 20), (1005, 1005)])
def test_a_user_who_goes_away_meanwhile_gives_the_blocks_back(cancel: int, starts: int) -> None:
    load = [Request(0, 4, 4, tool_waits=(ToolWait(2, 1000),), cancel_ns=cancel), Request(15, 4, 2)]
    run = walk(load, continuous(2), STEP, PoolSetup(4, 2))
    assert list(run.cancellations) == [Departure(2, 0, 2, 5, starts)]
    assert run.started_ns[1] == starts and not run.completed[0] and left_ns(run)[0] == starts
    assert len(run.output_times_ns(0)) == 2 and run.stays()[0] == [range(2)]


def test_a_group_is_not_over_while_one_of_it_waits() -> None:
    load = [Request(0, 4, 3, tool_waits=(ToolWait(2, 100),)), Request(0, 4, 2), Request(0, 4, 1)]
    run = walk(load, fixed_batch(2), STEP)
    assert list(run.started_ns) == [0, 0, 130]
    assert walk(load, continuous(2), STEP).started_ns[2] == 20


def test_no_draft_runs_past_the_output_that_calls_a_tool() -> None:
    setup = SpeculationSetup(GivenAcceptance(4, ((4,),)))
    load = [Request(0, 8, 9, tool_waits=(ToolWait(3, 50), ToolWait(4, 50)))]
    run = walk(load, continuous(1), STEP, PoolSetup(9, 2), setup)
    assert run.rounds == {0: [Round(1, 1, 2), Round(3, 4, 5)]}, "to the fourth output there is no room for a draft"
    assert run.output_times_ns(0) == [10, 20, 20, 80, *[140] * 5]


def test_tools_are_called_once_even_if_the_output_is_computed_again() -> None:
    load = [Request(0, 4, 9), Request(0, 4, 6, tool_waits=(ToolWait(3, 5),))]
    run = walk(load, continuous(2), STEP, PoolSetup(7, 2))
    assert run.preemptions and run.completed.all()
    assert [each.back_ns - int(run.end_of([each.first - 1])[0]) for each in run.absences[1]] == [5]


# Beside a plain run


def random_case(draw: Random) -> tuple[list[Request], Policy, PoolSetup, SpeculationSetup, StepTime]:
    """A small load, many of which call tools, in a pool that hardly holds them."""
    load = with_tools([replace(request, ids=None) for request in random_pooled_load(draw)], draw)
    rows, chunk = draw.randint(1, 5), draw.randint(1, 60)
    policy = draw.choice(
        [continuous(rows), chunked(rows, chunk, rows + draw.randint(0, 60)), Policy(rows, Entry.WHEN_ALL_ENDED)]
    )
    pool = replace(random_pool(draw, load), findable=Findable.NEVER)
    if pool.gate == Gate.RESERVE:
        pool = PoolSetup(pool.blocks, pool.block_tokens)
    length = draw.choice([0, 0, 1, 4])
    rights = tuple(tuple(draw.randint(0, length) for _ in range(4)) for _ in range(3))
    setup = SpeculationSetup(GivenAcceptance(length, rights)) if length else PLAIN
    return load, policy, pool, setup, draw.choice([Fit(10**7, 10**5, 10), Fit(10, 2, 1), STEP])


def plainly(run: Schedule, policy: Policy, pool: PoolSetup, setup: SpeculationSetup, model: StepTime) -> PlainWaits:
    def step_ns(parts: list[tuple[int, int, int]]) -> int:
        plan = step_plan(*((new + drafted, kv) for new, drafted, kv in parts))
        return model(verifying(plan, sum(drafted for _, drafted, _ in parts)))

    return plain_waits(
        run.requests, policy.max_running, policy.most_per_request, policy.most_per_step, pool.block_tokens,
        pool.blocks, pool.gate, setup.draft_tokens, setup.acceptance.accepted, step_ns,
        policy.entry == Entry.WHEN_ALL_ENDED,
    )  # fmt: skip


def changes(held: Occupancy) -> list[tuple[int, int]]:
    """When a total changes, and to what."""
    levels = [0, *held.total.tolist(), 0]
    return [
        (at, level)
        for at, before, level in zip(held.times_ns.tolist(), levels, levels[1:], strict=False)
        if level != before
    ]


def plain_changes(plain: PlainWaits) -> list[tuple[int, int]]:
    """The same of the blocks in the plain run: after all that happens at one time."""
    times = sorted({at for one in plain.all for at, _ in one.blocks})
    held = [sum(next((n for at, n in reversed(one.blocks) if at <= time), 0) for one in plain.all) for time in times]
    return [(at, level) for at, before, level in zip(times, [0, *held], held, strict=False) if level != before]


def joined(of_one: Sequence[Span]) -> list[Span]:
    """The spans, with neighbours of one phase as one."""
    found = list[Span]()
    for span in of_one:
        if found and found[-1].phase == span.phase:
            span = Span(span.phase, found.pop().start_ns, span.end_ns)
        found.append(span)
    return found


def check_beside_plain(seed: int) -> Schedule:
    draw = Random(seed)
    load, policy, pool, setup, model = random_case(draw)
    run = simulate(load, policy, model, pool, setup)
    plain = plainly(run, policy, pool, setup, model)
    for place, one in enumerate(plain.all):
        assert run.output_times_ns(place) == one.outputs
        walked = [Span(PHASES[state], at, beyond) for (at, state), (beyond, _) in pairwise(one.states) if at < beyond]
        assert joined(spans(run)[place]) == joined(walked)
        assert one.states[-1] == (left_ns(run)[place], GONE)
    assert [(one.at_ns, one.place) for one in run.preemptions] == plain.preempted
    assert [sorted(place for place in rows if place is not None) for rows in run.rows_by_step()] == [
        sorted(rows) for rows in plain.rows
    ]
    assert changes(kv_held(run, pool.block_tokens)) == plain_changes(plain)
    return run


def check_any(run: Schedule, pool: PoolSetup | None) -> None:
    """What holds for any run, with tools or without."""
    present, held = in_system(run), kv_held(run)
    assert held.peak == run.peak_kv_tokens
    assert pool is None or pool.findable != Findable.NEVER or kv_held(run, pool.block_tokens).peak == run.peak_blocks
    computing, gone = 0, {one.place for one in run.cancellations}
    for place, of_one in enumerate(spans(run)):
        assert of_one[0].start_ns == run.requests[place].arrival_ns and of_one[-1].end_ns == left_ns(run)[place]
        assert all(earlier.end_ns == later.start_ns for earlier, later in pairwise(of_one))
        computing += sum(span.end_ns - span.start_ns for span in of_one if span.phase == Phase.COMPUTING)
        if run.last_output_step[place] >= 0:
            paid = bill(run, place).booked_ns
            waits = [wait.wait_ns for wait in run.requests[place].tool_waits]
            assert place in gone or paid.get(Account.TOOL, 0) == sum(waits)
        intervals = run.intervals_ns(place)
        assert run.longest_interval_ns[place] == max(intervals, default=0)
        assert place in gone or len(intervals) == run.requests[place].output - 1
    rows = [sum(place is not None for place in each) for each in run.rows_by_step()]
    lengths = [step.end_ns - step.start_ns for step in run.steps()]
    assert computing == sum(number * length for number, length in zip(rows, lengths, strict=True))
    assert computing == present.area(Phase.COMPUTING)
    end = int(present.times_ns[-1])
    whole = seen(run, 0, end)
    assert whole.carried_in_ns == whole.carried_out_ns == 0 and whole.inside_ns == present.area()
    for start, beyond in ((0, end // 2 + 1), (end // 3, end), (end // 4, end // 4 + 1 + end // 3)):
        window = seen(run, start, beyond)
        assert window.inside_ns == present.within(start, beyond).area()


@pytest.mark.parametrize("block", range(3))
def test_the_loop_equals_a_plain_run(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        check_beside_plain(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(6))
def test_the_loop_equals_a_plain_run_thousands_of_times(block: int) -> None:
    runs = [check_beside_plain(seed) for seed in range(1000 + 500 * block, 1500 + 500 * block)]
    assert any(run.preemptions for run in runs) and any(run.cancellations for run in runs)


def check_little(seed: int) -> Schedule:
    """Any load, policy, gate, pool and acceptance; blocks may be found again."""
    draw = Random(seed)
    load = with_tools(random_pooled_load(draw), draw, often=draw.choice([0, 1]))
    pool, policy, model = random_pool(draw, load), random_policy(draw, load), draw.choice(MODELS)
    acceptance = DrawnAcceptance((0.7, 0.5), draw.randint(0, 99))
    setup = draw.choice([PLAIN, PLAIN, SpeculationSetup(acceptance)])
    run = simulate(load, policy, model, pool, setup)
    check_any(run, pool)
    states = replay(run, pool)
    assert len(states) == run.step_count + 1 and not states[-1].tables
    without = simulate([replace(request, cached_prefix=0) for request in load], policy, model, None, setup)
    check_any(without, None)
    return run


@pytest.mark.parametrize("block", range(3))
def test_little_holds_in_every_run(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        check_little(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(6))
def test_little_holds_in_thousands_of_runs(block: int) -> None:
    runs = [check_little(seed) for seed in range(1000 + 400 * block, 1400 + 400 * block)]
    assert any(run.preemptions for run in runs) and any(run.cancellations for run in runs)
    assert any(run.absences for run in runs) and any(run.rounds for run in runs)


class _Free(StepTime):
    """Steps take no time."""

    def __call__(self, plan: StepPlan) -> int:
        return 0


def test_a_pool_that_holds_each_request_alone_ends_whatever_the_gate() -> None:
    """Small pools, long waits, every gate, even where steps take no time: all requests give all their outputs."""
    for seed in range(40):
        draw = Random(seed)
        arrivals = sorted(draw.choice([0, 5]) for _ in range(4))
        load = with_tools([Request(at, draw.randint(1, 9), draw.randint(2, 12)) for at in arrivals], draw, 1)
        blocks = max(-(-request.most_tokens // 2) for request in load)
        for gate in Gate:
            setup = PoolSetup(blocks, 2, gate, int(gate == Gate.RESERVE and blocks > 1))
            for model in (STEP, _Free()):
                run = walk(load, chunked(3, draw.randint(1, 5), 8), model, setup)
                assert run.completed.all() and not run.refused


def test_without_tools_nothing_is_recorded() -> None:
    run = simulate([Request(0, 20, 5)], continuous(1), FIT)
    assert run.absences == {} and Account.TOOL not in bill(run, 0).booked_ns


@pytest.mark.parametrize(
    ("waits", "parameter"),
    [
        ((ToolWait(3, 5),), "tool_waits"),
        ((ToolWait(2, 5), ToolWait(2, 5)), "tool_waits"),
        ((ToolWait(2, 5), ToolWait(1, 5)), "tool_waits"),
        (((2, 5),), "tool_waits"),
        (5, "tool_waits"),
        (None, "tool_waits"),
        ("ab", "tool_waits"),
        (ToolWait(1, 1), "tool_waits"),
    ],
    ids=["after the last", "twice", "falling", "no ToolWait", "a number", "nothing", "text", "one alone"],
)
def test_waits_that_make_no_sense_are_refused(waits: Any, parameter: str) -> None:
    with pytest.raises(InputError) as refused:
        Request(0, 8, 3, tool_waits=waits)
    assert refused.value.parameter == parameter


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None, "1", 2**63])
def test_a_wait_is_a_whole_time_after_a_whole_output(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^output is "):
        ToolWait(wrong, 5)
    with pytest.raises(InputError, match=r"^wait_ns is "):
        ToolWait(1, wrong)


def test_a_list_of_waits_is_kept_as_a_tuple() -> None:
    waits = [ToolWait(1, 5), ToolWait(2, 5)]
    request = Request(0, 8, 3, tool_waits=waits)  # type: ignore[arg-type]
    waits.clear()
    assert len(request.tool_waits) == 2 and hash(request)
