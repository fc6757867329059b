"""The paged pool: its verbs against a plain second pool, its states one by one, misuse and the chapter's records."""

import itertools
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

from lib.block_content import NO_TAG, Ids, Tag
from lib.blocks import PagingError, State
from lib.checks import InputError
from lib.paging import Copy, Findable, Pool, Sequence, Step
from tests.bench.paging import run, work
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
        at, found = list(content.blocks).index(block), []
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
    states = [pool.state(block) for block in range(pool.blocks)]
    lists = ((State.WAITING, pool._waiting), (State.IDLE, pool._idle), (State.EMPTY, pool._empty))
    for state, blocks in lists:
        assert sorted(blocks) == [block for block in range(pool.blocks) if states[block] == state]
    assert pool.held == len(entries) == states.count(State.HELD)
    assert pool.held + pool.waiting + pool.idle + pool.empty == pool.blocks
    listed = Counter[int]()
    unseen = [pool._root]
    while unseen:
        content = unseen.pop()
        listed.update(list(content.blocks))
        assert all(pool._contents[block] is content for block in content.blocks)
        assert content is pool._root or content.blocks or content.children, "content that nobody has was kept"
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
        name, sequence = self.one(pick)
        self.compute_what_is_pending()
        length = 1 + keep % len(sequence.tokens)
        self.pool.truncate(sequence, length)
        self.plain.truncate(name, length)

    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        name, sequence = self.one(pick)
        self.compute_what_is_pending()
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
            if not self.plain.must_copy(name):
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


def walk(seed: int, verbs: int) -> None:
    """A random walk through the same verbs, with more hits and fuller pools than drawn ones have."""
    draw = random.Random(seed)
    machine = BesideThePlainPool()
    machine.start(draw.randint(3, 12), draw.randint(1, 3), draw.choice(RULES))

    def tokens() -> list[int]:
        return [draw.randint(0, 1) for _ in range(draw.randint(1, 7))]

    def pick() -> int:
        return draw.randrange(64)

    def tag() -> Tag:
        return draw.choice((NO_TAG, NO_TAG, OTHER))

    turns: tuple[Callable[[], None], ...] = (
        lambda: machine.admit(tokens(), tag()),
        lambda: machine.admit_one_that_goes_on(pick(), tokens()),
        lambda: machine.extend(pick(), tokens()),
        lambda: machine.append(pick(), draw.randint(0, 1)),
        lambda: machine.grow(pick(), draw.randint(1, 4)),
        lambda: machine.fork(pick()),
        lambda: machine.truncate(pick(), pick()),
        lambda: machine.release(pick()),
        lambda: machine.submit(pick()),
        lambda: machine.complete(pick()),
    )
    for turn in draw.choices(turns, (2, 4, 2, 6, 1, 2, 1, 4, 3, 4), k=verbs):
        turn()
        machine.alike()
    machine.teardown()


@pytest.mark.parametrize("seed", range(60))
def test_random_walks_beside_the_plain_pool(seed: int) -> None:
    walk(seed, 120)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130))
def test_long_random_walks_beside_the_plain_pool(seed: int) -> None:
    walk(seed, 3000)


# All states of a small pool

PROMPTS = ((0,), (0, 1), (0, 1, 0), (0, 1, 0, 0, 0))


