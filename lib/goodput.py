"""What a service gives its users: answers that are right and in time, out of all that it completes.

A completed request that is wrong or late has used the device for nothing. Whoever waits outside of the engine waits
all the same, so a deadline counts from the planned arrival; to count from the sending hides that wait.
Source: section 8.6.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import and_

from lib.checks import InputError, finite, one_of, seconds, whole
from lib.latency import percentile

# More than any window of a service takes or completes: what is above was no energy and no number of requests.
MOST_ENERGY_J, MOST_COMPLETED = 1e15, 10**12


class Since(StrEnum):
    """From when a request's time counts: from its planned arrival, or from its sending into the engine."""

    PLANNED_ARRIVAL = "planned arrival"
    SENDING = "sending"


def completion_throughput(completed: int, length_s: float) -> float:
    """All completed requests over T_obs, in requests per second. Source: section 8.6.2."""
    return whole("completed", completed, at_most=MOST_COMPLETED) / seconds("length_s", length_s, above_zero=True)


def goodput(correct: Sequence[bool], in_time: Sequence[bool], length_s: float) -> float:
    """R_good = sum of Q_i D_i over T_obs, in requests per second: Q_i if request i is right, D_i if it is in time.

    Raises InputError for what is no truth value, and for sequences of different lengths. Source: section 8.6.2.
    """
    for name, values in (("correct", correct), ("in_time", in_time)):
        if not isinstance(values, Sequence):
            raise InputError(name, values, "a sequence of True and False")
        for value in values:
            _truth(name, value)
    if len(correct) != len(in_time):
        raise InputError("in_time", len(in_time), f"one value for each of the {len(correct)} requests")
    return sum(q * d for q, d in zip(correct, in_time, strict=True)) / seconds("length_s", length_s, above_zero=True)


def energy_per_qualified(energy_j: float, qualified: int) -> float:
    """E_obs / N_g, in joules: all energy of the window, that for wrong and late answers too, per qualified result.

    Raises InputError without a qualified result: then there is nothing to share the energy. Source: section 8.6.3.
    """
    allowed = f"an energy from 0 J to {MOST_ENERGY_J:g} J"
    energy = finite("energy_j", energy_j, 0, allowed)
    if energy > MOST_ENERGY_J:
        raise InputError("energy_j", energy_j, allowed)
    return energy / whole("qualified", qualified, at_least=1, at_most=MOST_COMPLETED)


def gpu_time_per_qualified(gpu_s: float, qualified: int) -> float:
    """T_GPU / N_g, in GPU seconds: all time of the device, that for wrong and late answers too, per qualified result.

    Raises InputError without a qualified result. Source: section 8.6.3.
    """
    return seconds("gpu_s", gpu_s) / whole("qualified", qualified, at_least=1, at_most=MOST_COMPLETED)


@dataclass(frozen=True)
class Outcome:
    """What became of one request, in seconds from the start of its window.

    `arrival_s` is the planned arrival; sending is this plus the wait outside of the engine. None is what never came:
    the end of a request that failed or was cancelled, also the sending of one that was refused. Raises InputError for
    times out of their order, and for an answer that is right although it never came.
    """

    arrival_s: float
    sent_s: float | None
    first_token_s: float | None
    finish_s: float | None
    is_correct: bool

    def __post_init__(self) -> None:
        before: float | None = seconds("arrival_s", self.arrival_s)
        for name in ("sent_s", "first_token_s", "finish_s"):
            time = getattr(self, name)
            if time is not None and (before is None or seconds(name, time) < before):
                allowed = "None, as what comes before it is" if before is None else f"None, or at least {before} s"
                raise InputError(name, time, allowed)
            before = time
        if _truth("is_correct", self.is_correct) and self.finish_s is None:
            raise InputError("is_correct", self.is_correct, "False, for an answer that never came")

    def latency_s(self, since: Since = Since.PLANNED_ARRIVAL) -> float | None:
        """The whole request by one of the two clocks; None if it never ended."""
        return self._span(self.finish_s, since)

    def ttft_s(self, since: Since = Since.PLANNED_ARRIVAL) -> float | None:
        """The wait for its first token by one of the two clocks; None if none came."""
        return self._span(self.first_token_s, since)

    @property
    def queue_s(self) -> float | None:
        """The wait outside of the engine; None if it was never sent."""
        return self._span(self.sent_s, Since.PLANNED_ARRIVAL)

    def _span(self, end: float | None, since: Since) -> float | None:
        start = self.arrival_s if one_of("since", since, Since) is Since.PLANNED_ARRIVAL else self.sent_s
        # To whole ns: a request that takes exactly as long as its deadline is in time.
        return None if end is None or start is None else round(end - start, 9)


