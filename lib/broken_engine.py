"""A small paged engine that can be broken on purpose: wrong memory gives wrong numbers.

A script of events runs over a live pool. Of each sequence in a step, attention by its block table is compared with
attention over its own tokens in one piece. A step writes the KV of its new tokens as it is submitted and reads until it
is complete: on a device both take as long as the step, and these are the two moments at which it can be disturbed.
"""

import math
from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Several
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lib.block_content import Ids, Tag
from lib.blocks import PagingError
from lib.checks import InputError, one_of, whole
from lib.engine_script import Event, Verb, read_script
from lib.paged_attention import Array, KvBlocks, attend, paged_attend
from lib.paging import Copy, Findable, Pool, Sequence, Step

BLOCKS, BLOCK_TOKENS, MOST_BLOCKS = 2, 2, 16
HEADS, HEAD_DIM, SEED = 2, 4, 8
# Sums in another order differ by about 1e-16, what is read from a wrong slot by far more.
TOLERANCE = 1e-12


class Fault(StrEnum):
    """What a pool can get wrong."""

    IDENTITY_KEPT = "identity kept"
    FREED_AT_ONCE = "freed at once"
    NO_COPY = "no copy on write"
    FULL_HIT = "full hit"


class Renaming(Pool):
    """A named block may get another name, which never happens in a sound pool: the later one counts."""

    def _make_findable(self, sequence: Sequence) -> None:
        ready = self._ready_tokens(sequence) // self.block_tokens
        for block in sequence.table[sequence.found_blocks : ready]:
            if content := self._contents[block]:
                self._contents[block] = None
                content.leave(block)
        super()._make_findable(sequence)


class IdentityKept(Renaming):
    """A block that is taken anew can still be found under its old content, until it gets another."""

    def _forget_oldest(self) -> int:
        return self._idle.popitem(last=False)[0]


class FreedAtOnce(Pool):
    """A block without references is free, whatever the device still does with it."""

    def _let_go(self, sequence: Sequence, blocks: list[int]) -> None:
        steps, sequence.steps = sequence.steps, []
        super()._let_go(sequence, blocks)
        sequence.steps = steps


class NoCopy(Renaming):
    """Each holder of a partly filled block takes it for its own to write."""

    def _tail_of_others(self, sequence: Sequence) -> None:
        return None


class FullHit(Pool):
    """All tokens of a prompt can be found, the last one too, which leaves nothing to compute."""

    def _find(self, ids: Ids, tag: Tag) -> list[int]:
        return self._root.find(tag, self._keys(ids))


BROKEN: dict[Fault, type[Pool]] = {
    Fault.IDENTITY_KEPT: IdentityKept,
    Fault.FREED_AT_ONCE: FreedAtOnce,
    Fault.NO_COPY: NoCopy,
    Fault.FULL_HIT: FullHit,
}


def pool_with(faults: Iterable[Fault] = (), blocks: int = BLOCKS) -> Pool:
    """A pool of blocks of two tokens with these faults; without any, the sound pool.

    A block is findable once the step that computes it is done. Raises InputError for values that make no sense.
    Source: section 8.3.2.
    """
    if isinstance(faults, str) or not isinstance(faults, Iterable):
        raise InputError("faults", faults, "a set of faults, such as {Fault.NO_COPY}")
    asked = {one_of("faults", fault, Fault) for fault in faults}
    blocks = whole("blocks", blocks, at_least=1, at_most=MOST_BLOCKS)
    classes = [BROKEN[fault] for fault in Fault if fault in asked] or [Pool]
    made: type[Pool] = classes[0] if len(classes) == 1 else type("BrokenPool", tuple(classes), {})
    return made(blocks, BLOCK_TOKENS, Findable.ONCE_DONE)


class Output(NamedTuple):
    """What a sequence got out of a step: the largest error of its attention, infinite where there is no number.

    `event` is the one, counted from 1, in which the step was complete.
    """

    event: int
    name: str
    error: float

    @property
    def is_wrong(self) -> bool:
        return self.error > TOLERANCE


class Row(NamedTuple):
    """What the last token of a sequence asks in a step: from which text its query was computed, and where it reads."""

    text: str
    table: list[int]


class Flight(NamedTuple):
    """A submitted step: of each sequence its name, its own tokens, and its row, if anything of it is computed."""

    step: Step
    members: list[tuple[str, str, Row | None]]


