"""The batch at which drafts stop paying: requests in decode with and without them, from one to many.

A step that waits for the host or reads has compute to spare, so that to verify a draft it takes hardly longer. The more
requests share the step, the more of that is used without drafts; KV, read for each request, moves the limit away again.
Source: section 8.5.4.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from lib.checks import InputError, keep_whole, whole
from lib.speculation import expected_outputs, per_position
from lib.speculation_setup import Drafter
from lib.step_time import MOST_TOKENS, NS, Device, StepPlan, StepTime, decode_plan, equal_requests, step_plan, verifying

# A context so short that reading its KV takes less than computing: there a batch uses up what the device can compute.
SHORT_CONTEXT = 128

MOST_BATCH = 2**13


@dataclass(frozen=True)
class SpeculativeDecode:
    """Equal requests in decode, with these tokens in context and these probabilities for the tokens of their drafts.

    Whoever ends is replaced at once, so a batch need not wait for its slowest. Without a drafter drafts take no time.
    Raises InputError for what makes no sense.
    """

    context: int
    acceptance: tuple[float, ...]
    step_time: StepTime
    drafter: Drafter | None = None

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, context=0)
        object.__setattr__(self, "acceptance", per_position(self.acceptance))
        if not isinstance(self.step_time, StepTime):
            raise InputError("step_time", self.step_time, "a model of the time of a step, such as FIT")
        if self.drafter is not None and not isinstance(self.drafter, Drafter):
            raise InputError("drafter", self.drafter, "a Drafter, or None where drafts take no time")

    def plain_ns(self, batch: int) -> int:
        """A step of so many requests without drafts: the time in which each gets one output."""
        return self.step_time(decode_plan(whole("batch", batch, 1, MOST_BATCH), self.context))

    def round_ns(self, batch: int) -> int:
        """A step of so many requests that verifies a draft of each, and the making of these drafts before it."""
        requests, (verified, passes) = whole("batch", batch, 1, MOST_BATCH), self._of_one
        drafting_ns = (
            sum(self.drafter.step_time(equal_requests(requests, each)) for each in passes) if self.drafter else 0
        )
        return drafting_ns + self.step_time(equal_requests(requests, verified))

    def time_ratio(self, batch: int) -> float:
        """Time per output with drafts over that without, at so many requests: below 1 drafts pay."""
        return self.round_ns(batch) / self._outputs / self.plain_ns(batch)

    def stops_paying_at(self, most_batch: int) -> int | None:
        """The smallest batch at which drafts do not pay; None if they pay at each one up to `most_batch`.

        Above the pool's capacity no batch comes about, so that is the most to ask for.
        """
        most = whole("most_batch", most_batch, 1, MOST_BATCH)
        return next((batch for batch in range(1, most + 1) if self.time_ratio(batch) >= 1), None)

    @cached_property
    def _outputs(self) -> float:
        return expected_outputs(self.acceptance)

    @cached_property
    def _of_one(self) -> tuple[StepPlan, list[StepPlan]]:
        """What one request brings into a round, and into the passes that make its draft."""
        rows = (1 + len(self.acceptance), self.context)
        passes = self.drafter.passes([rows]) if self.drafter else []
        return verifying(step_plan(rows), len(self.acceptance)), passes


def context_that_always_pays(device: Device, acceptance: tuple[float, ...]) -> int | None:
    """The smallest context from which drafts that take no time pay at every batch; None if there is none.

    From there on, to verify a request's draft takes less than E[N] times the read of its KV, so that no number of
    requests uses up what the device can compute. Raises InputError for what is no device and what are no probabilities.
    """
    if not isinstance(device, Device):
        raise InputError("device", device, "a Device, such as device()")
    outputs, drafted = Fraction(expected_outputs(acceptance)), len(acceptance)
    verified = verifying(step_plan((1 + drafted, 0)), drafted)
    compute_ns = Fraction(device.flop(verified) * NS, device.flop_s)
    compute_growth = Fraction((1 + drafted) * device.flop_per_pair * NS, device.flop_s)
    read_growth = outputs * Fraction(device.kv_bytes_per_token * NS, device.bytes_s)
    return None if outputs == 1 or read_growth <= compute_growth else ceil(compute_ns / (read_growth - compute_growth))
