"""The recorded service under more load than it can bear, and five ways to deal with it.

The tasks and their order are those of the record, arrivals and rates are ours, the times are the simulator's, which is
calibrated on requests that ran alone. Only time is judged here, not whether an answer is right. Source: section 8.6.1.
"""

from enum import StrEnum
from functools import lru_cache
from itertools import cycle, islice

from lib.admission import Engine, ServiceForecast
from lib.arrivals import Arrivals, arrival_rate, spaced
from lib.checks import one_of, seconds, whole
from lib.load_curve import ORDERS, RECORDED_REQUESTS, simulated_window
from lib.overload import Served, cancel_at_deadline, let_all_in, refuse_late
from lib.scheduling import Policy
from lib.service_calibration import MOST_RUNNING, TOKEN_BUDGET, requests_of, service_step
from lib.service_record import DEADLINE_S, Admission
from lib.speculation import ACCEPTS_B, DRAFT_TOKENS, at_every_position, expected_outputs
from lib.speculation_setup import PLAIN, DrawnAcceptance, SpeculationSetup

# The second of the recorded rates, for twice as many requests as in a recorded window: the queue has time to grow.
RATE_PER_S, REQUESTS = 4, 2 * RECORDED_REQUESTS
# Those of section 8.5.2.
DRAFTS = at_every_position(ACCEPTS_B, DRAFT_TOKENS)
MOST_REQUESTS = 256


class Way(StrEnum):
    """What is done with requests that come too late to be served in time."""

    ALL_IN = "all let in"
    GIVE_UP = "users give up"
    REFUSE = "refuse late"
    PASS_ON = "pass on"
    FASTER = "faster engine"


class Guess(StrEnum):
    """How the gateway reckons the time of a request in the engine: as if rows are full, or as if it is alone."""

    FULL = "rows full"
    ALONE = "alone"


def overloaded(
    way: Way,
    rate_per_s: float = RATE_PER_S,
    deadline_s: float = DEADLINE_S,
    guess: Guess = Guess.FULL,
    arrivals: Arrivals = Arrivals.EVEN,
    requests: int = REQUESTS,
) -> Served:
    """What becomes of so many requests, the first at time 0, if they are dealt with in this way.

    All are let in; or users go away at the deadline; or a gateway refuses whoever it expects to be late. These may be
    offered to a second engine of the same kind, or to one that verifies drafts. Arrivals by chance are always the same
    draw. Raises InputError for what is none of this, for a rate or deadline of 0 or less, and for no requests.
    """
    return _overloaded(
        one_of("way", way, Way),
        arrival_rate(rate_per_s),
        seconds("deadline_s", deadline_s, above_zero=True),
        one_of("guess", guess, Guess),
        one_of("arrivals", arrivals, Arrivals),
        whole("requests", requests, at_least=1, at_most=MOST_REQUESTS),
    )


@lru_cache(maxsize=512)
def _overloaded(
    way: Way, rate_per_s: float, deadline_s: float, guess: Guess, arrivals: Arrivals, requests: int
) -> Served:
    times = spaced(arrivals, rate_per_s, requests, seed=1)
    load = requests_of(tuple(islice(cycle(ORDERS[0]), requests)), times)
    engine = service_engine(guess)
    match way:
        case Way.ALL_IN:
            return let_all_in(load, engine, deadline_s)
        case Way.GIVE_UP:
            return let_all_in(cancel_at_deadline(load, deadline_s), engine, deadline_s)
        case Way.REFUSE:
            return refuse_late(load, [engine], deadline_s)
        case Way.PASS_ON:
            return refuse_late(load, [engine, engine], deadline_s)
        case Way.FASTER:
            return refuse_late(load, [engine, service_engine(guess, DRAFTS)], deadline_s)


def service_engine(guess: Guess = Guess.FULL, acceptance: tuple[float, ...] = ()) -> Engine:
    """The engine of the recorded service, at most four running, with a gateway that guesses times in this way.

    It verifies drafts whose tokens are accepted with these probabilities; to make them takes no time. Its pool is never
    full, so it is left out. Raises InputError for what is no guess and no probability.
    """
    rows = MOST_RUNNING if one_of("guess", guess, Guess) == Guess.FULL else 1
    drafted = DrawnAcceptance(acceptance)
    outputs_per_step = expected_outputs(acceptance) if acceptance else 1
    return Engine(
        Policy(MOST_RUNNING, token_budget=TOKEN_BUDGET),
        service_step(),
        ServiceForecast(service_step(), rows, outputs_per_step, drafted.draft_tokens),
        speculation=SpeculationSetup(drafted) if acceptance else PLAIN,
    )


def bearable_rate() -> float:
    """Requests a second that the engine completes as long as all its rows are taken (clock: fit)."""
    return simulated_window(Admission.ALL_AT_ONCE, None, MOST_REQUESTS).completion_throughput
