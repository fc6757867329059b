"""The paged pool: its verbs against a plain second pool, its states one by one, its misuse, and the chapter's records."""

import random
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lib.checks import InputError
from lib.paging import NO_TAG, Copy, Findable, PagingError, Pool, Sequence, Step, Tag
from lib.records import record
from tests.plain_pool import PlainPool

RULES = tuple(Findable)
OTHER = Tag(adapter="other")


def everything(pool: Pool, sequences: Iterable[Sequence] = ()) -> tuple[Any, ...]:
    """All that a pool and its sequences are, as values; steps by their members and what they still keep."""
    live = list(sequences)
    places = {id(sequence): place for place, sequence in enumerate(live)}
    steps = {id(step): place for place, step in enumerate(step for one in live for step in one.steps)}

    def written(step: Step) -> tuple[Any, ...]:
        table = sorted((places.get(id(one), -1), tuple(table)) for one, table in step.tables.items())
        before = sorted((places.get(id(one), -1), count) for one, count in step.computed_before.items())
        return tuple(table), tuple(before), tuple(sorted(step.let_go))

    return (
        tuple(pool._references),
        tuple(pool._touched),
        tuple(texts(pool)),
        tuple(pool._empty),
        tuple(pool._idle),
        tuple(pool._waiting),
        tuple(sorted(map(written, pool._in_flight))),
        tuple(
            (
                one.tag,
                tuple(one.tokens),
                tuple(one.table),
                one.max_tokens,
                one.cached,
                one.computed,
                one.found_blocks,
                tuple(steps[id(step)] for step in one.steps),
            )
            for one in live
        ),
    )


def texts(pool: Pool) -> Iterator[tuple[Any, ...] | None]:
    """The content of each block: its tag and all tokens up to its end; its place among those of equal content."""
    for block, content in enumerate(pool._contents):
        if content is None:
            yield None
            continue
        at, found = content.blocks.index(block), []
        while content.parent is not None:
            found.append(content.key)
            content = content.parent
        yield at, found.pop(), *array("q", b"".join(reversed(found)))


def check(pool: Pool, live: Iterable[Sequence]) -> None:
    """The invariants of a pool, from its tables."""
    live = list(live)
    entries = Counter(block for sequence in live for block in sequence.table)
    assert [entries[block] for block in range(pool.blocks)] == pool._references
    let_go = Counter(block for step in pool._in_flight for block in step.let_go)
    assert [let_go[block] for block in range(pool.blocks)] == pool._touched
    for block in range(pool.blocks):
        held, waits = pool._references[block] > 0, pool._touched[block] > 0
        has_content = pool._contents[block] is not None
        assert (block in pool._waiting) == (not held and waits)
        assert (block in pool._idle) == (not held and not waits and has_content)
        assert (block in pool._empty) == (not held and not waits and not has_content)
    assert pool.held == len(entries)
    assert pool.held + pool.waiting + pool.idle + pool.empty == pool.blocks
    assert len(set(pool._empty)) == len(pool._empty)
    listed = Counter[int]()
    unseen = [pool._no_tokens]
    while unseen:
        content = unseen.pop()
        listed.update(content.blocks)
        assert all(pool._contents[block] is content for block in content.blocks)
        assert content is pool._no_tokens or content.blocks or content.children, "content that nobody has was kept"
        unseen += content.children.values()
    assert all(listed[block] == (pool._contents[block] is not None) for block in range(pool.blocks))
    for sequence in live:
        size = pool.block_tokens
        assert len(set(sequence.table)) == len(sequence.table)
        assert 0 < len(sequence.tokens) <= min(sequence.max_tokens, len(sequence.table) * size)
        assert sequence.found_blocks <= len(sequence.tokens) // size
        known = list(texts(pool))
        for place in range(sequence.found_blocks):
            text = known[sequence.table[place]]
            assert text is not None
            assert text[1:] == (sequence.tag, *sequence.tokens[: (place + 1) * size])


def is_refused(pool: Pool, live: Iterable[Sequence], verb: Callable[..., object], *values: object) -> str:
    """What a verb says when it refuses; all stays as it was."""
    before = everything(pool, live)
    with pytest.raises(ValueError) as refusal:
        verb(*values)
    assert isinstance(refusal.value, InputError | PagingError)
    assert everything(pool, live) == before
    return str(refusal.value)


# Against the plain pool, with a device that computes late

TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=9)
PICK = st.integers(0, 63)
TAGS = st.sampled_from((NO_TAG, OTHER))


