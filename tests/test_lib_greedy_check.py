"""Greedy verification: what is kept and what is void, and a pool that forgets what was not confirmed."""

import random
from itertools import product
from typing import Any

import pytest

from lib.block_content import NO_TAG
from lib.blocks import PagingError, State
from lib.checks import InputError
from lib.greedy_check import LONGEST_EXAMPLE, GreedyCheck, check, confirm, example, take_room
from lib.memory import pages_for
from lib.paging import Findable, Pool, Sequence
from tests.test_lib_paging import check as check_pool

OTHER = 99


def target_of(seed: int, tokens: int = 3) -> Any:
    """A target that chooses by all tokens before, the same in every run."""
    return lambda known: random.Random(f"{seed} {known}").randrange(tokens)


def written(target: Any, known: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    """What the target writes step by step."""
    while len(known) < tokens:
        known = (*known, target(known))
    return known[:tokens]


def drafted(target: Any, known: tuple[int, ...], length: int, draw: random.Random) -> tuple[int, ...]:
    """A draft that is right up to a random place."""
    right = written(target, known, len(known) + length)[len(known) :]
    return tuple(token if draw.random() < 0.7 else OTHER for token in right)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_accepted_prefix_and_exactly_one_more(length: int) -> None:
    for draft in product((0, 1), repeat=length):
        for choices in product((0, 1), repeat=length + 1):
            kept: list[int] = []
            for token, chosen in zip(draft, choices, strict=False):
                if token != chosen:
                    break
                kept.append(token)
            found = GreedyCheck(draft, choices)
            assert found.accepted == len(kept)
            assert found.outputs == (*kept, choices[len(kept)])
            assert found.discarded == draft[len(kept) :]
            assert len(found.outputs) + len(found.discarded) == length + 1 == len(found.choices)
            assert found.differs_at == (None if kept == list(draft) else len(kept) + 1)
            assert len(found.void_positions) == len(found.discarded)
            assert list(found.void_positions) == list(range(len(found.outputs) + 1, length + 2))


@pytest.mark.parametrize("seed", range(30))
def test_drafts_change_nothing_about_the_text(seed: int) -> None:
    draw, target = random.Random(seed), target_of(seed)
    known = tuple(draw.randrange(3) for _ in range(draw.randint(0, 3)))
    plain = written(target, known, 40)
    while len(known) < 30:
        found = check(target, known, drafted(target, known, draw.randint(1, 6), draw))
        known += found.outputs
        assert known == plain[: len(known)]


def test_what_is_chosen_behind_a_wrong_token_is_void() -> None:
    right = GreedyCheck((0, 1, 2), (0, 7, 8, 9))
    assert right.outputs == GreedyCheck((0, 1, 2), (0, 7, 1, 2)).outputs == (0, 7)


@pytest.mark.parametrize("findable", Findable)
@pytest.mark.parametrize("seed", range(12))
def test_a_pool_keeps_what_is_confirmed_and_nothing_else(findable: Findable, seed: int) -> None:
    draw, target = random.Random(seed), target_of(seed, 2)
    pool, kv = Pool(40, draw.randint(1, 5), findable), dict[int, tuple[int, ...]]()
    prompt = tuple(draw.randrange(2) for _ in range(draw.randint(1, 9)))
    first = pool.admit(prompt)
    compute(pool, kv, first)
    live = [first, pool.fork(first)]  # whose tails are shared at first
    for _ in range(12):
        sequence = draw.choice(live)
        known = tuple(sequence.tokens)
        draft = drafted(target, known, draw.randint(1, 6), draw)
        copy = take_room(pool, sequence, len(draft))
        if copy:
            for offset in range(pool.block_tokens):
                kv[copy.target * pool.block_tokens + offset] = kv.get(copy.source * pool.block_tokens + offset, ())
        # the last known token and the draft, each behind all before it
        rows = pool.slots_to_write(sequence, max(len(known) - 1, sequence.computed), len(known) + len(draft)).tolist()
        text = (*known, *draft)
        kv |= {slot: text[: len(text) - back] for back, slot in enumerate(reversed(rows))}
        step = pool.submit([sequence])
        found = check(target, known, draft)
        assert found.kv_written(len(known)) == len(text)
        if draw.random() < 0.5:
            pool.complete(step)
            assert confirm(pool, sequence, found.outputs) is None
        else:
            before = sequence.table[:]
            assert confirm(pool, sequence, found.outputs) is None
            given_back = set(before) - set(sequence.table)
            assert all(pool.state(block) is State.WAITING for block in given_back)
            pool.complete(step)
        now = tuple(sequence.tokens)
        assert now == known + found.outputs == written(target, now[: len(prompt)], len(now))
        assert found.kv_kept(len(known)) == len(now) - 1
        kept = pool.slots(sequence, 0, len(now) - 1).tolist()
        assert [kv[slot] for slot in kept] == [now[: place + 1] for place in range(len(now) - 1)]
        assert len(sequence.table) == pages_for(len(now), pool.block_tokens)
        check_pool(pool, live)
        if found.discarded:
            confirmed = max(common(text, tuple(one.tokens)) for one in live)
            assert pool.cached_tokens((*text, OTHER)) <= confirmed


def compute(pool: Pool, kv: dict[int, tuple[int, ...]], sequence: Sequence) -> None:
    text = tuple(sequence.tokens)
    slots = pool.slots_to_write(sequence, sequence.computed, len(text)).tolist()
    kv |= {slot: text[: place + 1] for place, slot in enumerate(slots, start=sequence.computed)}
    pool.complete(pool.submit([sequence]))


def common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def test_a_pool_that_is_told_the_draft_lets_it_be_found() -> None:
    """Why growth does not say which tokens: another request would find them before they are confirmed."""
    draft, told, untold = (5, 6, 7), Pool(4, 2), Pool(4, 2)
    sequence = told.admit((1,))
    told.extend(sequence, draft)
    assert told.cached_tokens((1, *draft, 8)) == 4
    take_room(untold, untold.admit((1,)), len(draft))
    assert untold.cached_tokens((1, *draft, 8)) == 0


def test_a_round_without_room_changes_nothing() -> None:
    pool = Pool(2, 2)
    sequence = pool.admit((1, 2, 3))
    with pytest.raises(PagingError):
        take_room(pool, sequence, 1)
    assert (list(sequence.tokens), len(sequence.table), pool.free) == ([1, 2, 3], 2, 0)
    bounded = Pool(4, 2).admit((1, 2), NO_TAG, max_tokens=4)
    with pytest.raises(PagingError, match="max_tokens"):
        take_room(bounded.pool, bounded, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", range(1, LONGEST_EXAMPLE + 1))
def test_the_example_differs_where_it_is_told(length: int) -> None:
    for place in range(1, length + 2):
        found = example(length, place)
        assert len(found.draft) == length
        assert len(set(found.draft)) == length
        assert found.accepted == place - 1
        assert found.differs_at == (place if place <= length else None)


def test_the_round_of_the_figure() -> None:
    found = example()
    assert ["".join(map(chr, part)) for part in (found.draft, found.outputs, found.discarded)] == ["abcd", "abx", "cd"]
    assert list(found.void_positions) == [4, 5]
    assert (found.kv_written(10), found.kv_kept(10)) == (14, 12)


@pytest.mark.parametrize(
    ("draft", "choices", "parameter"),
    [
        ((), (1,), "draft"),
        ([1], (1, 2), "draft"),
        ((1, -1), (1, 2, 3), "draft"),
        ((1, 2), (1, 2), "choices"),
        ((1,), (1, 2, 3), "choices"),
        ((1,), (1, True), "choices"),
        ((1,), "ab", "choices"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(draft: Any, choices: Any, parameter: str) -> None:
    with pytest.raises(InputError) as refused:
        GreedyCheck(draft, choices)
    assert refused.value.parameter == parameter


def test_an_empty_draft_is_refused_before_the_target_is_asked() -> None:
    with pytest.raises(InputError, match=r"^draft is \(\)"):
        check(lambda known: 1 // 0, (1,), ())
    with pytest.raises(InputError, match=r"^differs_at is 6; allowed: a whole number from 1 to 5$"):
        example(4, 6)
    for known in (0, -1, 2.5, True, None):
        with pytest.raises(InputError, match=r"^known_tokens is "):
            example().kv_kept(known)  # type: ignore[arg-type]


@pytest.mark.parametrize("huge", [10**30, 10**5000], ids=["30", "5000"])
def test_a_draft_longer_than_any_text_is_refused_before_the_pool_is_asked(huge: int) -> None:
    pool = Pool(4, 2)
    sequence = pool.admit((1,))
    for call in (lambda: take_room(pool, sequence, huge), lambda: pool.grow(sequence, huge)):
        with pytest.raises(InputError, match=r"^(draft_)?tokens is "):
            call()
    assert (list(sequence.tokens), len(sequence.table), pool.free) == ([1], 1, 3)


def test_what_is_no_target_and_what_no_text_is_refused() -> None:
    with pytest.raises(InputError, match=r"^target is "):
        check(None, (1,), (2,))  # type: ignore[arg-type]
    for known in (None, 3, [1], "12"):
        with pytest.raises(InputError, match=r"^known is "):
            check(lambda known: 1, known, (2,))  # type: ignore[arg-type]
