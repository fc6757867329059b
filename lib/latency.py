"""What a user waits for: the first token, the intervals between outputs, the whole request; what a deadline leaves."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from lib import step_time
from lib.checks import InputError, finite, one_of, seconds, whole

# Every interval of a request is kept, so that each can differ; this bounds the memory that takes.
MOST_TOKENS = 100_000


def time_to_first_token(queue_s: float, prefill_s: float) -> float:
    """TTFT in seconds: the queue, then the prefill, whose last token yields the first output. Source: section 8.1.3."""
    return seconds("queue_s", queue_s) + seconds("prefill_s", prefill_s)


def request_time(ttft_s: float, intervals_s: Sequence[float]) -> float:
    """Time in seconds from arrival to the last output; G outputs have G - 1 intervals. Source: section 8.1.3."""
    try:
        lengths = [seconds("interval", interval) for interval in intervals_s]
    except TypeError:
        raise InputError("intervals_s", intervals_s, "a sequence of times in seconds") from None
    return math.fsum([seconds("ttft_s", ttft_s), *lengths])


def intervals(output_times_s: Sequence[float]) -> tuple[float, ...]:
    """ITL_j = t_(j+1) - t_j in seconds: G output times have G - 1 intervals. Source: section 8.1.3."""
    times = [seconds("output_times_s", time) for time in output_times_s]
    if not times or times != sorted(times):
        raise InputError("output_times_s", output_times_s, "at least one time, none before its predecessor")
    return tuple(later - earlier for earlier, later in itertools.pairwise(times))


def throughput(tokens_per_step: int, step_s: float) -> float:
    """Tokens per second that steps of this length put out. Source: section 8.1.3."""
    return whole("tokens_per_step", tokens_per_step) / seconds("step_s", step_s, above_zero=True)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that at least `percent` of them do not exceed (nearest rank, nothing interpolated).

    Raises InputError for no values and for a percentage outside 0 to 100. The 95th percentile of 16 is the largest.
    """
    if not len(values):
        raise InputError("values", values, "at least one value")
    share = finite("percent", percent, 0, "a percentage from 0 to 100")
    if share > 100:
        raise InputError("percent", percent, "a percentage from 0 to 100")
    rank = math.ceil(Fraction(share) * len(values) / 100)
    return sorted(values)[max(rank, 1) - 1]


def slack(deadline_s: float, request_s: float) -> float:
    """Seconds that the deadline leaves; negative when the request is late. Source: section 8.0."""
    return seconds("deadline_s", deadline_s, above_zero=True) - seconds("request_s", request_s)


class InsertedAs(StrEnum):
    """Two ways for a foreign prefill to reach a running request: they cost differently, so they are kept apart."""

    OWN_PASS = "a pass of its own"
    INSIDE_STEP = "inside a decode step"


def delay_of_inserted_prefill(tokens: int, alone_s: float, inserted_as: InsertedAs) -> float:
    """Seconds that one foreign prefill adds to one interval of a running request.

    As a pass of its own it adds all the time it takes alone (section 8.1.1). Inside a step it shares the fixed part
    with the decode that runs anyway and adds only its tokens and pairs, by the fit (section 8.2.2).
    """
    tokens, alone_s = whole("tokens", tokens, at_least=1, at_most=MOST_TOKENS), seconds("alone_s", alone_s)
    if one_of("inserted_as", inserted_as, InsertedAs) is InsertedAs.OWN_PASS:
        return alone_s
    with_it = step_time.FIT(step_time.step_plan((tokens, 0), (1, 0)))
    without = step_time.FIT(step_time.step_plan((1, 0)))
    return (with_it - without) / 1e9


@dataclass(frozen=True)
class TimedRequest:
    """One request on the clock: queue and prefill, the interval before each later output, the deadline (all in s)."""

    queue_s: float
    prefill_s: float
    intervals_s: tuple[float, ...]
    delayed: tuple[int, ...]
    deadline_s: float

    @property
    def ttft_s(self) -> float:
        return time_to_first_token(self.queue_s, self.prefill_s)

    @cached_property
    def total_s(self) -> float:
        return request_time(self.ttft_s, self.intervals_s)

    @cached_property
    def output_times_s(self) -> tuple[float, ...]:
        """Seconds from arrival at which each output is returned."""
        return tuple(itertools.accumulate(self.intervals_s, initial=self.ttft_s))

    @property
    def slack_s(self) -> float:
        return slack(self.deadline_s, self.total_s)

    @property
    def longest_interval_s(self) -> float:
        """The longest wait between two outputs; 0 when there is only one output. TTFT is not an interval."""
        return max(self.intervals_s, default=0.0)


def evenly_timed_request(
    queue: float, prefill: float, interval: float, outputs: int, deadline: float, inserted: int = 0, delay: float = 0.0
) -> TimedRequest:
    """A request of `outputs` tokens with equal intervals, but for those that a foreign prefill lengthens by `delay`.

    All times in seconds. The inserted prefills lie evenly apart, at most one in an interval. Raises InputError for
    values that make no sense. Source: section 8.1.1, figure 8-2.
    """
    intervals = whole("outputs", outputs, at_least=1, at_most=MOST_TOKENS) - 1
    if whole("inserted", inserted) > intervals:
        raise InputError("inserted", inserted, f"at most {intervals}, one in each interval between {outputs} outputs")
    queue, prefill = seconds("queue", queue), seconds("prefill", prefill)
    interval, delay = seconds("interval", interval), seconds("delay", delay)
    seconds("the whole request", queue + prefill + intervals * interval + inserted * delay)
    delayed = tuple((turn + 1) * intervals // (inserted + 1) for turn in range(inserted))
    lengths = [interval] * intervals
    for place in delayed:
        lengths[place] += delay
    return TimedRequest(queue, prefill, tuple(lengths), delayed, seconds("deadline", deadline, above_zero=True))


def prefills_that_fit(request: TimedRequest, delay_s: float) -> int:
    """How many foreign prefills of this delay the request can still bear and be in time."""
    return max(0, Fraction(request.slack_s) // Fraction(seconds("delay_s", delay_s, above_zero=True)))
