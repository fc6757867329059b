"""The prefix cache: what its verbs do, what they refuse, and that it equals the plain one and the paged pool."""

import copy
import pickle
import random
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.block_content import NO_TAG, Tag
from lib.blocks import PagingError
from lib.checks import InputError
from lib.paging import Pool
from lib.prefix_cache import Lock, Match, Order, PrefixCache, Taken
from tests.plain_prefix_cache import PlainPrefixCache, Text

TAGS = (NO_TAG, Tag(salt="another"))


def keep(cache: PrefixCache, tokens: list[int], tag: Tag = NO_TAG) -> Lock:
    """What a request does on its way, up to its end; the lock stays."""
    lock = cache.lock(cache.match(tokens, tag))
    cache.insert(lock, tokens, cache.take(cache.blocks_for(len(tokens)) - lock.blocks))
    return lock


def serve(cache: PrefixCache, tokens: list[int], tag: Tag = NO_TAG) -> int:
    """The tokens that a request finds, which comes and goes."""
    found = cache.match(tokens, tag).tokens
    cache.unlock(keep(cache, tokens, tag))
    return found


def written(cache: PrefixCache) -> dict[Text, int]:
    """All contents of the tree and their blocks, after a check of all that must be so."""
    contents: dict[Text, int] = {}
    protected = runs = 0
    texts: dict[int, Text] = {id(top): (tag,) for tag, top in cache._tops.items()}
    for tag, top in cache._tops.items():
        assert top.tag == tag and (top.children or top.locks) and not top.blocks
    for run in cache.runs():
        assert run.parent and run.blocks and run.start == run.parent.end
        assert run.parent.children[run.key[: cache._width]] is run
        assert run.locks <= run.parent.locks and run.used <= run.parent.used
        ids = np.frombuffer(run.key, np.int64)[: len(run.blocks) * cache.block_tokens].tolist()
        before = texts[id(run.parent)]
        texts[id(run)] = (*before, *ids)
        for place, block in enumerate(run.blocks, start=1):
            contents[(*before, *ids[: place * cache.block_tokens])] = block
        protected += len(run.blocks) * (run.locks > 0)
        runs += 1
    assert len(set(contents.values())) == len(contents) == cache.total == cache.evictable + cache.protected
    assert (protected, runs) == (cache.protected, cache._runs)
    out = [block for taken in cache._taken for block in taken.blocks]
    assert len(out) == cache.taken
    everywhere = [*contents.values(), *cache._empty, *out]
    assert sorted(everywhere) == list(range(cache.blocks)), "a block is somewhere twice, or nowhere"
    assert cache.free == cache.empty + cache.evictable
    return contents


def cubic(first: int, beyond: int) -> float:
    """What is saved by a made-up model: it goes down and up again, so that the order by value is none of the others."""
    return sum((place - 9) ** 2 + 1 for place in range(first, beyond))


def worth_for(order: Order) -> Callable[[int, int], float] | None:
    return cubic if order == Order.LEAST_VALUE else None


