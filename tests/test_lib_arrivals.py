"""Arrivals: how far apart they are, that a seed and a rate decide them, and what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp, nan
from random import Random

import pytest

from lib.arrivals import at_once, at_rate, even, load_of, mean_rate, poisson
from lib.checks import InputError
from lib.memory import RequestShape
from lib.scheduling import Request, continuous, walk
from lib.step_time import NS
from lib.traces import MADE, read_trace

SHORT, LONG = RequestShape(2048, 256), RequestShape(8192, 16, 6144)


def test_even_arrivals_are_equally_far_apart_and_begin_at_0() -> None:
    assert even(4, 5) == (0, NS // 4, NS // 2, 3 * NS // 4, NS)
    assert even(0.5, 2) == (0, 2 * NS)
    # A third of a second is no whole number of ns: what is cut off does not add up.
    assert even(3, 3001)[-1] == 1000 * NS


def test_all_at_once_is_at_time_0() -> None:
    assert at_once(3) == (0, 0, 0)


@pytest.mark.parametrize("rate", [0.3, 1, 4, 2000])
def test_even_arrivals_are_never_off_by_a_whole_ns(rate: float) -> None:
    for place, at in enumerate(even(rate, 500)):
        assert 0 <= place * NS / Fraction(rate) - at < 1


def test_poisson_gaps_follow_the_exponential_law() -> None:
    rate, count = 4.0, 40_001
    times = poisson(rate, count, seed=8)
    gaps = sorted((later - earlier) / NS for earlier, later in pairwise(times))
    assert times[0] == 0 and list(times) == sorted(times)
    # Mean and spread are 1 / rate; both estimates err by about 0.5 %.
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(1 / rate, rel=0.02) and spread == pytest.approx(1 / rate, rel=0.03)
    # Kolmogorov and Smirnov: a distance of 0.01 or more has a chance below 1 % for so many gaps.
    for place, gap in enumerate(gaps):
        assert abs((1 - exp(-rate * gap)) - place / len(gaps)) < 0.01


def test_poisson_arrivals_come_from_the_seed_alone() -> None:
    assert poisson(4, 50, 1) == poisson(4, 50, 1) != poisson(4, 50, 2)
    assert poisson(4, 50, 1)[:20] == poisson(4, 20, 1)


def test_a_poisson_load_at_twice_the_rate_is_the_same_twice_as_dense() -> None:
    for slow, fast in zip(poisson(2, 200, 3), poisson(4, 200, 3), strict=True):
        assert abs(slow - 2 * fast) <= 2


def test_a_plain_version_draws_the_same_arrivals() -> None:
    random, at, expected = Random(11), 0.0, [0]
    for _ in range(30):
        at += -math.log(1 - random.random()) / 1.5
        expected.append(round(at * NS))
    assert all(abs(a - b) <= 1 for a, b in zip(poisson(1.5, 31, 11), expected, strict=True))


def test_shapes_are_taken_in_turn() -> None:
    assert load_of((0, 5, 7), [SHORT, LONG]) == (
        Request(0, 2048, 256), Request(5, 8192, 16, cached_prefix=6144), Request(7, 2048, 256),
    )  # fmt: skip
    assert [one.arrival_ns for one in load_of(even(2, 4), [SHORT])] == list(even(2, 4))


def test_a_trace_at_another_rate_keeps_its_requests_and_the_shape_of_its_gaps() -> None:
    trace = read_trace(MADE).requests
    twice = at_rate(trace, 2 * mean_rate(trace))
    assert mean_rate(twice) == pytest.approx(2 * mean_rate(trace), rel=1e-6)
    first = trace[0].arrival_ns
    for before, after in zip(trace, twice, strict=True):
        assert after == replace(before, arrival_ns=after.arrival_ns)
        assert abs(2 * after.arrival_ns - (before.arrival_ns - first)) <= 2


def test_a_trace_at_its_own_rate_only_begins_at_0() -> None:
    load = load_of((7, 10, 17), [SHORT])
    assert mean_rate(load) == 2 / 10e-9
    assert [one.arrival_ns for one in at_rate(load, mean_rate(load))] == [0, 3, 10]


def test_users_stay_as_patient_at_another_rate() -> None:
    load = (Request(0, 8, 2, cancel_ns=7 * NS), Request(NS, 8, 2), Request(2 * NS, 8, 2, cancel_ns=3 * NS))
    twice = at_rate(load, 2)
    assert [one.arrival_ns for one in twice] == [0, NS // 2, NS]
    assert [one.cancel_ns for one in twice] == [7 * NS, None, 2 * NS]


def test_a_made_load_can_be_run() -> None:
    assert walk(load_of(even(4, 3), [RequestShape(8, 2)]), continuous(2)).completed.all()


@pytest.mark.parametrize("rate", [0, -1, nan, math.inf, -math.inf, True, "4", None, 1e-300, 1e-12, 1e10])
def test_a_rate_that_makes_no_sense_is_refused(rate: float) -> None:
    load = load_of((0, 5), [SHORT])
    makers: tuple[Callable[[], object], ...] = (
        lambda: even(rate, 3), lambda: poisson(rate, 3, 0), lambda: at_rate(load, rate),
    )  # fmt: skip
    for make in makers:
        with pytest.raises(InputError, match="rate_per_s"):
            make()


@pytest.mark.parametrize("count", [0, -1, 1.5, nan, True, "3", None, 2**60])
def test_a_count_that_makes_no_sense_is_refused(count: int) -> None:
    makers: tuple[Callable[[], object], ...] = (
        lambda: even(4, count), lambda: poisson(4, count, 0), lambda: at_once(count),
    )  # fmt: skip
    for make in makers:
        with pytest.raises(InputError, match="count"):
            make()


@pytest.mark.parametrize("seed", [-1, 0.5, nan, True, "3", None, 2**40])
def test_a_seed_that_makes_no_sense_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match="seed"):
        poisson(4, 3, seed)


def test_loads_that_make_no_sense_are_refused() -> None:
    for shapes in ([], None, SHORT, [2048], [SHORT, None]):
        with pytest.raises(InputError, match="shapes"):
            load_of((0, 5), shapes)  # type: ignore[arg-type]
    for arrivals in ((), None, 5, (5, 0), (-1, 0), (0.5,), (True,)):
        with pytest.raises(InputError, match="arrival"):
            load_of(arrivals, [SHORT])  # type: ignore[arg-type]


def test_requests_at_one_time_have_no_rate() -> None:
    for load in (load_of(at_once(3), [SHORT]), load_of((5,), [SHORT])):
        with pytest.raises(InputError, match="requests"):
            mean_rate(load)
        with pytest.raises(InputError, match="requests"):
            at_rate(load, 4)
    with pytest.raises(InputError, match="requests"):
        mean_rate([])
