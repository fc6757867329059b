"""A small host tier behind a link: what a card's cache evicts is written out, and fetched when it is asked for again.

Three clocks meet here: the link at its nominal bandwidth, recomputation by the FLOP rule, and neither hides behind the
other: the times are those of one request served alone.
"""

from array import array
from dataclasses import dataclass

from lib.block_content import NO_TAG, Ids, Tag, Tokens, token_ids
from lib.blocks import MOST_BLOCKS, PagingError
from lib.checks import InputError, keep_whole, seconds, whole
from lib.prefix_cache import PrefixCache, Run, Worth, path_to
from lib.prefix_value import MOST_BYTES, MOST_BYTES_S


@dataclass(frozen=True)
class Link:
    """So many bytes per second one way, and the bytes of one token's KV. InputError for 0 and less."""

    bytes_s: int
    token_bytes: int

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BYTES_S, bytes_s=1)
        keep_whole(self, MOST_BYTES, token_bytes=1)

    def time_for(self, tokens: int) -> float:
        """Seconds in which the KV of so many tokens crosses it (clock: link, nominal)."""
        return whole("tokens", tokens) * self.token_bytes / self.bytes_s


@dataclass(frozen=True)
class Served:
    """One request: its tokens found on the card, fetched from the host and computed, and those that it drove out."""

    found: int
    fetched: int
    computed: int
    written_out: int
    fetch_s: float
    compute_s: float
    write_s: float


class TieredCache(PrefixCache):
    """A prefix cache of so many blocks on the card, and as a second tier another one in the host's memory.

    What leaves the card is written to the host, with what stands before it, as far as that is not there yet, if it
    leaves the host some room; both evict what was used least recently. `time_to_make` gives the seconds to compute the
    KV of the tokens from one position to before another. Raises InputError for values that make no sense. Source:
    section 8.3.4.
    """

    def __init__(self, blocks: int, host_blocks: int, link: Link, time_to_make: Worth, block_tokens: int = 16) -> None:
        super().__init__(blocks, block_tokens)
        if not isinstance(link, Link):
            raise InputError("link", link, "a Link")
        if not callable(time_to_make):
            raise InputError("time_to_make", time_to_make, "a function")
        self.host = PrefixCache(whole("host_blocks", host_blocks, at_least=1, at_most=MOST_BLOCKS), block_tokens)
        self.link, self._time_to_make = link, time_to_make
        self._written_out = 0

    def serve(self, tokens: Tokens, tag: Tag = NO_TAG) -> Served:
        """Serve one request from its first token to the end of its prompt, and keep what it leaves.

        What the card lacks and the host has is fetched if that takes less time than to compute it. PagingError if the
        card has too few blocks.
        """
        ids = token_ids(tokens, self.blocks * self.block_tokens)
        here, length, before = self.match(ids, tag), len(ids), self._written_out
        if (needed := self.blocks_to_keep(here)) > self.free:
            raise PagingError(f"{needed} free blocks are needed and there are {self.free}")
        there = self.host.match(ids[: self.host.blocks * self.block_tokens], tag)
        fetched = self._worth_fetching(here.tokens, there.tokens)
        found = here.tokens + fetched
        compute_s = self._make_s(found, length)
        on_loan, lock = self.host.lock(there), self.lock(here)  # what makes room may drive out much of the host, too
        blocks = self.take(self.blocks_for(length) - here.blocks)
        self.host.unlock(on_loan)
        self.insert(lock, ids, blocks)
        self.unlock(lock)
        written_out = self._written_out - before
        return Served(
            here.tokens, fetched, length - found, written_out,
            self.link.time_for(fetched), compute_s, self.link.time_for(written_out),
        )  # fmt: skip

    def _worth_fetching(self, here: int, there: int) -> int:
        if there <= here or self.link.time_for(there - here) >= self._make_s(here, there):
            return 0
        return there - here

    def _make_s(self, first: int, beyond: int) -> float:
        return seconds("time_to_make", self._time_to_make(first, beyond))

    def _forget(self, run: Run, lost: list[int]) -> None:
        top, *runs = reversed(list(path_to(run)))
        ids = array("q", b"".join(each.key[: len(each.blocks) * self._width] for each in runs))
        if len(ids) < self.host.blocks * self.block_tokens:
            self._write_out(ids, top.tag)
        super()._forget(run, lost)

    def _write_out(self, ids: Ids, tag: Tag) -> None:
        known = self.host.match(ids + array("q", [0]), tag)  # one more, as the last one never counts
        lock = self.host.lock(known)
        needed = self.host.blocks_for(len(ids)) - known.blocks
        if needed <= self.host.free:
            self.host.insert(lock, ids, self.host.take(needed))
            self._written_out += needed * self.block_tokens
        self.host.unlock(lock)
