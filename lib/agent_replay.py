"""The rounds of one recorded agent task, sent again through a prefix cache: what each finds of the round before.

Only the lengths are on record: how long each round's input is and how much of it begins like the one before. Made
token ids of these lengths find what the recorded ones found. Between the rounds other requests may come, each with
tokens of its own, and use up the pool.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from lib.allotment import shared_blocks
from lib.block_content import Ids
from lib.blocks import MOST_BLOCKS
from lib.checks import InputError, keep_whole, one_of, whole
from lib.design_problem import INSTANCE
from lib.fast_forward import simulate
from lib.memory import MOST_BYTES, pages_for
from lib.model import paged_kv_bytes
from lib.paging import MOST_BLOCK_TOKENS, Findable
from lib.prefix_cache import Order, PrefixCache
from lib.prefix_value import MOST_TOKENS, recompute_time
from lib.records import record
from lib.residency import PoolSetup
from lib.schedule import MOST_NS, Schedule
from lib.scheduling import Request, chunked
from lib.step_time import FIT, StepTime, step_plan

BLOCK_TOKENS, TOKEN_BUDGET = 16, 512
OUTPUTS = 1  # of each request
INTERFERING, INTERFERING_TOKENS = 3, 4000  # in each gap of the recorded runs
MOST_INTERFERING, MOST_INTERFERING_TOKENS = 64, 2**15
_OTHERS = 2**40  # ids of interfering requests begin here


class Round(NamedTuple):
    """One round of the task: the tokens of its input, and those of them with which the round before begins, too."""

    number: int
    tokens: int
    same: int


@cache
def rounds() -> tuple[Round, ...]:
    """The recorded rounds, in their order. Source: record agent_rounds."""
    names = "round", "input_tokens", "same_as_previous_round_prefix_tokens"
    return tuple(Round(*(int(row[name]) for name in names)) for row in record("agent_rounds").rows)


@cache
def prompts() -> tuple[Ids, ...]:
    """Made token ids of the rounds' inputs: each begins like the round before, as far as recorded, and goes on anew."""
    made = list[Ids]()
    ids = 0
    for one in rounds():
        new = one.tokens - one.same
        made.append((made[-1][: one.same] if made else array("q")) + array("q", range(ids, ids + new)))
        ids += new
    return tuple(made)


@dataclass(frozen=True)
class Setup:
    """A pool, and what comes between the rounds; by default nothing.

    Raises InputError for what makes no sense, such as a request longer than the pool. Source: section 8.3.4.
    """

    blocks: int
    block_tokens: int = BLOCK_TOKENS
    interfering: int = 0
    interfering_tokens: int = INTERFERING_TOKENS
    order: Order = Order.LEAST_RECENTLY_USED

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BLOCK_TOKENS, block_tokens=1)
        keep_whole(self, MOST_INTERFERING, interfering=0)
        keep_whole(self, MOST_INTERFERING_TOKENS, interfering_tokens=1)
        longest = max(*(one.tokens for one in rounds()), self.interfering_tokens if self.interfering else 0)
        keep_whole(self, MOST_BLOCKS, blocks=pages_for(longest, self.block_tokens))
        one_of("order", self.order, Order)

    def load(self) -> Iterator[tuple[Round | None, Ids]]:
        """The rounds and what comes between them, in order; what interferes has no round."""
        ids = _OTHERS
        for one, prompt in zip(rounds(), prompts(), strict=True):
            for _ in range(self.interfering if one.number > 1 else 0):
                yield None, array("q", np.arange(ids, ids + self.interfering_tokens).tobytes())
                ids += self.interfering_tokens
            yield one, prompt

    @property
    def blocks_between(self) -> int:
        """Blocks that come to be used between two rounds; in a pool of no more, a round leaves nothing for the next.

        Of those that have ended, only full blocks are kept.
        """
        ended, size = max(0, self.interfering - 1), self.block_tokens
        last = pages_for(self.interfering_tokens, size) if self.interfering else 0
        return ended * (self.interfering_tokens // size) + last

    @property
    def blocks_to_keep_all(self) -> int:
        """Blocks from which on each round finds all that it could, by the order of last use.

        What comes between has to fit beside the longest prefix that is found.
        """
        return self.blocks_between + max(found_if_all_lives(self.block_tokens)) // self.block_tokens


def blocks_in(pool_bytes: int, block_tokens: int = BLOCK_TOKENS) -> int:
    """Whole blocks of the chapter's model that so many bytes hold."""
    size = whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS)
    return whole("pool_bytes", pool_bytes, at_most=MOST_BYTES) // paged_kv_bytes(INSTANCE.model, 1, size)


