"""Branches of one sequence that write into the tail they share: the worked example of figure 8-15."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from lib.checks import one_of, whole
from lib.paged_attention import KvBlocks
from lib.paging import Copy, Pool, Sequence

BLOCK_TOKENS, TAIL_TOKENS, BRANCHES = 4, 3, 2
FULL_BLOCKS = 2
# The tokens of the tail, and the one that each branch appends.
TAIL, APPENDED = "abcdefgh", "xyzw"
SMALLEST_BLOCK, LARGEST_BLOCK, MOST_BRANCHES = 2, len(TAIL), len(APPENDED)


class Parent(StrEnum):
    """What the sequence that was forked does before its branches write."""

    STAYS = "stays"
    LETS_GO = "lets go"


@dataclass(frozen=True)
class Forked:
    """A pool, what stands in its blocks, who holds them, and the copies that writing took, in order."""

    pool: Pool
    kv: KvBlocks
    parent: Sequence | None
    branches: tuple[Sequence, ...]
    copies: tuple[Copy, ...]

    @property
    def tables(self) -> list[list[int]]:
        """The block tables of all that hold blocks, the parent's first."""
        holders = (self.parent, *self.branches) if self.parent else self.branches
        return [holder.table for holder in holders]

    @property
    def blocks_apart(self) -> int:
        """Blocks that the same sequences would take if each stored all of its own: one for each reference."""
        return sum(map(len, self.tables))

    @property
    def references(self) -> list[int]:
        """Table entries that point at each block of the pool."""
        return [self.pool.references(block) for block in range(self.pool.blocks)]

    def letters(self, block: int) -> list[str]:
        """What the memory has in each slot of a block: a letter of the tail or of a branch, or nothing."""
        block = whole("block", block, at_most=self.pool.blocks - 1)
        return ["" if np.isnan(token) else chr(int(token)) for token in self.kv.keys[block][:, 0, 0]]


def write_in_branches(
    block_tokens: int = BLOCK_TOKENS,
    tail_tokens: int = TAIL_TOKENS,
    branches: int = BRANCHES,
    parent: Parent = Parent.STAYS,
    written: int = BRANCHES,
) -> Forked:
    """Fork a sequence of full blocks and a tail, and let the first `written` branches append a token each.

    The pool has as many blocks as are needed if each branch takes one more. Raises InputError for values that make no
    sense. Source: section 8.3.2, figure 8-15.
    """
    size = whole("block_tokens", block_tokens, at_least=SMALLEST_BLOCK, at_most=LARGEST_BLOCK)
    tail = TAIL[: whole("tail_tokens", tail_tokens, at_least=1, at_most=size)]
    count = whole("branches", branches, at_least=2, at_most=MOST_BRANCHES)
    written = whole("written", written, at_most=count)
    blocks = FULL_BLOCKS + 1 + count
    pool, kv = Pool(blocks, size), KvBlocks(blocks, size, 1, 1)
    first = pool.admit([*range(FULL_BLOCKS * size), *map(ord, tail)])
    _compute(pool, kv, first)
    forks = tuple(pool.fork(first) for _ in range(count))
    stays = one_of("parent", parent, Parent) is Parent.STAYS
    if not stays:
        pool.release(first)
    copies = []
    for branch, letter in zip(forks[:written], APPENDED, strict=False):
        if copy := pool.append(branch, ord(letter)):
            kv.copy(copy)
            copies.append(copy)
        _compute(pool, kv, branch)
    return Forked(pool, kv, first if stays else None, forks, tuple(copies))


def _compute(pool: Pool, kv: KvBlocks, sequence: Sequence) -> None:
    """What the next step does: it writes what is not computed yet, here the token itself in place of its KV."""
    beyond = len(sequence.tokens)
    tokens = np.array(sequence.tokens[sequence.computed :]).reshape(-1, 1, 1)
    kv.write(pool.slots_to_write(sequence, sequence.computed, beyond), tokens, tokens)
    pool.complete(pool.submit([sequence]))
