"""How many requests are in the system, and what they do there: Little's law, and the counts that it speaks of.

A request is in the system from its arrival until its last output or, where its user goes away, until what it holds has
been given back. In between it queues, has a row, or waits for a tool and only holds its KV. Source: section 8.6.1.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import mul
from typing import NamedTuple

import numpy as np

from lib.checks import InputError, finite, seconds, whole
from lib.schedule import MOST_NS, Absence, Integers, Schedule
from lib.step_time import MOST_TOKENS, NS

# The example of section 8.6.1: one rate, and two mean stays at it.
EXAMPLE_RATE_PER_S = 4
EXAMPLE_STAYS_S = (0.5, 2)

MOST_RATE_PER_S = NS  # a request a nanosecond


def requests_in_system(rate_per_s: float, mean_stay_s: float) -> float:
    """Requests in the system on average: n = lambda T, for any order of service and any law of arrivals.

    The mean stay, in seconds, holds all from arrival to end: queue, computing and waits for tools. Source: section
    8.6.1.
    """
    allowed = f"a number of arrivals a second, from 0 to {MOST_RATE_PER_S:,}"
    rate = finite("rate_per_s", rate_per_s, 0, allowed)
    if rate > MOST_RATE_PER_S:
        raise InputError("rate_per_s", rate_per_s, allowed)
    return rate * seconds("mean_stay_s", mean_stay_s)


def mean_in_window(stays: Iterable[tuple[float, float]], start_s: float, end_s: float) -> float:
    """The mean number in the system in a window: what lies in it of each stay, summed, over its length.

    A stay is the pair of the times, in seconds, at which a request came and left. Raises InputError for a window
    without length and for a stay that ends before it begins. Source: section 8.6.1.
    """
    start, end = seconds("start_s", start_s), seconds("end_s", end_s)
    if end <= start:
        raise InputError("end_s", end_s, f"a time after the start of the window, {start} s")
    inside = (max(0.0, min(left, end) - max(came, start)) for came, left in _pairs(stays))
    return math.fsum(inside) / (end - start)


def _pairs(stays: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    allowed = "pairs of times from 0 s to 1e9 s: when each request came and when it left, not before that"
    try:
        pairs = [(came, left) for came, left in stays]
    except (TypeError, ValueError):
        raise InputError("stays", stays, allowed) from None
    for came, left in pairs:
        if not seconds("stays", came) <= seconds("stays", left):
            raise InputError("stays", (came, left), allowed)
        yield came, left


class Phase(StrEnum):
    """What a request in the system does."""

    QUEUED = "queued"
    COMPUTING = "has a row"
    HOLDING = "waits for a tool"


_CODES = {phase: code for code, phase in enumerate(Phase)}


class Span(NamedTuple):
    """A time in which a request does one thing, in ns."""

    phase: Phase
    start_ns: int
    end_ns: int


def left_ns(schedule: Schedule) -> Integers:
    """When each request left: with its last output or, as its user went away, when what it held was given back.

    Raises InputError for what is no schedule.
    """
    if not isinstance(schedule, Schedule):
        raise InputError("schedule", schedule, "a Schedule, such as simulate() gives")
    left = schedule.finish_ns.copy()
    for gone in schedule.cancellations:
        left[gone.place] = gone.at_ns
    return left


def spans(schedule: Schedule) -> tuple[tuple[Span, ...], ...]:
    """What each request of a run does, from its arrival to its end, without a gap.

    Whoever waits for a free row queues, also behind the return of a tool; it holds its KV meanwhile. Raises InputError
    for what is no schedule.
    """
    left, residences = left_ns(schedule).tolist(), schedule.residences()
    lost: dict[int, list[int]] = {}
    for one in schedule.preemptions:
        lost.setdefault(one.place, []).append(one.at_ns)
    absences = [each for of_one in schedule.absences.values() for each in of_one]
    entered = {held.start for of_one in residences for held in of_one}
    again = {each.beyond for each in absences if each.beyond < schedule.step_count}
    starts = _by_step(sorted(entered | again), schedule.start_of)
    called = _by_step([each.first - 1 for each in absences], schedule.end_of)
    return tuple(
        tuple(
            _spans_of(
                request.arrival_ns, held, schedule.absences.get(place, ()), [*lost.get(place, ()), left[place]],
                starts, called,
            )
        )
        for place, (request, held) in enumerate(zip(schedule.requests, residences, strict=True))
    )  # fmt: skip


def _by_step(steps: Sequence[int], times_of: Callable[[Sequence[int]], Integers]) -> dict[int, int]:
    return dict(zip(steps, times_of(steps).tolist(), strict=True))


def _spans_of(
    arrival_ns: int,
    residences: Sequence[range],
    absences: Sequence[Absence],
    ends_ns: Sequence[int],
    starts: Mapping[int, int],
    called: Mapping[int, int],
) -> Iterator[Span]:
    """Of one request: each residence ends at one of these times, and the last of them is when it left.

    Starts of steps in which it takes a row, and ends of those in which it calls a tool, are given by step.
    """
    now = arrival_ns
    for held, end_ns in zip(residences, ends_ns, strict=False):
        yield from _span(Phase.QUEUED, now, starts[held.start])
        now, has_row = starts[held.start], True
        for away in (each for each in absences if held.start < each.first <= held.stop):
            has_row = away.beyond < held.stop
            again = starts[away.beyond] if has_row else end_ns
            back = min(away.back_ns, again)
            yield from _span(Phase.COMPUTING, now, called[away.first - 1])
            yield from _span(Phase.HOLDING, called[away.first - 1], back)
            yield from _span(Phase.QUEUED, back, again)
            now = again
        if has_row:
            yield from _span(Phase.COMPUTING, now, end_ns)
        now = end_ns
    yield from _span(Phase.QUEUED, now, ends_ns[-1])


def _span(phase: Phase, start_ns: int, end_ns: int) -> Iterator[Span]:
    assert start_ns <= end_ns
    if start_ns < end_ns:
        yield Span(phase, start_ns, end_ns)


@dataclass(frozen=True)
class Occupancy:
    """How much there is of something by what its requests do, over time: whole numbers that change at borders.

    `by_phase[phase][i]` holds from `times_ns[i]` to `times_ns[i + 1]`.
    """

    times_ns: Integers
    by_phase: Mapping[Phase, Integers]

    @cached_property
    def total(self) -> Integers:
        """All phases together, between each border and the next."""
        return self._sum(tuple(Phase))

    @property
    def peak(self) -> int:
        """The most at any time."""
        return int(self.total.max(initial=0))

    @property
    def length_ns(self) -> int:
        return int(self.times_ns[-1] - self.times_ns[0])

    def area(self, *phases: Phase) -> int:
        """The sum over time in these phases, or in all where none is named: exact, in ns."""
        counted = self._sum(phases) if phases else self.total
        return sum(map(mul, counted.tolist(), np.diff(self.times_ns).tolist()))

    def mean(self, *phases: Phase) -> float:
        """The mean over time in these phases, or in all where none is named.

        Raises InputError where no time passes.
        """
        if not self.length_ns:
            raise InputError("times_ns", self.times_ns, "borders between which time passes")
        return self.area(*phases) / self.length_ns

    def within(self, start_ns: int, end_ns: int) -> "Occupancy":
        """The same in a window. Raises InputError for one without length."""
        start, end = _window(start_ns, end_ns)
        inner = self.times_ns[(self.times_ns > start) & (self.times_ns < end)]
        times = np.concatenate(([start], inner, [end]))
        at = np.searchsorted(self.times_ns, times[:-1], side="right") - 1
        is_known = (at >= 0) & (at < len(self.times_ns) - 1)
        found = {phase: np.zeros(len(at), np.int64) for phase in Phase}
        for phase, of_phase in found.items():
            of_phase[is_known] = self.by_phase[phase][at[is_known]]
        return Occupancy(times, found)

    def _sum(self, phases: tuple[Phase, ...]) -> Integers:
        summed: Integers = np.sum([self.by_phase[phase] for phase in phases], axis=0, dtype=np.int64)
        return summed


def in_system(schedule: Schedule) -> Occupancy:
    """The requests in the system over a run, from time 0 until the last has left, by what they do.

    Its area is the sum of all stays, to the nanosecond: Little's law for the run as a whole. Raises InputError for what
    is no schedule.
    """
    of_all = [span for of_one in spans(schedule) for span in of_one]
    found = _occupancy(
        np.array([span.start_ns for span in of_all], np.int64),
        np.array([span.end_ns for span in of_all], np.int64),
        np.ones(len(of_all), np.int64),
        np.array([_CODES[span.phase] for span in of_all], np.int64),
    )
    assert found.area() == sum(left_ns(schedule).tolist()) - sum(schedule.arrival_ns.tolist())
    return found


def kv_held(schedule: Schedule, block_tokens: int = 1) -> Occupancy:
    """The KV blocks that requests hold over a run, by what they do; blocks of one token are tokens.

    What several share is counted for each of them. A step has the blocks for its tokens and drafts from its start on.
    All that is held by requests without a row stands idle. Raises InputError for blocks of no tokens and for what is no
    schedule.
    """
    size = whole("block_tokens", block_tokens, 1, MOST_TOKENS)
    of_all, residences = spans(schedule), schedule.residences()
    in_prompts: dict[int, dict[int, int]] = {}
    for step, part in schedule.prompt_parts():
        in_prompts.setdefault(part.place, {})[step] = part.context + part.new_tokens
    pieces = [
        _kv_of(schedule, place, in_prompts[place], residences[place], of_all[place], size) for place in in_prompts
    ]
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)] or [np.zeros(0, np.int64)] * 4
    return _occupancy(*columns)


def _kv_of(
    schedule: Schedule,
    place: int,
    in_prompts: Mapping[int, int],
    residences: list[range],
    of_one: tuple[Span, ...],
    size: int,
) -> tuple[Integers, Integers, Integers, Integers]:
    """The blocks of one request: from when, until when, how many, and what it does meanwhile."""
    rounds = {each.step: each for each in schedule.rounds.get(place, ())}
    held = dict(in_prompts)
    for output, step in enumerate(schedule.output_steps(place)):
        drafted = rounds[step].drafted if step in rounds else 0
        held.setdefault(step, schedule.requests[place].prompt + output + drafted)
    gone = [one.at_ns for one in (*schedule.preemptions, *schedule.cancellations) if one.place == place]
    ends = [*gone, int(schedule.finish_ns[place])][: len(residences)]
    # In the order of steps: what a step holds, what is left of it once its draft is verified, and the end of it all.
    steps, kept = sorted(held), sorted(rounds)
    changes = sorted(
        [
            *((step, 0, at, held[step]) for step, at in zip(steps, schedule.start_of(steps).tolist(), strict=True)),
            *(
                (step, 1, at, held[step] - rounds[step].thrown_away)
                for step, at in zip(kept, schedule.end_of(kept).tolist(), strict=True)
            ),
            *((each.stop - 1, 2, at, 0) for each, at in zip(residences, ends, strict=True)),
        ]
    )
    times, tokens = (np.array([change[column] for change in changes], np.int64) for column in (2, 3))
    borders = np.array([*(span.start_ns for span in of_one), of_one[-1].end_ns], np.int64)
    points = np.union1d(times, borders)
    last = np.searchsorted(times, points[:-1], side="right") - 1
    blocks = np.where(last < 0, 0, -(-tokens[last] // size))
    codes = np.array([_CODES[span.phase] for span in of_one], np.int64)
    return points[:-1], points[1:], blocks, codes[np.searchsorted(borders, points[:-1], side="right") - 1]


def _occupancy(starts: Integers, ends: Integers, amounts: Integers, codes: Integers) -> Occupancy:
    """The sum of pieces, each an amount from its start to its end, by the code of its phase."""
    times, at = np.unique(np.concatenate((np.zeros(1, np.int64), starts, ends)), return_inverse=True)
    first, beyond = at[1 : len(starts) + 1], at[len(starts) + 1 :]
    by_phase = {}
    for phase, code in _CODES.items():
        mine, change = codes == code, np.zeros(len(times), np.int64)
        np.add.at(change, first[mine], amounts[mine])
        np.subtract.at(change, beyond[mine], amounts[mine])
        assert not change.sum()
        by_phase[phase] = np.cumsum(change)[:-1]
    return Occupancy(times, by_phase)


@dataclass(frozen=True)
class Seen:
    """What a window shows of the requests of a run: how many arrive in it, and stays in ns.

    `stays_ns` are those of the arrivals, in full. In the window lies another sum, `inside_ns`: it has also what earlier
    arrivals spend there, `carried_in_ns`, and has not what the window's own spend after it, `carried_out_ns`.
    """

    window_ns: int
    arrived: int
    stays_ns: int
    carried_in_ns: int
    carried_out_ns: int

    @property
    def inside_ns(self) -> int:
        return self.stays_ns + self.carried_in_ns - self.carried_out_ns

    @property
    def rate_per_s(self) -> float:
        """Arrivals a second in the window."""
        return self.arrived / self.window_ns * NS

    @property
    def mean_stay_s(self) -> float:
        """The mean stay of those who arrive in the window; 0 if nobody does."""
        return self.stays_ns / self.arrived / NS if self.arrived else 0.0

    @property
    def by_the_law(self) -> float:
        """Rate times mean stay, both as seen in the window."""
        return requests_in_system(self.rate_per_s, self.mean_stay_s)

    @property
    def in_system(self) -> float:
        """The mean number in the system, by what lies in the window of each stay."""
        return self.inside_ns / self.window_ns


def seen(schedule: Schedule, start_ns: int, end_ns: int) -> Seen:
    """What a window from `start_ns` to just before `end_ns` shows of a run.

    Over a whole run rate times mean stay is the mean number in the system exactly. In a shorter window the two differ
    by the stays that its ends cut. Raises InputError for a window without length and for what is no schedule.
    """
    start, end = _window(start_ns, end_ns)
    left = left_ns(schedule).tolist()
    stays = [*zip(schedule.arrival_ns.tolist(), left, strict=True)]
    return Seen(
        end - start,
        sum(start <= came < end for came, _ in stays),
        sum(left - came for came, left in stays if start <= came < end),
        sum(max(0, min(left, end) - start) for came, left in stays if came < start),
        sum(max(0, left - end) for came, left in stays if start <= came < end),
    )


def _window(start_ns: int, end_ns: int) -> tuple[int, int]:
    start = whole("start_ns", start_ns, at_most=MOST_NS - 1)
    return start, whole("end_ns", end_ns, start + 1, MOST_NS)
