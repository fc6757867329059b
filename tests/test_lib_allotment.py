"""What requests get for their KV: the worked example, the formulas beside the allocators, and what growth moves."""

import random
from itertools import pairwise
from typing import Any

import pytest

from lib.allotment import (
    BLOCK_TOKENS,
    COMMON_TOKENS,
    LENGTHS,
    MAX_TOKENS,
    MOST_POOL_SLOTS,
    Allot,
    Allotment,
    Load,
    Piece,
    allotment,
    most_that_fit,
    most_unused,
    pieces_to_move,
    shared_blocks,
    wasted_slots,
)
from lib.checks import InputError
from lib.contiguous import Move
from lib.memory import pages_for
from lib.model import QWEN3_8B

SHARED = Load(common_tokens=COMMON_TOKENS)


def played(load: Load, allot: Allot, block_tokens: int = BLOCK_TOKENS, **more: Any) -> Allotment:
    got = allotment(load, allot, block_tokens, **more)
    assert got is not None
    return got


def own_slots(got: Allotment) -> list[int]:
    return [sum(piece.slots for piece in pieces if not piece.found) for pieces in got.requests]


@pytest.mark.parametrize(
    ("load", "allot", "slots", "unused"),
    [
        (Load(), Allot.MAXIMUM, [16, 16, 16, 16], 22),
        (Load(), Allot.IN_BLOCKS, [12, 16, 8, 16], 10),
        (SHARED, Allot.IN_BLOCKS, [12, 8, 8, 16], 10),
        (Load(), Allot.AS_IT_GROWS, [9, 13, 5, 15], 0),
    ],
)
def test_the_worked_example(load: Load, allot: Allot, slots: list[int], unused: int) -> None:
    got = played(load, allot)
    assert own_slots(got) == slots
    assert (got.allotted, got.unused) == (sum(slots), unused)


def test_stored_are_42_tokens_and_a_shared_one_once() -> None:
    assert played(Load(), Allot.IN_BLOCKS).used == sum(LENGTHS) == 42
    assert played(SHARED, Allot.IN_BLOCKS).used == 42 - COMMON_TOKENS


@pytest.mark.parametrize(("tokens", "wasted"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (5, 3), (16, 0), (17, 3)])
def test_slots_wasted_in_the_last_block(tokens: int, wasted: int) -> None:
    assert wasted_slots(tokens, 4) == wasted


def test_never_more_than_a_block_less_one_is_wasted() -> None:
    for block in (1, 2, 16):
        assert max(wasted_slots(tokens, block) for tokens in range(1, 257)) == block - 1


@pytest.mark.parametrize(
    ("tokens", "common", "blocks"), [(13, 8, 2), (13, 7, 1), (13, 3, 0), (13, 9, 2), (9, 8, 2), (8, 8, 1), (4, 4, 0)]
)
def test_blocks_that_are_found(tokens: int, common: int, blocks: int) -> None:
    assert shared_blocks(tokens, common, 4) == blocks


