"""A trial of a service: the recorded tasks at planned times through one setting of the engine, request by request.

Two settings can be compared if tasks and arrivals are the same. Steps take what was calibrated on the recorded service
alone; an answer is right or wrong by its task, as in the record. Source: section 8.6.2, exercise 8-9.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lib.checks import InputError, keep_whole
from lib.fast_forward import simulate
from lib.goodput import Outcome, Window
from lib.memory import MOST_BYTES
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Policy
from lib.service_calibration import MOST_RUNNING, POOL, TOKEN_BUDGET, WRONG_TASK, requests_of, service_step
from lib.step_time import MOST_TOKENS, NS


@dataclass(frozen=True)
class Setting:
    """What is varied: requests that run at once, tokens of a step, bytes of the pool for KV. By default the record's.

    Raises InputError for what makes no sense, such as fewer tokens of a step than requests that run.
    """

    name: str
    most_running: int = MOST_RUNNING
    token_budget: int = TOKEN_BUDGET
    pool_bytes: int = POOL.pool_bytes

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("name", self.name, "a name, such as 'as recorded'")
        keep_whole(self, MOST_TOKENS, most_running=1)
        keep_whole(self, MOST_TOKENS, token_budget=self.most_running)
        keep_whole(self, MOST_BYTES, pool_bytes=POOL.bytes_of(1))


class Row(NamedTuple):
    """One request of a trial: its task, then seconds from the start of the window; whether its answer is right."""

    task: str
    planned_s: float
    started_s: float
    first_output_s: float
    end_s: float
    is_correct: bool


@dataclass(frozen=True)
class Trial:
    """What came of a setting: a row for each request, the most bytes of KV held at once, preemptions."""

    setting: Setting
    rows: tuple[Row, ...]
    window_s: float
    peak_bytes: int
    preemptions: int

    @property
    def window(self) -> Window:
        """The same as a window, whose goodput and times `lib.goodput` tells."""
        outcomes = (
            Outcome(row.planned_s, row.planned_s, row.first_output_s, row.end_s, row.is_correct) for row in self.rows
        )
        return Window(tuple(outcomes), self.window_s)


def run_trial(setting: Setting, tasks: Sequence[str], arrivals_ns: Sequence[int]) -> Trial:
    """These tasks of the record, planned for these times (ns), through one setting of the engine.

    A request is sent at its planned time and waits inside of the engine for a row and for room in the pool, which must
    have what it may become. Raises InputError for what is no task, arrivals out of order, and a pool too small for one.
    """
    if not isinstance(setting, Setting):
        raise InputError("setting", setting, "a Setting, such as Setting('as recorded')")
    load = requests_of(tasks, arrivals_ns)
    pool = PoolSetup(setting.pool_bytes // POOL.bytes_of(1), POOL.page_tokens, Gate.FINAL_SIZE)
    if not all(pool.can_ever_hold(request) for request in load):
        raise InputError("pool_bytes", setting.pool_bytes, "a pool that holds each of the tasks by itself")
    policy = Policy(setting.most_running, token_budget=setting.token_budget)
    run = simulate(load, policy, service_step(), pool)
    return Trial(
        setting=setting,
        rows=tuple(_rows(run, tasks)),
        window_s=run.total_ns / NS,
        peak_bytes=(run.peak_blocks or 0) * POOL.bytes_of(1),
        preemptions=len(run.preemptions),
    )


def _rows(run: Schedule, tasks: Sequence[str]) -> list[Row]:
    times = zip(
        (run.arrival_ns / NS).tolist(),
        (run.started_ns / NS).tolist(),
        (run.first_token_ns / NS).tolist(),
        (run.finish_ns / NS).tolist(),
        strict=True,
    )
    return [Row(task, *each, task != WRONG_TASK) for task, each in zip(tasks, times, strict=True)]