class Small:
    """Three blocks of two tokens, at most two sequences and two steps in flight."""

    def __init__(self, findable: Findable, path: Iterable[tuple[Any, ...]] = ()) -> None:
        self.pool, self.live, self.steps = Pool(3, 2, findable), list[Sequence](), list[Step]()
        for verb in path:
            self.do(*verb)

    def verbs(self) -> Iterator[tuple[Any, ...]]:
        """Each verb that the pool says it can follow; the others are tried and must be refused."""
        if len(self.live) < 2:
            for prompt in PROMPTS:
                if self.pool.can_admit(prompt):
                    yield "admit", prompt
                else:
                    is_refused(self.pool, self.live, self.pool.admit, prompt)
        for place, sequence in enumerate(self.live):
            yield from (("release", place), ("truncate", place, (len(sequence.tokens) + 1) // 2))
            if len(self.live) < 2:
                yield "fork", place
            if len(sequence.tokens) < 6 and self.pool.can_grow(sequence):
                yield from (("append", place, 0), ("append", place, 1), ("grow", place))
            else:
                is_refused(self.pool, self.live, self.pool.append, sequence, 0)
        if self.live and len(self.steps) < 2:
            yield from (("submit", 1), ("submit", len(self.live)))
        for place in range(len(self.steps)):
            yield "complete", place

    def do(self, verb: str, *values: Any) -> None:
        if verb == "admit":
            self.live.append(self.pool.admit(*values))
        elif verb == "fork":
            self.live.append(self.pool.fork(self.live[values[0]]))
        elif verb == "release":
            self.pool.release(self.live.pop(values[0]))
        elif verb == "submit":
            self.steps.append(self.pool.submit(self.live[: values[0]]))
        elif verb == "complete":
            self.pool.complete(self.steps.pop(values[0]))
        else:
            getattr(self.pool, verb)(self.live[values[0]], *values[1:])


def states_to(depth: int, findable: Findable) -> int:
    """Check the invariants in each distinct state that so many verbs can reach; how many there are."""
    seen, border = set[Any](), [()]
    for left in range(depth, -1, -1):
        paths, border = border, list[Any]()
        for path in paths:
            small = Small(findable, path)
            key = everything(small.pool, small.live)
            if key in seen:
                continue
            seen.add(key)
            check(small.pool, small.live)
            if left:
                border += [(*path, verb) for verb in small.verbs()]
    return len(seen)


@pytest.mark.parametrize("findable", RULES)
def test_the_invariants_hold_in_every_state_that_five_verbs_reach(findable: Findable) -> None:
    assert states_to(5, findable) > 4_000


@pytest.mark.long
@pytest.mark.parametrize("findable", RULES)
def test_the_invariants_hold_in_every_state_that_six_verbs_reach(findable: Findable) -> None:
    assert states_to(6, findable) > 10_000


# The chapter's records and figures

PROMPT = array("q", range(1536))


def branches(pool: Pool, tokens: Ids, outputs: int) -> list[Sequence]:
    """Four admissions of one prompt, grown side by side."""
    four = [pool.admit(tokens) for _ in range(4)]
    for output in range(outputs):
        for place, sequence in enumerate(four):
            assert pool.append(sequence, 10_000 + 1_000 * place + output) is None
    return four


def test_four_branches_that_hit_the_cache_hold_131_blocks_by_416_references() -> None:
    pool = Pool(454)
    pool.release(pool.admit(PROMPT))
    four = branches(pool, PROMPT, outputs=127)
    assert [sequence.cached // 16 for sequence in four] == [95] * 4
    assert [len(sequence.table) for sequence in four] == [95 + 9] * 4
    assert pool.held == 131 == 95 + 4 * 9
    assert sum(pool.references(block) for block in range(pool.blocks)) == 416 == sum(len(one.table) for one in four)
    assert sum(len(sequence.tokens) - sequence.cached for sequence in four) == 572
    for sequence in four:
        pool.release(sequence)
    assert pool.free == 454


def test_four_branches_of_a_cold_engine_hold_as_much_and_compute_2092_positions() -> None:
    pool = Pool(454)
    four = branches(pool, PROMPT, outputs=127)
    assert pool.held == 131
    assert sum(len(sequence.tokens) - sequence.cached for sequence in four) == 2092


def test_forks_after_the_prompt_hold_128_blocks() -> None:
    pool = Pool(454)
    first = pool.admit(PROMPT)
    four = [first, *(pool.fork(first) for _ in range(3))]
    for output in range(127):
        copies = [pool.append(sequence, output) for sequence in four]
        assert copies == [None] * 4, "a full block is never copied"
    assert pool.held == 128 == 96 + 4 * 8


def test_four_prompts_of_one_step_share_by_one_rule_and_not_by_the_other() -> None:
    for findable, held in ((Findable.ON_ADMISSION, 95 + 4), (Findable.ONCE_DONE, 4 * 96), (Findable.NEVER, 4 * 96)):
        pool = Pool(454, findable=findable)
        pool.submit([pool.admit(PROMPT) for _ in range(4)])
        assert pool.held == held


def test_cancelled_blocks_come_back_when_the_step_in_flight_is_done() -> None:
    """35 blocks free when the request was cancelled, its 104 back with the step: 139. Section 8.3.2, figure 8-16."""
    pool = Pool(139, findable=Findable.NEVER)
    request = pool.admit(PROMPT, max_tokens=1536 + 128)
    pool.extend(request, range(128))
    assert (len(request.table), pool.free) == (104, 35)
    step = pool.submit([request])
    pool.release(request)
    assert (pool.waiting, pool.free) == (104, 35)
    assert not pool.can_admit(range(16 * 35 + 1))
    pool.complete(step)
    assert (pool.waiting, pool.free) == (0, 139)


def test_all_but_the_first_of_each_prefix_are_found_and_all_blocks_are_free_in_the_end() -> None:
    """20 prefixes of 1024 tokens among 2,000 sequences: the work that the benchmark times."""
    assert run(*work()) == 2_027_520 == (2_000 - 20) * 1024


def test_a_table_of_scattered_blocks() -> None:
    pool = Pool(4, 4)
    zero, one, two = (pool.admit([token]) for token in range(3))
    for sequence in (one, zero, two):
        pool.release(sequence)
    request = pool.admit(range(9))
    assert request.table == [2, 0, 1]
    assert pool.slots(request, 3, 9).tolist() == [11, 0, 1, 2, 3, 4]


def test_two_of_four_sequences_share_their_first_eight_tokens() -> None:
    pool = Pool(16, 4)
    texts = [[*range(9)], [*range(8), *range(100, 105)], [*range(200, 205)], [*range(300, 315)]]
    for text in texts:
        pool.admit(text)
    assert pool.held * 4 == 44


def test_a_shared_tail_is_copied_and_written_in_place_by_the_last_holder() -> None:
    pool = Pool(8, 4)
    parent = pool.admit(range(7))
    child = pool.fork(parent)
    full, tail = parent.table
    assert (pool.references(full), pool.references(tail)) == (2, 2)
    copy = pool.append(parent, 70)
    assert copy == Copy(tail, parent.table[1]) and parent.table[0] == full
    assert child.table == [full, tail] and pool.references(tail) == 1
    assert pool.append(child, 71) is None and child.table == [full, tail]
    assert list(parent.tokens[7:]) == [70] and list(child.tokens[7:]) == [71]


def test_the_last_holder_copies_while_a_step_of_another_still_reads_the_tail() -> None:
    pool = Pool(8, 4)
    parent = pool.admit(range(7))
    child = pool.fork(parent)
    step = pool.submit([parent])
    pool.release(parent)
    tail = child.table[1]
    assert pool.append(child, 7) == Copy(tail, child.table[1])
    assert pool.waiting == 1
    pool.complete(step)
    assert (pool.waiting, pool.empty) == (0, 8 - 2)


def test_a_block_is_free_only_without_reference_and_without_step() -> None:
    pool = Pool(2, 4)
    a = pool.admit(range(4))
    b = pool.fork(a)
    step = pool.submit([a, b])
    seen = [(pool.references(0), pool.state(0))]
    for verb in (lambda: pool.release(a), lambda: pool.release(b), lambda: pool.complete(step)):
        verb()
        seen.append((pool.references(0), pool.state(0)))
    assert seen == [(2, State.HELD), (1, State.HELD), (0, State.WAITING), (0, State.IDLE)]
    assert pool.free == 2


def test_a_preempted_sequence_is_admitted_again_with_its_outputs() -> None:
    pool = Pool(454, findable=Findable.NEVER)
    four = [pool.admit(PROMPT, max_tokens=1536 + 512) for _ in range(4)]
    for sequence in four:
        pool.extend(sequence, range(270 - 1))
    *others, last = four
    pool.release(last)
    for sequence in others:
        pool.extend(sequence, range(2047 - 1805))
    assert pool.held == 3 * 128
    assert not pool.can_admit(last.tokens)
    pool.release(others[0])
    again = pool.admit(last.tokens, max_tokens=last.max_tokens)
    assert (len(again.tokens), again.cached) == (1805, 0)


# Faults that allocators had, one test each


def test_a_block_taken_for_something_else_is_not_found_by_what_it_was() -> None:
    pool = Pool(2, 4)
    pool.release(pool.admit([1, 2, 3, 4, 5]))
    assert pool.cached_tokens([1, 2, 3, 4, 9]) == 4
    pool.admit(range(100, 108))
    assert pool.cached_tokens([1, 2, 3, 4, 9]) == 0
    assert pool.idle == 0


def test_a_prompt_of_whole_blocks_found_in_full_leaves_its_last_block_to_compute() -> None:
    pool = Pool(8, 4)
    first = pool.admit(range(8))
    again = pool.admit(range(8))
    assert again.cached == 4
    assert again.table[0] == first.table[0] and again.table[1] != first.table[1]
    assert pool.slots_to_write(again, 4, 8).size == 4


def test_admission_counts_after_the_look_up() -> None:
    pool = Pool(4, 4)
    held = pool.admit(range(13))
    assert held.table and pool.free == 0
    assert not pool.can_admit(range(13))
    pool.release(held)
    assert pool.idle == 3 and pool.can_admit(range(16))
    again = pool.admit(range(12))
    assert (again.cached, pool.free) == (8, 1)
    assert pool.can_admit(range(13)) is False, "8 are found, and two more blocks are not there"
    assert pool.can_admit(range(12)) is True
    assert pool.blocks_to_admit(range(12)) == 1


def test_idle_blocks_that_are_found_are_no_longer_free() -> None:
    pool = Pool(3, 4)
    pool.release(pool.admit(range(9)))
    other = pool.admit([50])
    assert pool.free == 2
    assert pool.blocks_to_admit(range(9)) == 3
    assert not pool.can_admit(range(9))
    is_refused(pool, [other], pool.admit, range(9))


def test_found_blocks_are_held_before_others_are_taken() -> None:
    pool = Pool(4, 4)
    pool.release(pool.admit(range(8)))
    pool.release(pool.admit(range(100, 108)))
    again = pool.admit([*range(8), 9, 9, 9, 9, 9])
    assert again.cached == 8
    assert len(set(again.table)) == 4


def test_what_was_said_to_be_found_and_what_admission_found_are_counted_apart() -> None:
    pool = Pool(3, 4)
    pool.release(pool.admit(range(9)))
    promised = pool.cached_tokens(range(9))
    pool.release(pool.admit(range(100, 112)))
    assert promised == 8
    assert pool.admit(range(9)).cached == 0


def test_a_step_in_flight_keeps_the_blocks_of_a_released_sequence_from_being_taken() -> None:
    pool = Pool(2, 4)
    gone = pool.admit(range(8))
    step = pool.submit([gone])
    pool.release(gone)
    assert not pool.can_admit([9])
    is_refused(pool, [], pool.admit, [9])
    pool.complete(step)
    assert pool.can_admit([9])


def test_blocks_of_a_released_sequence_are_found_while_its_step_is_in_flight() -> None:
    pool = Pool(4, 4)
    gone = pool.admit(range(9))
    table, step = gone.table, pool.submit([gone])
    pool.release(gone)
    again = pool.admit(range(9))
    assert again.cached == 8 and again.table[:2] == table[:2]
    pool.complete(step)
    assert (pool.held, pool.waiting) == (3, 0)
    check(pool, [again])


def test_a_block_taken_after_a_step_was_submitted_does_not_wait_for_it() -> None:
    pool = Pool(4, 4)
    one = pool.admit(range(4))
    pool.submit([one])
    pool.grow(one, 5)
    pool.release(one)
    assert (pool.waiting, pool.free) == (1, 3)


def test_a_request_that_can_never_fit_is_refused_at_admission() -> None:
    pool = Pool(4, 4)
    for verb in (pool.admit, pool.can_admit, pool.cached_tokens):
        assert is_refused(pool, [], verb, range(17)).startswith("tokens is ")
    with pytest.raises(InputError, match=r"max_tokens is 17; allowed: .* from 9 to 16"):
        pool.admit(range(9), max_tokens=17)


def test_tokens_that_hash_alike_are_told_apart() -> None:
    modulus = 2**61 - 1
    assert hash(5) == hash(5 + modulus)
    pool = Pool(8, 2)
    pool.admit([5, 6, 7])
    assert pool.cached_tokens([5 + modulus, 6, 7]) == 0
    assert pool.cached_tokens([5, 6, 7]) == 2


@pytest.mark.parametrize("field", ["model", "position_rule", "adapter", "state_format", "salt"])
def test_content_under_another_tag_is_not_found(field: str) -> None:
    pool = Pool(8, 2)
    pool.admit([5, 6, 7], Tag())
    other = Tag(**{field: "other"})
    assert pool.cached_tokens([5, 6, 7], other) == 0
    assert pool.admit([5, 6, 7], other).cached == 0
    assert pool.admit([5, 6, 7], Tag(**{field: "other"})).cached == 2


def test_equal_tokens_behind_other_tokens_are_not_found() -> None:
    pool = Pool(8, 2)
    pool.admit([1, 2, 5, 6, 9])
    assert pool.cached_tokens([5, 6, 9]) == 0
    assert pool.cached_tokens([3, 4, 5, 6, 9]) == 0
    assert pool.cached_tokens([1, 2, 5, 6, 8]) == 4


def test_with_equal_content_in_two_blocks_one_is_found_when_the_other_is_taken() -> None:
    pool = Pool(2, 4, Findable.ONCE_DONE)
    twins = [pool.admit(range(4)), pool.admit(range(4))]
    pool.complete(pool.submit(twins))
    pool.release(twins[0])
    pool.release(pool.admit([9]))
    assert pool.cached_tokens(range(5)) == 4
    assert twins[1].table == [1]


def test_a_chain_loses_its_end_before_its_head() -> None:
    pool = Pool(4, 4)
    pool.release(pool.admit(range(16)))
    others, left = [], []
    for _ in range(4):
        others.append(pool.admit([100]))
        left.append(pool.cached_tokens(range(17 - 1)))
    assert left == [12, 8, 4, 0]
    assert [other.table for other in others] == [[3], [2], [1], [0]]


def test_the_least_recently_used_is_taken_first() -> None:
    pool = Pool(3, 4)
    prompts = [[n] * 5 for n in range(3)]
    for prompt in prompts:
        pool.release(pool.admit(prompt[:4]))
    pool.release(pool.admit([*prompts[0][:4], 7]))
    found = [pool.cached_tokens(prompt) for prompt in prompts]
    assert found == [4, 0, 4]


def test_drafts_take_slots_and_give_them_back_without_being_found() -> None:
    pool = Pool(8, 4)
    one = pool.admit(range(6))
    assert pool.grow(one, 7) is None
    assert len(one.table) == 4 and len(one.tokens) == 6
    assert pool.slots_to_write(one, 6, 13).size == 7
    pool.complete(pool.submit([one]))
    pool.extend(one, [6, 7, 8])
    assert len(one.table) == 4
    pool.truncate(one, len(one.tokens))
    assert len(one.table) == 3
    assert pool.cached_tokens(range(12)) == 8


def test_a_truncated_block_stays_findable_and_is_not_written_anew() -> None:
    pool = Pool(8, 4)
    one = pool.admit(range(8))
    full = one.table[1]
    pool.truncate(one, 6)
    assert pool.append(one, 60) == Copy(full, one.table[1])
    pool.append(one, 70)
    assert pool.idle == 1
    assert pool.cached_tokens(range(9)) == 8
    assert pool.cached_tokens([0, 1, 2, 3, 4, 5, 60, 70, 0]) == 8


def test_a_truncated_block_that_others_have_is_copied_before_it_is_written() -> None:
    pool = Pool(8, 4)
    one = pool.admit(range(8))
    other = pool.admit(range(9))
    assert pool.references(one.table[1]) == 2
    pool.truncate(one, 6)
    assert pool.append(one, 60) == Copy(other.table[1], one.table[1])
    assert pool.cached_tokens(range(9)) == 8


def test_what_no_step_has_computed_is_not_found_once_done() -> None:
    pool = Pool(8, 4, Findable.ONCE_DONE)
    one = pool.admit(range(8))
    step = pool.submit([one])
    pool.truncate(one, 5)
    pool.extend(one, [50, 60, 70])
    pool.complete(step)
    assert pool.cached_tokens([0, 1, 2, 3, 4, 50, 60, 70, 0]) == 4
    pool.complete(pool.submit([one]))
    assert pool.cached_tokens([0, 1, 2, 3, 4, 50, 60, 70, 0]) == 8


def test_steps_done_out_of_order_publish_nothing_too_early() -> None:
    pool = Pool(8, 4, Findable.ONCE_DONE)
    one = pool.admit(range(4))
    first = pool.submit([one])
    pool.extend(one, range(4, 8))
    second = pool.submit([one])
    pool.complete(second)
    assert pool.cached_tokens(range(9)) == 0
    pool.complete(first)
    assert pool.cached_tokens(range(9)) == 8


# Misuse


def test_misuse_is_named_and_changes_nothing() -> None:
    pool, other = Pool(8, 4), Pool(8, 4)
    one, foreign, gone = pool.admit(range(6), max_tokens=7), other.admit(range(6)), pool.admit([50])
    step, foreign_step = pool.submit([one]), other.submit([foreign])
    pool.release(gone)
    done = pool.submit([one])
    pool.complete(done)
    for wrong in (foreign, gone, None, 3, [], step):
        for verb in (pool.release, pool.fork, pool.append, pool.extend, pool.grow, pool.can_grow, pool.truncate):
            values = {pool.append: (0,), pool.extend: ([0],), pool.truncate: (1,)}.get(verb, ())
            assert "no sequence of the pool" in is_refused(pool, [one], verb, wrong, *values)
        assert "no sequence of the pool" in is_refused(pool, [one], pool.submit, [one, wrong])
        assert "no sequence of the pool" in is_refused(pool, [one], pool.slots, wrong, 0, 1)
    for not_in_flight in (done, foreign_step, None, one, []):
        assert "not in flight" in is_refused(pool, [one], pool.complete, not_in_flight)
    pool.append(one, 6)
    for verb, value in ((pool.append, 7), (pool.extend, [7, 8]), (pool.grow, 1), (pool.can_grow, 1)):
        assert "max_tokens of the sequence, 7" in is_refused(pool, [one], verb, one, value)
    for twice in ([one, one], itertools.repeat(one)):
        assert is_refused(pool, [one], pool.submit, twice) == "a step has each of its sequences once"
    assert is_refused(pool, [one], pool.submit, []) == "a step has at least one sequence"
    for length in (0, 8, -1, 2.5, True, None):
        assert is_refused(pool, [one], pool.truncate, one, length).startswith("length is ")
    for tokens in (0, -1, 2.5, True, None, "2"):
        assert is_refused(pool, [one], pool.grow, one, tokens).startswith("tokens is ")
    assert is_refused(pool, [one], pool.slots, one, 0, 9).startswith("beyond is 9")
    assert is_refused(pool, [one], pool.slots, one, 3, 2).startswith("first is 3")
    assert is_refused(pool, [one], pool.references, 8).startswith("block is 8")


def test_a_shared_or_computed_position_is_not_to_be_written() -> None:
    pool = Pool(8, 4)
    pool.admit(range(9))
    one = pool.admit(range(11))
    assert pool.slots_to_write(one, 8, 11).tolist() == pool.slots(one, 8, 11).tolist()
    assert "position 7 is not to be written" in is_refused(pool, [one], pool.slots_to_write, one, 7, 11)
    pool.submit([one])
    assert "position 8 is not to be written" in is_refused(pool, [one], pool.slots_to_write, one, 8, 11)
    child = pool.fork(one)
    for sequence in (one, child):
        assert "block of others" in is_refused(pool, [one, child], pool.slots_to_write, sequence, 11, 12)
    assert pool.grow(child) is not None
    assert pool.slots_to_write(child, 11, 12).size == 1


@pytest.mark.parametrize("blocks", [0, -1, 2.5, True, None, "8", 2**60])
def test_a_pool_needs_blocks(blocks: Any) -> None:
    with pytest.raises(InputError, match="blocks is "):
        Pool(blocks)


@pytest.mark.parametrize("block_tokens", [0, -1, 2.5, True, None, "8", 2**60])
def test_a_block_needs_tokens(block_tokens: Any) -> None:
    with pytest.raises(InputError, match="block_tokens is "):
        Pool(8, block_tokens)


def test_a_rule_and_a_tag_are_what_they_are() -> None:
    with pytest.raises(InputError, match="findable is "):
        Pool(8, 4, "sometimes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="tag is "):
        Pool(8, 4).admit([1], "base")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="adapter is "):
        Tag(adapter=["a"])  # type: ignore[arg-type]


NO_TOKENS: tuple[Any, ...] = (
    [], (), array("q"), np.array([], np.int64), None, 3, "12", [1, 2.0], [1, "2"], [1, True], [1, None], [-1], [2**63],
    array("d", [1.0]), array("q", [3, -1]), np.array([1.0]), np.array([True]), np.array([[1, 2]]), np.array(3),
    np.array([-1]), np.array([2**63], np.uint64), {1: 2}, iter([1]), range(33), range(2**62), [10**400],
)  # fmt: skip


@pytest.mark.parametrize("tokens", NO_TOKENS, ids=lambda value: repr(value)[:30].partition(" object at")[0])
def test_tokens_are_whole_numbers_of_at_least_0(tokens: Any) -> None:
    pool = Pool(8, 4)
    one = pool.admit([1])
    for verb, values in ((pool.admit, (tokens,)), (pool.cached_tokens, (tokens,)), (pool.extend, (one, tokens))):
        assert is_refused(pool, [one], verb, *values).startswith("tokens is ")


@pytest.mark.parametrize("token", [-1, 2.0, True, None, "2", 2**63, [1]])
def test_a_token_is_a_whole_number_of_at_least_0(token: Any) -> None:
    pool = Pool(8, 4)
    one = pool.admit([1])
    assert is_refused(pool, [one], pool.append, one, token).startswith("token is ")


def test_tokens_of_any_integer_type_are_the_same_tokens() -> None:
    pool = Pool(64, 2)
    pool.admit([1, 2, 3, 4, 5])
    kinds: tuple[Any, ...] = (
        (1, 2, 3, 4, 5), range(1, 6), array("B", [1, 2, 3, 4, 5]), array("q", [1, 2, 3, 4, 5]),
        np.arange(1, 6, dtype=">i4"),
        np.arange(1, 11)[::2] // 2 + 1, np.array([1, 2, 3, 4, 5], np.uint64), [np.int32(n) for n in range(1, 6)],
    )  # fmt: skip
    assert [pool.cached_tokens(tokens) for tokens in kinds] == [4] * len(kinds)


def test_a_caller_who_changes_his_tokens_later_changes_nothing() -> None:
    pool = Pool(8, 2)
    tokens = array("q", [1, 2, 3])
    one = pool.admit(tokens)
    tokens[0] = 9
    assert list(one.tokens) == [1, 2, 3]
    child = pool.fork(one)
    pool.append(child, 4)
    assert len(one.tokens) == 3


def test_dropped_content_leaves_nothing_behind() -> None:
    pool = Pool(4, 2)
    for salt in range(200):
        pool.release(pool.admit(range(8), Tag(salt=str(salt))))
    contents, unseen = 0, [pool._root]
    while unseen:
        contents += 1
        unseen += unseen.pop().children.values()
    assert contents <= 1 + 4 + 4


@pytest.mark.long
def test_after_a_million_random_verbs_every_block_is_free() -> None:
    draw, pool = random.Random(8), Pool(512, 4)
    live, steps, done = list[Sequence](), deque[Step](), Counter[str]()
    while sum(done.values()) < 1_000_000:
        verb = draw.choices(
            ("admit", "append", "extend", "fork", "truncate", "release", "step"), (4, 60, 4, 2, 2, 5, 8)
        )[0]
        one = draw.choice(live) if live else None
        tokens = [draw.randint(0, 1) for _ in range(draw.randint(1, 24))]
        if verb == "admit" and pool.can_admit(tokens):
            live.append(pool.admit(tokens))
        elif verb == "step" and live:
            steps.append(pool.submit(live))
            if len(steps) > 2:
                pool.complete(steps.popleft())
        elif one is None:
            continue
        elif verb in ("append", "extend") and pool.can_grow(one, len(tokens)):
            pool.append(one, 1) if verb == "append" else pool.extend(one, tokens)
        elif verb == "fork" and len(live) < 64:
            live.append(pool.fork(one))
        elif verb == "truncate":
            pool.truncate(one, draw.randint(1, len(one.tokens)))
        elif verb == "release" or not pool.can_grow(one, len(tokens)):
            live.remove(one)
            pool.release(one)
        done[verb] += 1
    assert min(done.values()) > 1_000
    check(pool, live)
    for sequence in live:
        pool.release(sequence)
    for step in steps:
        pool.complete(step)
    assert pool.free == pool.blocks
    check(pool, ())
