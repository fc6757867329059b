"""Answers that were asked for again: what a task takes with the failed answer and without, against the record."""

from typing import Any

import pytest

from lib.checks import InputError
from lib.records import record
from lib.retries import (
    Added,
    Answer,
    Documents,
    TaskRun,
    added_by_retries,
    expected_task_time,
    last_answer_per_solved_task,
    recorded_runs,
    time_per_solved_task,
)

FAILED, GOOD = Answer(1.0, 46, False), Answer(1.5, 40, True)


@pytest.mark.parametrize("documents", Documents)
def test_the_runs_are_the_record_row_by_row(documents: Documents) -> None:
    rows, runs = record("retries").where(documents=documents), recorded_runs(documents)
    assert len({(run.task, run.run) for run in runs}) == len(rows) == len(runs)
    for row, run in zip(rows, runs, strict=True):
        assert (run.task, run.run, run.task_s) == (row["task"], row["run"], row["task_s"])
        assert run.answers[0].generation_s == row["first_s"]
        assert [one.generation_s for one in run.answers[1:]] == ([row["retry_s"]] if row["retry_s"] else [])
        assert {one.tokens for one in run.answers} == {row["answer_tokens"]}
        assert run.solved
        assert 0.001 < run.beside_s < 0.004


def test_both_retries_are_of_one_known_document_and_none_of_a_new_one() -> None:
    retried = [(run.task, run.run) for run in recorded_runs(Documents.KNOWN) if len(run.answers) > 1]
    assert retried == [("known-01", 1), ("known-01", 2)]
    assert added_by_retries(recorded_runs(Documents.NEW)) == Added(0, 0, 0, 0)
    new = recorded_runs(Documents.NEW)
    assert time_per_solved_task(new) == last_answer_per_solved_task(new)


def test_the_failed_answer_stays_in_the_sum() -> None:
    runs = [
        TaskRun("a", 1, (FAILED, GOOD), 2.7),
        TaskRun("b", 1, (GOOD,), 1.6),
        TaskRun("c", 1, (FAILED, FAILED), 2.0),
    ]
    assert time_per_solved_task(runs) == (2.5 + 1.5 + 2.0) / 2
    assert last_answer_per_solved_task(runs) == 1.5
    assert added_by_retries(runs) == Added(2, 1, 2.5, 86)
    assert [run.solved for run in runs] == [True, True, False]
    assert runs[0].beside_s == pytest.approx(0.2)
    assert runs[0].tokens == 86


def test_shares_and_means_give_the_time_of_the_recorded_tasks() -> None:
    runs = recorded_runs(Documents.KNOWN)
    first = sum(run.answers[0].generation_s for run in runs) / len(runs)
    added = added_by_retries(runs)
    expected = expected_task_time(first, added.retries / len(runs), added.generation_s / added.retries)
    assert expected == pytest.approx(time_per_solved_task(runs))


def test_a_sooner_first_answer_can_make_a_later_task() -> None:
    assert expected_task_time(0.9, 0.25, 1.0) > expected_task_time(1.0, 0.125, 1.0)


@pytest.mark.parametrize("count", [time_per_solved_task, last_answer_per_solved_task])
@pytest.mark.parametrize("runs", [[], [TaskRun("c", 1, (FAILED,), 1.0)]], ids=["none", "unsolved"])
def test_a_time_per_solved_task_needs_one(count: Any, runs: list[TaskRun]) -> None:
    with pytest.raises(InputError, match=r"^runs is .*; allowed: tasks of which at least one was right in the end$"):
        count(runs)


@pytest.mark.parametrize(
    "answers, task_s, named",
    [
        ((), 1, "answers"),
        ((GOOD, GOOD), 4, "answers"),
        ((GOOD, FAILED), 4, "answers"),
        (None, 1, "answers"),
        ([GOOD], 4, "answers"),
        (("right",), 4, "answers"),
        ((Answer(1.0, 46, "x"),), 1, "right"),  # type: ignore[arg-type]
        ((Answer(-1.0, 46, True),), 1, "generation_s"),
        ((Answer(float("nan"), 46, True),), 1, "generation_s"),
        ((Answer(1.0, 0, True),), 1, "tokens"),
        ((GOOD,), 1.4, "task_s"),
        ((GOOD,), "2", "task_s"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(answers: Any, task_s: Any, named: str) -> None:
    with pytest.raises(InputError) as refusal:
        TaskRun("a", 1, answers, task_s)
    assert refusal.value.parameter == named