class Tracer:
    """An engine that knows for each slot from which text its KV was computed, and makes no numbers.

    An output is right if the texts that were read are the sequence's own, else its error is infinite. Raises InputError
    for an event that makes no sense, PagingError for one that the pool refuses; both name it, and all is as before.
    """

    def __init__(self, faults: Iterable[Fault] = (), blocks: int = BLOCKS) -> None:
        self.pool = pool_with(faults, blocks)
        self.texts = [""] * (self.pool.blocks * BLOCK_TOKENS)
        self.sequences = dict[str, Sequence]()
        self.due = list[str]()  # who waits for an output
        self.in_flight = deque[Flight]()
        self.outputs = list[Output]()
        self.events = 0

    def follow(self, event: Event) -> None:
        """Do what the next event of a script says."""
        where = f"event {self.events + 1}"
        self._refuse_names(where, event)
        try:
            self._follow(event)
        except PagingError as refusal:
            raise PagingError(f"{where}, {str(event)!r}: {refusal}") from None
        except InputError as refusal:
            raise InputError(where, str(event), refusal.allowed) from None
        self.events += 1

    def _refuse_names(self, where: str, event: Event) -> None:
        verb, name, more = event
        new = {Verb.ADMIT: name, Verb.FORK: more}.get(verb)
        if new in self.sequences:
            raise InputError(where, str(event), f"a new sequence that is not called {new}, as one that runs is")
        if name and verb != Verb.ADMIT and name not in self.sequences:
            running = ", ".join(self.sequences) or "none yet"
            raise InputError(where, str(event), f"sequences that run: {running}")

    def _follow(self, event: Event) -> None:
        verb, name, more = event
        if verb == Verb.ADMIT:
            self.sequences[name] = self.pool.admit([ord(token) for token in more])
            self.due.append(name)
        elif verb == Verb.APPEND:
            if copy := self.pool.append(self.sequences[name], ord(more)):
                self._copy(copy)
            self.due += [] if name in self.due else [name]
        elif verb == Verb.FORK:
            self.sequences[more] = self.pool.fork(self.sequences[name])
            self.due += [more] if name in self.due else []
        elif verb == Verb.RELEASE:
            self.pool.release(self.sequences.pop(name))
            self.due = [other for other in self.due if other != name]
        elif verb == Verb.COMPLETE:
            self._complete()
        else:
            self._submit()
        while verb == Verb.STEP and self.in_flight:
            self._complete()

    def _submit(self) -> None:
        if not self.due:
            raise PagingError("no sequence waits to be computed")
        members = [(name, tokens_of(self.sequences[name]), self._compute(self.sequences[name])) for name in self.due]
        self.in_flight.append(Flight(self.pool.submit(self.sequences[name] for name in self.due), members))
        self.due = []

    def _compute(self, sequence: Sequence) -> Row | None:
        """Write what is not computed yet, each token from what stands before it in memory."""
        first, length = sequence.computed, len(sequence.tokens)
        if first == length:
            return None
        new = self.pool.slots_to_write(sequence, first, length).tolist()
        read = "".join(self.texts[slot][-1:] or " " for slot in self.pool.slots(sequence, 0, first).tolist())
        for slot, token in zip(new, sequence.tokens[first:], strict=True):
            self.texts[slot] = read = read + chr(token)
        self._write(new)
        return Row(read, sequence.table[:])

    def _complete(self) -> None:
        if not self.in_flight:
            raise PagingError("no step is in flight")
        step, members = self.in_flight.popleft()
        given = [self._attend(row) for _, _, row in members if row]
        rows = 0
        for name, tokens, row in members:
            rows += row is not None
            # The rows of all stand one behind the other, so whoever has none gets the row before it.
            error = self._error(given[rows - 1], tokens) if given else math.inf
            self.outputs.append(Output(self.events + 1, name, error))
        self.pool.complete(step)

    def _copy(self, copy: Copy) -> None:
        source, target = (slice(block * BLOCK_TOKENS, (block + 1) * BLOCK_TOKENS) for block in copy)
        self.texts[target] = self.texts[source]

    def _write(self, slots: list[int]) -> None:
        """Nothing but texts is written."""

    def _attend(self, row: Row) -> Any:
        slots = (block * BLOCK_TOKENS + offset for block in row.table for offset in range(BLOCK_TOKENS))
        return row.text, [self.texts[slot] for slot, _ in zip(slots, row.text, strict=False)]

    def _error(self, given: Any, tokens: str) -> float:
        return 0 if given == (tokens, _prefixes(tokens)) else math.inf


class Engine(Tracer):
    """The same with numbers: KV in the blocks of the pool, and attention by block table.

    The KV of a token is drawn by chance from the text that ends with it, as it was read from memory, like that of a
    real layer: another token, position or prefix, other KV. Source: section 8.3.2.
    """

    def __init__(self, faults: Iterable[Fault] = (), blocks: int = BLOCKS) -> None:
        super().__init__(faults, blocks)
        self.kv = KvBlocks(self.pool.blocks, BLOCK_TOKENS, 1, HEAD_DIM)

    def _copy(self, copy: Copy) -> None:
        super()._copy(copy)
        self.kv.copy(copy)

    def _write(self, slots: list[int]) -> None:
        self.kv.write(slots, *_kv_of([self.texts[slot] for slot in slots]))

    def _attend(self, row: Row) -> Array:
        return paged_attend(_query_of(row.text), self.kv, row.table, len(row.text))

    def _error(self, given: Array, tokens: str) -> float:
        error = float(np.abs(given - _expected(tokens)).max())
        return math.inf if math.isnan(error) else error


def tokens_of(sequence: Sequence) -> str:
    """The tokens of a sequence as letters."""
    return "".join(map(chr, sequence.tokens))


def run_script(script: str | Several[Event], faults: Iterable[Fault] = (), blocks: int = BLOCKS) -> Engine:
    """The engine after all events of a script: its outputs with their errors, and the state of its pool.

    Raises InputError for a script or values that make no sense, PagingError for an event that the pool refuses; both
    name the event. Source: section 8.3.2.
    """
    engine = Engine(faults, blocks)
    for event in read_script(script):
        engine.follow(event)
    return engine


def _prefixes(text: str) -> list[str]:
    return [text[:end] for end in range(1, len(text) + 1)]


@cache
def _expected(tokens: str) -> Array:
    return attend(_query_of(tokens), *_kv_of(_prefixes(tokens)))


def _query_of(text: str) -> Array:
    return _drawn("query", text, HEADS)[None]


def _kv_of(texts: list[str]) -> tuple[Array, Array]:
    keys, values = (np.array([_drawn(part, text, 1) for text in texts]) for part in ("key", "value"))
    return keys, values


@cache
def _drawn(part: str, text: str, heads: int) -> Array:
    return np.random.default_rng([SEED, *f"{part} {text}".encode()]).normal(size=(heads, HEAD_DIM))
