"""What a benchmark gives, and how to time things side by side."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Result:
    """One measured value beside another that was measured in the same call, with the bar it should keep.

    `at_most` is the bar, `reach_for` the better one; both in the value's unit, or nothing where there is no bar.
    """

    what: str
    value: float
    unit: str
    beside: str
    its_value: float
    at_most: float | None = None
    reach_for: float | None = None

    @property
    def ratio(self) -> float:
        return self.value / self.its_value

    @property
    def bar(self) -> str:
        """The bar in words; empty where there is none."""
        return "" if self.at_most is None else f"at most {self.at_most:.3g} (reach for {self.reach_for:.3g})"


Benchmark = Callable[[], list[Result]]


def median_seconds(*works: Callable[[], object], times: int) -> list[float]:
    """The median time of each piece of work, all of them taking turns, so that a busy moment hits all alike."""
    taken = [[_seconds(work) for work in works] for _ in range(times)]
    return [median(column) for column in zip(*taken, strict=True)]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
