"""How the benchmark file of this book was made: no engine has run, `simulate` has, with a step time that is known.

The file looks as a client's would: several runs, a few failures, chunks of two tokens, and times that are a little late
as a client's are. To write both again: `MADE.write_text(made_text())`, `MADE_CORRECTNESS.write_text(made_flags())` of
`lib.benchmark_file`. Everything is drawn by `random.random` and plain arithmetic, so every machine makes the same.
"""

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lib.fast_forward import simulate
from lib.made_trace import TICK_MS
from lib.schedule import Schedule
from lib.scheduling import Policy, Request, chunked
from lib.step_time import NS, Fit

SEED = 862
RATES_PER_S = (1, 4, 16)
REQUESTS = 48
LONG_SHARE = 0.25
# Tokens, from the fewest to the most.
SHORT_PROMPT, LONG_PROMPT, OUTPUT = (200, 1600), (3000, 9000), (12, 60)
# What the simulator ran with, and so what a fit of the file should come to: a quicker host and a slower card than the
# book's.
FIT = Fit(fixed_ns=9_000_000, per_new_token_ns=60_000, per_causal_pair_ns=5)
ROWS, BUDGET = 8, 2048
POLICY: Policy = chunked(ROWS, chunk=BUDGET, token_budget=BUDGET)
# A client sees a token so much later at most, and one in a hundred events far later, as other work was in its way.
LATE_S, FAR_LATE_S, FAR_LATE_SHARE = 0.0004, 0.008, 0.01
# Of each run, who failed, and who got two tokens in each chunk.
FAILED, IN_PAIRS = (11, 37), (5, 19, 30)
WRONG_EVERY = 8
ERROR = "Internal Server Error"
DIGITS = 5
# The client's clock does not begin with the run.
CLOCK_S, BETWEEN_RUNS_S = 1000, 100


def made_text() -> str:
    """The file: a line of JSON for each run."""
    draw = random.Random(SEED).random
    return "".join(f"{json.dumps(_run(number, draw), separators=(',', ':'))}\n" for number in range(len(RATES_PER_S)))


def made_flags() -> str:
    """Which answers are right, as somebody would add it, the same in each run."""
    flags = (int(place not in FAILED and place % WRONG_EVERY != WRONG_EVERY - 1) for place in range(REQUESTS))
    return "is_correct\n" + "".join(f"{flag}\n" for flag in flags)


def _run(number: int, draw: Any) -> dict[str, Any]:
    rate, start_s = RATES_PER_S[number], CLOCK_S + BETWEEN_RUNS_S * number
    sent_ns = _arrivals_ns(rate, draw)
    shapes = [
        (_drawn(LONG_PROMPT if draw() < LONG_SHARE else SHORT_PROMPT, draw), _drawn(OUTPUT, draw)) for _ in sent_ns
    ]
    served = [place for place in range(REQUESTS) if place not in FAILED]
    ran = simulate([Request(sent_ns[place], *shapes[place]) for place in served], POLICY, FIT)
    chunks = dict(zip(served, (_chunks_s(ran, at, place, draw) for at, place in enumerate(served)), strict=True))
    came = [chunks.get(place, []) for place in range(REQUESTS)]
    starts = [sent / NS for sent in sent_ns]
    outputs = [shapes[place][1] if place in chunks else 0 for place in range(REQUESTS)]
    return {
        "made": "by a simulator, not by an engine",
        "duration": _rounded(max(times[-1] for times in came if times) + LATE_S),
        "completed": len(served),
        "failed": len(FAILED),
        "total_input_tokens": sum(shapes[place][0] for place in served),
        "total_output_tokens": sum(outputs),
        "request_rate": rate,
        "max_concurrency": None,
        "input_lens": [prompt for prompt, _ in shapes],
        "output_lens": outputs,
        "ttfts": [_rounded(times[0] - start) if times else 0.0 for times, start in zip(came, starts, strict=True)],
        "itls": [[_rounded(b - a) for a, b in pairwise(times)] for times in came],
        "start_times": [_rounded(start_s + start) for start in starts],
        "errors": [ERROR if place in FAILED else "" for place in range(REQUESTS)],
        "generated_texts": [""] * REQUESTS,
    }


def _arrivals_ns(rate: int, draw: Any) -> list[int]:
    """Drawn tick by tick; the run begins with the first."""
    ms, found = 0, [0]
    while len(found) < REQUESTS:
        ms += TICK_MS
        if draw() < rate * TICK_MS / 1000:
            found.append(ms * 10**6)
    return found


def _drawn(ends: tuple[int, int], draw: Any) -> int:
    fewest, most = ends
    return fewest + int((most - fewest) * draw())


def _chunks_s(ran: Schedule, at: int, place: int, draw: Any) -> list[float]:
    """When the client had each chunk of a request; it sees none before an earlier one."""
    times = ran.output_times_ns(at)
    arrived = times if place not in IN_PAIRS else [times[0], *_every_second(times[1:])]
    seen: list[float] = []
    for time in arrived:
        late = FAR_LATE_S if draw() < FAR_LATE_SHARE else LATE_S
        seen.append(_rounded(max(time / NS + late * draw(), seen[-1] if seen else 0.0)))
    return seen


def _every_second(times: Sequence[int]) -> list[int]:
    """The last of each pair, and of one that is left over."""
    return [*times[1::2], *([times[-1]] if len(times) % 2 else [])]


def _rounded(time_s: float) -> float:
    return round(time_s, DIGITS)
