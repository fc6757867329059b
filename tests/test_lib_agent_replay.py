"""The replayed rounds of an agent: equal to the record round by round, and to each other by both ways of replaying."""

import random
from array import array
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.agent_replay import (
    BLOCK_TOKENS,
    INTERFERING,
    INTERFERING_TOKENS,
    TOKEN_BUDGET,
    Setup,
    blocks_in,
    engine_replay,
    first_token_ns,
    found_if_all_lives,
    prompts,
    recorded,
    replay,
    rounds,
    time_to_make,
)
from lib.checks import InputError
from lib.paging import Pool
from lib.prefix_cache import Order
from lib.prefix_value import prefix_of
from lib.records import record
from lib.step_time import FIT, step_plan
from lib.units import GIB

NS_IN_MS = 10**6
RUNS = {row["run"]: row for row in record("cache_replay_summary").rows if row["prefix_cache_on"]}
LARGE, SMALL = Setup(blocks_in(6 * GIB), interfering=INTERFERING), Setup(blocks_in(GIB), interfering=INTERFERING)


def setup_of(run: Mapping[str, Any]) -> Setup:
    return Setup(
        run["pool_capacity_tokens"] // BLOCK_TOKENS,
        interfering=run["interfering_requests_per_gap"],
        interfering_tokens=run["interfering_request_tokens"] or INTERFERING_TOKENS,
    )


@pytest.mark.parametrize("name", RUNS)
def test_each_recorded_run_is_met_round_by_round(name: str) -> None:
    run = RUNS[name]
    rows = [row for row in record("cache_replay").rows if row["run"] == name]
    served = engine_replay(setup_of(run), round(run["gap_s"] * 1000) * NS_IN_MS)
    assert [one.found for one in served] == [row["hit_tokens"] for row in rows] == list(replay(setup_of(run)))
    assert [one.computed for one in served] == [row["recomputed_tokens"] for row in rows]
    assert sum(one.round.tokens for one in served) == run["input_tokens_total"]
    assert sum(one.found for one in served) == run["hit_tokens_total"]


def test_the_pools_are_those_of_the_record() -> None:
    assert {run["kv_pool_gib"]: run["pool_capacity_tokens"] for run in RUNS.values()} == {
        gib: blocks_in(gib * GIB) * BLOCK_TOKENS for gib in (6, 1)
    }


