"""Runs in pools of many sizes: the record comes out, and a larger pool can waste more."""

from itertools import pairwise
from typing import Any

import pytest

from lib.checks import InputError
from lib.pool_size import BLOCK_TOKENS, OUTPUT, PROMPT, EqualRequests, recorded, tokens_again
from lib.residency import Gate, PoolSetup
from lib.scheduling import Request, chunked, continuous, walk

RECORDED = EqualRequests()
SMALL, LARGE = recorded()
EVERY_SIZE = range(RECORDED.blocks_of_one, RECORDED.blocks_of_all + 1)


def again(blocks: int, **changed: Any) -> int:
    return tokens_again(EqualRequests(**changed).in_pool(blocks))


def test_the_two_recorded_pools_come_out() -> None:
    assert (SMALL.blocks, SMALL.tokens_again, SMALL.preemptions) == (454, 1805, 1)
    assert (LARGE.blocks, LARGE.tokens_again, LARGE.preemptions) == (909, 0, 0)
    for one in (SMALL, LARGE):
        run = RECORDED.in_pool(one.blocks)
        assert (tokens_again(run), len(run.preemptions)) == (one.tokens_again, one.preemptions)


def test_a_run_is_that_of_the_plain_loop() -> None:
    load = EqualRequests(3, 40, 256, Gate.FIRST_CHUNK)
    plain = walk(
        [Request(0, PROMPT, 40)] * 3, chunked(3, 256, 256), pool=PoolSetup(150, BLOCK_TOKENS, Gate.FIRST_CHUNK)
    )
    assert plain.preemptions and list(load.in_pool(150).preemptions) == list(plain.preemptions)


def test_more_memory_wastes_more_up_to_the_size_that_holds_all() -> None:
    """From 387 blocks, which all four prompts fill, to one block fewer than all need, each block wastes more."""
    first = RECORDED.requests * -(-PROMPT // BLOCK_TOKENS) + 3
    wasted = [again(blocks) for blocks in range(first, RECORDED.blocks_of_all)]
    assert first == 387
    assert all(here < there for here, there in pairwise(wasted))
    assert (wasted[0], wasted[-1], again(RECORDED.blocks_of_all)) == (1536, 2032, 0)


def test_a_later_preemption_loses_more_and_yet_all_is_done_sooner() -> None:
    runs = [RECORDED.in_pool(blocks) for blocks in (SMALL.blocks, 510)]
    (before,), (after,) = (run.preemptions for run in runs)
    assert before.step < after.step and before.outputs < after.outputs
    assert (before.lost_tokens, after.lost_tokens) == (PROMPT + before.outputs - 1, PROMPT + after.outputs - 1)
    assert runs[0].total_ns > runs[1].total_ns


def test_without_a_hit_all_that_is_lost_is_computed_again() -> None:
    for blocks in range(EVERY_SIZE.start, EVERY_SIZE.stop, 9):
        run = RECORDED.in_pool(blocks)
        assert tokens_again(run) == sum(one.lost_tokens for one in run.preemptions)
        assert run.completed.all() and run.peak_blocks is not None and run.peak_blocks <= blocks


def test_the_gates_in_the_recorded_pool() -> None:
    wasted = {gate: again(SMALL.blocks, gate=gate, reserve_blocks=100 if gate == Gate.RESERVE else 0) for gate in Gate}
    assert wasted[Gate.FIRST_CHUNK] > 40 * wasted[Gate.WHOLE_SEQUENCE] > wasted[Gate.RESERVE] == 0
    waits = EqualRequests(gate=Gate.FINAL_SIZE)
    assert all(again(blocks, gate=Gate.FINAL_SIZE) == 0 for blocks in EVERY_SIZE[::16])
    assert waits.in_pool(SMALL.blocks).total_ns > RECORDED.in_pool(SMALL.blocks).total_ns, "it pays by waiting"


def test_even_the_gate_on_the_first_chunk_comes_to_an_end_in_the_smallest_pool() -> None:
    load = EqualRequests(8, gate=Gate.FIRST_CHUNK)
    for blocks in (load.blocks_of_one, load.blocks_of_one + 1, load.blocks_of_one + 20):
        assert load.in_pool(blocks).completed.all()


def test_sizes_go_from_one_request_to_all() -> None:
    assert RECORDED.sizes(3) == (128, 256, 384, 512)
    assert RECORDED.sizes(1000) == tuple(EVERY_SIZE)
    assert EqualRequests(1).sizes(5) == (128,)
    assert EqualRequests(gate=Gate.RESERVE, reserve_blocks=300).sizes(2) == (301, 406, 512)
    assert EqualRequests(2, gate=Gate.RESERVE, reserve_blocks=300).sizes(2) == (301,)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: EqualRequests(0), "requests"),
        (lambda: EqualRequests(65), "requests"),
        (lambda: EqualRequests(output=0), "output"),
        (lambda: EqualRequests(token_budget=3), "token_budget"),
        (lambda: EqualRequests(gate="open"), "gate"),
        (lambda: EqualRequests(reserve_blocks=1), "reserve_blocks"),
        (lambda: RECORDED.in_pool(127), "blocks"),
        (lambda: RECORDED.sizes(0), "count"),
        (lambda: tokens_again(walk([Request(0, 8, 9, cancel_ns=1)], continuous(1))), "schedule"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: Any, named: str) -> None:
    with pytest.raises(InputError, match=f"^{named} is "):
        wrong()


def test_the_record_is_of_these_requests() -> None:
    assert (RECORDED.requests, PROMPT, OUTPUT, RECORDED.blocks_of_all) == (4, 1536, 512, 512)
