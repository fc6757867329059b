"""What came of a schedule: stretches of equal steps, expanded on demand, and the times of each request.

All times are whole nanoseconds from time 0; steps and requests are counted from 0. What never came is -1: the first
output of a request, say, whose user went away before.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lib.checks import InputError, whole
from lib.speculation_setup import PLAIN, SpeculationSetup
from lib.step_time import StepTime

if TYPE_CHECKING:
    from lib.residency import Departure
    from lib.scheduling import Request

MOST_NS = 2**63 - 1
Integers = np.ndarray[Any, np.dtype[np.int64]]


class Part(NamedTuple):
    """What one request has in one step: new tokens behind so many in context."""

    place: int
    new_tokens: int
    context: int


class Round(NamedTuple):
    """A step in which a draft of a request was verified: its tokens, and the outputs that came of it, at least one."""

    step: int
    drafted: int
    outputs: int

    @property
    def thrown_away(self) -> int:
        """Tokens computed in vain: the step computes a known one and the draft, and keeps as many as it outputs."""
        return 1 + self.drafted - self.outputs


class Absence(NamedTuple):
    """Steps, from the first to the one before `beyond`, in which a request has no row and keeps its KV.

    It waits for a tool, which returns at `back_ns`, and then for a row; there may be none between the two steps in
    which it has one. Before step `beyond` it takes a row or loses its KV.
    """

    first: int
    beyond: int
    back_ns: int


class Stretch(NamedTuple):
    """Steps in a row with the same requests: the first takes `duration_ns`, each further one `growth_ns` more.

    `decodes` requests have one token in each step, and those with a draft that draft, in a stretch of one step;
    `prompts` are the parts of the others, in a stretch of one step.
    """

    steps: int
    start_ns: int
    duration_ns: int
    growth_ns: int
    decodes: int
    prompts: tuple[Part, ...]

    def end_ns(self, steps: int) -> int:
        """When so many of its steps have ended."""
        return self.start_ns + steps * self.duration_ns + self.growth_ns * (steps * (steps - 1) // 2)


class Step(NamedTuple):
    """One step: when it ran, the parts of prompts in it and those of requests in decode, with their drafts."""

    start_ns: int
    end_ns: int
    prompts: tuple[Part, ...]
    decodes: tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.decodes + self.prompts


class Interval(NamedTuple):
    """The time between two outputs of a request; `output` is the number, from 1, of the earlier of the two.

    It is 0 where one step gave both.
    """

    place: int
    output: int
    length_ns: int


@dataclass(frozen=True)
class Schedule:
    """The steps of a run and, for each request, the steps in which it started and gave its first and last output.

    Between those two it gives an output in every step but the `skipped` ones, in which it got no token, recomputed what
    a preemption had cost it or waited for a tool. In a step that verified a draft it gave as many as its `rounds` say.
    Some may be `refused` by a pool: they are no part of the run. `peak_blocks` are the most blocks held at once, those
    of several counted once. In its `absences` a request has no row but holds its KV.
    """

    requests: tuple["Request", ...]
    rows: int
    step_time: StepTime
    stretches: Sequence[Stretch]
    started_step: Sequence[int]
    first_output_step: Sequence[int]
    last_output_step: Sequence[int]
    skipped: Mapping[int, Sequence[int]]
    cancellations: Sequence["Departure"] = ()
    preemptions: Sequence["Departure"] = ()
    refused: tuple["Request", ...] = ()
    peak_blocks: int | None = None
    speculation: SpeculationSetup = PLAIN
    rounds: Mapping[int, Sequence[Round]] = field(default_factory=dict)
    absences: Mapping[int, Sequence[Absence]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total_ns > MOST_NS:
            raise InputError("end of the last step", self.total_ns, f"at most {MOST_NS:,} ns")

    @property
    def total_ns(self) -> int:
        """The end of the last step, from time 0."""
        return self.stretches[-1].end_ns(self.stretches[-1].steps) if self.stretches else 0

    @property
    def step_count(self) -> int:
        return int(self._columns[0].sum())

    @cached_property
    def _columns(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        columns = [*zip(*self.stretches, strict=True)][:5] or [()] * 5
        return tuple(np.array(column, np.int64) for column in columns)  # type: ignore[return-value]

    @cached_property
    def _first_steps(self) -> Integers:
        """The first step of each stretch."""
        counts = self._columns[0]
        return np.cumsum(counts) - counts

    def _stretch_of(self, steps: Sequence[int] | Integers) -> Integers:
        at: Integers = np.searchsorted(self._first_steps, np.asarray(steps, np.int64), side="right") - 1
        return at

    def start_of(self, steps: Sequence[int] | Integers) -> Integers:
        """When each of these steps began."""
        _, starts, durations, growths, _ = self._columns
        at = self._stretch_of(steps)
        done = np.asarray(steps, np.int64) - self._first_steps[at]
        begun: Integers = starts[at] + done * durations[at] + growths[at] * (done * (done - 1) // 2)
        return begun

    def end_of(self, steps: Sequence[int] | Integers) -> Integers:
        """When each of these steps had ended; -1 for a step that never came, which is given as -1."""
        _, starts, durations, growths, _ = self._columns
        came = np.asarray(steps, np.int64) >= 0
        ends = np.full(len(came), -1, np.int64)
        at = self._stretch_of(steps)[came]
        done = np.asarray(steps, np.int64)[came] - self._first_steps[at] + 1
        ends[came] = starts[at] + done * durations[at] + growths[at] * (done * (done - 1) // 2)
        return ends

    @property
    def completed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each request gave all its outputs: it does unless its user goes away."""
        gone = {departure.place for departure in self.cancellations}
        return np.array([place not in gone for place in range(len(self.requests))])

    @property
    def scheduled_tokens(self) -> int:
        """New tokens of all steps together, drafts and those computed once more after a preemption too."""
        in_prompts = sum(part.new_tokens for stretch in self.stretches for part in stretch.prompts)
        drafted = sum(each.drafted for rounds in self.rounds.values() for each in rounds)
        return in_prompts + sum(stretch.steps * stretch.decodes for stretch in self.stretches) + drafted

    @property
    def thrown_away_tokens(self) -> int:
        """Tokens computed in vain, as their draft was not accepted or ran past the last output."""
        return sum(each.thrown_away for rounds in self.rounds.values() for each in rounds)

    @cached_property
    def arrival_ns(self) -> Integers:
        """When each request arrived."""
        return np.array([request.arrival_ns for request in self.requests], np.int64)

    @cached_property
    def started_ns(self) -> Integers:
        """When the first step that computes something of each request began."""
        # A request enters at a border, so its first step begins a stretch.
        came = np.asarray(self.started_step) >= 0
        started = np.full(len(came), -1, np.int64)
        started[came] = self._columns[1][self._stretch_of(self.started_step)[came]]
        return started

    @cached_property
    def first_token_ns(self) -> Integers:
        """When each request gave its first output."""
        return self.end_of(self.first_output_step)

    @cached_property
    def finish_ns(self) -> Integers:
        """When each request gave its last output."""
        return self.end_of(self.last_output_step)

    @property
    def queue_ns(self) -> Integers:
        """How long each request waited before its first step."""
        return np.where(self.started_ns < 0, -1, self.started_ns - self.arrival_ns)

    @property
    def ttft_ns(self) -> Integers:
        """Time to first token of each request, from its arrival."""
        return np.where(self.first_token_ns < 0, -1, self.first_token_ns - self.arrival_ns)

    def output_steps(self, place: int) -> list[int]:
        """The step that gave each output of a request; one that accepted a draft stands there several times."""
        place = whole("place", place, at_most=len(self.requests) - 1)
        skipped = set(self.skipped.get(place, ()))
        given = {each.step: each.outputs for each in self.rounds.get(place, ())}
        steps = range(max(self.first_output_step[place], 0), self.last_output_step[place] + 1)
        return [step for step in steps if step not in skipped for _ in range(given.get(step, 1))]

    def output_times_ns(self, place: int) -> list[int]:
        """When a request gave each of its outputs."""
        return [int(end) for end in self.end_of(self.output_steps(place))]

    def intervals_ns(self, place: int) -> list[int]:
        """The times between the outputs of a request, one fewer than outputs. TTFT is none of them."""
        return [int(length) for length in np.diff(self.output_times_ns(place))]

    @cached_property
    def longest_interval_ns(self) -> Integers:
        """The longest interval of each request; 0 for a single output."""
        counts, starts, durations, growths, _ = self._columns
        longest = durations + growths * (counts - 1)
        ends = starts + counts * durations + growths * (counts * (counts - 1) // 2)
        # While all wait for tools nobody has a row, so time may lie between two steps.
        longest[1:] = np.maximum(longest[1:], starts[1:] - ends[:-1] + durations[1:])
        # A request's outputs begin and end with a stretch, so its longest interval is the longest of whole stretches.
        first, last = self._stretch_of(self.first_output_step) + 1, self._stretch_of(self.last_output_step)
        found = _largest_within(longest, first, last)
        for place in self.skipped:
            found[place] = max(self.intervals_ns(place))
        return found

    def longest_interval(self) -> Interval | None:
        """The longest interval of all, the earliest of equals; None if no request gives two outputs."""
        place = int(np.argmax(self.longest_interval_ns))
        if not self.longest_interval_ns[place]:
            return None
        lengths = self.intervals_ns(place)
        return Interval(place, lengths.index(max(lengths)) + 1, max(lengths))

    def steps_of(self, interval: Interval) -> range:
        """The steps that lie in an interval: more than one where the request skipped some, none where one gave both."""
        earlier, later = self.output_steps(interval.place)[interval.output - 1 : interval.output + 1]
        return range(earlier + 1, later + 1)

    @property
    def row_steps(self) -> int:
        """Rows of all steps together, idle ones too."""
        return self.rows * self.step_count

    @property
    def idle_rows(self) -> int:
        """Rows in which nothing was computed, summed over the steps."""
        return self.row_steps - sum(s.steps * (s.decodes + len(s.prompts)) for s in self.stretches)

    @cached_property
    def peak_kv_tokens(self) -> int:
        """The most tokens of KV that requests hold at once; what several share is counted for each of them."""
        counts, _, _, _, decodes = self._columns
        if not len(counts):
            return 0
        change = counts * decodes
        for at, stretch in enumerate(self.stretches):
            change[at] += sum(part.new_tokens for part in stretch.prompts)
        for place, residences in enumerate(self.residences()):
            for at in self._stretch_of([held.start for held in residences]):
                change[at] += next(part.context for part in self.stretches[at].prompts if part.place == place)
        lost = np.zeros(len(counts), np.int64)
        for rounds in self.rounds.values():
            verified = self._stretch_of([each.step for each in rounds])
            change[verified] += [each.drafted for each in rounds]
            lost[verified] += [each.thrown_away for each in rounds]
        completed = np.flatnonzero(self.completed)
        at_end = [self.requests[place].prompt + self.requests[place].output - 1 for place in completed]
        np.add.at(lost, self._stretch_of(np.asarray(self.last_output_step)[completed]), at_end)
        departed = [one for one in (*self.cancellations, *self.preemptions) if one.lost_tokens]
        np.add.at(lost, self._stretch_of([one.step - 1 for one in departed]), [one.lost_tokens for one in departed])
        return int(np.max(np.cumsum(change - lost) + lost))

    def stays(self) -> list[list[range]]:
        """The steps in which each request has a row: one range, one more for each preemption and each return of a tool.

        A request that takes a row and is preempted at once has it in no step.
        """
        found = self.residences()
        for place, absences in self.absences.items():
            rows = list[range]()
            for held in found[place]:
                begun = held.start
                for away in (each for each in absences if held.start < each.first <= held.stop):
                    rows.append(range(begun, away.first))
                    begun = away.beyond
                rows.append(range(begun, held.stop))
            found[place] = [each for each in rows if each]
        return found

    def residences(self) -> list[list[range]]:
        """The steps in which each request holds KV: one range, and one more for each time that it was preempted."""
        ends = [[step for step in (last + 1,) if last >= 0] for last in self.last_output_step]
        for gone in self.cancellations:
            ends[gone.place] = [gone.step]
        for lost in reversed(self.preemptions):
            ends[lost.place].insert(0, lost.step)
        found: list[list[range]] = [[] for _ in self.requests]
        for step, part in self.prompt_parts():
            mine = found[part.place]
            if not mine or mine[-1].stop <= step:
                mine.append(range(step, ends[part.place][len(mine)]))
        return found

    def prompt_parts(self) -> Iterator[tuple[int, Part]]:
        """The parts of prompts, also of those computed once more, each with its step."""
        for step, stretch in zip(self._first_steps.tolist(), self.stretches, strict=True):
            for part in stretch.prompts:
                yield step, part

    def rows_by_step(self) -> list[tuple[int | None, ...]]:
        """Who has each row in each step; whoever enters takes the first free row."""
        rows: list[int | None] = [None] * self.rows
        entering = sorted((stay.start, place, stay) for place, stays in enumerate(self.stays()) for stay in stays)
        found, beyond = [], dict[int, int]()
        for step in range(self.step_count):
            rows = [None if place is None or beyond[place] <= step else place for place in rows]
            while entering and entering[0][0] == step:
                _, place, stay = entering.pop(0)
                rows[rows.index(None)], beyond[place] = place, stay.stop
            found.append(tuple(rows))
        return found

    def steps(self, first: int = 0, beyond: int | None = None) -> Iterator[Step]:
        """The steps from `first` to the one before `beyond`, expanded."""
        end = self.step_count if beyond is None else beyond
        firsts, lasts = np.asarray(self.first_output_step), np.asarray(self.last_output_step)
        decoding = [int(place) for place in np.flatnonzero((firsts < end) & (lasts > first - 1))]
        for step in range(first, end):
            at = int(self._stretch_of([step])[0])
            stretch, done = self.stretches[at], step - int(self._first_steps[at])
            in_prompts = {part.place for part in stretch.prompts}
            decodes = (self._decode_part(place, step) for place in decoding if place not in in_prompts)
            yield Step(
                stretch.end_ns(done),
                stretch.end_ns(done + 1),
                stretch.prompts,
                tuple(part for part in decodes if part is not None),
            )

    def drafting_ns(self, step: Step) -> int:
        """The time in which the drafts of a step were made, ahead of its own computation."""
        return self.speculation.drafting_ns(
            [(part.new_tokens, part.context) for part in step.decodes if part.new_tokens > 1]
        )

    def _decode_part(self, place: int, step: int) -> Part | None:
        """The part of a request in decode in a step, or None where it has none."""
        skipped = self.skipped.get(place, ())
        first, before = self.first_output_step[place], bisect_left(skipped, step)
        if not first < step <= self.last_output_step[place] or step in skipped[before : before + 1]:
            return None
        outputs, drafted = step - first - before, 0
        if rounds := self.rounds.get(place):
            before = bisect_left(rounds, step, key=attrgetter("step"))
            outputs += self._more_outputs[place][before]
            drafted = rounds[before].drafted if before < len(rounds) and rounds[before].step == step else 0
        return Part(place, 1 + drafted, self.requests[place].prompt + outputs - 1)

    @cached_property
    def _more_outputs(self) -> dict[int, list[int]]:
        """Of each request, the outputs beyond one a step that it had before each of its rounds, and after all."""
        return {
            place: [*accumulate((each.outputs - 1 for each in rounds), initial=0)]
            for place, rounds in self.rounds.items()
        }


def _largest_within(values: Integers, first: Integers, last: Integers) -> Integers:
    """The largest of `values[first : last + 1]` for each pair of bounds, 0 where that is empty."""
    tables = [values]
    while 2 ** len(tables) <= len(values):
        half = 2 ** (len(tables) - 1)
        tables.append(np.maximum(tables[-1][:-half], tables[-1][half:]))
    size = last - first + 1
    found = np.zeros(len(first), np.int64)
    level = np.maximum(np.frexp(np.maximum(size, 1))[1] - 1, 0)
    for power, table in enumerate(tables):
        here = (size > 0) & (level == power)
        left, right = first[here], last[here] - 2**power + 1
        found[here] = np.maximum(table[left], table[right])
    return found
