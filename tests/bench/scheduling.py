"""The simulator beside its plain loop, on the shipped trace over and over, and on a reader's own: `TRACE=file`."""

import os
from array import array
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from lib.fast_forward import simulate
from lib.paging import Findable
from lib.residency import PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Request, chunked, walk
from lib.traces import MADE, read_trace
from tests.bench.frame import Result, median_seconds

POLICY = chunked(max_running=64, chunk=4096, token_budget=4096)
COUNT = 19_366
WALKED = 500
POOLED, WALKED_IN_POOL = 2_000, 100
POOL = PoolSetup(blocks=16_384, block_tokens=16, findable=Findable.ON_ADMISSION)
GROWTH = (1_000, 2_000, 5_000, 10_000, 20_000)


def simulator() -> list[Result]:
    """Requests through the scheduler, budget 4096, 64 running, beside the plain loop."""
    results = _beside_walking("shipped trace", _shipped(COUNT))
    if path := os.environ.get("TRACE"):
        results += _beside_walking(Path(path).name, list(read_trace(path).requests))
    return results


def simulator_in_pool() -> list[Result]:
    """Requests through the scheduler in a pool: growth, what is left can be found; beside the plain loop.

    A trace has no tokens, so each request can only find its own; once more with the first half of each prompt one of
    twenty.
    """
    loads = {"shipped trace": _shipped(POOLED)}
    if path := os.environ.get("TRACE"):
        loads[Path(path).name] = list(read_trace(path).requests)[:POOLED]
    loads |= {f"{name}, with tokens": _with_tokens(load) for name, load in loads.items()}
    results = []
    for name, load in loads.items():
        few = load[:WALKED_IN_POOL]
        all_s, few_s, walked_s = median_seconds(
            lambda load=load: simulate(load, POLICY, pool=POOL),
            lambda few=few: simulate(few, POLICY, pool=POOL),
            lambda few=few: walk(few, POLICY, pool=POOL),
            times=3,
        )
        by_share = walked_s / len(few) * len(load)
        results += [
            Result(f"{len(load):,} requests in a pool, {name}", all_s, "s", "walked, by share", by_share, 0.6, 0.1),
            Result(f"the first {len(few)} of them", few_s, "s", "walked", walked_s),
        ]
    return results


def simulator_growth() -> list[Result]:
    """More and more requests through the scheduler, beside what the first size costs for each."""
    sizes = {count: _shipped(count) for count in GROWTH}
    taken = median_seconds(*(partial(_run, load) for load in sizes.values()), times=5)
    each = taken[0] / GROWTH[0]
    return [
        Result(f"{count:,} requests", seconds, "s", "at first pace", each * count)
        for count, seconds in zip(GROWTH, taken, strict=True)
    ]


def _shipped(count: int) -> list[Request]:
    """So many requests: the shipped trace, again and again, each time after the last."""
    requests = read_trace(MADE).requests
    period = requests[-1].arrival_ns + 10**9
    turns = (divmod(place, len(requests)) for place in range(count))
    return [replace(requests[at], arrival_ns=requests[at].arrival_ns + turn * period) for turn, at in turns]


def _with_tokens(load: list[Request]) -> list[Request]:
    draw, longest = Random(8), max(request.prompt for request in load)
    prefixes = [array("q", (draw.randrange(50_000) for _ in range(longest))) for _ in range(20)]
    return [
        replace(one, ids=draw.choice(prefixes)[: one.prompt // 2] + draw.choice(prefixes)[one.prompt // 2 : one.prompt])
        for one in load
    ]


def _run(load: list[Request]) -> Schedule:
    schedule = simulate(load, POLICY)
    assert max(schedule.longest_interval_ns) > 0
    return schedule


def _beside_walking(name: str, load: list[Request]) -> list[Result]:
    few = load[:WALKED]
    all_s, few_s, walked_s = median_seconds(
        lambda: simulate(load, POLICY), lambda: simulate(few, POLICY), lambda: walk(few, POLICY), times=5
    )
    steps, few_steps = simulate(load, POLICY).step_count, walk(few, POLICY).step_count
    by_share = walked_s / len(few) * len(load)
    return [
        Result(f"{len(load):,} requests, {name}", all_s, "s", "walked, by share", by_share, 0.2, 0.06),
        Result(f"the first {len(few)} of them", few_s, "s", "walked", walked_s),
        Result("requests a second", len(load) / all_s, "/s", "walked", len(few) / walked_s),
        Result("steps a second", steps / all_s, "/s", "walked", few_steps / walked_s),
    ]
