"""A trace under a grid of limits, against the plain loop and the plain definitions."""

import math
import random
from typing import Any

import pytest

from lib.checks import InputError
from lib.four_requests import four_requests
from lib.scheduling import Request, chunked, walk
from lib.slo import Served, Slo, trace_grid
from lib.step_time import NS

SLO = Slo(ttft_s=0.5, interval_s=0.1, percent=90)
BUDGETS, CHUNKS = (64, 512, 4096), (48, 256, 2048)


def load() -> list[Request]:
    draw = random.Random(8)
    arrivals = sorted(draw.randrange(3 * NS) for _ in range(40))
    return [Request(arrival, draw.randint(1, 1500), draw.randint(1, 30)) for arrival in arrivals]


def plainly(requests: list[Request], budget: int, chunk: int) -> Served:
    schedule = walk(requests, chunked(4, chunk, budget))
    places = range(len(requests))
    first = [int(time) for time in schedule.ttft_ns]
    longest = [max(schedule.intervals_ns(place), default=0) for place in places]
    good = sum(first[at] <= SLO.ttft_s * NS and longest[at] <= SLO.interval_s * NS for at in places)
    with_intervals = sorted(longest[at] for at in places if requests[at].output > 1)

    def ranked(values: list[int]) -> float:
        return sorted(values)[math.ceil(0.9 * len(values)) - 1] / NS

    seconds = (schedule.total_ns - requests[0].arrival_ns) / NS
    return Served(budget, chunk, ranked(first), ranked(with_intervals), good, good / seconds)


def test_each_pair_is_served_as_the_plain_loop_serves_it() -> None:
    requests = load()
    grid = trace_grid(requests, BUDGETS, CHUNKS, 4, SLO)
    assert [(one.token_budget, one.chunk) for one in grid] == [(b, c) for b in BUDGETS for c in CHUNKS]
    for one in grid:
        there = plainly(requests, one.token_budget, one.chunk)
        assert (one.ttft_s, one.interval_s, one.good_requests) == (there.ttft_s, there.interval_s, there.good_requests)
        assert math.isclose(one.goodput_per_s, there.goodput_per_s, rel_tol=1e-12)
    assert min(one.good_requests for one in grid) < max(one.good_requests for one in grid) <= len(requests)


def test_the_four_requests_at_the_limits_of_the_chapter() -> None:
    (one,) = trace_grid(four_requests(), (4096,), (2048,), 2, Slo(0.7, 0.2, percent=100))
    assert round(one.interval_s * 1e3, 1) == 132.6
    assert round(one.ttft_s * 1e3) == 735  # that of r3
    assert one.good_requests == 3


def test_a_promise_is_kept_when_both_percentiles_are_within() -> None:
    one = Served(4096, 2048, ttft_s=0.5, interval_s=0.1, good_requests=9, goodput_per_s=1.0)
    assert one.keeps(Slo(0.5, 0.1))
    assert not one.keeps(Slo(0.49, 0.1))
    assert not one.keeps(Slo(0.5, 0.09))


def test_single_outputs_have_no_interval_and_count_in_no_percentile_of_them() -> None:
    requests = [*four_requests(), *(Request(NS, 8, 1) for _ in range(90))]
    (one,) = trace_grid(requests, (4096,), (2048,), 2, Slo(9, 9, percent=50))
    assert one.interval_s > 0


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"token_budgets": ()}, "token_budgets"),
        ({"chunks": []}, "chunks"),
        ({"requests": []}, "requests"),
        ({"requests": [Request(0, 8, 1)]}, "requests"),
        ({"chunks": (8, 0)}, "chunk"),
        ({"chunks": (None,)}, "chunk"),
        ({"token_budgets": (64, 1)}, "token_budget"),
        ({"requests": [Request(5, 8, 2), Request(0, 8, 2)]}, "arrival_ns"),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], parameter: str) -> None:
    right: dict[str, Any] = {"requests": load(), "token_budgets": (64,), "chunks": (8,), "max_running": 4, "slo": SLO}
    with pytest.raises(InputError) as refusal:
        trace_grid(**right | wrong)
    assert refusal.value.parameter == parameter


@pytest.mark.parametrize("percent", [0, -1, 101, math.nan, "95", None])
def test_a_percentage_is_one(percent: Any) -> None:
    with pytest.raises(InputError, match=r"^percent is "):
        Slo(1, 0.1, percent)


@pytest.mark.parametrize("name", ["ttft_s", "interval_s"])
@pytest.mark.parametrize("value", [0, -1, math.inf, "1", None])
def test_a_limit_is_a_time_above_zero(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} is "):
        Slo(**{"ttft_s": 1, "interval_s": 0.1} | {name: value})


def test_a_wait_that_equals_its_limit_keeps_it_everywhere() -> None:
    first_ns = 31_307_983
    slo = Slo(first_ns / NS, 10, 100)
    (served,) = trace_grid([Request(0, 166, 2)], [8000], [8000], 1, slo)
    assert served.ttft_s == slo.ttft_s
    assert served.keeps(slo) and served.good_requests == 1
