"""What a wrong answer costs in time: the answer that failed, the check, and the answer that was asked for again.

The recorded runs are another group than those of figures 8-26 to 8-28: FP8 weights, FP8 KV, first answers by the
default path and one more try with BF16 Q. Source: section 8.4.4, footnote 20.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from lib.checks import InputError, one_of, seconds, share, whole
from lib.records import record

ROUNDING = 1e-9  # sums of recorded times differ by less


class Documents(StrEnum):
    """Where the tasks come from: documents on which errors had been seen before, and documents not used before."""

    KNOWN = "known"
    NEW = "new"


class Answer(NamedTuple):
    """One generation: its time, its tokens, and whether the check found it right."""

    generation_s: float
    tokens: int
    right: bool


@dataclass(frozen=True)
class TaskRun:
    """One task from the first answer to the last check: its answers in order, and its whole time.

    The whole time has the checks and the switch between two ways of computing in it as well. Raises InputError for no
    answer, for a right one that is not the last, and for a whole time shorter than its parts.
    """

    task: str
    run: int
    answers: tuple[Answer, ...]
    task_s: float

    def __post_init__(self) -> None:
        is_right = isinstance(self.answers, tuple) and all(isinstance(answer, Answer) for answer in self.answers)
        if not is_right or not self.answers or any(answer.right for answer in self.answers[:-1]):
            allowed = "a tuple of at least one answer; after a right one none is asked for"
            raise InputError("answers", self.answers, allowed)
        for answer in self.answers:
            if not isinstance(answer.right, bool):
                raise InputError("right", answer.right, "True or False")
            seconds("generation_s", answer.generation_s)
            whole("tokens", answer.tokens, at_least=1)
        if seconds("task_s", self.task_s) + ROUNDING < self.generation_s:
            raise InputError("task_s", self.task_s, f"at least the time of its answers, {self.generation_s} s")

    @property
    def solved(self) -> bool:
        return self.answers[-1].right

    @property
    def generation_s(self) -> float:
        """Time of all its answers, wrong ones too."""
        return sum(answer.generation_s for answer in self.answers)

    @property
    def tokens(self) -> int:
        return sum(answer.tokens for answer in self.answers)

    @property
    def last_s(self) -> float:
        """Time of the last answer alone: what is left if the failed one is forgotten."""
        return self.answers[-1].generation_s

    @property
    def beside_s(self) -> float:
        """What is not generation: checks and switches."""
        return self.task_s - self.generation_s


@cache
def _recorded(documents: Documents) -> tuple[TaskRun, ...]:
    runs = []
    for row in record("retries").where(documents=documents):
        answers = [Answer(row["first_s"], row["answer_tokens"], row["retry_s"] is None)]
        if row["retry_s"] is not None:
            answers.append(Answer(row["retry_s"], row["answer_tokens"], row["retry_right"] == 1))
        runs.append(TaskRun(row["task"], row["run"], tuple(answers), row["task_s"]))
    return tuple(runs)


def recorded_runs(documents: Documents) -> tuple[TaskRun, ...]:
    """The recorded tasks over one kind of documents, as they were run (clock: measured). Source: record retries."""
    return _recorded(one_of("documents", documents, Documents))


def time_per_solved_task(runs: Sequence[TaskRun]) -> float:
    """Seconds of generation for each task that was right in the end; wrong answers stay in the sum.

    Raises InputError if no task was solved. Source: section 8.4.4.
    """
    return sum(run.generation_s for run in runs) / _solved(runs)


def last_answer_per_solved_task(runs: Sequence[TaskRun]) -> float:
    """The same with only the answers that were right in the sum: it leaves out what their predecessors took.

    Raises InputError if no task was solved. Source: exercise 8-6.
    """
    return sum(run.last_s for run in runs if run.solved) / _solved(runs)


def _solved(runs: Sequence[TaskRun]) -> int:
    solved = sum(run.solved for run in runs)
    if not solved:
        raise InputError("runs", runs, "tasks of which at least one was right in the end")
    return solved


class Added(NamedTuple):
    """What retries added: how many there were, how many were right, their time and tokens."""

    retries: int
    corrected: int
    generation_s: float
    tokens: int


def added_by_retries(runs: Sequence[TaskRun]) -> Added:
    """The answers after the first of each task, added up.

    The chapter's 2.0 s and 92 tokens are these: 2.04 s for two retries of 46 tokens each. The two failed first answers
    took as many tokens and 1.98 s, and one task with its retry 92 tokens and about 2.0 s: rounded, all are the same.
    Source: section 8.4.4, record retries.
    """
    again = [answer for run in runs for answer in run.answers[1:]]
    return Added(
        len(again),
        sum(answer.right for answer in again),
        sum(answer.generation_s for answer in again),
        sum(answer.tokens for answer in again),
    )


def expected_task_time(first_s: float, wrong_share: float, retry_s: float) -> float:
    """T = T_first + p_wrong T_retry: seconds on average where a wrong answer is asked for once more.

    A first answer that comes sooner and is wrong more often can make the task slower. Source: section 8.4.4.
    """
    return seconds("first_s", first_s) + share("wrong_share", wrong_share) * seconds("retry_s", retry_s)
