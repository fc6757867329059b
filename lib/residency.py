"""The KV of a run in a paged pool: who may enter, what each request holds, and what it gives back.

`PoolSetup` says which pool and which rule of admission; `Residents` keeps the sequences of the requests that hold KV,
as they have a row or wait for a tool. The loops of `lib.scheduling` and `lib.fast_forward` decide, this keeps account.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection
from collections.abc import Sequence as Row
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from lib.block_content import FEW, Ids
from lib.blocks import MOST_BLOCKS
from lib.checks import InputError, keep_whole, one_of
from lib.paging import MOST_BLOCK_TOKENS, Findable, Pool, Sequence

if TYPE_CHECKING:
    from lib.scheduling import Request

# Token ids that nobody gave are the request's own: its place above, the position below, beyond all ids that are given.
FIRST_OWN_ID = 2**62
_POSITIONS = 2**40
MOST_REQUESTS = FIRST_OWN_ID // _POSITIONS
MOST_POOL_TOKENS = 2**26  # a run writes out the ids of a request that fills the pool several times over


class Gate(StrEnum):
    """For how much of a waiting request there must be free blocks before it enters."""

    FIRST_CHUNK = "its first chunk"
    WHOLE_SEQUENCE = "all its tokens so far"
    FINAL_SIZE = "the most that it and all running ones may become"
    RESERVE = "all its tokens so far, and a reserve beside"


@dataclass(frozen=True)
class PoolSetup:
    """A pool and how requests are let into it.

    Beside the `reserve` gate, `reserve_blocks` is 0; an empty pool lets anybody in, whatever the reserve. Raises
    InputError for what makes no sense. Source: sections 8.3.1 and 8.3.2.
    """

    blocks: int
    block_tokens: int = 16
    gate: Gate = Gate.WHOLE_SEQUENCE
    reserve_blocks: int = 0
    findable: Findable = Findable.NEVER

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BLOCKS, blocks=1)
        keep_whole(self, min(MOST_BLOCK_TOKENS, MOST_POOL_TOKENS // self.blocks), block_tokens=1)
        one_of("gate", self.gate, Gate)
        one_of("findable", self.findable, Findable)
        keep_whole(self, self.blocks - 1 if self.gate == Gate.RESERVE else 0, reserve_blocks=0)

    def can_ever_hold(self, request: "Request") -> bool:
        """Whether the whole pool has room for the most that a request may become."""
        return self.blocks_for(request.most_tokens) <= self.blocks

    def blocks_for(self, tokens: int) -> int:
        """Blocks that so many tokens fill, the last one perhaps in part."""
        return -(-tokens // self.block_tokens)


class Departure(NamedTuple):
    """A request that loses its KV before a step, preempted or as its user went away: its outputs, its tokens in KV.

    It does so at `at_ns`; between this and the step nobody may have had a row for a while.
    """

    step: int
    place: int
    outputs: int
    lost_tokens: int
    at_ns: int


class Holdings(ABC):
    """What the requests that have a row or wait for a tool hold of a pool, and whether the gate opens for one more."""

    def __init__(self, load: Row["Request"], setup: PoolSetup) -> None:
        if len(load) > MOST_REQUESTS:
            raise InputError("requests", len(load), f"at most {MOST_REQUESTS:,} with a pool")
        self.load, self.setup = load, setup
        self.peak_blocks = 0

    @property
    @abstractmethod
    def free(self) -> int:
        """Blocks that can be taken."""

    @property
    @abstractmethod
    def held(self) -> int:
        """Blocks that somebody holds, those of several counted once."""

    @property
    @abstractmethod
    def residents(self) -> Collection[int]:
        """The requests that hold something."""

    @abstractmethod
    def blocks_to_admit(self, place: int, tokens: int) -> int:
        """Free blocks that a request takes if it enters with so many tokens."""

    @abstractmethod
    def blocks_to_grow(self, place: int, length: int) -> int:
        """Blocks to be taken for the KV of a request to reach a length."""

    def lets_in(self, place: int, known: int, length: int, needed: int) -> bool:
        """Whether the gate opens for a request of so many tokens, of which the first step makes KV up to `length`.

        `needed` blocks are spoken for by those who run.
        """
        gate = self.setup.gate
        if gate == Gate.FINAL_SIZE:
            growth = sum(self.blocks_to_grow(other, self.load[other].most_tokens) for other in self.residents)
            beyond = self.setup.blocks_for(self.load[place].most_tokens) - self.setup.blocks_for(known)
            return self.blocks_to_admit(place, known) + beyond + growth <= self.free
        if gate == Gate.RESERVE and self.residents:
            needed += self.setup.reserve_blocks
        return self.blocks_to_admit(place, length if gate == Gate.FIRST_CHUNK else known) + needed <= self.free

    def note_peak(self) -> None:
        self.peak_blocks = max(self.peak_blocks, self.held)


class Residents(Holdings):
    """The sequences of the requests that have a row or wait for a tool, in one pool."""

    def __init__(self, load: Row["Request"], setup: PoolSetup) -> None:
        super().__init__(load, setup)
        self.pool = Pool(setup.blocks, setup.block_tokens, setup.findable)
        self._sequences = dict[int, Sequence]()

    @property
    def free(self) -> int:
        return self.pool.free

    @property
    def held(self) -> int:
        return self.pool.held

    @property
    def residents(self) -> Collection[int]:
        return self._sequences

    def found_tokens(self, place: int, known: int) -> int:
        """Of the tokens that a waiting request has so far, those whose KV would be found."""
        return self.pool.cached_tokens(self._ids(place, 0, known))

    def blocks_to_admit(self, place: int, tokens: int) -> int:
        """Free blocks that a request takes if it enters with so many tokens; idle ones that it finds count, too."""
        return self.pool.blocks_to_admit(self._ids(place, 0, tokens))

    def enter(self, place: int, length: int) -> None:
        """Admit a request with its tokens up to a length; what is found it shares."""
        self._sequences[place] = self.pool.admit(self._ids(place, 0, length))

    def blocks_to_grow(self, place: int, length: int) -> int:
        """Blocks to be taken for the KV of a request to reach a length."""
        return self.setup.blocks_for(length) - len(self._sequences[place].table)

    def grow(self, place: int, length: int, drafted: int = 0) -> None:
        """Take the blocks for the KV of a request to reach a length; the last tokens may be drafted, not known yet."""
        sequence = self._sequences[place]
        if (now := len(sequence.tokens)) < length - drafted:
            ids = self._ids(place, now, length - drafted)
            assert self.pool.extend(sequence, ids) is None, "no tail is shared in a run"
        if drafted:
            assert self.pool.grow(sequence, drafted) is None, "nor is one that holds drafts"

    def confirm(self, place: int, length: int) -> None:
        """Of what a request has drafted, its first tokens up to a length are right; give back the blocks beyond it."""
        self.grow(place, length)
        self.pool.truncate(self._sequences[place], length)
        assert len(self._sequences[place].table) == self.setup.blocks_for(length)

    def table(self, place: int) -> tuple[int, ...]:
        """The block table of a request that holds one."""
        return tuple(self._sequences[place].table)

    def tokens(self, place: int) -> int:
        """How many tokens of a request stand in its blocks, or will once the step in flight is done."""
        return len(self._sequences[place].tokens)

    def compute(self, places: Row[int]) -> None:
        """A step computes what these requests hold, and is done: from now on it counts as computed."""
        if places and self.setup.findable == Findable.ONCE_DONE:
            self.pool.complete(self.pool.submit(self._sequences[place] for place in places))

    def leave(self, place: int) -> None:
        """Give back all that a request holds."""
        self.pool.release(self._sequences.pop(place))

    def _ids(self, place: int, first: int, beyond: int) -> Ids:
        """Token ids at these positions: the given ones, beyond them the request's own."""
        given = cast(Ids | None, self.load[place].ids)
        if given is not None and first < len(given):
            return given[first:beyond] + self._ids(place, len(given), beyond)
        base = FIRST_OWN_ID + place * _POSITIONS
        if beyond - first <= FEW:
            return array("q", range(base + first, base + beyond))
        return array("q", np.arange(base + first, base + beyond).tobytes())
