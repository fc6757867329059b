"""A paged KV pool on the CPU: blocks, block tables, reference counts, and content that is found again.

A sequence reads its KV through a block table. What nobody holds any more can be found until it is taken. The pool moves
no KV: a `Copy` that a verb returns is done by the caller, ahead of the next step. Equal content in two blocks stays
findable in both; the one that was findable first is found.
"""

from collections import abc
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from lib.block_content import MOST_TOKEN_ID, NO_TAG, Content, Ids, Tag, Tokens, token_ids
from lib.blocks import Blocks, PagingError
from lib.checks import InputError, one_of, whole

MOST_BLOCK_TOKENS = 2**20


class Findable(StrEnum):
    """When a full block can be found.

    Found from admission on, it may be read in the very step that computes it, which nobody may prevent by letting it go
    before: in each layer a step writes the KV of all its tokens before its attention reads any. Of a sequence that is
    released before its step is done nothing is found by the second rule.
    """

    ON_ADMISSION = "from admission on"
    ONCE_DONE = "once the step that computes it is done"
    NEVER = "never"


class Copy(NamedTuple):
    """Two blocks: what stands in the source has to be copied to the target before it is written."""

    source: int
    target: int


@dataclass(eq=False, slots=True)
class Sequence:
    """The tokens of one sequence and its block table.

    The first `cached` tokens were found at admission; steps have been submitted for the first `computed`. Its first
    `found_blocks` blocks are findable, and `open_slots` of its tail are known to be its own to write. After its release
    it keeps its tokens, to be admitted again.
    """

    pool: "Pool | None" = field(repr=False)
    tag: Tag
    tokens: Ids
    table: list[int]
    max_tokens: int
    cached: int
    computed: int
    found_blocks: int
    open_slots: int = 0
    steps: "list[Step]" = field(default_factory=list, repr=False)

    def __copy__(self) -> "Sequence":
        raise PagingError("fork makes another of a sequence, a copy would give back its blocks twice")


@dataclass(eq=False, slots=True)
class Step:
    """A submitted step: the tables it goes by, what had been computed before it, and blocks let go since."""

    tables: dict[Sequence, list[int]]
    computed_before: dict[Sequence, int]
    let_go: list[int] = field(default_factory=list)


