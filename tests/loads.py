"""Random loads, policies, pools and models of step time, on which a faster scheduler must equal the plain loop."""

from dataclasses import replace
from random import Random

from lib.paging import Findable
from lib.residency import Gate, PoolSetup
from lib.scheduling import Order, Policy, Request, chunked, continuous, fixed_batch
from lib.step_time import FIT, Fit, LaunchBound, StepTime, device

MODELS: tuple[StepTime, ...] = (FIT, Fit(5, 2, 1), Fit(1000, 7, 0), device(), LaunchBound(13_000_000, device()))


def random_load(draw: Random) -> list[Request]:
    """Up to 14 requests: bursts or scattered arrivals, single outputs, short or long prompts, some of them cached."""
    count, burst, longest = draw.randint(1, 14), draw.random() < 0.4, 9000 if draw.random() < 0.3 else 40
    scattered = [0, 0, draw.randint(0, 2000), draw.randint(0, 10**9)]
    arrivals = sorted(draw.choice([0, 5, 10**7] if burst else scattered) for _ in range(count))
    return [_random_request(draw, arrival, longest) for arrival in arrivals]


def _random_request(draw: Random, arrival: int, longest: int) -> Request:
    prompt, output = draw.randint(1, longest), draw.choice([1, 1, 2, draw.randint(1, 60)])
    cached = draw.choice([0, 0, draw.randint(0, prompt - 1)])
    return Request(arrival, prompt, output, max_output=output + draw.randint(0, 3), cached_prefix=cached)


def random_policy(draw: Random, load: list[Request]) -> Policy:
    """One of the policies, with caps that bind and budgets that hardly suffice among them."""
    rows, longest = draw.randint(1, 6), max(request.prompt for request in load)
    match draw.randint(0, 3):
        case 0:
            return fixed_batch(rows, draw.choice([0, 0, draw.randint(0, 10**8)]))
        case 1:
            return continuous(rows)
    chunk = draw.randint(max(1, longest // 30), longest)
    spare = draw.choice([0, 1, draw.randint(0, longest)]) if longest <= 40 else draw.randint(longest // 9, longest)
    return chunked(rows, chunk, rows + spare, draw.choice(list(Order)))


def random_pool(draw: Random, load: list[Request]) -> PoolSetup:
    """A pool that some of the requests hardly fit, or too small for the largest, or with room to spare."""
    block = draw.choice([1, 2, 4, 16])
    most = [-(-(request.prompt + request.declared_output - 1) // block) for request in load]
    blocks = draw.choice([max(most), max(most) + draw.randint(0, 3), sorted(most)[len(most) // 2], sum(most)])
    gate = draw.choice(list(Gate))
    reserve = draw.randint(0, min(blocks - 1, 5)) if gate == Gate.RESERVE else 0
    return PoolSetup(blocks, block, gate, reserve, draw.choice(list(Findable)))


def random_pooled_load(draw: Random) -> list[Request]:
    """Short requests, many of which begin alike or go on as others did, and some whose users go away."""
    count, burst = draw.randint(1, 10), draw.random() < 0.5
    arrivals = sorted(draw.choice([0, 5]) if burst else draw.randint(0, 5 * 10**8) for _ in range(count))
    common = [draw.randint(0, 1) for _ in range(200)]
    requests = [_random_pooled_request(draw, arrival, common) for arrival in arrivals]
    return [replace(request, ids=None) for request in requests] if draw.random() < 0.3 else requests


def _random_pooled_request(draw: Random, arrival: int, common: list[int]) -> Request:
    prompt, output = draw.randint(1, 60), draw.choice([1, 2, draw.randint(1, 40)])
    told = prompt + draw.choice([0, draw.randint(0, output)])
    own = draw.randint(0, told)
    ids = None if draw.random() < 0.3 else [*common[:own], *(draw.randint(0, 2) for _ in range(told - own))]
    cancel = arrival + draw.choice([1, draw.randint(1, 10**9)]) if draw.random() < 0.2 else None
    return Request(arrival, prompt, output, output + draw.randint(0, 3), ids=ids, cancel_ns=cancel)
