"""How far a verdict is from another: for each input the nearest value at which something else would be chosen.

A choice that a small change of an assumed input turns round is no firm one. Each input is moved by itself, all others
stay. Source: section 8.6.3, which tries two such changes.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from lib.checks import InputError, one_of
from lib.design_problem import INSTANCE
from lib.serving import CONFIGURATIONS, LIMITS, WORKLOAD, Choice, Configuration, Draft, Limits, Workload, choose, needs
from lib.units import MIB

# How far each input is moved, the values in between at which the verdict is asked before the search narrows, and to
# which part of its value an edge is found.
MOST_OUTPUTS, MOST_REQUESTS, MOST_HOST_S, MOST_ROUND_S, MOST_FACTOR = 4096, 256, 0.03, 1.0, 100.0
LEAST_DEADLINE_S, MOST_DEADLINE_S = 0.001, 3600.0
ASKED, PRECISION = 32, 1e-9


class Input(StrEnum):
    """What can be moved: a limit, the workload, the card's host, or what is assumed of the drafts."""

    MEMORY = "memory"
    DEADLINE = "deadline"
    OUTPUTS = "outputs"
    REQUESTS = "requests"
    HOST = "host time removed"
    OUTPUTS_PER_ROUND = "outputs of a round"
    DRAFT_ROUND = "time that drafts add to a round"
    DRAFT_PREFILL = "factor of the prefill with drafts"


OF_DRAFT = (Input.OUTPUTS_PER_ROUND, Input.DRAFT_ROUND, Input.DRAFT_PREFILL)
_WHOLE = (Input.MEMORY, Input.OUTPUTS, Input.REQUESTS)


@dataclass(frozen=True)
class Case:
    """Configurations, what they are to serve, and the limits; `drafting` is the one whose drafts can be moved.

    Raises InputError for what is none of these.
    """

    configurations: tuple[Configuration, ...] = CONFIGURATIONS
    workload: Workload = WORKLOAD
    limits: Limits = LIMITS
    drafting: str = "D"

    def __post_init__(self) -> None:
        if not isinstance(self.configurations, tuple):
            raise InputError("configurations", self.configurations, "a tuple of configurations")
        assert self.choice.judged

    @property
    def choice(self) -> Choice:
        """What is chosen, and what the others break."""
        return choose(self.configurations, self.workload, self.limits)

    @property
    def draft(self) -> Draft:
        """The drafts that can be moved; raises InputError if the configuration of that name has none."""
        found = next((each.draft for each in self.configurations if each.name == self.drafting), None)
        if found is None:
            raise InputError("drafting", self.drafting, "the name of a configuration that has a draft")
        return found

    def value(self, moved: Input) -> float:
        """Where an input stands: bytes, seconds, or a number."""
        match one_of("moved", moved, Input):
            case Input.MEMORY:
                return self.limits.memory_bytes
            case Input.DEADLINE:
                return self.limits.deadline_s
            case Input.OUTPUTS:
                return self.workload.output_tokens
            case Input.REQUESTS:
                return self.workload.requests
            case Input.HOST:
                return self.workload.host_removed_s
            case Input.OUTPUTS_PER_ROUND:
                return self.draft.outputs_per_round
            case Input.DRAFT_ROUND:
                return self.draft.round_s
            case _:
                return self.draft.prefill_factor

    def at(self, moved: Input, value: float) -> "Case":
        """The case with one input at another value; raises InputError for a value that it cannot have."""
        match one_of("moved", moved, Input):
            case Input.MEMORY:
                return replace(self, limits=replace(self.limits, memory_bytes=value))  # type: ignore[arg-type]
            case Input.DEADLINE:
                return replace(self, limits=replace(self.limits, deadline_s=value))
            case Input.OUTPUTS:
                return replace(self, workload=replace(self.workload, output_tokens=value))  # type: ignore[arg-type]
            case Input.REQUESTS:
                return replace(self, workload=replace(self.workload, requests=value))  # type: ignore[arg-type]
            case Input.HOST:
                return replace(self, workload=replace(self.workload, host_removed_s=value))
            case Input.OUTPUTS_PER_ROUND:
                return self._with_draft(outputs_per_round=value)
            case Input.DRAFT_ROUND:
                return self._with_draft(round_s=value)
            case _:
                return self._with_draft(prefill_factor=value)

    def _with_draft(self, **changed: Any) -> "Case":
        draft = replace(self.draft, **changed)
        swapped = (replace(each, draft=draft) if each.name == self.drafting else each for each in self.configurations)
        return replace(self, configurations=tuple(swapped))

    def range_of(self, moved: Input) -> tuple[float, float]:
        """The least and the most that an input is moved to."""
        match one_of("moved", moved, Input):
            case Input.MEMORY:
                return MIB, INSTANCE.card.memory_bytes
            case Input.DEADLINE:
                return LEAST_DEADLINE_S, MOST_DEADLINE_S
            case Input.OUTPUTS:
                return 1, MOST_OUTPUTS
            case Input.REQUESTS:
                return 1, MOST_REQUESTS
            case Input.HOST:
                return 0, MOST_HOST_S
            case Input.OUTPUTS_PER_ROUND:
                return 1, self.draft.positions
            case Input.DRAFT_ROUND:
                return 0, MOST_ROUND_S
            case _:
                return 1, MOST_FACTOR


