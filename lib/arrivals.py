"""When requests arrive: evenly, by chance, all at once or as in a trace, at a rate that can be set.

Arrivals are tuples of whole nanoseconds. The first is at 0 in each of them, so that loads of different kinds begin
alike; seen from one of its arrivals the rest of a Poisson process is one, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate, cycle
from random import Random

from lib.checks import InputError, finite, one_of, whole
from lib.memory import RequestShape
from lib.residency import MOST_REQUESTS
from lib.schedule import MOST_NS
from lib.scheduling import Request, continuous, in_order_of_arrival
from lib.speculation_setup import MOST_SEED
from lib.step_time import NS


class Arrivals(StrEnum):
    """How far apart requests arrive."""

    EVEN = "even"
    POISSON = "by chance"


def arrival_rate(rate_per_s: float) -> float:
    """A rate as a float, if it is above 0 and at most an arrival a ns; raises InputError for everything else."""
    allowed = f"arrivals a second, above 0 and at most {NS:,}"
    rate = finite("rate_per_s", rate_per_s, 0, allowed)
    if not 0 < rate <= NS:
        raise InputError("rate_per_s", rate_per_s, allowed)
    return rate


def even(rate_per_s: float, count: int) -> tuple[int, ...]:
    """So many arrivals, 1 / rate apart. Raises InputError for a rate of 0 or less and for no arrivals."""
    gap_ns = NS / Fraction(arrival_rate(rate_per_s))
    return _within_time(rate_per_s, [int(place * gap_ns) for place in range(_count(count))])


def poisson(rate_per_s: float, count: int, seed: int) -> tuple[int, ...]:
    """So many arrivals of a Poisson process: the gaps are drawn from an exponential law, 1 / rate on average.

    Equal seeds give equal draws, and at twice the rate the same ones lie half as far apart. Raises InputError as `even`
    does and for a seed that is none.
    """
    rate, draw = arrival_rate(rate_per_s), Random(whole("seed", seed, at_most=MOST_SEED)).expovariate
    gaps = (draw(1) / rate for _ in range(_count(count) - 1))
    return _within_time(rate_per_s, [round(min(at * NS, 2.0 * MOST_NS)) for at in accumulate(gaps, initial=0.0)])


def spaced(arrivals: Arrivals, rate_per_s: float, count: int, seed: int) -> tuple[int, ...]:
    """So many arrivals at a rate, even or by chance; even ones need no seed. Raises InputError as these two do."""
    if one_of("arrivals", arrivals, Arrivals) == Arrivals.EVEN:
        return even(rate_per_s, count)
    return poisson(rate_per_s, count, seed)


def at_once(count: int) -> tuple[int, ...]:
    """So many arrivals at time 0."""
    return (0,) * _count(count)


def load_of(arrivals_ns: Iterable[int], shapes: Sequence[RequestShape]) -> tuple[Request, ...]:
    """Requests that arrive at these times; shapes are taken in turn, and from the beginning again where they end.

    A shared prefix stands in KV already. Raises InputError for no arrivals, arrivals out of order, and no shapes.
    """
    kinds = tuple(shapes) if isinstance(shapes, Sequence) else ()
    if not kinds or not all(isinstance(kind, RequestShape) for kind in kinds):
        raise InputError("shapes", shapes, "at least one RequestShape, in a sequence")
    try:
        times = tuple(arrivals_ns)
    except TypeError:
        raise InputError("arrivals_ns", arrivals_ns, "at least one time in ns, in a sequence") from None
    if not times:
        raise InputError("arrivals_ns", arrivals_ns, "at least one time in ns, in a sequence")
    made = (
        Request(at, kind.input_tokens, kind.output_tokens, cached_prefix=kind.shared_prefix_tokens)
        for at, kind in zip(times, cycle(kinds), strict=False)
    )
    return in_order(made)


def mean_rate(requests: Sequence[Request]) -> float:
    """Arrivals a second between the first and the last: one fewer than requests over the time between these two.

    Raises InputError where all arrive at one time.
    """
    load = in_order(requests)
    return (len(load) - 1) / _span_ns(load) * NS


def at_rate(requests: Sequence[Request], rate_per_s: float) -> tuple[Request, ...]:
    """The same requests at another mean rate, from time 0 on: all gaps are stretched alike, users as patient as before.

    Raises InputError where all arrive at one time, and for a rate of 0 or less.
    """
    load = in_order(requests)
    longer = NS * (len(load) - 1) / (Fraction(arrival_rate(rate_per_s)) * _span_ns(load))
    times = _within_time(rate_per_s, [int((one.arrival_ns - load[0].arrival_ns) * longer) for one in load])
    return tuple(
        replace(one, arrival_ns=at, cancel_ns=None if one.cancel_ns is None else at + one.cancel_ns - one.arrival_ns)
        for one, at in zip(load, times, strict=True)
    )


def in_order(requests: Iterable[Request]) -> tuple[Request, ...]:
    """The requests, if there are any and each arrives no earlier than the one before it; raises InputError if not."""
    return in_order_of_arrival(requests, continuous(1))  # the order is the same under each policy


def _span_ns(load: Sequence[Request]) -> int:
    span = load[-1].arrival_ns - load[0].arrival_ns
    if not span:
        raise InputError("requests", load, "requests that do not all arrive at one time: those have no rate")
    return span


def _count(count: int) -> int:
    return whole("count", count, at_least=1, at_most=MOST_REQUESTS)


def _within_time(rate_per_s: float, times: Sequence[int]) -> tuple[int, ...]:
    if times[-1] > MOST_NS:
        raise InputError("rate_per_s", rate_per_s, f"a rate at which the last arrives within {MOST_NS:,} ns")
    return tuple(times)