class BesideThePlainPool(RuleBasedStateMachine):
    """Any verbs in any order: both pools answer alike, and what sequences read on the device is their own text.

    The device works in order and as late as it can. What is pending is computed by the next step, as the rule that
    makes blocks findable from admission on asks for.
    """

    @initialize(blocks=st.integers(2, 12), size=st.integers(1, 3), findable=st.sampled_from(RULES))
    def start(self, blocks: int, size: int, findable: Findable) -> None:
        self.pool, self.plain = Pool(blocks, size, findable), PlainPool(blocks, size, findable)
        self.live: dict[int, Sequence] = {}
        self.steps: dict[int, Step] = {}
        self.queue: deque[tuple[int, Callable[[], None]]] = deque()
        self.memory: dict[int, tuple[Any, ...]] = {}
        self.said: list[tuple[Tag, list[int]]] = []
        self.admit([0], NO_TAG)

    def one(self, pick: int) -> tuple[int, Sequence]:
        if not self.live:
            while self.steps:
                self.complete(0)
            self.admit([0], NO_TAG)
        name = sorted(self.live)[pick % len(self.live)]
        return name, self.live[name]

    def copied(self, copy: Copy | None, plain: tuple[int, int] | None) -> None:
        assert copy == plain
        if copy is not None:
            self.queue.append((-1, lambda: self.do_copy(copy)))

    def do_copy(self, copy: Copy) -> None:
        size = self.pool.block_tokens
        for offset in range(size):
            self.memory[copy.target * size + offset] = self.memory.get(copy.source * size + offset, ())

    def text(self, sequence: Sequence, position: int) -> tuple[Any, ...]:
        return sequence.tag, *sequence.tokens[: position + 1]

    def room(self, new: int, found: list[int]) -> bool:
        return new <= len([block for block in self.plain.free() if block not in found])

    @rule(tokens=TOKENS, tag=TAGS)
    def admit(self, tokens: list[int], tag: Tag) -> None:
        pool, size = self.pool, self.pool.block_tokens
        if len(tokens) > pool.blocks * size:
            is_refused(pool, self.live.values(), pool.admit, tokens, tag)
            return
        found = self.plain.found(tokens, tag)
        assert pool.cached_tokens(tokens, tag) == len(found) * size < len(tokens)
        assert pool.can_admit(tokens, tag) == self.room(-(-len(tokens) // size) - len(found), found)
        if not pool.can_admit(tokens, tag):
            is_refused(pool, self.live.values(), pool.admit, tokens, tag)
            return
        free, cost = pool.free, pool.blocks_to_admit(tokens, tag)
        sequence = pool.admit(np.array(tokens), tag)
        assert pool.free == free - cost
        self.live[self.plain.admit(tokens, tag)] = sequence
        self.said.append((tag, tokens))
        assert sequence.cached == len(found) * size

    @rule(pick=PICK, tokens=TOKENS)
    def admit_one_that_goes_on(self, pick: int, tokens: list[int]) -> None:
        tag, said = self.said[pick % len(self.said)]
        self.admit([*said, *tokens[: pick % 3]], tag)

    @rule(pick=PICK, tokens=TOKENS)
    def extend(self, pick: int, tokens: list[int]) -> None:
        name, sequence = self.one(pick)
        if not self.may_grow(name, sequence, len(tokens)):
            is_refused(self.pool, self.live.values(), self.pool.extend, sequence, tokens)
            return
        self.copied(self.pool.extend(sequence, tokens), self.plain.extend(name, tokens))

    @rule(pick=PICK, token=st.integers(0, 1))
    def append(self, pick: int, token: int) -> None:
        name, sequence = self.one(pick)
        if not self.may_grow(name, sequence, 1):
            is_refused(self.pool, self.live.values(), self.pool.append, sequence, token)
            return
        self.copied(self.pool.append(sequence, token), self.plain.extend(name, [token]))

    @rule(pick=PICK, tokens=st.integers(1, 6))
    def grow(self, pick: int, tokens: int) -> None:
        name, sequence = self.one(pick)
        if not self.may_grow(name, sequence, tokens):
            is_refused(self.pool, self.live.values(), self.pool.grow, sequence, tokens)
            return
        self.copied(self.pool.grow(sequence, tokens), self.plain.grow(name, tokens))

    def may_grow(self, name: int, sequence: Sequence, tokens: int) -> bool:
        length, size = len(sequence.tokens) + tokens, self.pool.block_tokens
        if length > self.pool.blocks * size:
            is_refused(self.pool, self.live.values(), self.pool.can_grow, sequence, tokens)
            return False
        needed = max(0, -(-length // size) - len(sequence.table)) + self.plain.must_copy(name)
        assert self.pool.can_grow(sequence, tokens) == self.room(needed, [])
        return self.pool.can_grow(sequence, tokens)

    @rule(pick=PICK)
    def fork(self, pick: int) -> None:
        name, sequence = self.one(pick)
        self.live[self.plain.fork(name)] = self.pool.fork(sequence)

    @rule(pick=PICK, keep=PICK)
    def truncate(self, pick: int, keep: int) -> None:
        self.compute_what_is_pending()
        name, sequence = self.one(pick)
        length = 1 + keep % len(sequence.tokens)
        self.pool.truncate(sequence, length)
        self.plain.truncate(name, length)

    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        self.compute_what_is_pending()
        name, sequence = self.one(pick)
        self.pool.release(sequence)
        self.plain.release(name)
        del self.live[name]
        assert not sequence.table
        is_refused(self.pool, self.live.values(), self.pool.release, sequence)

    def compute_what_is_pending(self) -> None:
        if any(len(sequence.tokens) > sequence.computed for sequence in self.live.values()):
            self.submit_these(set())

    @rule(pick=PICK)
    def submit(self, pick: int) -> None:
        self.submit_these({self.one(pick)[0], self.one(pick // 2)[0]})

    def submit_these(self, chosen: set[int]) -> None:
        pending = {name for name, one in self.live.items() if len(one.tokens) > one.computed}
        group = sorted(chosen | pending)
        writes: dict[int, tuple[Any, ...]] = {}
        reads: dict[int, tuple[Any, ...]] = {}
        for name, sequence in ((name, self.live[name]) for name in group):
            length, capacity = len(sequence.tokens), len(sequence.table) * self.pool.block_tokens
            slots = self.pool.slots(sequence, 0, length).tolist()
            reads |= {slot: self.text(sequence, position) for position, slot in enumerate(slots)}
            at = self.pool.slots_to_write(sequence, sequence.computed, length).tolist()
            assert at == slots[sequence.computed :]
            writes |= {slot: reads[slot] for slot in at}
            tail = self.plain.tail(name)
            if tail is None or not (self.plain.must_copy(name) or tail in self.plain.content):
                drafts = self.pool.slots_to_write(sequence, length, capacity).tolist()
                writes |= dict.fromkeys(drafts, ("draft",))
            else:
                is_refused(self.pool, self.live.values(), self.pool.slots_to_write, sequence, length, capacity)

        def run() -> None:
            self.memory.update(writes)
            assert {slot: self.memory.get(slot) for slot in reads} == reads

        step = self.pool.submit(self.live[name] for name in group)
        name = self.plain.submit(group)
        self.steps[name] = step
        self.queue.append((name, run))

    @rule(pick=PICK)
    def complete(self, pick: int) -> None:
        if not self.steps:
            return
        name = sorted(self.steps)[pick % len(self.steps)]
        while any(at == name for at, _ in self.queue):
            self.queue.popleft()[1]()
        step = self.steps.pop(name)
        self.pool.complete(step)
        self.plain.complete(name)
        is_refused(self.pool, self.live.values(), self.pool.complete, step)

    @invariant()
    def alike(self) -> None:
        if not hasattr(self, "pool"):
            return
        pool, plain = self.pool, self.plain
        check(pool, self.live.values())
        assert plain.states() == {"held": pool.held, "waiting": pool.waiting, "idle": pool.idle, "empty": pool.empty}
        assert [pool.references(block) for block in plain.users] == [len(users) for users in plain.users.values()]
        for name, sequence in self.live.items():
            assert sequence.table == plain.table[name]
            assert list(sequence.tokens) == plain.text[name]
            assert sequence.computed == plain.computed[name]
        assert plain.free() == [*reversed(pool._empty), *pool._idle]

    def teardown(self) -> None:
        if not hasattr(self, "pool"):
            return
        for sequence in self.live.values():
            self.pool.release(sequence)
        for step in self.steps.values():
            self.pool.complete(step)
        assert self.pool.free == self.pool.blocks
        check(self.pool, ())


TestBesideThePlainPool = BesideThePlainPool.TestCase
TestBesideThePlainPool.settings = settings(max_examples=120, stateful_step_count=40)
