"""The batch at which drafts stop paying: requests in decode with and without them, from one to many.

A step that waits for the host or reads has compute to spare, so that to verify a draft it takes hardly longer. The more
requests share the step, the more of that is used without drafts; KV, read for each request, moves the limit away again.
Source: section 8.5.4.
"""

from dataclasses import dataclass

from lib.checks import InputError, keep_whole, whole
from lib.speculation import expected_outputs
from lib.speculation_setup import Drafter
from lib.step_time import MOST_TOKENS, StepTime, decode_plan, equal_requests, step_plan, verifying

MOST_BATCH = 2**16


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
        expected_outputs(self.acceptance)
        if not isinstance(self.step_time, StepTime):
            raise InputError("step_time", self.step_time, "a model of the time of a step, such as FIT")
        if self.drafter is not None and not isinstance(self.drafter, Drafter):
            raise InputError("drafter", self.drafter, "a Drafter, or None where drafts take no time")

    def plain_ns(self, batch: int) -> int:
        """A step of so many requests without drafts: the time in which each gets one output."""
        return self.step_time(decode_plan(whole("batch", batch, 1, MOST_BATCH), self.context))

    def round_ns(self, batch: int) -> int:
        """A step of so many requests that verifies a draft of each, and the making of these drafts before it."""
        requests, drafted = whole("batch", batch, 1, MOST_BATCH), len(self.acceptance)
        each = (1 + drafted, self.context)
        verified = self.step_time(equal_requests(requests, verifying(step_plan(each), drafted)))
        if self.drafter is None:
            return verified
        passes = (equal_requests(requests, plan) for plan in self.drafter.passes([each]))
        return sum(map(self.drafter.step_time, passes)) + verified

    def time_ratio(self, batch: int) -> float:
        """Time per output with drafts over that without, at so many requests: below 1 drafts pay."""
        return self.round_ns(batch) / expected_outputs(self.acceptance) / self.plain_ns(batch)

    def stops_paying_at(self, most_batch: int) -> int | None:
        """The smallest batch at which drafts do not pay; None if they pay at each one up to `most_batch`.

        Above the pool's capacity no batch comes about, so that is the most to ask for.
        """
        most = whole("most_batch", most_batch, 1, MOST_BATCH)
        return next((batch for batch in range(1, most + 1) if self.time_ratio(batch) >= 1), None)