@pytest.mark.parametrize("seed", range(40))
def test_the_formulas_and_the_allocators_agree(seed: int) -> None:
    draw = random.Random(seed)
    lengths = tuple(draw.randint(1, 16) for _ in range(4))
    load = Load(lengths, draw.choice((16, 20)), draw.randint(0, 9), draw.randint(1, 4))
    block, requests = draw.choice((1, 2, 3, 4, 8, 16)), draw.randint(1, 9)
    placed = [load.length(place) for place in range(requests)]

    blocks = played(load, Allot.IN_BLOCKS, block, requests=requests)
    # What a request finds has been stored by an earlier one that begins with as many common tokens.
    common = [load.common(place) for place in range(requests)]
    longest = [max(common[:place], default=0) // block * block for place in range(requests)]
    found = [shared_blocks(*each, block) for each in zip(placed, map(min, common, longest), strict=True)]
    assert [sum(piece.found for piece in pieces) for pieces in blocks.requests] == found
    assert [len(pieces) for pieces in blocks.requests] == [pages_for(tokens, block) for tokens in placed]
    assert blocks.entries == len(blocks.own) + len(blocks.found) == sum(pages_for(tokens, block) for tokens in placed)
    assert blocks.allotted == block * (blocks.entries - sum(found))
    assert blocks.unused == sum(wasted_slots(tokens, block) for tokens in placed)
    assert blocks.moves == ()

    reserved = played(load, Allot.MAXIMUM, requests=requests)
    assert (reserved.allotted, reserved.used, reserved.moves) == (requests * load.max_tokens, sum(placed), ())
    grown = played(load, Allot.AS_IT_GROWS, requests=requests)
    assert (grown.allotted, grown.unused) == (sum(placed), 0)
    for got in (blocks, reserved, grown):
        assert [sum(piece.tokens for piece in pieces) for pieces in got.requests] == placed
        check_places(got)


def check_places(got: Allotment) -> None:
    """No slot is given out twice, and what is found is the same block of an earlier request."""
    assert all(here.end <= there.start for here, there in pairwise(sorted(got.own)))
    earlier: list[tuple[int, Piece]] = []
    for pieces in got.requests:
        for at, piece in enumerate(pieces):
            if piece.found:
                assert (at, piece._replace(found=False)) in earlier
        earlier += enumerate(pieces)


def test_regions_that_grow_in_turn_move_when_a_neighbour_is_in_the_way() -> None:
    got = played(Load((2, 2)), Allot.AS_IT_GROWS, requests=2)
    assert got.moves == (Move(0, 2, 1), Move(1, 4, 1))
    assert got.requests == ((Piece(2, 2, 2),), (Piece(4, 2, 2),))
    assert got.tokens_moved == 2


def test_growing_costs_moves_and_leaves_holes_that_nobody_can_use() -> None:
    got = played(Load(), Allot.AS_IT_GROWS, slots=64)
    assert len(got.moves) > 0
    assert max(piece.end for piece in got.own) > got.allotted
    assert got == played(Load(), Allot.AS_IT_GROWS)


def test_blocks_are_taken_in_turn_and_stay() -> None:
    got = played(Load((5, 8, 1)), Allot.IN_BLOCKS, requests=3)
    starts = [[piece.start for piece in pieces] for pieces in got.requests]
    assert starts == [[0, 12], [4, 16], [8]]


def test_requests_that_fit_64_slots_before_the_next_one_waits() -> None:
    fit = {allot: most_that_fit(Load(), allot, 64) for allot in Allot}
    assert {allot: len(held.requests) for allot, held in fit.items()} == {
        Allot.MAXIMUM: 4,
        Allot.IN_BLOCKS: 5,
        Allot.AS_IT_GROWS: 4,
    }
    assert 64 - fit[Allot.AS_IT_GROWS].allotted == 22
    assert len(most_that_fit(SHARED, Allot.IN_BLOCKS, 64).requests) == 7


@pytest.mark.parametrize("allot", Allot)
@pytest.mark.parametrize("slots", [1, 3, 15, 16, 40, 61, 96])
def test_the_next_one_does_not_fit(slots: int, allot: Allot) -> None:
    held = most_that_fit(SHARED, allot, slots)
    if held.requests:
        assert allotment(SHARED, allot, requests=len(held.requests), slots=slots) == held
    assert allotment(SHARED, allot, requests=len(held.requests) + 1, slots=slots) is None
    assert all(piece.end <= slots for piece in held.own)


def test_a_memory_smaller_than_one_block_or_one_maximum_holds_nobody() -> None:
    alone = Load((1,), sharers=1)
    assert most_that_fit(alone, Allot.IN_BLOCKS, BLOCK_TOKENS - 1).requests == ()
    assert most_that_fit(alone, Allot.MAXIMUM, MAX_TOKENS - 1).requests == ()
    assert len(most_that_fit(alone, Allot.AS_IT_GROWS, 3).requests) == 3


def test_the_largest_memory_can_be_filled() -> None:
    held = most_that_fit(Load((MAX_TOKENS,), sharers=1), Allot.IN_BLOCKS, MOST_POOL_SLOTS)
    assert held.allotted == MOST_POOL_SLOTS
    assert len(most_that_fit(Load((1,), sharers=1), Allot.IN_BLOCKS, MOST_POOL_SLOTS, 1).requests) == MOST_POOL_SLOTS


@pytest.mark.parametrize(("common", "equal"), [(0, 0), (7, 7), (8, 8), (9, 9)])
def test_equal_tokens_of_two_that_share(common: int, equal: int) -> None:
    assert Load(common_tokens=common).equal_tokens(4) == equal


def test_equal_tokens_are_those_that_an_earlier_request_has_too() -> None:
    assert Load((3, 9, 5, 9), common_tokens=8, sharers=4).equal_tokens(4) == 3 + 5 + 8
    assert Load((3, 9, 5, 9), common_tokens=8, sharers=2).equal_tokens(8) == 3 + 3 + 8


@pytest.mark.parametrize("common", range(12))
def test_token_ids_are_equal_where_they_are_common_and_nowhere_else(common: int) -> None:
    load = Load(common_tokens=common, sharers=3)
    ids = [[load.token(place, position) for position in range(load.length(place))] for place in range(8)]
    for one in range(8):
        for other in range(one):
            alike = min(load.common(one), load.common(other))
            assert ids[one][:alike] == ids[other][:alike]
            assert set(ids[one][alike:]).isdisjoint(ids[other])


def test_the_most_that_four_can_leave_unused() -> None:
    assert most_unused(Load(), Allot.IN_BLOCKS) == 4 * (BLOCK_TOKENS - 1) == 12
    assert most_unused(Load(), Allot.MAXIMUM) == 4 * (MAX_TOKENS - 1)
    for allot in Allot:
        got = played(Load((1, 1, 1, 1)), allot)
        assert got.unused == most_unused(Load((1, 1, 1, 1)), allot)


def test_a_copy_call_moves_keys_or_values_of_a_block_in_a_layer() -> None:
    assert QWEN3_8B.layer_count == 36
    assert pieces_to_move(QWEN3_8B, 13) == 13 * 36 * 2


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"max_tokens": 14}, "max_tokens is 14; allowed: at least the longest of the requests, 15"),
        ({"lengths": ()}, "lengths is (); allowed: a tuple of at least one length"),
        ({"lengths": (4, 0)}, "lengths is 0; allowed: a whole number from 1 to 256"),
        ({"common_tokens": -1}, "common_tokens is -1; allowed: a whole number from 0 to 256"),
        ({"sharers": 5}, "sharers is 5; allowed: a whole number from 1 to 4"),
        ({"max_tokens": 2.5}, "max_tokens is 2.5; allowed: a whole number from 1 to 256"),
    ],
)
def test_requests_that_make_no_sense_are_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError) as refusal:
        Load(**wrong)
    assert str(refusal.value) == named


@pytest.mark.parametrize("slots", [0, -1, 2.5, True, "64", MOST_POOL_SLOTS + 1])
def test_a_memory_that_makes_no_sense_is_refused(slots: Any) -> None:
    with pytest.raises(InputError, match=r"^slots is "):
        allotment(Load(), Allot.MAXIMUM, slots=slots)
