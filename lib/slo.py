"""What a service promises its users, and under which limits of a step a trace of requests is served as promised."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lib import scheduling
from lib.checks import InputError, finite, seconds, whole
from lib.fast_forward import simulate
from lib.latency import percentile
from lib.schedule import Schedule
from lib.scheduling import Request
from lib.step_time import FIT, NS, StepTime


@dataclass(frozen=True)
class Slo:
    """A promise (SLO): so many percent of the requests have their first token, and each further one, within these s."""

    ttft_s: float
    interval_s: float
    percent: float = 95.0

    def __post_init__(self) -> None:
        seconds("ttft_s", self.ttft_s, above_zero=True)
        seconds("interval_s", self.interval_s, above_zero=True)
        if not 0 < finite("percent", self.percent) <= 100:
            raise InputError("percent", self.percent, "a percentage above 0 and at most 100")


@dataclass(frozen=True)
class Served:
    """How a trace was served under one pair of limits: percentiles of waits in s, and goodput.

    `interval_s` is over each request's longest interval, of those that have any. `good_requests` kept both limits of
    the promise; `goodput_per_s` is their number over the time from the first arrival to the last output.
    """

    token_budget: int
    chunk: int
    ttft_s: float
    interval_s: float
    good_requests: int
    goodput_per_s: float

    def keeps(self, slo: Slo) -> bool:
        """Whether both percentiles are within the promise."""
        return self.ttft_s <= slo.ttft_s and self.interval_s <= slo.interval_s


def trace_grid(
    requests: Sequence[Request],
    token_budgets: Sequence[int],
    chunks: Sequence[int],
    max_running: int,
    slo: Slo,
    step_time: StepTime = FIT,
) -> tuple[Served, ...]:
    """The trace served under each pair of token budget and chunk, budget by budget, by chunked prefill.

    Percentiles by nearest rank. Raises InputError for no limits to try, for a trace without any interval, and for users
    who go away. Source: sections 8.2.4 and 8.6.2.
    """
    for name, limits in (("token_budgets", token_budgets), ("chunks", chunks)):
        if not isinstance(limits, Sequence) or not len(limits):
            raise InputError(name, limits, "a sequence of at least one limit")
    for request in requests:
        if request.cancel_ns is not None:
            raise InputError("cancel_ns", request.cancel_ns, "None: a promise is kept to users who stay")
    if not any(request.output > 1 for request in requests):
        raise InputError("requests", requests, "at least one request that gives two outputs")
    # No part of a prompt is longer than the budget, so a chunk beyond it needs no run of its own.
    policies = {
        (budget, chunk): scheduling.chunked(max_running, min(chunk, budget), budget)
        for budget in (whole("token_budget", budget, at_least=1) for budget in token_budgets)
        for chunk in (whole("chunk", chunk, at_least=1) for chunk in chunks)
    }
    waits = {policy: _waits(simulate(requests, policy, step_time), slo) for policy in dict.fromkeys(policies.values())}
    return tuple(Served(budget, chunk, *waits[policy]) for (budget, chunk), policy in policies.items())


def _waits(schedule: Schedule, slo: Slo) -> tuple[float, float, int, float]:
    """Both percentiles, the requests that kept both limits, and how many of them a second."""
    first, longest = schedule.ttft_ns, schedule.longest_interval_ns
    has_intervals = [request.output > 1 for request in schedule.requests]
    good = int(np.sum((first / NS <= slo.ttft_s) & (longest / NS <= slo.interval_s)))
    return (
        percentile(first.tolist(), slo.percent) / NS,
        percentile(longest[has_intervals].tolist(), slo.percent) / NS,
        good,
        good / (schedule.total_ns - schedule.requests[0].arrival_ns) * NS,
    )
