"""The prefix tree of the agent's rounds: the record comes out of a live cache, and a plain trie says the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.agent_replay import found_if_all_lives, prompts
from lib.checks import InputError
from lib.prefix_tree import MOST_ROUNDS, MOST_TOKENS, ROUNDS, Node, prefix_tree
from lib.records import record

rounds, blocks = st.integers(1, MOST_ROUNDS), st.sampled_from((1, 2, 7, 16, 64, 256))
timestamps = st.one_of(st.none(), st.integers(0, 900), st.integers(0, MOST_TOKENS))


def test_the_recorded_tree_comes_out() -> None:
    rows = record("agent_prefix_tree").rows
    nodes = prefix_tree(ROUNDS, block_tokens=1).nodes
    assert [(node.parent, node.depth, node.added) for node in nodes] == [
        (row["parent_node"], row["tokens_from_root"], row["added_tokens_on_edge"]) for row in rows
    ]
    for place, row in enumerate(rows):
        assert row["node"] == place
        is_leaf = all(node.parent != place for node in nodes)
        assert is_leaf == row["is_leaf"]
        assert (nodes[place].rounds == (row["leaf_round"],)) == is_leaf


def test_what_the_four_rounds_read_store_and_find() -> None:
    tree = prefix_tree()
    assert (tree.read, tree.stored, tree.reusable, tree.lost, tree.first_fork) == (2080, 896, 1152, 32, 206)
    assert [each.found for each in tree.rounds] == [0, 192, 304, 656]


def test_all_rounds_find_what_the_recorded_replay_found() -> None:
    hits = [row["hit_tokens"] for row in record("cache_replay").where(run="pool6gib")]
    assert [each.found for each in prefix_tree(MOST_ROUNDS).rounds] == hits


@given(rounds, blocks)
def test_nothing_is_found_but_whole_blocks_of_what_is_equal(count: int, block: int) -> None:
    tree = prefix_tree(count, block)
    assert tuple(each.found for each in tree.rounds) == found_if_all_lives(block)[:count]
    assert tuple(each.same for each in tree.rounds) == found_if_all_lives(1)[:count]


@given(rounds, blocks, timestamps)
def test_a_token_is_stored_or_was_there_before(count: int, block: int, timestamp: int | None) -> None:
    tree = prefix_tree(count, block, timestamp)
    assert tree.read == sum(each.tokens for each in tree.rounds)
    assert tree.stored + sum(each.same for each in tree.rounds) == tree.read
    assert tree.reusable + tree.lost == tree.read - tree.stored
    assert all(each.found % block == 0 and 0 <= each.same - each.found < block for each in tree.rounds)


@given(rounds, timestamps)
def test_the_nodes_are_those_of_a_plain_trie(count: int, timestamp: int | None) -> None:
    """Each node stands where inputs part or end, with all inputs that have the same tokens up to there."""
    inputs = [list(ids) for ids in prompts()[:count]]
    for number, ids in enumerate(inputs):
        if timestamp is not None and timestamp < len(ids):
            ids[timestamp] = -1 - number
    tree = prefix_tree(count, 16, timestamp)
    expected = set[tuple[int, tuple[int, ...]]]()
    for one in inputs:
        ends = {len(one), *(common(one, other) for other in inputs)}
        for depth in ends:
            through = tuple(n for n, ids in enumerate(inputs, start=1) if ids[:depth] == one[:depth])
            expected.add((depth, through))
    assert {(node.depth, node.rounds) for node in tree.nodes} == expected
    for node in tree.nodes:
        before = Node(None, 0, 0, node.rounds) if node.parent is None else tree.nodes[node.parent]
        assert node.depth == before.depth + node.added
        assert set(node.rounds) <= set(before.rounds)


def common(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@given(rounds, st.integers(0, MOST_TOKENS))
def test_nothing_behind_a_timestamp_is_found(count: int, timestamp: int) -> None:
    without, stamped = prefix_tree(count), prefix_tree(count, timestamp=timestamp)
    assert [each.same for each in stamped.rounds] == [min(each.same, timestamp) for each in without.rounds]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"^rounds is 13; allowed: a whole number from 1 to 12$"):
        prefix_tree(13)
    with pytest.raises(InputError, match=r"^timestamp is 3137; "):
        prefix_tree(timestamp=MOST_TOKENS + 1)
    with pytest.raises(InputError, match=r"^timestamp is -1; "):
        prefix_tree(timestamp=-1)
    with pytest.raises(InputError, match=r"^block_tokens is 0; "):
        prefix_tree(block_tokens=0)
