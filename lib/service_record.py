"""The recorded service: the same eight tasks by three ways of admission, at three rates of arrival, window by window.

Seven conditions, three windows each, 16 requests a window. The requests stand in the records one by one, and what the
chapter tells of a window follows from them. Source: section 8.6.2, figures 8-33 and 8-34, footnote 24.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import median

from lib import goodput
from lib.checks import InputError, one_of
from lib.goodput import Outcome, Window
from lib.records import record

# Whoever asks waits so long for an answer, from the planned arrival on.
DEADLINE_S = 3
# What is told of a window's times besides their longest: of 16 requests that is the same.
TAIL_PERCENT = 95


class Admission(StrEnum):
    """Who may enter the engine: one request while no other is in it, up to four, or four of all that come at once."""

    ONE_AT_A_TIME = "one at a time"
    CONTINUOUS = "continuous batching"
    ALL_AT_ONCE = "all at once"


@dataclass(frozen=True)
class Condition:
    """A way of admission and the planned arrivals per second, which is None where all come at once.

    Raises InputError for a way that is none, and for a rate that was not recorded with it.
    """

    admission: Admission
    arrivals_per_s: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "admission", one_of("admission", self.admission, Admission))
        rates = {row["arrivals_per_s"] for row in record("service_windows").where(admission=self.admission)}
        # A list, as what is asked for may have no hash.
        if self.arrivals_per_s not in list(rates) or isinstance(self.arrivals_per_s, bool):
            raise InputError("arrivals_per_s", self.arrivals_per_s, f"one of {sorted(rates, key=str)}")


@dataclass(frozen=True)
class RecordedWindow:
    """One window of the record: its requests, the task of each, and the energy of the device and its host in joules.

    The energy is a difference of counters over a little more than the window, with other services running.
    """

    condition: Condition
    number: int
    window: Window
    tasks: tuple[str, ...]
    longest_engine_queue_s: float
    energy_j: float

    def energy_per_qualified(self, deadline_s: float = DEADLINE_S) -> float:
        """Joules per right answer in time; that for the others is in it. Raises InputError without such an answer."""
        return goodput.energy_per_qualified(self.energy_j, self.window.qualified(deadline_s))


# In the order of figures 8-33 and 8-34.
CONDITIONS = tuple(
    dict.fromkeys(
        Condition(Admission(row["admission"]), row["arrivals_per_s"]) for row in record("service_windows").rows
    )
)


def recorded(condition: Condition) -> tuple[RecordedWindow, ...]:
    """The three windows of a condition. Raises InputError for what is none."""
    if not isinstance(condition, Condition):
        raise InputError("condition", condition, "a Condition, such as those in CONDITIONS")
    return _recorded(condition)


@cache
def _recorded(condition: Condition) -> tuple[RecordedWindow, ...]:
    where = {"admission": condition.admission, "arrivals_per_s": condition.arrivals_per_s}
    return tuple(
        _window(condition, row["window"], row["window_s"], row["gpu_j"] + row["cpu_package_j"])
        for row in record("service_windows").where(**where)
    )


def _window(condition: Condition, number: int, length_s: float, energy_j: float) -> RecordedWindow:
    rate = condition.arrivals_per_s
    rows = record("service_requests").where(admission=condition.admission, arrivals_per_s=rate, window=number)
    outcomes = []
    for row in rows:
        arrival = (row["request"] - 1) / rate if rate else 0.0
        sent, first, finish = (arrival + row[of] for of in ("application_queue_s", "ttft_s", "total_s"))
        outcomes.append(Outcome(arrival, sent, first, finish, row["right"] == 1))
    return RecordedWindow(
        condition=condition,
        number=number,
        window=Window(tuple(outcomes), length_s),
        tasks=tuple(row["task"] for row in rows),
        longest_engine_queue_s=max(row["engine_queue_s"] for row in rows),
        energy_j=energy_j,
    )


def all_windows() -> tuple[Window, ...]:
    """The 21 windows, condition by condition."""
    return tuple(each.window for condition in CONDITIONS for each in recorded(condition))


def middle(condition: Condition, quantity: Callable[[RecordedWindow], float]) -> float:
    """The median of a quantity over the three windows of a condition, as the chapter prints it."""
    return median(quantity(each) for each in recorded(condition))


def wrong_by_task() -> dict[str, int]:
    """How often the answer to each task was wrong, for the tasks that ever had a wrong one."""
    windows = [each for condition in CONDITIONS for each in recorded(condition)]
    answers = [answer for each in windows for answer in zip(each.tasks, each.window.outcomes, strict=True)]
    return dict(Counter(task for task, outcome in answers if not outcome.is_correct))


def by_planned_rate(window: RecordedWindow) -> float:
    """The planned rate of arrival times the mean stay: Little's number of requests in the system, if that were steady.

    Where requests come faster than they leave it is not, and this can be more than there are requests: then the rate
    that the window saw, its throughput, gives their mean. Raises InputError for what is no window of the record, and
    where all come at once, without a rate.
    """
    if not isinstance(window, RecordedWindow):
        raise InputError("window", window, "a RecordedWindow, such as recorded() gives")
    rate = window.condition.arrivals_per_s
    if rate is None:
        raise InputError("condition", window.condition, "one with a rate of arrivals")
    return rate * window.window.mean_stay_s
