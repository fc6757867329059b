"""Little's law by itself: plain sums over stays, windows that cut, and the made load that calls tools."""

from random import Random
from typing import Any

import pytest

from lib.arrivals import Arrivals
from lib.checks import InputError
from lib.fast_forward import simulate
from lib.little import (
    Phase,
    in_system,
    kv_held,
    left_ns,
    mean_in_window,
    requests_in_system,
    seen,
    spans,
)
from lib.residency import PoolSetup
from lib.scheduling import Request, continuous, walk
from lib.step_time import NS, Fit
from lib.tool_load import ARRIVING_S, OUTPUTS, ToolLoad
from lib.units import GIB
from tests.loads import MODELS, random_load, random_policy

STEP = Fit(10, 0, 0)


def test_the_example() -> None:
    assert requests_in_system(4, 0.5) == 2 and requests_in_system(4, 2) == 8
    assert requests_in_system(0, 2) == requests_in_system(4, 0) == 0


def test_a_window_counts_what_lies_in_it_of_each_stay() -> None:
    stays = [(0, 1), (0.5, 3), (2, 2), (2.5, 9)]
    assert mean_in_window(stays, 0, 10) == pytest.approx((1 + 2.5 + 0 + 6.5) / 10)
    assert mean_in_window(stays, 1, 3) == pytest.approx((0 + 2 + 0 + 0.5) / 2)
    assert mean_in_window(iter(stays), 9, 10) == mean_in_window([], 0, 1) == 0


def test_the_mean_is_what_one_counts_at_many_moments() -> None:
    draw = Random(8)
    stays = [(start := draw.random() * 9, start + draw.random() * 4) for _ in range(50)]
    moments = [2 + 5 * (place + 0.5) / 20_000 for place in range(20_000)]
    counted = sum(came <= at < left for came, left in stays for at in moments) / len(moments)
    assert mean_in_window(stays, 2, 7) == pytest.approx(counted, abs=2e-3)


@pytest.mark.parametrize("seed", range(15))
def test_occupancy_is_what_one_counts_at_any_moment(seed: int) -> None:
    draw = Random(seed)
    load = random_load(draw)
    run = simulate(load, random_policy(draw, load), draw.choice(MODELS))
    present, held = in_system(run), kv_held(run)
    left, steps = left_ns(run).tolist(), list(run.steps())
    for at in [draw.randrange(max(left) + 5) for _ in range(15)]:
        now = present.within(at, at + 1)
        assert now.total.tolist() == [sum(one.arrival_ns <= at < gone for one, gone in zip(load, left, strict=True))]
        for phase in Phase:
            counted = sum(
                span.phase == phase and span.start_ns <= at < span.end_ns for one in spans(run) for span in one
            )
            assert now.by_phase[phase].tolist() == [counted]
        begun = [part for step in steps if step.start_ns <= at for part in step.parts]
        tokens = {part.place: part.context + part.new_tokens for part in begun if at < left[part.place]}
        assert held.within(at, at + 1).total.tolist() == [sum(tokens.values())]


def test_a_run_in_few_stretches_is_counted_like_one_in_many_steps() -> None:
    load = [Request(0, 40, 300), Request(900, 10, 50, cancel_ns=1500), Request(1700, 30, 20)]
    long, short = (run(load, continuous(2), STEP, PoolSetup(60, 8)) for run in (simulate, walk))
    assert len(long.stretches) < len(short.stretches)
    for one, other in ((in_system(long), in_system(short)), (kv_held(long, 8), kv_held(short, 8))):
        assert one.times_ns.tolist() == other.times_ns.tolist()
        assert all(one.by_phase[phase].tolist() == other.by_phase[phase].tolist() for phase in Phase)


def test_what_a_window_cuts_is_the_whole_difference() -> None:
    run = simulate([Request(0, 4, 5), Request(20, 4, 5), Request(40, 4, 5)], continuous(3), STEP)
    window = seen(run, 10, 60)
    assert (window.arrived, window.stays_ns) == (2, 100)
    assert (window.carried_in_ns, window.carried_out_ns, window.inside_ns) == (40, 10 + 30, 100)
    first = seen(run, 0, 30)
    assert (first.by_the_law, first.in_system) == pytest.approx((100 / 30, 40 / 30)), "nobody is there at its begin"
    empty = seen(run, 200, 300)
    assert (empty.arrived, empty.rate_per_s, empty.mean_stay_s, empty.by_the_law, empty.in_system) == (0, 0, 0, 0, 0)


def test_nobody_in_a_window_beyond_the_run() -> None:
    run = simulate([Request(5, 4, 5)], continuous(1), STEP)
    assert in_system(run).within(100, 200).total.tolist() == [0]
    assert in_system(run).times_ns[0] == 0 and in_system(run).total.tolist() == [0, 1]


