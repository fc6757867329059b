"""The recorded service at rates and for windows that nobody recorded: completions, goodput, and the knee of the curve.

A window of a few requests hides overload: the last arrives before the queue is long. So the number of requests in a
window is a quantity here, beside the rate. The times are the simulator's, which is calibrated on requests that ran
alone (`lib.service_calibration`). Source: section 8.6.2.
"""

from enum import StrEnum
from functools import lru_cache
from itertools import chain, islice

from lib.arrivals import at_once, even, poisson
from lib.checks import InputError, one_of, whole
from lib.goodput import Window
from lib.service_calibration import serve
from lib.service_record import CONDITIONS, Admission, recorded

# The rates at which a curve is looked at, in requests a second: those of the record, and closer where goodput falls.
RATES = (0.5, 0.7, 1, 1.2, 1.4, 1.7, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.5, 4, 5, 6, 8, 11, 16)
# The knee is told to a tenth of a request a second.
TENTHS = 10
MOST_REQUESTS = 4096
# The orders of the tasks in the three recorded windows, which are the same at each condition.
ORDERS = tuple(window.tasks for window in recorded(CONDITIONS[0]))
RECORDED_REQUESTS = len(ORDERS[0])


class Arrivals(StrEnum):
    """How far apart requests arrive."""

    EVEN = "even"
    POISSON = "by chance"


@lru_cache(maxsize=2048)
def simulated_window(
    admission: Admission,
    rate_per_s: float | None,
    requests: int = RECORDED_REQUESTS,
    number: int = 1,
    arrivals: Arrivals = Arrivals.EVEN,
) -> Window:
    """A window of the recorded service as the simulator has it, at this rate, or with all at once where it is None.

    The tasks come in the orders of the recorded windows, in turn, beginning with that of window `number`, 1 to 3; it is
    also the seed of arrivals by chance. With 16 even arrivals at a recorded rate it is the recorded window simulated.
    Raises InputError for a rate without which no time is known, or with all at once, and for numbers outside.
    """
    way, count = one_of("admission", admission, Admission), whole("requests", requests, 1, MOST_REQUESTS)
    first = whole("number", number, 1, len(ORDERS)) - 1
    if (rate_per_s is None) != (way == Admission.ALL_AT_ONCE):
        raise InputError("rate_per_s", rate_per_s, "None where all come at once, else a number of arrivals a second")
    by_chance = one_of("arrivals", arrivals, Arrivals) == Arrivals.POISSON
    if rate_per_s is None:
        times = at_once(count)
    else:
        times = poisson(rate_per_s, count, number) if by_chance else even(rate_per_s, count)
    blocks = -(-count // RECORDED_REQUESTS)
    tasks = chain.from_iterable(ORDERS[(first + block) % len(ORDERS)] for block in range(blocks))
    return serve(tuple(islice(tasks, count)), times, way)