def test_prompts_have_the_recorded_lengths_and_nothing_else_in_common() -> None:
    for before, after, one in zip(prompts(), prompts()[1:], rounds()[1:], strict=False):
        common = next(place for place, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
        assert (len(after), common) == (one.tokens, one.same)


def test_the_prefix_tree_of_the_first_rounds_is_the_recorded_one() -> None:
    nodes = {row["node"]: row for row in record("agent_prefix_tree").rows}
    texts: dict[int, set[bytes]] = {name: set() for name in nodes}
    for leaf in (row for row in nodes.values() if row["is_leaf"]):
        prompt, node = prompts()[leaf["leaf_round"] - 1], leaf
        assert len(prompt) == leaf["tokens_from_root"]
        while node is not None:
            texts[node["node"]].add(array("q", prompt[: node["tokens_from_root"]]).tobytes())
            node = nodes.get(node["parent_node"])
    assert {name: len(different) for name, different in texts.items()} == dict.fromkeys(nodes, 1)


def test_the_recorded_runs_are_of_these_setups() -> None:
    assert [(one.setup, one.found) for one in recorded()] == [
        (setup_of(run), run["hit_tokens_total"]) for run in RUNS.values()
    ]
    assert {run["interfering_request_tokens"] for run in RUNS.values()} == {0, INTERFERING_TOKENS}


def test_a_wait_changes_nothing_and_the_clock_runs() -> None:
    at_once, later = (engine_replay(LARGE, gap) for gap in (0, 200 * NS_IN_MS))
    assert [(one.found, one.first_token_ns) for one in at_once] == [(one.found, one.first_token_ns) for one in later]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_ways_find_the_same(seed: int) -> None:
    draw = random.Random(seed)
    setup = Setup(
        blocks=draw.randint(400, 1200),
        block_tokens=draw.choice((8, 12, 16, 24, 32)),
        interfering=draw.randint(0, 4),
        # of whole blocks the pool would keep the last one a second time
        interfering_tokens=draw.randint(1, 150) * 16 + 1,
    )
    served = engine_replay(setup, gap_ns=draw.choice((0, 10**8)))
    assert [one.found for one in served] == list(replay(setup))
    for one in served:
        assert one.first_token_ns == first_token_ns(one.round.tokens, one.found)


@settings(max_examples=40, deadline=None)
@given(
    block_tokens=st.integers(8, 64),
    interfering=st.integers(1, 6),
    interfering_tokens=st.integers(100, 4000),
)
def test_the_cliff_lies_where_it_is_said_to_lie(block_tokens: int, interfering: int, interfering_tokens: int) -> None:
    def found(blocks: int) -> tuple[int, ...]:
        return replay(Setup(blocks, block_tokens, interfering, interfering_tokens))

    fewest = -(-max(one.tokens for one in rounds()) // block_tokens)
    setup = Setup(10_000, block_tokens, interfering, interfering_tokens)
    assert found(max(fewest, setup.blocks_to_keep_all)) == found_if_all_lives(block_tokens)
    if setup.blocks_to_keep_all > fewest:
        assert found(setup.blocks_to_keep_all - 1) != found_if_all_lives(block_tokens)
    if setup.blocks_between >= fewest:
        assert sum(found(setup.blocks_between)) == 0


def test_the_suffix_pays_for_the_history_that_was_found() -> None:
    for one in engine_replay(LARGE):
        assert one.computed <= TOKEN_BUDGET, "one step is enough"
        assert one.first_token_ns == FIT(step_plan((one.computed, one.found)))
        assert one.first_token_ns > FIT(step_plan((one.computed, 0))) or not one.found


def test_given_back_head_first_a_chain_that_loses_a_block_loses_all() -> None:
    blocks = LARGE.blocks_to_keep_all - 50
    tail, head = (
        sum(replay(Setup(blocks, interfering=INTERFERING, order=order)))
        for order in (Order.LEAST_RECENTLY_USED, Order.HEAD_FIRST)
    )
    assert 0 < head < tail < sum(found_if_all_lives())


@pytest.mark.parametrize("order", Order)
def test_in_a_pool_that_can_keep_all_every_order_does(order: Order) -> None:
    for blocks in (LARGE.blocks_to_keep_all, LARGE.blocks):
        assert replay(Setup(blocks, interfering=INTERFERING, order=order)) == found_if_all_lives()


def test_time_to_make_adds_up() -> None:
    assert time_to_make(0, 2048) + time_to_make(2048, 6144) == pytest.approx(prefix_of(6144).recompute_s, rel=1e-12)


def test_the_pool_of_single_blocks_gives_the_same_at_the_books_values() -> None:
    pool, found = Pool(LARGE.blocks, BLOCK_TOKENS), []
    for one, tokens in LARGE.load():
        sequence = pool.admit(tokens)
        found += [sequence.cached] if one else []
        pool.release(sequence)
    assert tuple(found) == replay(LARGE)


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"blocks": 195}, "blocks"),
        ({"blocks": 249, "interfering": 1}, "blocks"),
        ({"block_tokens": 0}, "block_tokens"),
        ({"interfering": -1}, "interfering"),
        ({"interfering_tokens": 0}, "interfering_tokens"),
        ({"order": "newest"}, "order"),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused(wrong: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InputError) as refusal:
        Setup(**{"blocks": 455} | wrong)
    assert refusal.value.parameter == parameter


def test_the_engine_evicts_by_last_use_only() -> None:
    with pytest.raises(InputError, match=r"order is .*; allowed: least recently used, in the engine"):
        engine_replay(Setup(455, order=Order.FIRST_IN))
    with pytest.raises(InputError, match="gap_ns"):
        engine_replay(LARGE, -1)


def test_small_and_large() -> None:
    assert (sum(replay(LARGE)), sum(replay(SMALL)), LARGE.blocks_between) == (16_304, 0, 750)
