"""Copy and compute on a timeline: sets of weights are copied ahead into buffers while other layers compute.

Three things wait for each other: a layer for the one before it and for its copy, a copy for the one before it on the
link and for the layer that used its buffer last. Times are whole ns. Passes over all layers follow each other, and
soon each is like the one before: that is the steady pass.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, count, islice, pairwise
from typing import NamedTuple

from lib.checks import one_of, whole, wholes
from lib.clocks import Clock
from lib.design_problem import SHORT_CHAT
from lib.memory import MOST_BYTES, MOST_TOKENS
from lib.offload import MOST_LAYERS, Offload, every_nth
from lib.prefix_value import MOST_BYTES_S
from lib.step_time import FIT, MEASURED_DECODE, NS, StepTime, decode_plan, step_plan, tokens_that_fit

MOST_NS = 3600 * NS
# Before anything that is looked at, by more than any wait.
_LONG_AGO = -(2**80)


class Span(NamedTuple):
    """From when to when something is done, in ns."""

    start: int
    end: int


@dataclass(frozen=True)
class SteadyPass:
    """When each layer computes and each set is copied, in ns from the end of the pass before."""

    layers: tuple[Span, ...]
    copies: tuple[Span, ...]


@dataclass(frozen=True)
class Prefetch:
    """An offload at work: the time that each layer computes, and the time to copy one set over the link.

    The layer's whole compute waits for its set, also when only its FFN is offloaded. Buffers are filled in turn.
    Raises InputError for times that make no sense. Source: section 8.4.3, footnote 16.
    """

    offload: Offload
    layer_ns: tuple[int, ...]
    copy_ns: int

    def __post_init__(self) -> None:
        allowed = f"a tuple of {self.offload.layers} whole numbers from 1 to {MOST_NS:,}"
        wholes("layer_ns", self.layer_ns, 1, MOST_NS, self.offload.layers, allowed)
        object.__setattr__(self, "layer_ns", tuple(map(int, self.layer_ns)))
        object.__setattr__(self, "copy_ns", whole("copy_ns", self.copy_ns, at_least=1, at_most=MOST_NS))

    @property
    def compute_ns(self) -> int:
        """What all layers compute in a pass."""
        return sum(self.layer_ns)

    @property
    def copies_ns(self) -> int:
        """What all copies of a pass take on the link."""
        return self.offload.sets * self.copy_ns

    @cached_property
    def pass_ns(self) -> int:
        """The time of a steady pass: the longest chain of waits that leads once round, back to where it began.

        All copies are such a chain, all layers another; others change between link and compute, at a layer that waits
        for its copy or a copy that waits for its buffer. With one buffer it is the sum of max(T_copy, layers since the
        last set) + own layer; with more, and every n-th of equal layers offloaded, max(all layers, all copies).
        """
        return max(self.copies_ns, *map(self._round_ns, range(self.offload.sets)))

    @property
    def exposed_ns(self) -> int:
        """Time in a pass in which compute waits for a copy: what prefetch does not hide."""
        return self.pass_ns - self.compute_ns

    @property
    def link_idle_ns(self) -> int:
        """Time in a pass in which the link waits: for a free buffer."""
        return self.pass_ns - self.copies_ns

    @cached_property
    def steady(self) -> SteadyPass:
        """The pass that repeats itself: everything in it starts as early as what it waits for lets it."""
        ends, sets = self._critical_ends(), self.offload.sets
        before = list(islice(ends, sets))
        while True:
            after = list(islice(ends, sets))
            if all(late - early == self.pass_ns for late, early in zip(_flat(after), _flat(before), strict=True)):
                return self._spread_out(after)
            before = after

    @cached_property
    def _own_ns(self) -> list[int]:
        return [self.layer_ns[layer] for layer in self.offload.offloaded]

    @cached_property
    def _gaps_ns(self) -> list[int]:
        """Compute between the layer of the set before, of the last pass for the first, and that of each set."""
        done = list(accumulate(self.layer_ns, initial=0))
        starts = [done[layer] for layer in self.offload.offloaded]
        ends = [done[layer + 1] for layer in self.offload.offloaded]
        return [start - end for start, end in zip(starts, [ends[-1] - done[-1], *ends], strict=False)]

    def _ends(self, first: int, copied: int, computed: Sequence[int]) -> Iterator[tuple[int, int]]:
        """When copying and computing end, set after set, from one on, round after round.

        `copied` is the end of the copy before, `computed` are the ends of computing the sets before, one a buffer.
        """
        gaps, own, sets, latest = self._gaps_ns, self._own_ns, self.offload.sets, deque(computed, len(computed))
        for place in count(first):
            copied = max(copied, latest[0]) + self.copy_ns
            latest.append(max(copied, latest[-1] + gaps[place % sets]) + own[place % sets])
            yield copied, latest[-1]

    def _ends_after(self, place: int) -> Iterator[tuple[int, int]]:
        """The ends from the next set on, when nothing is waited for but the compute of this set, which ends at 0."""
        return self._ends(place + 1, _LONG_AGO, [_LONG_AGO] * (self.offload.buffers - 1) + [0])

    def _round_ns(self, place: int) -> int:
        """The longest chain of waits from the end of computing a set to the end of computing it again."""
        return next(islice(self._ends_after(place), self.offload.sets - 1, None))[1]

    def _critical_ends(self) -> Iterator[tuple[int, int]]:
        """The ends from set 0 on, when only a chain that sets the time of the pass is waited for."""
        if self.pass_ns == self.copies_ns:
            return self._ends(0, 0, [_LONG_AGO] * self.offload.buffers)
        sets = self.offload.sets
        place = next(place for place in range(sets) if self._round_ns(place) == self.pass_ns)
        return islice(self._ends_after(place), sets - place - 1, None)

    def _spread_out(self, ends: Sequence[tuple[int, int]]) -> SteadyPass:
        """A steady pass from the ends of its sets: the layers between begin as soon as the one before ends."""
        computed = dict(zip(self.offload.offloaded, (end for _, end in ends), strict=True))
        last = self.offload.offloaded[-1]
        start = ends[-1][1] - self.pass_ns + sum(self.layer_ns[last + 1 :])
        layers, end = [], start
        for layer, ns in enumerate(self.layer_ns):
            end = computed.get(layer, end + ns)
            layers.append(Span(end - ns - start, end - start))
        copies = [Span(copied - self.copy_ns - start, copied - start) for copied, _ in ends]
        return SteadyPass(tuple(layers), tuple(copies))


def _flat(ends: Sequence[tuple[int, int]]) -> Iterator[int]:
    return (end for pair in ends for end in pair)


def split_evenly(step_ns: int, layers: int) -> tuple[int, ...]:
    """The time of a step in as equal parts as whole ns allow, one a layer. Source: section 8.4.3, footnote 16."""
    parts = whole("layers", layers, at_least=1, at_most=MOST_LAYERS)
    time = whole("step_ns", step_ns, at_least=parts, at_most=MOST_NS)
    return tuple(end - start for start, end in pairwise(time * part // parts for part in range(parts + 1)))


def copy_time_ns(set_bytes: int, link_bytes_s: int) -> int:
    """Time to copy a set over a link at its nominal bandwidth, rounded up."""
    link = whole("link_bytes_s", link_bytes_s, at_least=1, at_most=MOST_BYTES_S)
    return -(-whole("set_bytes", set_bytes, at_least=1, at_most=MOST_BYTES) * NS // link)


def prefetch(offload: Offload, step_ns: int, link_bytes_s: int) -> Prefetch:
    """The prefetch of a step that takes so long when nothing is offloaded; its layers take equal parts of it."""
    return Prefetch(offload, split_evenly(step_ns, offload.layers), copy_time_ns(offload.set_bytes, link_bytes_s))


class StepKind(StrEnum):
    """What a step does beside copying; the two times come from two clocks."""

    DECODE = "decode"
    PREFILL = "prefill"


CLOCK = {StepKind.DECODE: Clock.ENGINE, StepKind.PREFILL: Clock.FIT}


def plain_step_ns(
    kind: StepKind, requests: int = 1, prompt_tokens: int = SHORT_CHAT.input_tokens, prefill: StepTime = FIT
) -> int:
    """The time of a step without offload: decode of so many short requests, or one prefill, by the fit unless told.

    Decode takes what was recorded, or what lies between two recorded batches; `is_recorded` tells which. Source: record
    step_efficiency (clock: engine); section 8.2.2 (clock: fit).
    """
    batch = whole("requests", requests, at_least=1, at_most=MOST_TOKENS)
    prompt = whole("prompt_tokens", prompt_tokens, at_least=1, at_most=MOST_TOKENS)
    if one_of("kind", kind, StepKind) is StepKind.PREFILL:
        return prefill(step_plan((prompt, 0)))
    return MEASURED_DECODE(decode_plan(batch, SHORT_CHAT.input_tokens))


def is_recorded(requests: int) -> bool:
    """Whether decode of so many short requests was recorded. Source: record step_efficiency."""
    batch = whole("requests", requests, at_least=1, at_most=MOST_TOKENS)
    return MEASURED_DECODE.is_recorded(decode_plan(batch, SHORT_CHAT.input_tokens))


def hiding_link(offload: Offload, step_ns: int) -> int | None:
    """The lowest bandwidth, in whole bytes per second, at which a step of so long hides all copies; None if none does.

    None does where two layers in a row wait for one buffer: nothing computes while the second set is copied.
    """
    parts = split_evenly(step_ns, offload.layers)
    longest = bisect_left(range(1, step_ns + 1), True, key=lambda ns: Prefetch(offload, parts, ns).exposed_ns > 0)
    return -(-offload.set_bytes * NS // longest) if longest else None


def hiding_step_ns(offload: Offload, copy_ns: int) -> int | None:
    """The shortest step of equal layers that hides copies of so long a set; None if none of an hour does."""

    def is_hidden(step_ns: int) -> bool:
        return Prefetch(offload, split_evenly(step_ns, offload.layers), copy_ns).exposed_ns == 0

    if not is_hidden(MOST_NS):
        return None
    return offload.layers + bisect_left(range(offload.layers, MOST_NS), True, key=is_hidden)


def hiding_prompt(offload: Offload, link_bytes_s: int, step_time: StepTime) -> int | None:
    """The fewest tokens of a prompt whose prefill, one step alone, hides the copies; None as for `hiding_step_ns`.

    The clock is that of the step time.
    """
    least_ns = hiding_step_ns(offload, copy_time_ns(offload.set_bytes, link_bytes_s))
    return None if least_ns is None else tokens_that_fit(least_ns - 1, step_time) + 1


def hiding_distance(offload: Offload, step_ns: int, link_bytes_s: int) -> int | None:
    """The least n at which every n-th layer might be offloaded instead and all copies hide; None if there is none."""
    for every in range(1, offload.layers // 2 + 1):
        sets = every_nth(offload.layers, every)
        if len(sets) <= offload.buffers:
            break
        if not prefetch(replace(offload, offloaded=sets), step_ns, link_bytes_s).exposed_ns:
            return every
    return None
