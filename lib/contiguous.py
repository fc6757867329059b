"""KV in one piece for each sequence: the allocator that paging is compared with.

Either a sequence reserves its maximum at once, and the tail is lost while it stays short, or it takes slots as it
grows, and must move when a neighbour is in the way. What lies between the regions is free, but only in pieces.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lib.checks import one_of, whole

MOST_SLOTS = 2**40


class ContiguousError(ValueError):
    """A verb that cannot be followed: no hole that is long enough, or misuse. All is as it was before."""


class Reserve(StrEnum):
    """How many slots a sequence takes."""

    MAXIMUM = "its maximum at once"
    AS_IT_GROWS = "as it grows"


class Hole(NamedTuple):
    """Free slots in a row."""

    start: int
    slots: int


class Move(NamedTuple):
    """So many tokens that have to be copied from one slot on to another slot on."""

    source: int
    target: int
    tokens: int


@dataclass(eq=False)
class Region:
    """The slots of one sequence, of which the first `tokens` are used."""

    start: int
    slots: int
    tokens: int
    max_tokens: int

    @property
    def end(self) -> int:
        return self.start + self.slots


class Contiguous:
    """Slots for the KV of one token each, given out in one piece by first fit.

    Raises InputError for values that make no sense, ContiguousError for misuse and where no hole is long enough.
    Source: section 8.3.1, figure 8-11.
    """

    def __init__(self, slots: int, reserve: Reserve = Reserve.MAXIMUM) -> None:
        self.slots = whole("slots", slots, at_least=1, at_most=MOST_SLOTS)
        self.reserve = one_of("reserve", reserve, Reserve)
        self._regions = list[Region]()  # by where they start

    @property
    def reserved(self) -> int:
        """Slots that sequences have, used or not."""
        return sum(region.slots for region in self._regions)

    @property
    def used(self) -> int:
        """Slots in which KV stands."""
        return sum(region.tokens for region in self._regions)

    @property
    def free(self) -> int:
        return self.slots - self.reserved

    def holes(self) -> list[Hole]:
        """The free list: what lies between the regions, from the first slot on."""
        starts = [0, *(region.end for region in self._regions)]
        ends = [*(region.start for region in self._regions), self.slots]
        return [Hole(start, end - start) for start, end in zip(starts, ends, strict=True) if end > start]

    def can_admit(self, tokens: int, max_tokens: int) -> bool:
        """Whether some hole is long enough; InputError if the whole memory would not be."""
        return self._first_fit(self._new_region(tokens, max_tokens).slots) is not None

    def admit(self, tokens: int, max_tokens: int) -> Region:
        """The region of a new sequence of so many tokens, in the first hole that is long enough."""
        region = self._new_region(tokens, max_tokens)
        self._place(region, region.slots)
        return region

    def can_grow(self, region: Region, tokens: int = 1) -> bool:
        """Whether so many more tokens have room, where the region is or where it could move to."""
        slots = self._slots_after(region, tokens)
        return slots <= self._reach(region) or self._first_fit(slots) is not None

    def grow(self, region: Region, tokens: int = 1) -> Move | None:
        """Add tokens; where the next slots are another's, the region moves and the copy to be done is given back."""
        slots, start, move = self._slots_after(region, tokens), region.start, None
        if slots > self._reach(region):
            self._place(region, slots)
            move = Move(start, region.start, region.tokens)
        region.slots = slots
        region.tokens += int(tokens)
        return move

    def release(self, region: Region) -> None:
        """Give back all slots of a region, the unused ones too."""
        self._ask_about(region)
        self._regions.remove(region)

    def _ask_about(self, region: Region) -> None:
        if not any(region is each for each in self._regions):
            raise ContiguousError("this is no region of the memory: it is released already, or another's")

    def _new_region(self, tokens: int, max_tokens: int) -> Region:
        most = whole("max_tokens", max_tokens, at_least=1, at_most=self.slots)
        now = whole("tokens", tokens, at_least=1, at_most=most)
        return Region(0, most if self.reserve == Reserve.MAXIMUM else now, now, most)

    def _slots_after(self, region: Region, tokens: int) -> int:
        self._ask_about(region)
        length = region.tokens + whole("tokens", tokens, at_least=1)
        if length > region.max_tokens:
            raise ContiguousError(f"{length} tokens are more than the max_tokens of the region, {region.max_tokens}")
        return max(length, region.slots)

    def _first_fit(self, slots: int) -> int | None:
        return next((hole.start for hole in self.holes() if hole.slots >= slots), None)

    def _reach(self, region: Region) -> int:
        """Slots from its start to the next region."""
        later = [other.start for other in self._regions if other.start > region.start]
        return min(later, default=self.slots) - region.start

    def _place(self, region: Region, slots: int) -> None:
        start = self._first_fit(slots)  # while a region moves, its old slots are still read
        if start is None:
            raise ContiguousError(f"no hole is {slots} slots long; {self.free} are free in all")
        region.start = start
        self._regions = sorted({*self._regions, region}, key=lambda each: each.start)
