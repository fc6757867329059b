"""The time of one step of the engine, from what the step holds: several models behind one call, and the inverse.

A model is called with a `StepPlan` and gives whole nanoseconds. `FIT` is the chapter's own, fitted to one request;
`Device` counts FLOP and bytes; `LaunchBound` adds the host that submits the work; `MeasuredDecode` looks up the record.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import add
from typing import NamedTuple

from lib import records
from lib.attention import causal_pairs
from lib.checks import InputError, keep_whole, share, whole
from lib.hardware import RTX_PRO_6000, Card
from lib.model import (
    QWEN3_8B,
    HeadAttention,
    Transformer,
    kv_bytes_per_token,
    matrix_flops,
    streamed_weight_bytes,
)
from lib.shapes import padded_rows

MOST_TOKENS = 2**40
NS = 10**9


class StepPlan(NamedTuple):
    """What one step computes, summed over its requests; the four sums are all that its time depends on.

    `context_tokens` stand in KV already and are read; a request in decode has one new token. `logit_rows` are the
    tokens whose logits are computed: one of each request, and one more for each draft token that is verified.
    """

    new_tokens: int
    pairs: int
    context_tokens: int
    logit_rows: int

    @property
    def is_decode(self) -> bool:
        """Whether each new token has its logits, one of each request or a draft: no prompt is in the step."""
        return self.new_tokens == self.logit_rows


NOBODY = StepPlan(0, 0, 0, 0)


class StepTime(ABC):
    """A model of step times: a plan in, whole ns out; more tokens, pairs or context never take less."""

    @abstractmethod
    def __call__(self, plan: StepPlan) -> int:
        """The time of one step."""

    def decode_stretch(self, decodes: int, pairs: int, most: int) -> tuple[int, int, int]:
        """How many decode steps in a row are one closed form, the time of the first, and by how much each grows, in ns.

        The first has so many requests and pairs, each further one a pair more for each request; at most `most` steps.
        A model that knows nothing better says one step.
        """
        return 1, self(_decode_step(decodes, pairs)), 0


def step_plan(*segments: tuple[int, int]) -> StepPlan:
    """The plan of a step whose requests have so many new tokens behind so many in context: `step_plan((1, 2048))`.

    Raises InputError for no segment, for one without new tokens, and for more than 2^40 tokens.
    """
    if not segments or not all(isinstance(segment, tuple) and len(segment) == 2 for segment in segments):
        raise InputError("segments", segments, "at least one pair of new tokens and context")
    news = [whole("new_tokens", new, at_least=1, at_most=MOST_TOKENS) for new, _ in segments]
    contexts = [whole("context", context, at_most=MOST_TOKENS) for _, context in segments]
    return StepPlan(sum(news), sum(map(causal_pairs, news, contexts)), sum(contexts), len(segments))


def verifying(plan: StepPlan, drafted: int) -> StepPlan:
    """The same step if so many of its new tokens are drafts to be verified, each by logits of its own. Section 8.5.1.

    Raises InputError where that leaves no token of its own to each request.
    """
    rows = whole("drafted", drafted, at_most=plan.new_tokens - plan.logit_rows)
    return plan._replace(logit_rows=plan.logit_rows + rows)


def equal_requests(batch: int, plan: StepPlan) -> StepPlan:
    """What so many requests bring into a step, each as much as this plan."""
    requests = whole("batch", batch, at_most=MOST_TOKENS)
    return StepPlan(*(requests * amount for amount in plan))


def decode_plan(batch: int, context: int) -> StepPlan:
    """What so many requests in decode bring into a step, each with so many tokens in context."""
    return equal_requests(batch, step_plan((1, context)))


def _decode_step(decodes: int, pairs: int) -> StepPlan:
    """The plan of a step in which so many requests have one new token each, and so many pairs together."""
    return StepPlan(decodes, pairs, pairs - decodes, decodes)


@dataclass(frozen=True)
class Fit(StepTime):
    """A step time in three terms, in ns: per step, per new token, per query-key pair (clock: fit).

    The fixed part is paid once per step, whatever the number of requests in it. Source: section 8.2.2.
    """

    fixed_ns: int
    per_new_token_ns: int
    per_causal_pair_ns: int

    def __post_init__(self) -> None:
        keep_whole(self, NS * 3600, fixed_ns=0, per_new_token_ns=0, per_causal_pair_ns=0)
        if not self.fixed_ns + self.per_new_token_ns:
            raise InputError("fixed_ns", self.fixed_ns, "a step that takes time: above 0, or a time per new token")

    def __call__(self, plan: StepPlan) -> int:
        return self.fixed_ns + self.per_new_token_ns * plan.new_tokens + self.per_causal_pair_ns * plan.pairs

    def decode_stretch(self, decodes: int, pairs: int, most: int) -> tuple[int, int, int]:
        """As of any model; here all steps are one series."""
        growth = self.per_causal_pair_ns
        return most, self.fixed_ns + self.per_new_token_ns * decodes + growth * pairs, growth * decodes


_TERMS = {row["term"]: row["rounded_value_used_in_chapter_ns"] for row in records.record("step_time_fit").rows}
FIT = Fit(_TERMS["fixed_per_step"], _TERMS["per_new_token"], _TERMS["per_causal_pair"])


def _independent(batch: int) -> dict[str, float]:
    return dict(records.record("step_efficiency").one(input_kind="2k_independent", batch_requests=batch))


# The shares of the peaks that were reached where each was the limit: compute in the prefill of one request, bandwidth
# in the decode of 64. Source: record step_efficiency; section 8.6.3.
MFU = _independent(1)["prefill_compute_efficiency_fraction"]
MBU = _independent(64)["decode_bandwidth_efficiency_fraction"]


@dataclass(frozen=True)
class Device(StepTime):
    """The time the device itself needs: the longer of computing and reading, each at the rate that is reached.

    FLOP per token, pair and request, bytes of weights and of KV per token in context, and the two rates per second.
    """

    flop_per_token: int
    flop_per_pair: int
    flop_per_request: int
    weight_bytes: int
    kv_bytes_per_token: int
    flop_s: int
    bytes_s: int

    def __post_init__(self) -> None:
        keep_whole(self, flop_per_token=1, flop_per_pair=0, flop_per_request=0, weight_bytes=0, kv_bytes_per_token=0)
        keep_whole(self, flop_s=1, bytes_s=1)

    def flop(self, plan: StepPlan) -> int:
        """FLOP of the matrix products: each token's matrices, each pair's attention, the rows of logits."""
        tokens, logits = plan.new_tokens * self.flop_per_token, plan.logit_rows * self.flop_per_request
        return tokens + plan.pairs * self.flop_per_pair + logits

    def read_bytes(self, plan: StepPlan) -> int:
        """Bytes read: the weights once, the KV of each request's context."""
        return self.weight_bytes + plan.context_tokens * self.kv_bytes_per_token

    def compute_ns(self, plan: StepPlan) -> int:
        """Time to compute it, rounded up."""
        return -(-self.flop(plan) * NS // self.flop_s)

    def read_ns(self, plan: StepPlan) -> int:
        """Time to read it, rounded up."""
        return -(-self.read_bytes(plan) * NS // self.bytes_s)

    def __call__(self, plan: StepPlan) -> int:
        return max(self.compute_ns(plan), self.read_ns(plan))


def device(model: Transformer = QWEN3_8B, card: Card = RTX_PRO_6000, mfu: float = MFU, mbu: float = MBU) -> Device:
    """The device model of a transformer on a card that reaches these shares of its peaks (clock: FLOP rule).

    Shares of 1 give the lower bound of section 8.2.1; the defaults are those measured there. Raises InputError for
    shares outside 0 ... 1, a card without a published peak, and layers that do not attend to the full context by heads.
    """
    share("mfu", mfu, above_zero=True)
    share("mbu", mbu, above_zero=True)
    if card.bf16_dense_flop_s is None:
        raise InputError("card", card.name, "a card with a published peak of dense BF16")
    attentions = [group.attention for group in model.layers]
    if not all(isinstance(attention, HeadAttention) and attention.window is None for attention in attentions):
        raise InputError("model", model.name, "a model whose layers all attend to the full context by heads")
    one_pair, two_pairs = matrix_flops(model, 1, 0, 0), matrix_flops(model, 1, 1, 0)
    return Device(
        flop_per_token=2 * one_pair - two_pairs,
        flop_per_pair=two_pairs - one_pair,
        flop_per_request=matrix_flops(model, 1, 0, 1) - one_pair,
        weight_bytes=streamed_weight_bytes(model),
        kv_bytes_per_token=kv_bytes_per_token(model),
        flop_s=round(mfu * card.bf16_dense_flop_s),
        bytes_s=round(mbu * card.bandwidth_bytes_s),
    )


@dataclass(frozen=True)
class LaunchBound(StepTime):
    """The longer of the time in which the host submits a step's work and that of the device: both work at once.

    `host_ns` was about 26, 17 and 13 ms in three experiments on the chapter's card. Source: sections 8.2.2 and 8.6.3.
    """

    host_ns: int
    device: Device

    def __post_init__(self) -> None:
        keep_whole(self, NS * 3600, host_ns=0)

    def __call__(self, plan: StepPlan) -> int:
        return max(self.host_ns, self.device(plan))

    def decode_stretch(self, decodes: int, pairs: int, most: int) -> tuple[int, int, int]:
        """As of any model; as long as the host takes longer, all steps take its time."""

        def waits_for_host(step: int) -> bool:
            return self.device(_decode_step(decodes, pairs + decodes * step)) <= self.host_ns

        if waits_for_host(most - 1):
            return most, self.host_ns, 0
        if not waits_for_host(0):
            return super().decode_stretch(decodes, pairs, 1)
        return bisect_left(range(most), True, key=lambda step: not waits_for_host(step)), self.host_ns, 0


@dataclass(frozen=True)
class MeasuredDecode(StepTime):
    """Decode steps as recorded, interpolated by the bytes they read, and never below bytes / peak bandwidth.

    `points` are (bytes, ns) in rising order. Outside them the nearest stretch is continued; `covers` says whether a
    plan lies inside. Raises InputError when called with a prompt in the step. Source: record step_efficiency.
    """

    points: tuple[tuple[int, int], ...]
    device: Device

    def __post_init__(self) -> None:
        rising = all(left < right for (left, _), (right, _) in pairwise(self.points))
        if len(self.points) < 2 or not rising:
            raise InputError("points", self.points, "at least two pairs of bytes and ns, in rising order of bytes")

    def covers(self, plan: StepPlan) -> bool:
        """Whether the step reads an amount between the least and the most that were recorded."""
        return self.points[0][0] <= self.device.read_bytes(plan) <= self.points[-1][0]

    def is_recorded(self, plan: StepPlan) -> bool:
        """Whether a step that reads just this amount was recorded: its time is not interpolated."""
        return self.device.read_bytes(plan) in dict(self.points)

    def __call__(self, plan: StepPlan) -> int:
        if not plan.is_decode:
            raise InputError("plan", plan, "a decode step: one new token for each request")
        read = self.device.read_bytes(plan)
        right = min(max(bisect_left(self.points, (read, 0)), 1), len(self.points) - 1)
        (low, low_ns), (high, high_ns) = self.points[right - 1], self.points[right]
        between = low_ns + -(-(read - low) * (high_ns - low_ns) // (high - low))
        return max(between, self.device.read_ns(plan))


def _recorded_decode() -> MeasuredDecode:
    rows = records.record("step_efficiency").where(input_kind="2k_independent")
    points = ((row["nominal_read_bytes_per_step"], round(row["decode_step_median_ms"] * 10**6)) for row in rows)
    return MeasuredDecode(tuple(sorted(points)), device(mfu=1, mbu=1))


MEASURED_DECODE = _recorded_decode()


def executed_plan(
    new_tokens: int, context: int, decoding: StepPlan = NOBODY, captured_rows: Sequence[int] = ()
) -> StepPlan:
    """What a step executes for the new tokens of one prompt beside the requests of `decoding`.

    With `captured_rows` its rows are padded to the smallest captured shape that holds them. Source: section 8.2.4.
    """
    plan = StepPlan(*map(add, decoding, step_plan((new_tokens, context))))
    return plan._replace(new_tokens=padded_rows(plan.new_tokens, captured_rows))


def tokens_that_fit(
    interval_ns: int,
    step_time: StepTime,
    context: int = 0,
    decoding: StepPlan = NOBODY,
    captured_rows: Sequence[int] = (),
) -> int:
    """The most new tokens of one prompt that a step can take on and still end within an interval; 0 if none can.

    The prompt has `context` tokens behind it, beside the requests of `decoding`; with `captured_rows` the step runs the
    smallest captured shape that holds its rows. Source: section 8.2.4.
    """
    limit = whole("interval_ns", interval_ns, at_least=1)

    def takes(tokens: int) -> int:
        return step_time(executed_plan(tokens, context, decoding, captured_rows))

    too_many = 1
    while takes(too_many) <= limit:
        too_many *= 2
        if too_many > MOST_TOKENS:
            raise InputError("step_time", step_time, "a model in which more tokens take more time")
    fitting = too_many // 2
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        fitting, too_many = (middle, too_many) if takes(middle) <= limit else (fitting, middle)
    return fitting