@dataclass(frozen=True)
class Window:
    """The requests that arrive in an observed time, and its length T_obs in seconds.

    Raises InputError for no requests, and for one that arrives or ends after the window: what ended later did not come.
    """

    outcomes: tuple[Outcome, ...]
    length_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_s", seconds("length_s", self.length_s, above_zero=True))
        if not isinstance(self.outcomes, tuple) or not self.outcomes:
            raise InputError("outcomes", self.outcomes, "a tuple of at least one Outcome")
        for outcome in self.outcomes:
            if not isinstance(outcome, Outcome):
                raise InputError("outcomes", outcome, "a tuple of at least one Outcome")
            last = outcome.arrival_s if outcome.finish_s is None else outcome.finish_s
            if last > self.length_s:
                raise InputError("length_s", self.length_s, f"at least {last} s, when a request arrives or ends")

    @property
    def completed(self) -> int:
        """Requests that came back, with whatever answer."""
        return len(self._stays_s)

    @property
    def correct(self) -> int:
        """Right answers, whenever they came."""
        return sum(self._is_correct)

    def in_time(self, deadline_s: float, since: Since = Since.PLANNED_ARRIVAL) -> int:
        """Answers that took the deadline or less, right or wrong."""
        return sum(self._is_in_time(deadline_s, since))

    def qualified(self, deadline_s: float, since: Since = Since.PLANNED_ARRIVAL) -> int:
        """N_g: answers that are right and in time."""
        return sum(map(and_, self._is_correct, self._is_in_time(deadline_s, since)))

    def correct_but_late(self, deadline_s: float, since: Since = Since.PLANNED_ARRIVAL) -> int:
        """Right answers that nobody waits for any more."""
        return self.correct - self.qualified(deadline_s, since)

    def in_time_but_wrong(self, deadline_s: float, since: Since = Since.PLANNED_ARRIVAL) -> int:
        """Answers in time that are of no use."""
        return self.in_time(deadline_s, since) - self.qualified(deadline_s, since)

    @property
    def completion_throughput(self) -> float:
        """Completed requests per second, right or wrong, early or late."""
        return completion_throughput(self.completed, self.length_s)

    def goodput(self, deadline_s: float, since: Since = Since.PLANNED_ARRIVAL) -> float:
        """Right answers in time, per second."""
        return goodput(self._is_correct, self._is_in_time(deadline_s, since), self.length_s)

    def latency_percentile_s(self, percent: float, since: Since = Since.PLANNED_ARRIVAL) -> float:
        """The percentile of the completed requests' times by nearest rank: the 95th of 16 is the longest.

        Raises InputError if none came back.
        """
        return percentile(self._latencies_s(since), percent)

    def longest_s(self, since: Since = Since.PLANNED_ARRIVAL) -> float:
        """The longest of the completed requests. Raises InputError if none came back."""
        return self.latency_percentile_s(100, since)

    def longest_ttft_s(self, since: Since = Since.PLANNED_ARRIVAL) -> float:
        """The longest wait for a first token, of those that came. Raises InputError if none did."""
        return percentile([time for each in self.outcomes if (time := each.ttft_s(since)) is not None], 100)

    @property
    def longest_queue_s(self) -> float:
        """The longest wait outside of the engine, of those that were sent; 0 if none was."""
        return max((time for each in self.outcomes if (time := each.queue_s) is not None), default=0.0)

    @property
    def mean_stay_s(self) -> float:
        """T: how long a completed request stays in the system on average. Raises InputError if none came back."""
        if not self.completed:
            raise InputError("outcomes", self.outcomes, "at least one request that came back")
        return math.fsum(self._stays_s) / self.completed

    @property
    def mean_in_system(self) -> float:
        """n: the stays of all completed requests over T_obs. When the others left is not known: they count not at all.

        Source: section 8.6.1.
        """
        return math.fsum(self._stays_s) / self.length_s

    @property
    def _stays_s(self) -> list[float]:
        return self._latencies_s(Since.PLANNED_ARRIVAL)

    def _latencies_s(self, since: Since) -> list[float]:
        return [time for time in self._times_s[one_of("since", since, Since)] if time < math.inf]

    @cached_property
    def _is_correct(self) -> tuple[bool, ...]:
        return tuple(outcome.is_correct for outcome in self.outcomes)

    @cached_property
    def _times_s(self) -> dict[Since, tuple[float, ...]]:
        """The requests' times by each clock; what never came takes for ever."""
        times = {since: [outcome.latency_s(since) for outcome in self.outcomes] for since in Since}
        return {since: tuple(math.inf if each is None else each for each in of) for since, of in times.items()}

    def _is_in_time(self, deadline_s: float, since: Since) -> tuple[bool, ...]:
        deadline = seconds("deadline_s", deadline_s, above_zero=True)
        return tuple(time <= deadline for time in self._times_s[one_of("since", since, Since)])


def _truth(parameter: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(parameter, value, "True or False")
    return value
