"""The contiguous allocator: reserved tails, holes, moves, and a memory drawn slot by slot beside it."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from lib.checks import InputError
from lib.contiguous import Contiguous, ContiguousError, Hole, Move, Region, Reserve


def test_four_sequences_reserve_64_slots_and_leave_22_unused() -> None:
    memory = Contiguous(64)
    for tokens in (9, 13, 5, 15):
        memory.admit(tokens, max_tokens=16)
    assert (memory.reserved, memory.used, memory.reserved - memory.used) == (64, 42, 22)
    assert not memory.can_admit(1, max_tokens=1)


def test_a_request_that_ends_early_kept_its_tail_from_all_others() -> None:
    memory = Contiguous(32)
    early = memory.admit(3, max_tokens=16)
    memory.admit(3, max_tokens=16)
    assert not memory.can_admit(1, max_tokens=16)
    memory.release(early)
    assert memory.can_admit(1, max_tokens=16)


def test_free_slots_in_pieces_are_of_no_use_to_a_longer_sequence() -> None:
    memory = Contiguous(40)
    regions = [memory.admit(10, max_tokens=10) for _ in range(4)]
    for region in regions[::2]:
        memory.release(region)
    assert memory.holes() == [Hole(0, 10), Hole(20, 10)]
    assert memory.free == 20 and not memory.can_admit(11, max_tokens=11)
    assert is_refused(memory, memory.admit, 11, 11) == "no hole is 11 slots long; 20 are free in all"


def test_the_first_hole_that_fits_is_taken() -> None:
    memory = Contiguous(40)
    a, _, c, _ = (memory.admit(size, max_tokens=size) for size in (4, 6, 8, 2))
    memory.release(a)
    memory.release(c)
    assert memory.holes() == [Hole(0, 4), Hole(10, 8), Hole(20, 20)]
    assert [memory.admit(n, max_tokens=n).start for n in (5, 4, 4)] == [10, 0, 20]


def test_a_region_grows_in_place_until_a_neighbour_is_in_the_way_and_then_moves() -> None:
    memory = Contiguous(32, Reserve.AS_IT_GROWS)
    one = memory.admit(4, max_tokens=32)
    assert memory.grow(one, 2) is None and (one.start, one.slots) == (0, 6)
    two = memory.admit(4, max_tokens=32)
    assert memory.grow(one) == Move(source=0, target=10, tokens=6)
    assert (one.start, one.slots, one.tokens) == (10, 7, 7)
    assert memory.holes() == [Hole(0, 6), Hole(17, 15)]
    assert memory.grow(two) == Move(source=6, target=0, tokens=4)


def test_where_no_hole_is_long_enough_it_must_wait_although_slots_are_free() -> None:
    memory = Contiguous(16, Reserve.AS_IT_GROWS)
    one, two = memory.admit(7, max_tokens=16), memory.admit(3, max_tokens=16)
    assert memory.free == 6 and not memory.can_grow(one)
    is_refused(memory, memory.grow, one)
    memory.release(two)
    assert memory.can_grow(one) and memory.grow(one, 9) is None
    assert memory.free == 0


def test_a_reserved_region_never_moves() -> None:
    memory = Contiguous(32)
    one = memory.admit(1, max_tokens=16)
    memory.admit(1, max_tokens=16)
    assert [memory.grow(one) for _ in range(15)] == [None] * 15
    assert "the max_tokens of the region, 16" in is_refused(memory, memory.grow, one)


def everything(memory: Contiguous) -> list[tuple[int, ...]]:
    return [(region.start, region.slots, region.tokens, region.max_tokens) for region in memory._regions]


def is_refused(memory: Contiguous, verb: Callable[..., object], *values: object) -> str:
    before = everything(memory)
    with pytest.raises(ValueError) as refusal:
        verb(*values)
    assert isinstance(refusal.value, InputError | ContiguousError)
    assert everything(memory) == before
    return str(refusal.value)


@pytest.mark.parametrize("reserve", Reserve)
@pytest.mark.parametrize("seed", range(20))
def test_a_memory_drawn_slot_by_slot(seed: int, reserve: Reserve) -> None:
    draw, memory = random.Random(seed), Contiguous(24, reserve)
    slots: list[Region | None] = [None] * 24
    live: list[Region] = []

    def first_fit(size: int) -> int | None:
        return next((at for at in range(25 - size) if slots[at : at + size] == [None] * size), None)

    for _ in range(300):
        verb = draw.choice(("admit", "grow", "grow", "release"))
        if verb == "admit":
            most = draw.randint(1, 12)
            tokens = draw.randint(1, most)
            start = first_fit(most if reserve == Reserve.MAXIMUM else tokens)
            assert memory.can_admit(tokens, most) == (start is not None)
            if start is None:
                is_refused(memory, memory.admit, tokens, most)
                continue
            live.append(memory.admit(tokens, most))
            assert live[-1].start == start
        elif live and verb == "release":
            memory.release(live.pop(draw.randrange(len(live))))
        elif live:
            region, more = draw.choice(live), draw.randint(1, 3)
            start, tokens = region.start, region.tokens
            needed = max(region.slots, tokens + more)
            if tokens + more > region.max_tokens:
                is_refused(memory, memory.grow, region, more)
                continue
            in_place = start + needed <= 24 and all(slots[at] in (None, region) for at in range(start, start + needed))
            target = start if in_place else first_fit(needed)
            assert memory.can_grow(region, more) == (target is not None)
            if target is None:
                is_refused(memory, memory.grow, region, more)
                continue
            assert memory.grow(region, more) == (None if in_place else (start, target, tokens))
            assert (region.start, region.tokens) == (target, tokens + more)
        slots = [None] * 24
        for region in live:
            assert slots[region.start : region.end] == [None] * region.slots, "two have one slot"
            slots[region.start : region.end] = [region] * region.slots
        assert (memory.free, memory.used) == (slots.count(None), sum(region.tokens for region in live))
        assert sum(hole.slots for hole in memory.holes()) == memory.free
    for region in live:
        memory.release(region)
    assert memory.holes() == [Hole(0, 24)]


def test_misuse_is_named_and_changes_nothing() -> None:
    memory, other = Contiguous(16), Contiguous(16)
    one, foreign, gone = memory.admit(2, 4), other.admit(2, 4), memory.admit(2, 4)
    memory.release(gone)
    for wrong in (foreign, gone, None):
        for verb in (memory.release, memory.grow, memory.can_grow):
            assert "no region of the memory" in is_refused(memory, verb, wrong)
    for value in (0, -1, 2.5, True, None, "2"):
        assert is_refused(memory, memory.grow, one, value).startswith("tokens is ")
        assert is_refused(memory, memory.admit, value, 4).startswith("tokens is ")
        assert is_refused(memory, memory.can_admit, 1, value).startswith("max_tokens is ")
    assert is_refused(memory, memory.admit, 5, 4).startswith("tokens is 5; allowed: a whole number from 1 to 4")
    assert is_refused(memory, memory.admit, 1, 17).startswith("max_tokens is 17")


@pytest.mark.parametrize("slots", [0, -1, 2.5, True, None, "8", 2**60])
def test_a_memory_needs_slots(slots: Any) -> None:
    with pytest.raises(InputError, match="slots is "):
        Contiguous(slots)
    with pytest.raises(InputError, match="reserve is "):
        Contiguous(8, "half")  # type: ignore[arg-type]