def found_if_all_lives(block_tokens: int = BLOCK_TOKENS) -> tuple[int, ...]:
    """Tokens that each round finds if nothing is ever evicted: whole blocks of what is equal, never the last token."""
    size = whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS)
    return tuple(shared_blocks(one.tokens, one.same, size) * size for one in rounds())


def replay(setup: Setup) -> tuple[int, ...]:
    """Tokens that each round finds, one request after the other through a prefix cache. Source: section 8.3.4."""
    is_by_value = setup.order == Order.LEAST_VALUE
    cache, found = PrefixCache(setup.blocks, setup.block_tokens, setup.order, _worth if is_by_value else None), []
    for one, tokens in setup.load():
        match, lock = cache.keep(tokens)
        cache.unlock(lock)
        if one:
            found.append(match.tokens)
    return tuple(found)


def time_to_make(first: int, beyond: int) -> float:
    """Seconds to compute the KV of the tokens from one position to before another (clock: FLOP rule)."""
    first = whole("first", first, at_most=MOST_TOKENS - 1)
    return recompute_time(whole("beyond", beyond, first + 1, MOST_TOKENS)) - (recompute_time(first) if first else 0)


_worth = lru_cache(2 * MOST_INTERFERING_TOKENS)(time_to_make)  # one replay asks for what another has asked for


def first_token_ns(tokens: int, found: int = 0, step_time: StepTime = FIT) -> int:
    """Ns until the first output of a prompt that has the engine to itself, so many of its tokens found."""
    """Ns until the first output of a prompt that has the engine to itself, so many of its tokens found.

    The clock is that of the step time, by default the fit.
    """
    beyond = whole("tokens", tokens, at_least=1, at_most=MOST_TOKENS)
    start = whole("found", found, at_most=beyond - 1)
    return sum(step_time(step_plan((min(TOKEN_BUDGET, beyond - at), at))) for at in range(start, beyond, TOKEN_BUDGET))


class Recorded(NamedTuple):
    """One recorded run with the prefix cache on: tokens found, time of all rounds, median time to first token.

    Both times in seconds (clock: client); they leave out the wait before each round and what interferes.
    """

    setup: Setup
    gap_s: float
    found: int
    total_s: float
    median_s: float


@cache
def recorded() -> tuple[Recorded, ...]:
    """The recorded runs with the prefix cache on. Source: record cache_replay_summary."""
    runs = record("cache_replay_summary").where(prefix_cache_on=1)
    return tuple(
        Recorded(
            Setup(run["pool_capacity_tokens"] // BLOCK_TOKENS, interfering=run["interfering_requests_per_gap"]),
            run["gap_s"],
            run["hit_tokens_total"],
            run["agent_requests_total_s"],
            run["ttft_median_ms"] / 1e3,
        )
        for run in runs
    )


class Served(NamedTuple):
    """A round as the engine served it: tokens found, tokens computed, first token after so many ns (clock: fit)."""

    round: Round
    found: int
    computed: int
    first_token_ns: int


def engine_replay(setup: Setup, gap_ns: int = 0) -> tuple[Served, ...]:
    """The same through the engine: one request at a time, one output each, so many ns without work before each round.

    A step has up to 512 tokens, and those of a suffix pay for the history that was found. The engine evicts by last
    use only. Raises InputError for another order. Source: section 8.3.4, record cache_replay.
    """
    gap = whole("gap_ns", gap_ns, at_most=MOST_NS // len(rounds()))
    if setup.order != Order.LEAST_RECENTLY_USED:
        raise InputError("order", setup.order, "least recently used, in the engine")
    load = list(setup.load())
    run = _served(setup, [Request(0, len(tokens), OUTPUTS, ids=tokens) for _, tokens in load])
    if gap:
        pauses = accumulate(gap if one and one.number > 1 else 0 for one, _ in load)
        starts = [int(start) + pause for start, pause in zip(run.started_ns, pauses, strict=True)]
        run = _served(setup, [replace(one, arrival_ns=at) for one, at in zip(run.requests, starts, strict=True)])
    found = {part.place: part.context for stretch in reversed(run.stretches) for part in stretch.prompts}
    return tuple(
        Served(one, found[place], one.tokens - found[place], int(run.first_token_ns[place] - run.started_ns[place]))
        for place, (one, _) in enumerate(load)
        if one
    )


def _served(setup: Setup, requests: Sequence[Request]) -> Schedule:
    pool = PoolSetup(setup.blocks, setup.block_tokens, findable=Findable.ON_ADMISSION)
    return simulate(requests, chunked(1, TOKEN_BUDGET, TOKEN_BUDGET), FIT, pool)