class Pool(Blocks):
    """Blocks of equal size; each verb checks all before it changes anything.

    Raises InputError for values that make no sense, PagingError for misuse and for too few free blocks.
    Source: sections 8.3.1 and 8.3.2, figures 8-10 and 8-13 to 8-16.
    """

    def __init__(self, blocks: int, block_tokens: int = 16, findable: Findable = Findable.ON_ADMISSION) -> None:
        super().__init__(blocks)
        self.block_tokens = whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS)
        self.findable = one_of("findable", findable, Findable)
        self._root = Content()
        self._in_flight = list[Step]()

    # Admission and what it finds

    def cached_tokens(self, tokens: Tokens, tag: Tag = NO_TAG) -> int:
        """Tokens of a prompt whose KV would be found: whole blocks, and never the last token, which is computed."""
        return len(self._find(self._checked(tokens), tag)) * self.block_tokens

    def blocks_to_admit(self, tokens: Tokens, tag: Tag = NO_TAG) -> int:
        """Free blocks that admission would use up: those it takes anew and the idle ones that it finds."""
        ids = self._checked(tokens)
        return self._cost(ids, self._find(ids, tag))

    def can_admit(self, tokens: Tokens, tag: Tag = NO_TAG) -> bool:
        """Whether there are blocks enough for a prompt now; InputError if it is longer than the whole pool."""
        return self.blocks_to_admit(tokens, tag) <= self.free

    def admit(self, tokens: Tokens, tag: Tag = NO_TAG, max_tokens: int | None = None) -> Sequence:
        """A sequence that starts with these tokens; the blocks that are found it shares, for the others it takes new.

        It never grows beyond `max_tokens`, by default all that the pool can hold.
        """
        ids, most = self._checked(tokens), self.blocks * self.block_tokens
        if max_tokens is not None:
            most = whole("max_tokens", max_tokens, at_least=len(ids), at_most=most)
        found = self._find(ids, tag)
        self._ask_for(self._cost(ids, found))
        self._hold(found)
        table = found + self._take(self._blocks_for(len(ids)) - len(found))
        cached = len(found) * self.block_tokens
        sequence = Sequence(self, tag, ids, table, most, cached, cached, len(found))
        self._make_findable(sequence)
        return sequence

    def fork(self, sequence: Sequence) -> Sequence:
        """Another sequence with the same tokens in the same blocks, the partly filled tail too. Figure 8-15."""
        self._ask_about(sequence)
        table = sequence.table[: self._blocks_for(len(sequence.tokens))]
        self._hold(table)
        sequence.open_slots = 0
        child = replace(sequence, tokens=sequence.tokens[:], table=table, steps=sequence.steps[:])
        for step in child.steps:
            step.computed_before[child] = step.computed_before[sequence]
        return child

    # Growth

    def can_grow(self, sequence: Sequence, tokens: int = 1) -> bool:
        """Whether there are blocks for so many more tokens: new ones, and one to copy a shared tail into."""
        new, tail = self._growth(sequence, whole("tokens", tokens, 1, MOST_TOKEN_ID))
        return max(new, 0) + (tail is not None) <= self.free

    def grow(self, sequence: Sequence, tokens: int = 1) -> Copy | None:
        """Take the blocks for so many more tokens without saying which, such as drafts to be verified."""
        return self._grow(sequence, whole("tokens", tokens, 1, MOST_TOKEN_ID))

    def append(self, sequence: Sequence, token: int) -> Copy | None:
        """Add one token; a tail that others hold, touch or can find is copied first, a full block never is."""
        if type(token) is not int or not 0 <= token <= MOST_TOKEN_ID:
            token = whole("token", token, at_most=MOST_TOKEN_ID)
        if getattr(sequence, "pool", None) is not self or not sequence.open_slots:
            return self._extend(sequence, (token,))
        sequence.tokens.append(token)
        sequence.open_slots -= 1
        if not sequence.open_slots:
            self._make_findable(sequence)
        return None

    def extend(self, sequence: Sequence, tokens: Tokens) -> Copy | None:
        """Add tokens, such as the next chunk of a prompt or many outputs at once."""
        return self._extend(sequence, self._checked(tokens))

    def truncate(self, sequence: Sequence, length: int) -> None:
        """Keep the first tokens only and give back all blocks beyond them, those that growth took included."""
        self._ask_about(sequence)
        length = whole("length", length, at_least=1, at_most=len(sequence.tokens))
        kept = self._blocks_for(length)
        del sequence.tokens[length:]  # first of all, as it fails while somebody has a view of them
        self._let_go(sequence, sequence.table[kept:])
        del sequence.table[kept:]
        sequence.open_slots = 0
        sequence.computed = min(sequence.computed, length)
        sequence.found_blocks = min(sequence.found_blocks, length // self.block_tokens)

    def release(self, sequence: Sequence) -> None:
        """End a sequence: its references go, from the tail on, so that a chain loses its end before its head."""
        self._ask_about(sequence)
        self._let_go(sequence, sequence.table)
        sequence.table, sequence.pool = [], None

    # Steps on the device

    def submit(self, sequences: abc.Iterable[Sequence]) -> Step:
        """A step that computes what these sequences still have to; it touches their blocks until it is complete."""
        if not isinstance(sequences, abc.Iterable):
            raise InputError("sequences", sequences, "sequences of this pool")
        step = Step({}, {})
        for sequence in sequences:
            self._ask_about(sequence)
            if sequence in step.tables:
                raise PagingError("a step has each of its sequences once")
            step.tables[sequence] = []
        if not step.tables:
            raise PagingError("a step has at least one sequence")
        for sequence in step.tables:  # once more, as to come to the later ones may have changed the earlier ones
            self._ask_about(sequence)
        for sequence in step.tables:
            step.tables[sequence], step.computed_before[sequence] = sequence.table[:], sequence.computed
            sequence.steps.append(step)
            sequence.computed = len(sequence.tokens)
        self._in_flight.append(step)
        return step

    def complete(self, step: Step) -> None:
        """The device is done with a step: blocks that only it still touched are free."""
        if not isinstance(step, Step) or step not in self._in_flight:
            raise PagingError("this step is not in flight: it is complete already, or another pool's")
        self._in_flight.remove(step)
        for sequence in step.computed_before:
            sequence.steps.remove(step)
            if sequence.pool is self:
                self._make_findable(sequence)
        for block in step.let_go:
            self._touched[block] -= 1
        done = [block for block in self._waiting if not self._touched[block]]
        for block in done:
            del self._waiting[block]
        self._rest(done)

    # Where KV stands

    def slots(self, sequence: Sequence, first: int, beyond: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Where the KV of the positions from `first` to the one before `beyond` stands: block x block size + offset."""
        self._ask_about(sequence)
        beyond = whole("beyond", beyond, at_most=len(sequence.table) * self.block_tokens)
        first = whole("first", first, at_most=beyond)
        places, offsets = np.divmod(np.arange(first, beyond), self.block_tokens)
        skipped = first // self.block_tokens  # a single slot should not cost a whole long table
        table = np.asarray(sequence.table[skipped : self._blocks_for(beyond)], np.int64)
        return np.asarray(table[places - skipped] * self.block_tokens + offsets)

    def slots_to_write(self, sequence: Sequence, first: int, beyond: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The same, for positions that the next step of this sequence writes; PagingError for any other."""
        slots = self.slots(sequence, first, beyond)
        if first < sequence.computed:
            raise PagingError(
                f"position {first} is not to be written: the first {sequence.computed} are shared or done"
            )
        if beyond > len(sequence.tokens) and self._tail_of_others(sequence) is not None:
            raise PagingError(f"position {beyond - 1} is in a block of others: grow makes a copy of it first")
        return slots

    # What the verbs are made of

    def _ask_about(self, sequence: Sequence) -> None:
        if getattr(sequence, "pool", None) is not self:
            raise PagingError("this is no sequence of the pool: it is released already, or another pool's")

    def _checked(self, tokens: Tokens) -> Ids:
        return token_ids(tokens, at_most=self.blocks * self.block_tokens)

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)

    def _find(self, ids: Ids, tag: Tag) -> list[int]:
        if not isinstance(tag, Tag):
            raise InputError("tag", tag, "a Tag")
        return self._root.find(tag, self._keys(ids[:-1]))  # the last token is always computed

    def _keys(self, ids: Ids) -> abc.Iterator[bytes]:
        """The tokens of each full block, as bytes."""
        written, width = ids.tobytes(), ids.itemsize * self.block_tokens
        return (written[end - width : end] for end in range(width, len(written) + 1, width))

    def _cost(self, ids: Ids, found: list[int]) -> int:
        return self._blocks_for(len(ids)) - len(found) + sum(map(self._idle.__contains__, found))

    def _growth(self, sequence: Sequence, tokens: int) -> tuple[int, int | None]:
        """How many blocks so many more tokens need beyond the table, and the tail that must be copied, if any."""
        self._ask_about(sequence)
        length = len(sequence.tokens) + tokens
        if length > sequence.max_tokens:
            raise PagingError(f"{length} tokens are more than the max_tokens of the sequence, {sequence.max_tokens}")
        return self._blocks_for(length) - len(sequence.table), self._tail_of_others(sequence)

    def _tail_of_others(self, sequence: Sequence) -> int | None:
        """Its partly filled block, if others hold it, touch it or can find it: it must be copied to be written."""
        place, used = divmod(len(sequence.tokens), self.block_tokens)
        if not used:
            return None
        tail = sequence.table[place]
        is_own = self._references[tail] == 1 and not self._touched[tail] and self._contents[tail] is None
        return None if is_own else tail

    def _grow(self, sequence: Sequence, tokens: int, ids: abc.Collection[int] = ()) -> Copy | None:
        new, tail = self._growth(sequence, tokens)
        self._ask_for(max(new, 0) + (tail is not None))
        copy, place = None, len(sequence.tokens) // self.block_tokens
        sequence.tokens.extend(ids)  # first of all, as it fails while somebody has a view of them
        if tail is not None:
            copy = Copy(tail, *self._take(1))
            sequence.table[place] = copy.target
            self._let_go(sequence, [tail])
        if new > 0:
            sequence.table += self._take(new)
        return copy

    def _extend(self, sequence: Sequence, ids: abc.Collection[int]) -> Copy | None:
        copy = self._grow(sequence, len(ids), ids)
        length = len(sequence.tokens)
        sequence.open_slots = min(-length % self.block_tokens, sequence.max_tokens - length)
        self._make_findable(sequence)
        return copy

    def _make_findable(self, sequence: Sequence) -> None:
        size, first = self.block_tokens, sequence.found_blocks
        ready = self._ready_tokens(sequence) // size
        if ready <= first:
            return
        content = self._contents[sequence.table[first - 1]] if first else self._root.child(sequence.tag)
        assert content is not None
        keys = self._keys(sequence.tokens[first * size : ready * size])
        content.fill(sequence.table[first:ready], keys, self._contents)
        sequence.found_blocks = ready

    def _ready_tokens(self, sequence: Sequence) -> int:
        if self.findable == Findable.ON_ADMISSION:
            return len(sequence.tokens)
        if self.findable == Findable.NEVER:
            return 0
        return min([sequence.computed, *(step.computed_before[sequence] for step in sequence.steps)])

    def _let_go(self, sequence: Sequence, blocks: list[int]) -> None:
        touched_by = [(step, set(step.tables.get(sequence, ()))) for step in sequence.steps]
        for block in reversed(blocks):
            self._references[block] -= 1
            for step, touched in touched_by:
                if block in touched:
                    step.let_go.append(block)
                    self._touched[block] += 1
        self._rest([block for block in reversed(blocks) if not self._references[block]])
