"""The recorded service at rates and for windows that nobody recorded: completions, goodput, and the knee of the curve.

A window of a few requests hides overload: the last arrives before the queue is long. So the number of requests in a
window is a quantity here, beside the rate. The times are the simulator's, which is calibrated on requests that ran
alone (`lib.service_calibration`). Source: section 8.6.2.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from statistics import median

from lib.arrivals import Arrivals, arrival_rate, at_once, spaced
from lib.checks import InputError, finite, keep_whole, one_of, seconds, whole
from lib.goodput import Window
from lib.service_calibration import serve
from lib.service_record import CONDITIONS, Admission, recorded

# The rates at which a curve is looked at, in requests a second: those of the record, and closer where goodput falls.
RATES = (0.5, 0.7, 1, 1.2, 1.4, 1.7, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.5, 4, 5, 6, 8, 11, 16)
# Up to here the rate at which goodput is highest is told to a tenth of a request a second.
_TENTHS_UP_TO = 4
MOST_REQUESTS = 4096
# The orders of the tasks in the three recorded windows, which are the same at each condition.
ORDERS = tuple(window.tasks for window in recorded(CONDITIONS[0]))
RECORDED_REQUESTS = len(ORDERS[0])


def simulated_window(
    admission: Admission,
    rate_per_s: float | None,
    requests: int = RECORDED_REQUESTS,
    number: int = 1,
    arrivals: Arrivals = Arrivals.EVEN,
    refuse_beyond_s: float | None = None,
) -> Window:
    """A window of the recorded service as the simulator has it, at this rate, or with all at once where it is None.

    The tasks come in the orders of the recorded windows, in turn, beginning with that of window `number`, 1 to 3; it is
    also the seed of arrivals by chance. With 16 even arrivals at a recorded rate it is the recorded window simulated.
    With `refuse_beyond_s` a gateway refuses whoever it expects to take longer. Raises InputError for a rate with all at
    once, none otherwise, what is outside, and where the gateway lets nobody in.
    """
    way, count = one_of("admission", admission, Admission), whole("requests", requests, 1, MOST_REQUESTS)
    whole("number", number, 1, len(ORDERS))
    if (rate_per_s is None) != (way == Admission.ALL_AT_ONCE):
        raise InputError("rate_per_s", rate_per_s, "None where all come at once, else a number of arrivals a second")
    rate = None if rate_per_s is None else finite("rate_per_s", rate_per_s)
    limit = None if refuse_beyond_s is None else seconds("refuse_beyond_s", refuse_beyond_s, above_zero=True)
    return _window(way, rate, count, number, one_of("arrivals", arrivals, Arrivals), limit)


@lru_cache(maxsize=2048)
def _window(
    admission: Admission, rate: float | None, requests: int, number: int, arrivals: Arrivals, limit_s: float | None
) -> Window:
    times = at_once(requests) if rate is None else spaced(arrivals, rate, requests, number)
    return serve(tasks_of(requests, number), times, admission, limit_s)


def tasks_of(requests: int, number: int = 1) -> tuple[str, ...]:
    """The tasks of a window in order: the recorded orders in turn, beginning with that of window `number`.

    Raises InputError for numbers outside.
    """
    count, first = whole("requests", requests, 1, MOST_REQUESTS), whole("number", number, 1, len(ORDERS)) - 1
    blocks = -(-count // RECORDED_REQUESTS)
    tasks = chain.from_iterable(ORDERS[(first + block) % len(ORDERS)] for block in range(blocks))
    return tuple(islice(tasks, count))


@dataclass(frozen=True)
class ServiceLoad:
    """The recorded service under a load: how requests are admitted, how many there are in a window, how they arrive.

    With `refuse_beyond_s` a gateway refuses whoever it expects to take longer than so many seconds. Quantities are
    medians over three windows, as in the record; a window in which each of the three orders of tasks comes is simulated
    once. Raises InputError for what makes no sense, such as all at once: that has no rate.
    """

    admission: Admission = Admission.CONTINUOUS
    requests: int = RECORDED_REQUESTS
    arrivals: Arrivals = Arrivals.EVEN
    refuse_beyond_s: float | None = None

    def __post_init__(self) -> None:
        one_of("admission", self.admission, (Admission.CONTINUOUS, Admission.ONE_AT_A_TIME))
        one_of("arrivals", self.arrivals, Arrivals)
        keep_whole(self, MOST_REQUESTS, requests=1)
        if self.refuse_beyond_s is not None:
            seconds("refuse_beyond_s", self.refuse_beyond_s, above_zero=True)

    def windows(self, rate_per_s: float) -> tuple[Window, ...]:
        """The windows at a rate."""
        numbers = range(1, 1 + (len(ORDERS) if self.requests < len(ORDERS) * RECORDED_REQUESTS else 1))
        return tuple(
            simulated_window(self.admission, rate_per_s, self.requests, number, self.arrivals, self.refuse_beyond_s)
            for number in numbers
        )

    def completions(self, rate_per_s: float) -> float:
        """Completed requests per second at a rate."""
        return _completions(self, arrival_rate(rate_per_s))

    def goodput(self, rate_per_s: float, deadline_s: float) -> float:
        """Right answers in time per second at a rate."""
        return _goodput(self, arrival_rate(rate_per_s), seconds("deadline_s", deadline_s, above_zero=True))

    @property
    def saturation(self) -> float:
        """The most requests a second that are completed at any rate of `RATES`: though more come, no more leave."""
        return max(map(self.completions, RATES))

    def knee(self, deadline_s: float) -> float:
        """The rate at which goodput is highest: beyond it, it falls, or no rate of `RATES` lies beyond.

        Of the rates in `RATES` the best, and of the tenths between its neighbours, up to 4/s, the best again; of equal
        ones the lowest.
        """
        best = max(RATES, key=lambda rate: self.goodput(rate, deadline_s))
        place = RATES.index(best)
        low, high = RATES[max(place - 1, 0)], min(RATES[min(place + 1, len(RATES) - 1)], _TENTHS_UP_TO)
        tenths = (tenth / 10 for tenth in range(round(10 * low), round(10 * high) + 1))
        return max(sorted({best, *tenths}), key=lambda rate: self.goodput(rate, deadline_s))


# A curve and what is told of it ask for the same many times.
@lru_cache(maxsize=4096)
def _completions(load: ServiceLoad, rate_per_s: float) -> float:
    return median(window.completion_throughput for window in load.windows(rate_per_s))


@lru_cache(maxsize=4096)
def _goodput(load: ServiceLoad, rate_per_s: float, deadline_s: float) -> float:
    return median(window.goodput(deadline_s) for window in load.windows(rate_per_s))
