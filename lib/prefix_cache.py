"""A prefix cache: a tree of runs of blocks, in which a prompt finds the KV that it has in common with others.

The tree names blocks of the pool and owns none besides: a block is empty, taken by a request that computes, or in the
tree, where it is protected under a lock or else evictable. `lib.paging` keeps account of single blocks; here whole runs
are compared, locked and let go at once, so that a verb costs what the tokens that it touches cost, however large the
tree is; only a run that it cuts in two is copied as a whole. Of equal content one copy is kept.
"""

import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from lib.block_content import NO_TAG, Tag, Tokens, token_ids
from lib.blocks import MOST_BLOCKS, PagingError
from lib.checks import InputError, finite, one_of, whole
from lib.paging import MOST_BLOCK_TOKENS

TOKEN_BYTES = 8
_SIGN = TOKEN_BYTES - 1 if sys.byteorder == "little" else 0  # which byte of an id holds its sign
Worth = Callable[[int, int], float]


class Order(StrEnum):
    """Which run is evicted next, of those that nobody has locked and nothing goes on from.

    Head first takes the least recently used, too, but from its beginning on.
    """

    LEAST_RECENTLY_USED = "least recently used"
    FIRST_IN = "first in"
    LEAST_VALUE = "least value per byte"
    HEAD_FIRST = "head first"


@dataclass(eq=False, slots=True)
class Run:
    """Blocks that follow each other, behind those of the parent; locks count for the parents, too.

    Its key may be longer than its blocks, as a tail that was evicted is cut off late. `used` is when it was last
    unlocked, `since` when it came, `hits` how often it was found and locked, `offered` when it last became evictable.
    One that is `cut`, as its end was evicted, never gets another end: a match may still name the old one.
    """

    parent: "Run | None" = field(repr=False)
    key: bytes = field(repr=False)
    blocks: list[int]
    start: int  # blocks before it
    since: int
    locks: int = 0
    used: int = 0
    hits: int = 0
    offered: int = 0
    cut: bool = False
    tag: Tag = NO_TAG
    children: "dict[bytes, Run]" = field(default_factory=dict, repr=False)

    @property
    def end(self) -> int:
        """Blocks from the root to its end."""
        return self.start + len(self.blocks)


class Match(NamedTuple):
    """What a prompt would find in a cache: so many tokens, in whole blocks, up to somewhere in a run."""

    tokens: int
    blocks: int
    cache: "PrefixCache"
    tag: Tag
    ids: bytes
    run: Run | None


@dataclass(eq=False, slots=True)
class Lock:
    """A hold on all blocks of a cache up to the end of a run; while it lasts, none of them is evicted."""

    blocks: int
    tag: Tag = field(repr=False)
    ids: bytes = field(repr=False)
    run: Run | None = field(repr=False)


@dataclass(eq=False, slots=True)
class Taken:
    """Blocks that one request computes in; they go together, into the tree or back."""

    blocks: tuple[int, ...]