LOADS = [
    ToolLoad(),
    ToolLoad(wait_s=0),
    ToolLoad(wait_s=3),
    ToolLoad(2.5, 1.5, 4),
    ToolLoad(arrivals=Arrivals.POISSON),
    ToolLoad(5, 10),
    ToolLoad(max_running=1),
    ToolLoad(4, 3, pool_bytes=2 * GIB),
]


@pytest.mark.parametrize("load", LOADS, ids=range(len(LOADS)))
def test_the_law_holds_for_the_whole_run_of_each_load(load: ToolLoad) -> None:
    assert load.run.completed.all() and not load.run.preemptions, "each enters only where all fit at their largest"
    assert load.whole_run.by_the_law == pytest.approx(load.present.mean(), rel=1e-12)
    assert len(load.requests) == round(load.rate_per_s * ARRIVING_S)
    waits = sum(wait.wait_ns for one in load.requests for wait in one.tool_waits)
    assert load.present.area(Phase.HOLDING) == waits == round(load.wait_s * NS) * len(load.requests)
    assert load.peak_bytes <= load.pool_bytes and load.held.peak == load.run.peak_blocks
    assert load.present.by_phase[Phase.COMPUTING].max() <= load.max_running


@pytest.mark.parametrize("wait", [0, 0.5, 1, 2, 3, 4])
@pytest.mark.parametrize("rate", [1, 2, 4])
def test_a_system_that_settles_has_rate_times_stay(rate: float, wait: float) -> None:
    load = ToolLoad(rate, wait)
    assert load.settled.mean() == pytest.approx(load.by_the_law, rel=0.03)
    assert load.settled.mean(Phase.HOLDING) == pytest.approx(rate * wait, rel=0.01, abs=0.01)
    assert load.settled.mean(Phase.COMPUTING) == pytest.approx(
        ToolLoad(rate, 0).settled.mean(Phase.COMPUTING), rel=0.03
    )


def test_overload_has_no_mean_to_settle_at() -> None:
    load = ToolLoad(max_running=1)
    thirds = [load.present.within(at * NS, (at + 4) * NS).mean(Phase.QUEUED) for at in (0, 4, 8)]
    assert thirds == sorted(thirds) and thirds[2] > 3 * thirds[0]
    assert load.by_the_law > 1.3 * load.settled.mean()


def test_a_tool_that_fills_the_pool_makes_others_queue_while_rows_are_free() -> None:
    load = ToolLoad(5, 10)
    queued, computing = load.present.by_phase[Phase.QUEUED], load.present.by_phase[Phase.COMPUTING]
    assert queued.max() > 5 and computing[queued > 5].max() < load.max_running
    assert load.present.peak - queued.max() <= load.fit


@pytest.mark.parametrize(
    "stays", [[(2, 1)], [(0, 1, 2)], [1, 2], 5, None, "ab", [("0", 1)], [(-1, 1)], [(0, float("nan"))], [(0, True)]],
    ids=repr,
)  # fmt: skip
def test_what_are_no_stays_is_refused(stays: Any) -> None:
    with pytest.raises(InputError, match=r"^stays is "):
        mean_in_window(stays, 0, 1)


@pytest.mark.parametrize("call", [left_ns, spans, in_system, kv_held, lambda run: seen(run, 0, 1)], ids=range(5))
@pytest.mark.parametrize("wrong", [None, [], "run"], ids=repr)
def test_what_is_no_schedule_is_refused(call: Any, wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^schedule is "):
        call(wrong)


def test_windows_without_length_are_refused() -> None:
    run = simulate([Request(0, 4, 5)], continuous(1), STEP)
    for start, end in ((5, 5), (5, 4), (-1, 4), (0, 2**63), (0.5, 4), (0, None)):
        for call in (in_system(run).within, lambda start, end: seen(run, start, end)):
            with pytest.raises(InputError, match=r"^(start|end)_ns is "):
                call(start, end)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"rate_per_s": 0}, "rate_per_s"), ({"rate_per_s": 0.01}, "rate_per_s"), ({"rate_per_s": 1e9}, "rate_per_s"),
        ({"rate_per_s": float("nan")}, "rate_per_s"), ({"wait_s": -1}, "wait_s"), ({"wait_s": True}, "wait_s"),
        ({"max_running": 0}, "max_running"), ({"max_running": 2.5}, "max_running"), ({"arrivals": "often"}, "arrivals"),
        ({"pool_bytes": 0}, "pool_bytes"), ({"seed": -1}, "seed"), ({"seed": None}, "seed"),
        ({"step_time": None}, "step_time"), ({"step_time": 0.03}, "step_time"),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_a_load_that_makes_no_sense_is_refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InputError) as refused:
        ToolLoad(**fields)
    assert refused.value.parameter == parameter


def test_a_pool_that_holds_none_of_them_is_refused() -> None:
    with pytest.raises(InputError, match="KV of one request at its end"):
        ToolLoad(pool_bytes=GIB // 4)
    assert ToolLoad(pool_bytes=GIB).fit == 3 and OUTPUTS == 16
