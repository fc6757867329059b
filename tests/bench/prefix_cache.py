"""The prefix cache at work: prompts that share prefixes, a full cache, one session that grows."""

from array import array
from itertools import accumulate
from random import Random
from time import perf_counter

from lib.block_content import Ids
from lib.paging import Pool
from lib.prefix_cache import PrefixCache
from tests.bench.frame import Result, median_seconds
from tests.bench.paging import BLOCK_TOKENS, VOCABULARY, work

# Room for all that is inserted: only the full cache of leaves evicts.
BLOCKS = 70_000
LEAVES, FEWER_LEAVES, ROUNDS = 16_000, 1_000, 5_000
TURNS, FEWER_TURNS, TURN_TOKENS = 1_600, 400, 64
PROMPTS_MS, PROMPTS_REACH_MS = 35, 16
ROUNDS_PER_S, ROUNDS_REACH = 5_000, 50_000
TURNS_PER_S, TURNS_REACH = 660, 3_300


def cached_prompts() -> list[Result]:
    """Prompts of the allocator's work through match, lock, insert and unlock, beside the pool of single blocks."""
    prompts, _ = work()
    tree_s, pool_s = median_seconds(lambda: _keep_all(prompts), lambda: _admit_all(prompts), times=9)
    assert _keep_all(prompts) == _admit_all(prompts)
    what = f"{len(prompts):,} prompts, match to unlock"
    return [Result(what, tree_s * 1e3, "ms", "single blocks", pool_s * 1e3, PROMPTS_MS, PROMPTS_REACH_MS)]


def full_cache() -> list[Result]:
    """One leaf of 16 tokens evicted and one inserted, among many leaves, beside the same among fewer."""
    many_s, few_s = (_turn_over(leaves) / ROUNDS * 1e6 for leaves in (LEAVES, FEWER_LEAVES))
    bar, reach = 1e6 / ROUNDS_PER_S, 1e6 / ROUNDS_REACH
    return [
        Result(f"evict and insert among {LEAVES:,}", many_s, "us", f"among {FEWER_LEAVES:,}", few_s, bar, reach),
        Result("rounds a second", 1e6 / many_s, "/s", f"among {FEWER_LEAVES:,}", 1e6 / few_s),
    ]


def growing_session() -> list[Result]:
    """One session, each turn a match and an insertion of all so far, beside the pace of its first turns."""
    draw = Random(8)
    turns = [array("q", (draw.randrange(VOCABULARY) for _ in range(TURN_TOKENS))) for _ in range(TURNS)]
    prompts = list(accumulate(turns))
    all_s, few_s = median_seconds(lambda: _keep_all(prompts), lambda: _keep_all(prompts[:FEWER_TURNS]), times=5)
    turn_ms, first_ms = all_s / TURNS * 1e3, few_s / FEWER_TURNS * 1e3
    bar, reach = 1e3 / TURNS_PER_S, 1e3 / TURNS_REACH
    return [
        Result(f"a turn of {TURN_TOKENS}, one of {TURNS:,}", turn_ms, "ms", f"of {FEWER_TURNS}", first_ms, bar, reach),
        Result("turns a second", TURNS / all_s, "/s", f"of {FEWER_TURNS}", FEWER_TURNS / few_s),
    ]


def _keep_all(prompts: list[Ids]) -> int:
    """Tokens found, all together."""
    cache, found = PrefixCache(BLOCKS, BLOCK_TOKENS), 0
    for prompt in prompts:
        found += _keep(cache, prompt)
    return found


def _keep(cache: PrefixCache, prompt: Ids) -> int:
    match = cache.match(prompt)
    lock = cache.lock(match)
    cache.insert(lock, prompt, cache.take(cache.blocks_for(len(prompt)) - match.blocks))
    cache.unlock(lock)
    return match.tokens


def _admit_all(prompts: list[Ids]) -> int:
    pool, found = Pool(BLOCKS, BLOCK_TOKENS), 0
    for prompt in prompts:
        sequence = pool.admit(prompt)
        found += sequence.cached
        pool.release(sequence)
    return found


def _turn_over(leaves: int) -> float:
    """Seconds for the rounds, in a cache that so many leaves fill."""
    cache = PrefixCache(leaves + 1, BLOCK_TOKENS)
    own = [array("q", range(at, at + BLOCK_TOKENS + 1)) for at in range(0, (leaves + ROUNDS) * 100, 100)]
    for prompt in own[:leaves]:
        _keep(cache, prompt)
    assert (cache.evictable, cache.empty) == (leaves, 1)
    start = perf_counter()
    for prompt in own[leaves:]:
        cache.evict(1)
        _keep(cache, prompt)
    taken = perf_counter() - start
    assert (cache.evictable, cache.empty) == (leaves, 1)
    return taken