class PrefixCache:
    """So many blocks of equal size, all empty at first, and the tree of what can be found in them.

    The order by value needs `worth`: what it saves to find the KV of the tokens from one position to before another,
    such as seconds; that of the last block of a run counts as often as the run was found. It is asked for each block
    from the root on, once, before the first tokens that reach so far are inserted. Raises InputError for values that
    make no sense, PagingError for misuse and for too few free blocks; both leave all as it was. Source: sections 8.3.3
    and 8.3.4, figure 8-17.
    """

    def __init__(
        self, blocks: int, block_tokens: int = 16, order: Order = Order.LEAST_RECENTLY_USED, worth: Worth | None = None
    ) -> None:
        self.blocks = whole("blocks", blocks, at_least=1, at_most=MOST_BLOCKS)
        self.block_tokens = whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS)
        self.order = one_of("order", order, Order)
        if not callable(worth) if order == Order.LEAST_VALUE else worth is not None:
            raise InputError("worth", worth, f"a function for the order {Order.LEAST_VALUE.value!r}, None for others")
        self._worth, self._values = worth, list[float]()  # of each block from the root
        self._width = self.block_tokens * TOKEN_BYTES
        self._empty = list(reversed(range(self.blocks)))
        self._taken = set[Taken]()
        self._tops = dict[Tag, Run]()  # where the runs of each tag begin
        self._locks = set[Lock]()  # those that last, so that a copy of one is none
        self._protected = self._evictable = self._runs = 0
        self._clock = count(1)
        # Who may be evicted, by priority; of the entries of a run only the last counts.
        self._next = list[tuple[tuple[float, int], int, Run]]()

    @property
    def empty(self) -> int:
        return len(self._empty)

    @property
    def taken(self) -> int:
        """Blocks that requests compute in and the tree does not know."""
        return self.blocks - self.empty - self.total

    @property
    def protected(self) -> int:
        """Blocks in the tree that are under a lock."""
        return self._protected

    @property
    def evictable(self) -> int:
        """Blocks in the tree that are under no lock."""
        return self._evictable

    @property
    def total(self) -> int:
        """Blocks in the tree."""
        return self._protected + self._evictable

    @property
    def free(self) -> int:
        """Blocks that can be taken: the empty ones and the evictable ones."""
        return len(self._empty) + self._evictable

    def blocks_for(self, tokens: int) -> int:
        """Blocks that so many tokens fill, the last one perhaps in part."""
        return -(-whole("tokens", tokens) // self.block_tokens)

    def runs(self) -> Iterator[Run]:
        """All runs, each behind its parent."""
        unseen = list(self._tops.values())
        while unseen:
            run = unseen.pop()
            unseen += reversed(run.children.values())
            if run.parent:
                yield run

    # What a prompt finds, and keeping it

    def match(self, tokens: Tokens, tag: Tag = NO_TAG) -> Match:
        """Look, and change nothing: whole blocks, and never the last token, which is always computed."""
        if not isinstance(tag, Tag):
            raise InputError("tag", tag, "a Tag")
        ids = self._written(tokens)
        run, end = self._walk(self._tops.get(tag), ids, 0, len(ids) // TOKEN_BYTES - 1)
        self._refuse_negative(tokens, ids, end * self._width)
        return Match(end * self.block_tokens, end, self, tag, ids, run if end else None)

    def blocks_to_keep(self, match: Match) -> int:
        """Free blocks that a prompt uses up: those that it takes anew and the evictable ones that it finds."""
        runs = path_to(self._ask_about_match(match))
        found = sum(min(len(run.blocks), match.blocks - run.start) for run in runs if not run.locks)
        return self.blocks_for(len(match.ids) // TOKEN_BYTES) - match.blocks + found

    def lock(self, match: Match) -> Lock:
        """Keep what was matched from being evicted; PagingError if some of it is gone since."""
        end, run = match.blocks, self._ask_about_match(match)
        if run:
            run = self._split(run, end)
            self._lock(run, hits=1)
        lock = Lock(end, match.tag, match.ids, run)
        self._locks.add(lock)
        return lock

    def unlock(self, lock: Lock) -> None:
        """End a hold: what nobody else has locked may be evicted from now on, and was used last now."""
        self._ask_about(lock)
        self._locks.remove(lock)
        run, now = lock.run, next(self._clock)
        while run:
            run.used = now
            run.locks -= 1
            if not run.locks:
                self._protected -= len(run.blocks)
                self._evictable += len(run.blocks)
            run = run.parent
        if lock.run:
            self._offer(lock.run)

    def table(self, lock: Lock) -> list[int]:
        """The blocks under a lock, in the order of their tokens."""
        self._ask_about(lock)
        runs = reversed(list(path_to(lock.run)))
        return [block for run in runs for block in run.blocks]

    # What a request computes, and keeping that

    def take(self, blocks: int) -> Taken:
        """Blocks to compute in: empty ones, and if they are not enough, evicted ones."""
        kept = len(self._empty) - whole("blocks", blocks)
        if blocks > self.free:
            raise PagingError(f"{blocks} free blocks are needed and there are {self.free}")
        if kept < 0:
            self.evict(-kept)
            kept = len(self._empty) - blocks
        taken = Taken(tuple(self._empty[kept:]))
        del self._empty[kept:]
        self._taken.add(taken)
        return taken

    def give_back(self, taken: Taken) -> None:
        """Blocks that were taken and not inserted are empty again."""
        self._ask_about_taken(taken)
        self._taken.remove(taken)
        self._empty += reversed(taken.blocks)

    def insert(self, lock: Lock, tokens: Tokens, taken: Taken) -> None:
        """Make findable what a request has computed behind what it has locked; the lock then covers that, too.

        `tokens` are all of the request's, from its first; `taken` are the blocks for those that are not under the lock.
        The partly filled last one, and those whose content somebody else has inserted meanwhile, are empty again.
        """
        self._ask_about(lock)
        self._ask_about_taken(taken)
        held, given, ids = lock.blocks, taken.blocks, self._written(tokens)
        if ids.startswith(lock.ids):
            known = len(lock.ids)
        elif ids.startswith(lock.ids[: held * self._width]):
            known = held * self._width
        else:
            raise InputError("tokens", tokens, f"tokens that begin with the {held * self.block_tokens} that are locked")
        self._refuse_negative(tokens, ids, known)
        length = len(ids) // TOKEN_BYTES
        needed = -(-length // self.block_tokens) - held
        if len(given) != needed:
            allowed = f"{needed} blocks, to hold all tokens behind the lock"
            raise InputError("taken", len(given), allowed)
        full = length // self.block_tokens
        self._learn_values(full)
        top = self._tops.get(lock.tag)
        if top is None:
            top = self._tops[lock.tag] = Run(None, b"", [], 0, 0, tag=lock.tag)
        run, end = self._walk(lock.run or top, ids, held, length)
        run = self._split(run or top, end)
        if end < full:
            run = self._go_on(run, ids[end * self._width : full * self._width], given[end - held : full - held], lock)
        spare = given[: end - held] + given[full - held :]
        self._taken.remove(taken)
        self._empty += reversed(spare)
        self._lock(run, lock.run)
        lock.run, lock.blocks, lock.ids = run, run.end, ids

    def keep(self, tokens: Tokens, tag: Tag = NO_TAG) -> tuple[Match, Lock]:
        """All of it for a request that nobody disturbs: what it found, and its lock on all its full blocks."""
        match = self.match(tokens, tag)
        if (needed := self.blocks_to_keep(match)) > self.free:
            raise PagingError(f"{needed} free blocks are needed and there are {self.free}")
        ids = array("q", match.ids)  # read once, so that all that can be refused has been by now
        self._learn_values(len(ids) // self.block_tokens)
        lock = self.lock(match)
        self.insert(lock, ids, self.take(self.blocks_for(len(ids)) - match.blocks))
        return match, lock

    def evict(self, blocks: int) -> int:
        """Forget so many blocks that are under no lock, in the cache's order; gives how many it came to.

        It stops as soon as that many are gone. By most orders a chain loses its end first, block by block; from its
        head on it loses at once all that was used last together, as nothing behind a gap can be found.
        """
        if whole("blocks", blocks) > self._evictable:
            raise PagingError(f"{blocks} blocks are to be evicted and {self._evictable} are evictable")
        gone = 0
        while gone < blocks:
            run = self._first_offered()
            if self.order == Order.HEAD_FIRST:
                gone += self._cut_off(run)
            else:
                # What was never found is worth nothing, however short it gets.
                gone += self._shorten(run, 1 if self._worth and run.hits else blocks - gone)
        return gone

    # What the verbs are made of

    def _written(self, tokens: Tokens) -> bytes:
        """Token ids as bytes, at least one and no more than the blocks can hold; they may still be negative."""
        most = self.blocks * self.block_tokens
        if type(tokens) is array and tokens.typecode == "q" and 0 < len(tokens) <= most:
            return tokens.tobytes()
        return token_ids(tokens, most).tobytes()

    def _refuse_negative(self, tokens: Tokens, ids: bytes, known: int) -> None:
        """Ask for negative ids behind the bytes that are known: only they have a sign."""
        if known < len(ids) and not ids[known + _SIGN :: TOKEN_BYTES].isascii():
            raise InputError("tokens", tokens, "whole numbers of at least 0")

    def _learn_values(self, blocks: int) -> None:
        """Ask for the worth of so many blocks, as far as it is not known."""
        while self._worth and len(self._values) < blocks:
            first = len(self._values) * self.block_tokens
            self._values.append(finite("worth", self._worth(first, first + self.block_tokens)))

    def _walk(self, run: Run | None, ids: bytes, at: int, tokens: int) -> tuple[Run | None, int]:
        """From the end of a run, `at` blocks from the root: how far these ids go, counted in the first `tokens`."""
        width, last = self._width, tokens // self.block_tokens
        while run and at < last:
            start = at * width
            child = run.children.get(ids[start : start + width])
            if child is None:
                break
            run, size = child, len(child.blocks)
            is_whole = at + size <= last and len(child.key) == size * width and ids.startswith(child.key, start)
            common = size if is_whole else self._common(child, ids, at, min(size, last - at))
            at += common
            if common < size:
                break
        return run, at

    def _common(self, run: Run, ids: bytes, at: int, most: int) -> int:
        """How many of the first blocks of a run these ids have, too, from block `at` on."""
        numbers = most * self.block_tokens
        mine = np.frombuffer(run.key, np.int64, numbers)
        theirs = np.frombuffer(ids, np.int64, numbers, at * self._width)
        differ = np.flatnonzero(mine != theirs)
        return int(differ[0]) // self.block_tokens if len(differ) else most

    def _split(self, run: Run, end: int) -> Run:
        """The run that ends so many blocks from the root, cut out of this one, which stays the rest."""
        if run.end == end or not run.parent:
            return run
        head = end - run.start
        assert 0 < head < len(run.blocks)
        cut = head * self._width
        top = Run(run.parent, run.key[:cut], run.blocks[:head], run.start, run.since, run.locks, run.used, run.hits)
        run.parent.children[top.key[: self._width]] = top
        run.parent, run.key, run.start = top, run.key[cut:], end
        del run.blocks[:head]
        top.children[run.key[: self._width]] = run
        self._runs += 1
        return top

    def _go_on(self, run: Run, key: bytes, blocks: Sequence[int], lock: Lock) -> Run:
        """The run that holds these blocks behind a run: that one itself, made longer, if it makes no difference.

        As with a session that grows turn by turn: what nobody else holds and nothing else goes on from has been used
        last as a whole.
        """
        is_by_use = self.order in (Order.LEAST_RECENTLY_USED, Order.HEAD_FIRST)
        if is_by_use and run is lock.run and run.locks == 1 and not run.children and not run.cut:
            run.key += key
            run.blocks += blocks
            self._protected += len(blocks)
            return run
        child = Run(run, key, list(blocks), run.end, next(self._clock))
        run.children[key[: self._width]] = child
        self._evictable += len(blocks)
        self._runs += 1
        return child

    def _lock(self, run: Run, beyond: Run | None = None, hits: int = 0) -> None:
        """Lock a run and those before it, up to one that is locked already."""
        each: Run | None = run
        while each and each is not beyond:
            if not each.locks:
                self._protected += len(each.blocks)
                self._evictable -= len(each.blocks)
            each.locks += 1
            each.hits += hits
            each = each.parent
        assert each is beyond, "what is locked does not stand on the way"

    def _offer(self, run: Run) -> None:
        """Enter a run among those that may be evicted, if it is one."""
        if run.locks or run.children:
            return
        if not run.parent:
            del self._tops[run.tag]
            return
        run.offered = next(self._clock)
        heappush(self._next, (self._priority(run), run.offered, run))
        if len(self._next) > 2 * self._runs + 16:
            self._next = [entry for entry in self._next if self._counts(entry)]
            heapify(self._next)

    def _priority(self, run: Run) -> tuple[float, int]:
        if self._worth:
            return run.hits * self._values[run.end - 1], run.used
        return 0, run.since if self.order == Order.FIRST_IN else run.used

    def _counts(self, entry: tuple[tuple[float, int], int, Run]) -> bool:
        _, offered, run = entry
        return bool(run.blocks) and not run.locks and not run.children and offered == run.offered

    def _first_offered(self) -> Run:
        while True:
            entry = heappop(self._next)
            if self._counts(entry):
                return entry[2]

    def _shorten(self, run: Run, blocks: int) -> int:
        """Forget up to so many blocks at the end of a run."""
        kept = max(len(run.blocks) - blocks, 0)
        lost = run.blocks[kept:]
        self._forget(run, lost)
        del run.blocks[kept:]
        run.cut = True
        if kept:
            if 2 * kept * self._width < len(run.key):
                run.key = run.key[: kept * self._width]
            self._offer(run)
        else:
            self._remove(run)
        return len(lost)

    def _cut_off(self, run: Run) -> int:
        """Forget a run, what was used last together with it before it, and all that goes on from there."""
        while run.parent and run.parent.parent and not run.parent.locks and run.parent.used == run.used:
            run = run.parent
        lost, unseen = 0, [run]
        while unseen:
            each = unseen.pop()
            unseen += each.children.values()
            self._forget(each, each.blocks)
            lost += len(each.blocks)
            self._runs -= each is not run
            each.blocks = []
        self._remove(run)
        return lost

    def _forget(self, run: Run, lost: list[int]) -> None:
        self._evictable -= len(lost)
        self._empty += reversed(lost)

    def _remove(self, run: Run) -> None:
        assert run.parent
        del run.parent.children[run.key[: self._width]]
        self._runs -= 1
        self._offer(run.parent)

    def _ask_about_match(self, match: Match) -> Run | None:
        """The run in which it ends by now."""
        if not isinstance(match, Match) or match.cache is not self:
            raise InputError("match", match, "what this cache has matched")
        run = match.run
        while run and run.start >= match.blocks:  # it was split since
            run = run.parent
        if run and run.end < match.blocks:
            raise PagingError(f"of the {match.tokens} tokens that were matched some are gone: match again")
        return run

    def _ask_about(self, lock: Lock) -> None:
        if not isinstance(lock, Lock) or lock not in self._locks:
            raise PagingError("this is no lock of the cache: it is unlocked already, another cache's, or a copy")

    def _ask_about_taken(self, taken: Taken) -> None:
        if not isinstance(taken, Taken) or taken not in self._taken:
            raise PagingError("these blocks are not taken: they are given back or inserted already, or another cache's")


def path_to(run: Run | None) -> Iterator[Run]:
    """A run and those before it, the last first."""
    while run:
        yield run
        run = run.parent