BOOK = Case()


@dataclass(frozen=True)
class Edge:
    """Where a verdict turns: the last value with which it is still as it was, the first with another, and that one."""

    last: float
    first: float
    then: Hashable


@dataclass(frozen=True)
class Flip:
    """The nearest values on either side of an input at which the verdict turns; None where it does not."""

    moved: Input
    now: float
    below: Edge | None
    above: Edge | None

    @property
    def nearest(self) -> Edge | None:
        """The nearer of the two."""
        edges = [each for each in (self.below, self.above) if each]
        return min(edges, key=lambda each: abs(each.last - self.now), default=None)


Verdict = Callable[[Choice], Hashable]


def chosen(choice: Choice) -> str | None:
    """The verdict that counts most: the name of the chosen configuration, None for none."""
    return choice.name


def within_limits(choice: Choice) -> tuple[str, ...]:
    """The names of all that keep the limits: a verdict that may turn while the choice stays."""
    return choice.within_limits


def flip(moved: Input, case: Case = BOOK, verdict: Verdict = chosen) -> Flip:
    """How far an input can be moved until the verdict is another. Bytes, outputs and requests are whole.

    The verdict is asked at values along the way and, where it is another, the search narrows to the edge: two edges
    closer to each other than these values may be missed. Where an input lies beyond an end of its range nothing is
    asked on that side. Raises InputError for what is no input and no case.
    """
    if not isinstance(case, Case):
        raise InputError("case", case, "a Case")
    if not callable(verdict):
        raise InputError("verdict", verdict, "a function of a Choice, such as chosen")
    return _flip(one_of("moved", moved, Input), case, verdict)


@lru_cache(maxsize=1024)
def _flip(moved: Input, case: Case, verdict: Verdict) -> Flip:
    low, high = case.range_of(moved)
    now = case.value(moved)
    below, above = (
        _edge(moved, case, verdict, _along(moved, case, end)) if is_within else None
        for end, is_within in ((low, low < now), (high, now < high))
    )
    return Flip(moved, now, below, above)


def flips(case: Case = BOOK, verdict: Verdict = chosen) -> tuple[Flip, ...]:
    """How far each input can be moved by itself."""
    return tuple(flip(moved, case, verdict) for moved in Input)


def _along(moved: Input, case: Case, end: float) -> Iterable[float]:
    """Values from where an input stands to an end, outward: where a limit is met exactly, or evenly spaced.

    Where the end is far the steps grow with the value, as a small change matters more to a small value.
    """
    now, found = case.value(moved), needs_of(case)
    if moved is Input.MEMORY:
        return _outward(now, end, [one for size, _ in found for one in (size, size - 1)])
    if moved is Input.DEADLINE:
        return _outward(now, end, [one for _, time in found for one in (time, time * (1 - PRECISION))])
    if moved in _WHOLE:
        steps = [round(now * (end / now) ** (step / ASKED)) for step in range(1, ASKED + 1)]
        return _outward(now, end, steps)
    return _outward(now, end, [now + (end - now) * (step / ASKED) ** 2 for step in range(1, ASKED + 1)])


def _outward(now: float, end: float, values: Iterable[float]) -> list[float]:
    between = {each for each in (*values, end) if min(now, end) <= each <= max(now, end) and each != now}
    return sorted(between, reverse=end < now)


def needs_of(case: Case) -> list[tuple[int, float]]:
    """Bytes and seconds that each configuration needs."""
    found = [needs(each, case.workload) for each in case.configurations]
    return [(each.memory_bytes, each.total_s) for each in found]


def _edge(moved: Input, case: Case, verdict: Verdict, along: Iterable[float]) -> Edge | None:
    last, before = case.value(moved), verdict(case.choice)
    for value in along:
        if verdict(case.at(moved, value).choice) != before:
            return _narrowed(moved, case, verdict, last, value)
        last = value
    return None


def _narrowed(moved: Input, case: Case, verdict: Verdict, last: float, first: float) -> Edge:
    """The edge between a value with the verdict as it is and one with another."""
    before = verdict(case.choice)
    while abs(first - last) > (1 if moved in _WHOLE else PRECISION * abs(first)):
        middle = (last + first) // 2 if moved in _WHOLE else (last + first) / 2
        if verdict(case.at(moved, middle).choice) == before:
            last = middle
        else:
            first = middle
    return Edge(last, first, verdict(case.at(moved, first).choice))
