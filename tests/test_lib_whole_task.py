"""What a faster part makes of a whole task: the book's numbers, seconds counted in slices, and recorded runs."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest

from lib.checks import InputError
from lib.records import record
from lib.whole_task import (
    DECODE_S,
    DECODE_SHARES,
    DECODE_SPEEDUP,
    LESS_DECODE_S,
    TASK_S,
    AgentTask,
    FasterPart,
    agent_tasks,
    ceiling,
    span_per_fixed,
    task_speedup,
)

DRAW = random.Random(836)
TASKS = [
    FasterPart(task_s, task_s * DRAW.random(), 1 + 20 * DRAW.random() ** 2, task_s * DRAW.random())
    for task_s in (10 ** DRAW.uniform(-3, 6) for _ in range(60))
]
WHOLE_S = [(DRAW.randint(1, 60), DRAW.randint(0, 60), DRAW.randint(1, 9), DRAW.randint(0, 60)) for _ in range(60)]


def counted(other_s: int, part_s: int, speedup: int, preparation_s: int) -> Fraction:
    """The new time of a task, by what is done in each of so many slices of a second."""
    to_do, slices = part_s * speedup, 0
    while to_do > 0:
        to_do -= speedup
        slices += 1
    return other_s + preparation_s + Fraction(slices, speedup)


@pytest.mark.parametrize("whole_s", WHOLE_S, ids=str)
def test_the_new_time_by_counting_slices(whole_s: tuple[int, int, int, int]) -> None:
    other_s, part_s, speedup, preparation_s = whole_s
    one = FasterPart(other_s + part_s, part_s, speedup, preparation_s)
    assert one.new_task_s == pytest.approx(float(counted(*whole_s)))
    assert one.net_speedup == pytest.approx((other_s + part_s) / float(counted(*whole_s)))


def test_the_books_two_tasks() -> None:
    half, fifth = (FasterPart(TASK_S, part_s, DECODE_SPEEDUP) for part_s in (DECODE_S, LESS_DECODE_S))
    assert (half.new_task_s, half.net_speedup) == (62.5, 1.6)
    assert fifth.new_task_s == 85
    assert fifth.net_speedup == pytest.approx(100 / 85)
    assert [ceiling(part) for part in DECODE_SHARES] == pytest.approx([1.25, 2, 5])


def test_amdahls_law_with_preparation_below_the_line() -> None:
    assert task_speedup(0.5, 4) == pytest.approx(1 / (0.5 + 0.5 / 4))
    assert task_speedup(0.5, 4, 0.08) == pytest.approx(1 / (0.5 + 0.5 / 4 + 0.08))
    assert task_speedup(0, 9) == task_speedup(1, 1) == 1
    assert task_speedup(1, 9) == pytest.approx(9)


@pytest.mark.parametrize("one", TASKS, ids=lambda one: f"{one.task_s:.3g} {one.part:.2f}")
class TestAnyTask:
    def test_the_speedup_is_the_old_time_over_the_new(self, one: FasterPart) -> None:
        assert one.net_speedup == pytest.approx(one.task_s / one.new_task_s)

    def test_with_the_preparation_of_break_even_nothing_is_gained(self, one: FasterPart) -> None:
        at_break_even = FasterPart(one.task_s, one.part_s, one.speedup, one.break_even_s)
        assert at_break_even.new_task_s == pytest.approx(one.task_s)
        assert at_break_even.net_speedup == pytest.approx(1)
        assert (one.net_speedup > 1) == (one.preparation_s < one.break_even_s)

    def test_faster_still_is_better_and_never_reaches_the_ceiling(self, one: FasterPart) -> None:
        faster = [FasterPart(one.task_s, one.part_s, by, one.preparation_s) for by in (1, 2, 10, 100, 10**6, 10**9)]
        gains = [each.net_speedup for each in faster]
        assert gains == sorted(gains)
        assert gains[-1] == pytest.approx(one.ceiling)
        assert all(gain <= one.ceiling for gain in gains)

    def test_the_new_shares_add_up(self, one: FasterPart) -> None:
        others = (one.task_s - one.part_s + one.preparation_s) / one.new_task_s
        assert one.new_share + others == pytest.approx(1)


def test_a_task_that_is_all_one_part_has_no_ceiling() -> None:
    assert ceiling(1) == FasterPart(10, 10, 2).ceiling == math.inf
    assert ceiling(1, 0.5) == 2


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"task_s": 0}, "task_s"),
        ({"task_s": math.nan}, "task_s"),
        ({"task_s": 40}, "part_s"),
        ({"part_s": -1}, "part_s"),
        ({"part_s": math.nan}, "part_s"),
        ({"part_s": True}, "part_s"),
        ({"speedup": 0}, "speedup"),
        ({"speedup": 0.5}, "speedup"),
        ({"speedup": math.inf}, "speedup"),
        ({"speedup": "4"}, "speedup"),
        ({"preparation_s": -8}, "preparation_s"),
        ({"preparation_s": math.nan}, "preparation_s"),
        ({"preparation_s": None}, "preparation_s"),
    ],
    ids=str,
)
def test_a_task_that_makes_no_sense_is_refused(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises(InputError) as refusal:
        FasterPart(**{"task_s": 100, "part_s": 50, "speedup": 4, "preparation_s": 8} | wrong)
    assert refusal.value.parameter == name


def test_the_recorded_runs_are_those_of_the_record() -> None:
    rows = record("agent_task_times").rows
    assert [(task.rounds, task.model_s, task.tool_s, task.span_s) for task in agent_tasks()] == [
        (row["rounds"], row["model_http_s"], row["tool_s"], row["span_s"]) for row in rows
    ]
    assert [task.is_fixed for task in agent_tasks()] == [bool(row["fixed"]) for row in rows]


@pytest.mark.parametrize("task", agent_tasks(), ids=lambda task: f"{task.span_s} s")
def test_model_tools_and_rest_are_the_whole_run(task: AgentTask) -> None:
    assert task.model_s + task.tool_s + task.rest_s == pytest.approx(task.span_s)
    assert task.model_share + task.tool_share + task.rest_s / task.span_s == pytest.approx(1)
    assert 0 < task.rest_s < task.model_s


@pytest.mark.parametrize("task", agent_tasks(), ids=lambda task: f"{task.span_s} s")
def test_what_decode_could_bring_is_less_than_all_calls_could(task: AgentTask) -> None:
    most = task.most_from_decode(4)
    assert 1 < most < min(4, ceiling(task.model_share))
    for decode_share in (0.1, 0.5, 1):
        assert FasterPart(task.span_s, decode_share * task.model_s, 4).net_speedup <= most * (1 + 1e-12)


def test_runs_that_failed_count_for_those_that_did_not() -> None:
    spans = [task.span_s for task in agent_tasks()]
    assert span_per_fixed(agent_tasks()) == pytest.approx(sum(spans) / 2)
    assert span_per_fixed(agent_tasks()[2:3]) == spans[2]
    assert span_per_fixed(agent_tasks()[:2]) is None


@pytest.mark.parametrize("wrong", [(), None, [3.0]], ids=repr)
def test_what_are_no_runs_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^tasks is "):
        span_per_fixed(wrong)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 2.0}, "rounds"),
        ({"is_fixed": 1}, "is_fixed"),
        ({"model_s": -1}, "model_s"),
        ({"tool_s": math.nan}, "tool_s"),
        ({"span_s": 0}, "span_s"),
        ({"span_s": 2.9}, "span_s"),
    ],
    ids=str,
)
def test_a_run_that_makes_no_sense_is_refused(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises(InputError) as refusal:
        AgentTask(**{"rounds": 9, "is_fixed": True, "model_s": 2.0, "tool_s": 1.0, "span_s": 3.5} | wrong)
    assert refusal.value.parameter == name