@pytest.mark.parametrize("order", Order)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_equals_the_plain_one(order: Order, seed: int) -> None:
    draw = random.Random(seed)
    blocks, size = draw.randint(4, 24), draw.randint(1, 3)
    cache = PrefixCache(blocks, size, order, worth_for(order))
    plain = PlainPrefixCache(blocks, size, order.value, worth_for(order))
    locks: list[tuple[Lock, Text]] = []
    spare: list[Taken] = []
    for _ in range(draw.randint(1, 60)):
        verb = draw.choice(("keep", "keep", "keep", "lock", "unlock", "unlock", "evict", "take", "give back"))
        tag = draw.choice(TAGS)
        tokens = [draw.randrange(2) for _ in range(draw.randint(1, min(8 * size, blocks * size)))]
        if verb in ("keep", "lock"):
            match = cache.match(tokens, tag)
            text = plain.found((tag, *tokens))
            assert (match.tokens, match.blocks) == (len(text) - 1, (len(text) - 1) // size)
            lock = cache.lock(match)
            plain.lock(text)
            if draw.randrange(3) == 0:  # somebody else may come in between
                other = cache.lock(cache.match(tokens, tag))
                plain.lock(text)
                locks.append((other, text))
            needed = cache.blocks_for(len(tokens)) - match.blocks
            if verb == "keep" and needed <= cache.free:
                if needed > plain.empty:
                    plain.evict(needed - plain.empty)
                taken = cache.take(needed)
                plain.taken += needed
                cache.insert(lock, tokens, taken)
                text = plain.insert(text, (tag, *tokens), needed)
            locks.append((lock, text))
        elif verb == "unlock" and locks:
            lock, text = locks.pop(draw.randrange(len(locks)))
            contents = written(cache)
            assert cache.table(lock) == [contents[content] for content in plain.texts(text)]
            cache.unlock(lock)
            plain.unlock(text)
        elif verb == "evict":
            asked = draw.randint(0, cache.evictable)
            assert cache.evict(asked) == plain.evict(asked)
        elif verb == "take" and cache.empty:
            asked = draw.randint(1, cache.empty)
            spare.append(cache.take(asked))
            plain.taken += asked
        elif verb == "give back" and spare:
            plain.taken -= len(spare[0].blocks)
            cache.give_back(spare.pop(0))
        assert written(cache).keys() == set(plain.contents())
        assert (cache.protected, cache.evictable, cache.empty) == (plain.protected, plain.evictable, plain.empty)
    for lock, _ in locks:
        cache.unlock(lock)
    assert cache.protected == 0
    cache.evict(cache.evictable)
    assert (cache.total, cache._tops, cache.empty + cache.taken) == (0, {}, blocks)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_one_after_the_other_requests_find_what_they_find_in_the_paged_pool(seed: int) -> None:
    draw = random.Random(seed)
    size = draw.randint(1, 4)
    blocks = draw.randint(8, 40)
    cache, pool = PrefixCache(blocks, size), Pool(blocks, size)
    texts = [[draw.randrange(2) for _ in range(8 * size)] for _ in range(3)]
    for _ in range(40):
        tokens = draw.choice(texts)[: draw.randint(1, 8 * size)]
        tokens = [*tokens, *(draw.randrange(2, 4) for _ in range(draw.randrange(4)))][: blocks * size]
        if len(tokens) % size == 0 and size > 1:
            tokens.pop()  # else the pool would keep the last block twice, and the cache once
        if size == 1:
            tokens.append(draw.randrange(10, 10**9))
            tokens = tokens[-blocks:]
        sequence = pool.admit(tokens)
        assert serve(cache, tokens) == sequence.cached
        pool.release(sequence)


def test_looking_changes_nothing() -> None:
    cache = PrefixCache(8, 2)
    serve(cache, [1, 2, 3, 4, 5])
    before = written(cache), cache.evictable, cache._next[:]
    for tokens in ([1, 2, 3], [1, 2, 3, 4, 9], [7, 7, 7], [1]):
        cache.match(tokens)
    assert (written(cache), cache.evictable, cache._next) == before


def test_the_last_token_is_always_computed() -> None:
    cache = PrefixCache(8, 4)
    prompt = list(range(8))
    assert [serve(cache, prompt), serve(cache, prompt), cache.match([*prompt, 9]).tokens] == [0, 4, 8]


def test_equal_content_is_kept_once() -> None:
    cache, prompt = PrefixCache(8, 2), [1, 2, 3, 4, 5]
    matches = [cache.match(prompt) for _ in range(2)]
    locks = [cache.lock(match) for match in matches]
    taken = [cache.take(3) for _ in locks]
    for lock, blocks in zip(locks, taken, strict=True):
        cache.insert(lock, prompt, blocks)
    assert cache.table(locks[0]) == cache.table(locks[1]) == list(taken[0].blocks[:2])
    assert (cache.total, cache.taken) == (2, 0)


@pytest.mark.parametrize(
    ("order", "left"),
    [
        (Order.LEAST_RECENTLY_USED, [4, 2, 0]),
        (Order.FIRST_IN, [0, 2, 4]),
        (Order.LEAST_VALUE, [4, 2, 0]),
        (Order.HEAD_FIRST, [4, 0, 0]),
    ],
)
def test_what_each_order_leaves(order: Order, left: list[int]) -> None:
    texts = ([1, 2, 3, 4, 0], [5, 6, 7, 8, 0], [9, 10, 11, 12, 0])
    cache = PrefixCache(8, 2, order, (lambda first, beyond: 1.0) if order == Order.LEAST_VALUE else None)
    for place in (0, 1, 2, 1, 0):
        serve(cache, texts[place])
    # used last: 2, then 1, then 0
    assert cache.evict(3) >= 3
    assert [cache.match(text).tokens for text in texts] == left


def test_from_its_head_an_old_branch_goes_without_the_trunk_that_was_used_since() -> None:
    cache, old, new = PrefixCache(8, 2, Order.HEAD_FIRST), [1, 2, 3, 4, 5, 6, 7, 8, 0], [1, 2, 3, 4, 9, 9, 0]
    serve(cache, old)
    serve(cache, new)
    assert cache.evict(1) == 2
    assert [cache.match(text).tokens for text in (old, new)] == [4, 6]
    assert cache.evict(1) == 3


def test_eviction_stops_as_soon_as_enough_are_gone() -> None:
    cache = PrefixCache(16, 2)
    serve(cache, list(range(21)))
    assert [cache.evict(3), cache.evictable] == [3, 7]
    assert cache.match(list(range(21))).tokens == 14


def test_nothing_under_a_lock_goes() -> None:
    cache = PrefixCache(8, 2)
    serve(cache, [1, 2, 3, 4, 5, 6, 7])
    lock = cache.lock(cache.match([1, 2, 3, 4, 9]))
    assert (cache.protected, cache.evictable) == (2, 1)
    with pytest.raises(PagingError, match="2 blocks are to be evicted and 1 are evictable"):
        cache.evict(2)
    assert cache.evict(1) == 1
    cache.unlock(lock)
    assert cache.match([1, 2, 3, 4, 9]).tokens == 4


def test_another_tag_finds_nothing() -> None:
    cache = PrefixCache(8, 2)
    serve(cache, [1, 2, 3], TAGS[0])
    assert [cache.match([1, 2, 3], tag).tokens for tag in TAGS] == [2, 0]


def test_what_was_matched_may_be_gone() -> None:
    cache = PrefixCache(8, 2)
    serve(cache, [1, 2, 3, 4, 5])
    whole, part = cache.match([1, 2, 3, 4, 5]), cache.match([1, 2, 9])
    cache.evict(1)
    with pytest.raises(PagingError, match="of the 4 tokens that were matched some are gone: match again"):
        cache.lock(whole)
    assert cache.lock(part).blocks == 1


@pytest.mark.parametrize("order", Order)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_an_old_match_locks_what_it_named_or_nothing(order: Order, seed: int) -> None:
    draw = random.Random(seed)
    size = draw.randint(1, 2)
    cache = PrefixCache(16, size, order, worth_for(order))
    matches: list[tuple[Match, list[int]]] = []
    for _ in range(60):
        tokens = [draw.randrange(2) for _ in range(draw.randint(1, 8 * size))]
        matches.append((cache.match(tokens), tokens))
        match, tokens = draw.choice(matches)
        before = written(cache)
        try:
            lock = cache.lock(match)
        except PagingError:
            assert written(cache) == before
        else:
            found = [before[(NO_TAG, *tokens[: end * size])] for end in range(1, match.blocks + 1)]
            assert cache.table(lock) == found
            cache.unlock(lock)
        serve(cache, tokens)
        cache.evict(draw.randint(0, cache.evictable))


def test_an_old_match_is_gone_where_its_run_got_another_end() -> None:
    cache, old, new = PrefixCache(8, 2), [1, 2, 3, 4, 0], [1, 2, 5, 6, 0]
    serve(cache, old)
    match = cache.match(old)
    cache.evict(1)
    serve(cache, new)
    with pytest.raises(PagingError, match="match again"):
        cache.lock(match)


@pytest.mark.parametrize("another", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copy_of_a_lock_is_none(another: Callable[[Lock], Lock]) -> None:
    cache = PrefixCache(8, 2)
    lock = keep(cache, [1, 2, 3])
    twin = another(lock)
    before = written(cache), cache.protected
    for verb in (cache.unlock, cache.table, lambda lock: cache.insert(lock, [1, 2, 3], [])):
        with pytest.raises(PagingError, match="a copy"):
            verb(twin)
    assert (written(cache), cache.protected) == before
    cache.unlock(lock)


def misuse(cache: PrefixCache, lock: Lock) -> dict[str, tuple[type[ValueError], Callable[[], Any]]]:
    other = PrefixCache(8, 2)
    foreign, done = keep(other, [1, 2, 3]), keep(cache, [1, 2, 3])
    cache.unlock(done)
    taken, returned = cache.take(1), cache.take(1)
    cache.give_back(returned)
    return {
        "unlocked already": (PagingError, lambda: cache.unlock(done)),
        "another cache's": (PagingError, lambda: cache.unlock(foreign)),
        "no lock": (PagingError, lambda: cache.unlock(None)),  # type: ignore[arg-type]
        "another cache's match": (InputError, lambda: cache.lock(other.match([1, 2, 3]))),
        "no tag": (InputError, lambda: cache.match([1], "tag")),  # type: ignore[arg-type]
        "no tokens": (InputError, lambda: cache.match([])),
        "negative tokens": (InputError, lambda: cache.match(array("q", [1, -1]))),
        "a prompt longer than the pool": (InputError, lambda: cache.match([1] * 17)),
        "a prefix longer than its prompt": (InputError, lambda: cache.insert(lock, [1, 2], taken)),
        "a prompt that begins otherwise": (InputError, lambda: cache.insert(lock, [1, 2, 3, 9, 9], taken)),
        "too few blocks": (InputError, lambda: cache.insert(lock, [1, 2, 3, 4, 5, 6, 7], taken)),
        "too many blocks": (InputError, lambda: cache.insert(lock, [1, 2, 3, 4], taken)),
        "blocks by number": (PagingError, lambda: cache.insert(lock, [1, 2, 3, 4, 5], [0])),  # type: ignore[arg-type]
        "blocks given back already": (PagingError, lambda: cache.give_back(returned)),
        "blocks inserted after that": (PagingError, lambda: cache.insert(lock, [1, 2, 3, 4, 5], returned)),
        "another cache's blocks": (PagingError, lambda: cache.give_back(other.take(1))),
        "a copy of blocks": (PagingError, lambda: cache.give_back(copy.copy(taken))),
        "more than is evictable": (PagingError, lambda: cache.evict(cache.evictable + 1)),
        "more than is free": (PagingError, lambda: cache.take(cache.free + 1)),
        "fewer than none": (InputError, lambda: cache.evict(-1)),
    }


def test_misuse_changes_nothing() -> None:
    cache = PrefixCache(8, 2)
    lock = keep(cache, [1, 2, 3, 4, 0])
    for name, (error, act) in misuse(cache, lock).items():
        before = written(cache), cache._empty[:], set(cache._taken), lock.blocks, cache.protected
        with pytest.raises(error):
            act()
        assert (written(cache), cache._empty, cache._taken, lock.blocks, cache.protected) == before, name


def test_an_order_by_value_needs_values() -> None:
    with pytest.raises(InputError, match="worth is None; allowed: a function for the order 'least value per byte'"):
        PrefixCache(8, 2, Order.LEAST_VALUE)
    with pytest.raises(InputError, match="worth"):
        PrefixCache(8, 2, Order.FIRST_IN, cubic)
    with pytest.raises(InputError, match="worth is 5"):
        PrefixCache(8, 2, Order.LEAST_VALUE, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("worth", [float("nan"), float("inf"), "much", None, True])
def test_values_that_are_none_are_refused_before_anything_is_done(worth: Any) -> None:
    cache = PrefixCache(8, 2, Order.LEAST_VALUE, lambda first, beyond: 1.0 if beyond <= 4 else worth)
    lock = keep(cache, [1, 2, 3, 4, 0])
    taken = cache.take(1)
    before = written(cache), cache._taken.copy(), lock.blocks
    with pytest.raises(InputError, match="worth"):
        cache.insert(lock, [1, 2, 3, 4, 5, 6], taken)
    assert (written(cache), cache._taken, lock.blocks) == before
    cache.give_back(taken)
    cache.unlock(lock)
    assert cache.evict(2) == 2


def test_values_that_change_are_asked_for_once() -> None:
    asked: list[tuple[int, int]] = []

    def more_each_time(first: int, beyond: int) -> float:
        asked.append((first, beyond))
        return len(asked)

    cache = PrefixCache(8, 2, Order.LEAST_VALUE, more_each_time)
    for _ in range(3):
        serve(cache, [1, 2, 3, 4, 0])
    assert cache.evict(2) == 2
    assert asked == [(0, 2), (2, 4)]


@pytest.mark.parametrize("order", Order)
def test_who_may_go_is_listed_in_little_room(order: Order) -> None:
    cache = PrefixCache(64, 2, order, worth_for(order))
    for turn in range(3_000):
        serve(cache, [turn % 7, turn % 5, 3])
    assert len(cache._next) <= 2 * cache._runs + 17


def test_to_keep_a_prompt_is_to_do_all_of_it() -> None:
    for prompts in ([[1, 2, 3, 4, 5], [1, 2, 3, 9, 9], [1, 2, 3, 4, 5]], [[1], [1, 2]]):
        at_once, step_by_step = PrefixCache(8, 2), PrefixCache(8, 2)
        for tokens in prompts:
            match, lock = at_once.keep(tokens)
            at_once.unlock(lock)
            assert match.tokens == serve(step_by_step, tokens)
            assert written(at_once) == written(step_by_step)


def test_a_prompt_that_cannot_be_kept_changes_nothing() -> None:
    full = PrefixCache(3, 2)
    full.keep([1, 2, 3, 4, 5])
    odd = PrefixCache(8, 2, Order.LEAST_VALUE, lambda first, beyond: 1.0 if beyond <= 4 else float("nan"))
    odd.unlock(odd.keep([1, 2, 3, 4, 0])[1])
    refusals: list[tuple[PrefixCache, type[ValueError]]] = [(full, PagingError), (odd, InputError)]
    for cache, error in refusals:
        before = written(cache), cache.protected, cache.taken, len(cache._locks)
        with pytest.raises(error):
            cache.keep([1, 2, 7, 8, 9, 9])
        assert (written(cache), cache.protected, cache.taken, len(cache._locks)) == before
