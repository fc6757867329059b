"""The host tier: what is driven out can be fetched, at the price of the link, and never at more than recomputing."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.agent_replay import Setup, blocks_in, found_if_all_lives, replay, rounds, time_to_make
from lib.blocks import PagingError
from lib.checks import InputError
from lib.design_problem import INSTANCE
from lib.host_tier import Link, TieredCache
from lib.model import kv_bytes
from lib.prefix_value import GEN4, GEN5, prefix_of
from lib.units import GIB
from tests.test_lib_prefix_cache import written

TOKEN_BYTES = kv_bytes(INSTANCE.model, 1)
GEN5_LINK = Link(GEN5.bandwidth_bytes_s, TOKEN_BYTES)
SMALL = Setup(blocks_in(GIB), interfering=3)


def test_a_link_takes_as_long_as_the_chapter_says() -> None:
    for link in (GEN4, GEN5):
        prefix = prefix_of(6144, link.bandwidth_bytes_s)
        assert Link(link.bandwidth_bytes_s, TOKEN_BYTES).time_for(6144) == prefix.fetch_s == prefix.write_s


def test_behind_the_small_pool_the_host_has_all_that_the_large_one_keeps() -> None:
    cache = TieredCache(SMALL.blocks, blocks_in(6 * GIB), GEN5_LINK, time_to_make)
    served = [(one, cache.serve(tokens)) for one, tokens in SMALL.load()]
    mine = [how for one, how in served if one]
    assert tuple(how.found for how in mine) == replay(SMALL)
    assert tuple(how.found + how.fetched for how in mine) == found_if_all_lives()
    assert sum(how.computed for how in mine) == sum(one.tokens for one in rounds()) - sum(found_if_all_lives())
    # what is written out and never asked for again costs as much as what is
    assert sum(how.written_out for _, how in served) > sum(how.fetched for _, how in served)


def test_a_link_slower_than_recomputing_is_never_used() -> None:
    slow = Link(int(prefix_of(2048).recompute_bytes_s / 3), TOKEN_BYTES)
    cache = TieredCache(SMALL.blocks, blocks_in(6 * GIB), slow, time_to_make)
    assert sum(cache.serve(tokens).fetched for _, tokens in SMALL.load()) == 0


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_tiers_keep_their_totals_and_all_tokens_are_accounted_for(seed: int) -> None:
    draw = random.Random(seed)
    size, blocks = draw.randint(1, 3), draw.randint(4, 12)
    cache = TieredCache(blocks, draw.randint(1, 30), Link(draw.choice((1, 10**9)), 1), lambda a, b: b - a, size)
    for _ in range(30):
        tokens = [draw.randrange(2) for _ in range(draw.randint(1, blocks * size))]
        here, there = cache.match(tokens).tokens, cache.host.match(tokens[: cache.host.blocks * size]).tokens
        how = cache.serve(tokens)
        assert how.found == here and how.found + how.fetched in (here, max(here, there))
        assert how.found + how.fetched + how.computed == len(tokens) and how.computed > 0
        assert how.fetch_s <= max(0, there - here)
        written(cache)
        written(cache.host)
        assert cache.protected == cache.host.protected == cache.taken == cache.host.taken == 0


def test_what_left_the_card_is_in_the_host() -> None:
    cache = TieredCache(4, 16, Link(10**9, 1), lambda first, beyond: beyond - first, 2)
    cache.serve([1, 2, 3, 4, 5])
    cache.serve([6, 7, 8, 9, 10])
    assert (cache.match([1, 2, 3, 4, 5]).tokens, cache.host.match([1, 2, 3, 4, 5]).tokens) == (2, 4)
    how = cache.serve([1, 2, 3, 4, 5])
    assert (how.found, how.fetched, how.computed) == (2, 2, 1)


def test_a_card_without_room_refuses_and_all_stays() -> None:
    cache = TieredCache(4, 16, Link(10**9, 1), lambda first, beyond: beyond - first, 2)
    lock = cache.lock(cache.match([1, 2, 3]))
    cache.insert(lock, [1, 2, 3, 4, 5], cache.take(3))
    before = written(cache), written(cache.host)
    with pytest.raises(PagingError, match="3 free blocks are needed and there are 2"):
        cache.serve([7, 8, 9, 10, 11])
    assert (written(cache), written(cache.host)) == before


@pytest.mark.parametrize(("bytes_s", "token_bytes"), [(0, 1), (-1, 1), (1, 0), (1.5, 1)])
def test_a_link_that_makes_no_sense_is_refused(bytes_s: int, token_bytes: int) -> None:
    with pytest.raises(InputError):
        Link(bytes_s, token_bytes)


def test_a_tier_needs_a_link() -> None:
    with pytest.raises(InputError, match="link is None; allowed: a Link"):
        TieredCache(4, 4, None, time_to_make)  # type: ignore[arg-type]


class Changing(list[int]):
    """Token ids of which the last is another one each time that they are read."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        self.times += 1
        return iter([*self[:-1], self[-1] + self.times])


def fails_in_the_end(result: Any) -> Callable[[int, int], float]:
    """Seconds for each token; where the prompt runs to its end, something else."""

    def time_for(first: int, beyond: int) -> float:
        return result() if beyond == 5 else float(beyond - first)

    return time_for


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (lambda: float("nan"), InputError),
        (lambda: -1.0, InputError),
        (lambda: None, InputError),
        (lambda: 1 / 0, ZeroDivisionError),
    ],
)
@pytest.mark.parametrize("before", [[], [[1, 2, 3, 4]]])
def test_a_time_that_is_none_is_refused_before_anything_is_done(
    result: Any, error: type[Exception], before: list[list[int]]
) -> None:
    cache = TieredCache(4, 16, Link(10**9, 1), fails_in_the_end(result), 2)
    for tokens in before:
        cache.serve(tokens)
    state = written(cache), written(cache.host)
    with pytest.raises(error):
        cache.serve([6, 7, 8, 9, 10])
    assert (written(cache), written(cache.host)) == state


def test_tokens_are_read_once() -> None:
    cache = TieredCache(8, 16, Link(10**9, 1), lambda first, beyond: beyond - first, 1)
    tokens = Changing([1, 2, 3])
    cache.serve(tokens)
    assert tokens.times == 1 and cache.match([1, 2, 4, 0]).tokens == 3


def test_a_slow_link_takes_long_and_breaks_nothing() -> None:
    cache = TieredCache(4, 16, Link(1, 2**60), lambda first, beyond: beyond - first, 2)
    cache.serve([1, 2, 3, 4, 5])
    assert cache.serve([6, 7, 8, 9, 10]).write_s == 4 * 2.0**60
    assert cache.serve([1, 2, 3, 4, 5]).fetched == 0
    assert Link(2, 2**40).time_for(np.int32(2**20)) == 2.0**59  # type: ignore[arg-type]


@pytest.mark.parametrize("tokens", [-1, 1.5, True])
def test_tokens_that_make_no_sense_do_not_cross_a_link(tokens: Any) -> None:
    with pytest.raises(InputError, match="tokens"):
        Link(1, 1).time_for(tokens)


def test_a_tier_needs_times() -> None:
    with pytest.raises(InputError, match="time_to_make is None"):
        TieredCache(4, 4, GEN5_LINK, None)  # type: ignore[arg-type]


def test_a_host_without_blocks_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="host_blocks is 0"):
        TieredCache(4, 0, GEN5_LINK, time_to_make)
