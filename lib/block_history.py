"""A few events in a small pool that leave the blocks of one sequence scattered: the worked example of figure 8-10.

Attention through its block table is computed beside attention over the same KV in one piece.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import numpy as np

from lib.checks import whole
from lib.memory import pages_for
from lib.paged_attention import Array, KvBlocks, attend, paged_attend
from lib.paging import Findable, Pool, Sequence

BLOCK_TOKENS = 4
# The memory has room for so many tokens, and for the blocks that the history needs where blocks are large.
POOL_TOKENS, FEWEST_BLOCKS = 16, 3
# In larger blocks the sequence would not even fill one.
LARGEST_BLOCK = 8
KV_HEADS, HEADS, HEAD_DIM = 1, 2, 8
SEED = 8


class Verb(StrEnum):
    """What a sequence does to the pool."""

    ENTERS = "enters"
    GROWS = "grows"
    ENDS = "ends"


class Event(NamedTuple):
    """A sequence and what it does, with so many new tokens."""

    sequence: str
    verb: Verb
    tokens: int = 0


LOOKED_AT = "A"
HISTORY = (
    Event("B", Verb.ENTERS, 7),
    Event("A", Verb.ENTERS, 3),
    Event("B", Verb.ENDS),
    Event("A", Verb.GROWS, 4),
    Event("C", Verb.ENTERS, 3),
    Event("A", Verb.GROWS, 4),
    Event("C", Verb.ENDS),
)
TOKENS = sum(event.tokens for event in HISTORY if event.sequence == LOOKED_AT)


class Place(NamedTuple):
    """Where the KV of a token stands."""

    logical: int
    physical: int
    offset: int


@dataclass(frozen=True)
class Memory:
    """A pool, the KV in its blocks, and the sequences that hold some of them, by name."""

    pool: Pool
    kv: KvBlocks
    sequences: dict[str, Sequence] = field(default_factory=dict)

    @property
    def sequence(self) -> Sequence | None:
        """The one that the figure looks at, as soon as it has entered."""
        return self.sequences.get(LOOKED_AT)

    def follow(self, event: Event) -> None:
        """Do what an event says and compute the KV of its new tokens; PagingError where the pool cannot."""
        name, verb, tokens = event
        if verb is Verb.ENDS:
            self.pool.release(self.sequences.pop(name))
            return
        if verb is Verb.ENTERS:
            self.sequences[name] = self.pool.admit(range(tokens))
        else:
            length = len(self.sequences[name].tokens)
            self.pool.extend(self.sequences[name], range(length, length + tokens))
        self._compute(name)

    def place(self, token: int) -> Place | None:
        """Where a token of the sequence looked at stands; None before it is there."""
        token = whole("token", token, at_most=TOKENS - 1)
        if not self.sequence or token >= len(self.sequence.tokens):
            return None
        (slot,) = self.pool.slots(self.sequence, token, token + 1).tolist()
        return Place(token // self.pool.block_tokens, *divmod(slot, self.pool.block_tokens))

    def written(self) -> dict[int, tuple[str, int]]:
        """The sequence and the token whose KV stands in each slot, block x block size + offset, that is held."""
        return {
            slot: (name, token)
            for name, sequence in self.sequences.items()
            for token, slot in enumerate(self.pool.slots(sequence, 0, len(sequence.tokens)).tolist())
        }

    def attention_difference(self) -> float | None:
        """The largest difference between attention by the block table and attention over the same KV in one piece.

        All tokens of the sequence looked at ask. None before it is there.
        """
        if not self.sequence:
            return None
        length = len(self.sequence.tokens)
        queries = _drawn(HEADS, LOOKED_AT, "query")[:length]
        keys, values = (_drawn(KV_HEADS, LOOKED_AT, part)[:length] for part in ("key", "value"))
        paged = paged_attend(queries, self.kv, self.sequence.table, length)
        return float(np.abs(paged - attend(queries, keys, values)).max())

    def _compute(self, name: str) -> None:
        sequence = self.sequences[name]
        first, beyond = sequence.computed, len(sequence.tokens)
        slots = self.pool.slots_to_write(sequence, first, beyond)
        self.kv.write(slots, *(_drawn(KV_HEADS, name, part)[first:beyond] for part in ("key", "value")))
        self.pool.complete(self.pool.submit([sequence]))


def play_history(events: int = len(HISTORY), block_tokens: int = BLOCK_TOKENS) -> Memory:
    """The memory after the first events of the history, in blocks of so many tokens.

    Nothing that is let go is looked for again, so a block is free at once. Raises InputError for values that make no
    sense. Source: section 8.3.1, figure 8-10.
    """
    events = whole("events", events, at_most=len(HISTORY))
    block_tokens = whole("block_tokens", block_tokens, at_least=1, at_most=LARGEST_BLOCK)
    blocks = max(FEWEST_BLOCKS, pages_for(POOL_TOKENS, block_tokens))
    memory = Memory(Pool(blocks, block_tokens, Findable.NEVER), KvBlocks(blocks, block_tokens, KV_HEADS, HEAD_DIM))
    for event in HISTORY[:events]:
        memory.follow(event)
    return memory


@cache
def _drawn(heads: int, name: str, part: str) -> Array:
    """Random queries, keys or values of each token that a sequence may have, the same in every run."""
    seed = [SEED, *name.encode(), *part.encode()]
    return np.random.default_rng(seed).normal(size=(TOKENS, heads, HEAD_DIM))
