"""What slots requests get for their KV: a maximum at once, a region that grows, or blocks, some of them shared.

The totals have formulas. Where things stand, and what had to move, comes from playing the allocators themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lib.checks import InputError, keep_whole, one_of, whole
from lib.contiguous import MOST_SLOTS, Contiguous, Move, Reserve
from lib.memory import pages_for
from lib.model import Transformer
from lib.paging import Pool

# The worked example of section 8.3.1, figures 8-11 to 8-13: tokens of A, B, C and D, the most that each may have,
# tokens of a block, and tokens with which both A and B begin.
NAMES, LENGTHS = ("A", "B", "C", "D"), (9, 13, 5, 15)
MAX_TOKENS, BLOCK_TOKENS, COMMON_TOKENS, SHARERS = 16, 4, 8, 2
# Each token is played, one by one; longer requests and larger pools would keep a reader waiting.
MOST_TOKENS, MOST_POOL_SLOTS, MOST_REQUESTS = 256, 256, 1024


class Allot(StrEnum):
    """How a request gets its slots."""

    MAXIMUM = Reserve.MAXIMUM.value
    IN_BLOCKS = "in blocks"
    AS_IT_GROWS = Reserve.AS_IT_GROWS.value


def wasted_slots(tokens: int, block_tokens: int) -> int:
    """Slots of the last block in which nothing stands: p ceil(L / p) - L, at most p - 1. Source: section 8.3.1."""
    p, length = whole("block_tokens", block_tokens, at_least=1), whole("tokens", tokens)
    return p * pages_for(length, p) - length


def shared_blocks(tokens: int, common_tokens: int, block_tokens: int) -> int:
    """Blocks that a request finds, of as many tokens as are common with another that is long enough.

    Only blocks full of common tokens are shared, and none with the last token, which is always computed.
    Source: section 8.3.1, figure 8-13.
    """
    last = whole("tokens", tokens, at_least=1) - 1
    return min(whole("common_tokens", common_tokens), last) // whole("block_tokens", block_tokens, at_least=1)


def pieces_to_move(model: Transformer, pieces: int) -> int:
    """Copy calls that move KV to another place: one for each region or block, in each layer, for keys and values."""
    return whole("pieces", pieces) * model.layer_count * 2


@dataclass(frozen=True)
class Load:
    """Requests of these lengths, over and over; the first `sharers` of each round begin with the same tokens.

    A request enters with one token, behind the common ones if it has them; the others come one by one, each request in
    turn. `max_tokens` bounds them all. Raises InputError for lengths that make no sense and for a maximum below one.
    """

    lengths: tuple[int, ...] = LENGTHS
    max_tokens: int = MAX_TOKENS
    common_tokens: int = 0
    sharers: int = SHARERS

    def __post_init__(self) -> None:
        if not isinstance(self.lengths, tuple) or not self.lengths:
            raise InputError("lengths", self.lengths, "a tuple of at least one length")
        lengths = tuple(whole("lengths", length, at_least=1, at_most=MOST_TOKENS) for length in self.lengths)
        object.__setattr__(self, "lengths", lengths)
        keep_whole(self, at_most=MOST_TOKENS, max_tokens=1, common_tokens=0)
        keep_whole(self, at_most=len(lengths), sharers=1)
        if self.max_tokens < max(lengths):
            raise InputError("max_tokens", self.max_tokens, f"at least the longest of the requests, {max(lengths)}")

    def length(self, place: int) -> int:
        """How many tokens a request has in the end."""
        return self.lengths[place % len(self.lengths)]

    def common(self, place: int) -> int:
        """How many of its first tokens are common ones."""
        shares = place % len(self.lengths) < self.sharers
        return min(self.common_tokens, self.length(place)) if shares else 0

    def first_tokens(self, place: int) -> int:
        """The tokens that a request enters with."""
        return min(self.common(place) + 1, self.length(place))

    def token(self, place: int, position: int) -> int:
        """A token id: 0, 1, 2 and so on for the common ones, and for each request others of its own."""
        return position + (0 if position < self.common(place) else (place + 1) * MOST_TOKENS)

    def further_tokens(self, requests: int) -> Iterator[tuple[int, int]]:
        """Request and position of each token that comes after those of the start."""
        for nth in range(max(self.lengths)):
            for place in range(requests):
                position = self.first_tokens(place) + nth
                if position < self.length(place):
                    yield place, position

    def equal_tokens(self, requests: int) -> int:
        """Tokens that stand in an earlier request too, at the same place behind the same tokens."""
        common = [self.common(place) for place in range(requests)]
        return sum(min(each, max(common[:place], default=0)) for place, each in enumerate(common))


class Piece(NamedTuple):
    """Slots in a row that a request reads: where they begin, how many, how many hold a token, and if it found them."""

    start: int
    slots: int
    tokens: int
    found: bool = False

    @property
    def end(self) -> int:
        return self.start + self.slots


@dataclass(frozen=True)
class Allotment:
    """What each request has in the end, its pieces in the order of its tokens, and the moves on the way there."""

    requests: tuple[tuple[Piece, ...], ...]
    moves: tuple[Move, ...] = ()

    @property
    def own(self) -> list[Piece]:
        """Each region or block once: with the request that took it."""
        return [piece for pieces in self.requests for piece in pieces if not piece.found]

    @property
    def found(self) -> list[Piece]:
        """What the others read in these; each is a block that sharing saves."""
        return [piece for pieces in self.requests for piece in pieces if piece.found]

    @property
    def allotted(self) -> int:
        return sum(piece.slots for piece in self.own)

    @property
    def used(self) -> int:
        return sum(piece.tokens for piece in self.own)

    @property
    def unused(self) -> int:
        return self.allotted - self.used

    @property
    def entries(self) -> int:
        """Entries of all tables: one for each block of each request, and one where a region starts."""
        return sum(map(len, self.requests))

    @property
    def tokens_moved(self) -> int:
        return sum(move.tokens for move in self.moves)


def allotment(
    load: Load, allot: Allot, block_tokens: int = BLOCK_TOKENS, requests: int = len(NAMES), slots: int | None = None
) -> Allotment | None:
    """The first requests of a load, played on an allocator from their start to their end.

    With `slots` as memory it is None where one of them finds no room; without, there is as much as they need.
    Source: section 8.3.1, figures 8-11 to 8-13.
    """
    block = whole("block_tokens", block_tokens, at_least=1, at_most=MOST_TOKENS)
    count = whole("requests", requests, at_least=1, at_most=MOST_REQUESTS)
    memory = None if slots is None else whole("slots", slots, at_least=1, at_most=MOST_POOL_SLOTS)
    if one_of("allot", allot, Allot) == Allot.IN_BLOCKS:
        blocks = sum(pages_for(load.length(place), block) for place in range(count))
        return _in_blocks(load, count, block, blocks if memory is None else memory // block)
    return _in_regions(load, count, Contiguous(MOST_SLOTS if memory is None else memory, Reserve(allot)))


def most_that_fit(load: Load, allot: Allot, slots: int, block_tokens: int = BLOCK_TOKENS) -> Allotment:
    """What as many requests have as a memory of so many slots holds before the next one would have to wait."""
    whole("slots", slots, at_least=1, at_most=MOST_POOL_SLOTS)
    held = Allotment(())
    while (more := allotment(load, allot, block_tokens, len(held.requests) + 1, slots)) is not None:
        held = more
    return held


def most_unused(load: Load, allot: Allot, block_tokens: int = BLOCK_TOKENS) -> int:
    """The most slots that a round of requests can leave unused, whatever their lengths: p - 1 each with blocks of p."""
    block = whole("block_tokens", block_tokens, at_least=1)
    size = {Allot.MAXIMUM: load.max_tokens, Allot.IN_BLOCKS: block, Allot.AS_IT_GROWS: 1}
    return len(load.lengths) * (size[one_of("allot", allot, Allot)] - 1)


def _in_regions(load: Load, count: int, memory: Contiguous) -> Allotment | None:
    regions, moves = [], list[Move]()
    for place in range(count):
        most = load.max_tokens if memory.reserve == Reserve.MAXIMUM else load.length(place)
        if most > memory.slots or not memory.can_admit(load.first_tokens(place), most):
            return None
        regions.append(memory.admit(load.first_tokens(place), most))
    for place, _ in load.further_tokens(count):
        if not memory.can_grow(regions[place]):
            return None
        if move := memory.grow(regions[place]):
            moves.append(move)
    return Allotment(tuple((Piece(each.start, each.slots, each.tokens),) for each in regions), tuple(moves))


def _in_blocks(load: Load, count: int, block: int, blocks: int) -> Allotment | None:
    if not blocks:
        return None
    pool, sequences = Pool(blocks, block), []
    for place in range(count):
        tokens = [load.token(place, position) for position in range(load.first_tokens(place))]
        if len(tokens) > blocks * block or not pool.can_admit(tokens):
            return None
        sequences.append(pool.admit(tokens))
    for place, position in load.further_tokens(count):
        if position == blocks * block or not pool.can_grow(sequences[place]):
            return None
        pool.append(sequences[place], load.token(place, position))
    return Allotment(
        tuple(
            tuple(
                Piece(number * block, block, min(len(each.tokens) - at * block, block), at * block < each.cached)
                for at, number in enumerate(each.table)
            )
            for each in sequences
        )
    )
