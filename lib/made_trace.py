"""How the small trace of this book was made: two kinds of request, a load that swings slowly, and bursts.

Everything is drawn by `random.random` and plain arithmetic, so that every machine makes the same trace. To write it
again: `save_trace(made_requests(), MADE)` of `lib.traces`.
"""

import random
from itertools import pairwise

from lib.scheduling import Request

SEED = 2000
REQUESTS = 2000
LONG_SHARE = 0.1

# Tokens at some percentiles; those between lie on straight lines.
CHAT_PROMPT = {0: 20, 10: 160, 25: 300, 50: 600, 75: 1200, 90: 2200, 99: 4000, 100: 6000}
LONG_PROMPT = {0: 4000, 50: 7000, 90: 12000, 100: 16000}
OUTPUT = {0: 5, 10: 40, 25: 80, 50: 150, 75: 280, 90: 480, 99: 1000, 100: 1500}

TICK_MS = 5
REQUESTS_PER_S = 1.6
# The load goes from one half less to one half more and back, in straight lines.
SWING_MS = 300_000
# In the first seconds of each of these periods the load is three times as large.
BURST_EVERY_MS = 170_000
BURST_MS = 10_000
BURST_FACTOR = 3


def made_requests() -> list[Request]:
    """The requests of the made trace: chat turns and, one in ten, a long context; arrivals in whole ticks of 5 ms."""
    draw = random.Random(SEED).random
    requests: list[Request] = []
    ms = 0
    while len(requests) < REQUESTS:
        if draw() < _rate_per_s(ms) * TICK_MS / 1000:
            prompt = LONG_PROMPT if draw() < LONG_SHARE else CHAT_PROMPT
            requests.append(Request(ms * 10**6, _tokens(prompt, draw()), _tokens(OUTPUT, draw())))
        ms += TICK_MS
    return requests


def _rate_per_s(ms: int) -> float:
    away = abs(2 * (ms % SWING_MS) - SWING_MS) / SWING_MS
    swing = 1.5 - away
    return REQUESTS_PER_S * swing * (BURST_FACTOR if ms % BURST_EVERY_MS < BURST_MS else 1)


def _tokens(percentiles: dict[int, int], drawn: float) -> int:
    percent = 100 * drawn
    lines = pairwise(percentiles.items())
    (low, fewest), (high, most) = next((start, end) for start, end in lines if percent < end[0])
    return fewest + int((most - fewest) * (percent - low) / (high - low))
