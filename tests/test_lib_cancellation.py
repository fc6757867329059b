"""A cancelled request's blocks: the recorded counts and order, and the model against plain arithmetic."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.cancellation import Cancellation, DeviceStep, Level, cancel, recorded
from lib.checks import InputError
from lib.records import record
from lib.step_time import NS

RETURNED_NS, FREE, OF_R3 = 1_548_400, 35, 104
# What a reader can set, on a grid.
phases, step_times, depths = (
    st.integers(0, 100),
    st.integers(10, 400).map(lambda tenths: tenths / 1e4),
    st.integers(1, 2),
)
needs = st.integers(1, FREE + OF_R3)


def test_the_recorded_run_adds_up() -> None:
    seen, run = recorded(), record("preemption").one(run="small_pool_one_cancelled")
    assert (seen.returned_s, seen.freed_s) == (0.0015484, 0.03141)
    assert (seen.free_before, seen.request_blocks, seen.free_after) == (35, 104, 139)
    assert seen.free_before + seen.request_blocks == seen.free_after
    assert run["pool_blocks"] - run["reserved_blocks"] - seen.free_before == run["peak_request_blocks"] == 419
    # r3 had its prompt and 128 outputs; the three others have as many blocks as each other.
    assert seen.request_blocks * 16 == run["input_tokens_per_request"] + 128
    assert (419 - seen.request_blocks) % (run["requests"] - 1) == 0


def test_the_model_has_the_order_and_the_counts_of_the_record() -> None:
    run, seen = cancel(0, 0.03, 1, 100), recorded()
    assert run.levels == (
        Level(0, 35, 0, 104),
        Level(RETURNED_NS, 35, 104, 0),
        Level(30_000_000, 139, 0, 0),
        Level(30_000_000, 39, 0, 0),
    )
    assert run.steps == (DeviceStep(0, 30_000_000, True), DeviceStep(30_000_000, 60_000_000, False))
    assert (run.returned_s, run.freed_s, run.admitted_s, run.free_after) == (seen.returned_s, 0.03, 0.03, 139)
    assert run.returned_s < run.freed_s


def test_a_step_time_and_a_phase_that_nobody_recorded_give_the_recorded_time() -> None:
    assert cancel(0, recorded().freed_s, 1, 100).freed_s == recorded().freed_s


@given(phases, step_times, depths, needs)
def test_blocks_are_free_when_the_last_step_submitted_before_the_return_is_complete(
    phase: int, step_time: float, in_flight: int, needed: int
) -> None:
    run, step_ns = cancel(phase, step_time, in_flight, needed), round(step_time * NS)
    first_border = step_ns - step_ns * phase // 100
    borders_before_return = len(range(first_border, RETURNED_NS, step_ns))
    expected = first_border + (in_flight - 1 + borders_before_return) * step_ns
    assert run.freed_s == expected / NS
    assert run.admitted_s == (0 if needed <= FREE else run.freed_s)
    assert run.returned_s <= run.freed_s


@given(phases, step_times, depths, needs)
def test_no_block_is_lost_and_none_is_free_early(phase: int, step_time: float, in_flight: int, needed: int) -> None:
    run = cancel(phase, step_time, in_flight, needed)
    taken = 0
    for before, after in pairwise(run.levels):
        gained = sum(after[1:]) - sum(before[1:])
        assert gained in (0, -needed)
        taken -= gained
    assert taken == needed
    for level in run.levels:
        assert level.held + level.waiting in (0, OF_R3)
        assert (level.held > 0) == (level.start_ns < RETURNED_NS)
        assert (level.waiting > 0) == (RETURNED_NS <= level.start_ns < round(run.freed_s * NS))
    assert run.levels[-1].free == FREE + OF_R3 - needed
    assert run.free_after == run.levels[-1].free + (needed if needed > FREE else 0)


@given(phases, step_times, depths, needs)
def test_steps_follow_one_another_and_the_last_with_the_request_ends_as_it_is_freed(
    phase: int, step_time: float, in_flight: int, needed: int
) -> None:
    run, step_ns = cancel(phase, step_time, in_flight, needed), round(step_time * NS)
    assert run.steps[0].start_ns == -(step_ns * phase // 100)
    assert all(one.end_ns == following.start_ns for one, following in pairwise(run.steps))
    assert {step.end_ns - step.start_ns for step in run.steps} == {step_ns}
    assert last_with_request(run).end_ns == round(run.freed_s * NS)
    assert [step.has_cancelled for step in run.steps] == sorted((s.has_cancelled for s in run.steps), reverse=True)


def last_with_request(run: Cancellation) -> DeviceStep:
    return [step for step in run.steps if step.has_cancelled][-1]


def test_a_call_just_before_the_border_costs_a_whole_step_more() -> None:
    assert cancel(94, 0.03, 1, 100).freed_s == 0.0018
    assert cancel(95, 0.03, 1, 100).freed_s == 0.0315


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"phase_percent": 101}, r"^phase_percent is 101; allowed: a whole number from 0 to 100$"),
        ({"step_time": 0.0009}, r"^step_time is 0.0009; allowed: a time from 0.001 s to 1 s$"),
        ({"step_time": 1.1}, r"^step_time is 1.1; allowed: a time from 0.001 s to 1 s$"),
        ({"in_flight": 3}, r"^in_flight is 3; allowed: a whole number from 1 to 2$"),
        ({"needs_blocks": 140}, r"^needs_blocks is 140; allowed: a whole number from 1 to 139$"),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_refused(settings: dict[str, float], message: str) -> None:
    right = {"phase_percent": 50, "step_time": 0.03, "in_flight": 1, "needs_blocks": 100}
    with pytest.raises(InputError, match=message):
        cancel(**right | settings)  # type: ignore[arg-type]
