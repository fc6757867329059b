"""How fast the card really works: shares of its peaks, and what a request takes of its time.

A decode round is measured inside the engine, with no prefill in it; a prefill phase is that of a whole batch. What was
not measured is estimated: an amount of work over a peak times the share of it that was reached. Source: section 8.6.3,
footnote 25; record step_efficiency.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from lib.checks import InputError, finite, one_of, seconds, share, whole
from lib.hardware import RTX_PRO_6000, Card
from lib.memory import MOST_BYTES, MOST_TOKENS
from lib.model import QWEN3_8B, Transformer, matrix_flops
from lib.records import record
from lib.step_time import Device, MeasuredDecode, StepPlan, decode_plan, device

MOST_FLOP, MOST_RATE = 2**100, 1e18


class Condition(StrEnum):
    """What was measured at several batches: contexts of one's own, or a prefix that all share and that was cached."""

    OWN = "2k_independent"
    SHARED = "8k_prefix6k_cached"


@dataclass(frozen=True)
class Measured:
    """One batch as it was measured: tokens in context, those of them that were cached, two times (clock: engine)."""

    condition: Condition
    batch: int
    context: int
    cached: int
    round_s: float
    prefill_s: float

    @property
    def new_tokens(self) -> int:
        """Tokens that the prefill computes, of all requests together."""
        return self.batch * (self.context - self.cached)

    @property
    def read_bytes(self) -> int:
        """Bytes that a round nominally reads: the weights, and for each request its whole context. Section 8.6.3."""
        return peaks().read_bytes(decode_plan(self.batch, self.context))

    @property
    def prefill_flop(self) -> int:
        """FLOP of the matrix products of the prefill."""
        return prefill_flop(self.batch, self.context - self.cached, self.cached)

    @property
    def read_bound_s(self) -> float:
        """What a round takes at least, if it reads so much at the peak bandwidth."""
        return read_bound(self.read_bytes)

    @property
    def excess_s(self) -> float:
        """By how much a round takes longer than that: at batch 1, the host that submits kernel after kernel."""
        return self.round_s - self.read_bound_s

    @property
    def mbu(self) -> float:
        """The share of the peak bandwidth in decode; above 1 where a shared prefix is not read for each request."""
        return share_of_peak(self.read_bytes, self.round_s, RTX_PRO_6000.bandwidth_bytes_s)

    @property
    def mfu(self) -> float:
        """The share of the peak compute in prefill."""
        return share_of_peak(self.prefill_flop, self.prefill_s, peak_flop_s())

    @property
    def prefill_rate(self) -> float:
        """r_P, new tokens per second."""
        return self.new_tokens / self.prefill_s

    @property
    def decode_rate(self) -> float:
        """r_D, calls per second: each request of the batch has one in a round, whose time counts once."""
        return self.batch / self.round_s


def batches(condition: Condition) -> tuple[int, ...]:
    """The batches at which a condition was measured, rising. Raises InputError for another condition."""
    rows = record("step_efficiency").where(input_kind=one_of("condition", condition, Condition).value)
    return tuple(sorted(row["batch_requests"] for row in rows))


def measured(condition: Condition, batch: int) -> Measured:
    """The batch of a condition as it was measured; raises InputError for one that was not."""
    row = _row(condition, batch)
    return Measured(
        Condition(condition), row["batch_requests"], row["context_tokens"], row["cached_prefix_tokens"],
        row["decode_step_median_ms"] / 1e3, row["prefill_phase_median_s"],
    )  # fmt: skip


def printed_mfu(condition: Condition, batch: int) -> float:
    """The share of the peak in prefill to three digits, with which the chapter goes on; it prints two of them.

    Raises InputError as `measured` does. Source: section 8.6.3, which prints 58 % and has 7.34 s from 57.8 %.
    """
    return float(_row(condition, batch)["prefill_compute_efficiency_fraction"])


def _row(condition: Condition, batch: int) -> Mapping[str, Any]:
    known = one_of("batch", whole("batch", batch), batches(condition))
    return record("step_efficiency").one(input_kind=condition.value, batch_requests=known)


@cache
def peaks(mfu: float = 1.0) -> Device:
    """The chapter's model on its card, which reads at the peak bandwidth and reaches such a share of peak compute."""
    return device(mfu=mfu, mbu=1)


def peak_flop_s(card: Card = RTX_PRO_6000) -> int:
    """The peak of dense BF16; raises InputError for what is no card, and for one of which none is published."""
    _check(card)
    if card.bf16_dense_flop_s is None:
        raise InputError("card", card.name, "a card with a published peak of dense BF16")
    return card.bf16_dense_flop_s


def _check(card: object) -> None:
    if not isinstance(card, Card):
        raise InputError("card", card, "a Card, such as RTX_PRO_6000")


def share_of_peak(amount: int, time_s: float, peak: float) -> float:
    """Amount / (t x peak): MFU from FLOP and the peak compute, MBU from bytes and the peak bandwidth. Section 8.6.3."""
    work = whole("amount", amount, at_most=MOST_FLOP)
    return work / (seconds("time_s", time_s, above_zero=True) * _rate("peak", peak))


def prefill_flop(requests: int, new_tokens: int, cached: int, model: Transformer = QWEN3_8B) -> int:
    """FLOP of so many requests' prefills, each of new tokens behind cached ones, with the logits of its last token."""
    count = whole("requests", requests, at_least=1, at_most=MOST_TOKENS)
    new = whole("new_tokens", new_tokens, at_least=1, at_most=MOST_TOKENS)
    return count * matrix_flops(model, new, whole("cached", cached, at_most=MOST_TOKENS))


def read_bound(read_bytes: int, card: Card = RTX_PRO_6000) -> float:
    """Seconds to read so many bytes at the peak bandwidth: no round takes less. Source: section 8.6.3."""
    return estimated_round(read_bytes, 1.0, card)


def estimated_prefill(flop: int, mfu: float, card: Card = RTX_PRO_6000) -> float:
    """F / (MFU x peak): seconds of a prefill that nobody measured (clock: FLOP rule). Source: section 8.6.3.

    Raises InputError for a share outside 0 ... 1 (0 itself too) and a card without a published peak.
    """
    work, reached = whole("flop", flop, at_most=MOST_FLOP), share("mfu", mfu, above_zero=True)
    return seconds("time of the prefill", work / (reached * peak_flop_s(card)))


def estimated_round(read_bytes: int, mbu: float, card: Card = RTX_PRO_6000) -> float:
    """Bytes / (MBU x bandwidth): seconds of a decode round that nobody measured. Source: section 8.6.3.

    The share must be that of a like amount: on this card it rises with the bytes, as the time hardly does. Raises
    InputError for a share outside 0 ... 1 (0 itself too).
    """
    size, reached = whole("read_bytes", read_bytes, at_most=MOST_BYTES), share("mbu", mbu, above_zero=True)
    _check(card)
    return seconds("time of the round", size / (reached * card.bandwidth_bytes_s))


def further_bytes_s(fewer: Measured, more: Measured) -> float:
    """Bytes per second at which the larger of two batches reads what it reads more; inf if it takes no longer.

    Far above the peak, so that a round cannot be a fixed part and reading after it: the reading hides behind the host.
    """
    longer = more.round_s - fewer.round_s
    return (more.read_bytes - fewer.read_bytes) / longer if longer > 0 else float("inf")


def gpu_time(new_tokens: int, outputs: int, prefill_rate: float, decode_rate: float) -> float:
    """t_GPU = L / r_P + (G - 1) / r_D: seconds of the card that one request takes. Source: section 8.6.3.

    Rates are new tokens and decode calls per second. Raises InputError for counts and rates that make no sense.
    """
    tokens = whole("new_tokens", new_tokens, at_least=1, at_most=MOST_TOKENS)
    calls = whole("outputs", outputs, at_least=1, at_most=MOST_TOKENS) - 1
    prefill = tokens / _rate("prefill_rate", prefill_rate)
    return seconds("GPU time", prefill + calls / _rate("decode_rate", decode_rate))


def _rate(parameter: str, value: object) -> float:
    allowed = f"a rate above 0 and at most {MOST_RATE:g} per second"
    number = finite(parameter, value, 0, allowed)
    if not 0 < number <= MOST_RATE:
        raise InputError(parameter, value, allowed)
    return number


def read_plan(requests: int, context: int, read_once: int = 0) -> StepPlan:
    """A decode round of so many requests, each of so many tokens in context, of which the first are read only once.

    Raises InputError for more tokens read once than are in context.
    """
    count = whole("requests", requests, at_least=1, at_most=MOST_TOKENS)
    once = whole("read_once", read_once, at_most=whole("context", context, at_most=MOST_TOKENS))
    return decode_plan(count, context)._replace(context_tokens=once + count * (context - once))


@cache
def decode_table(condition: Condition, kv_bytes_per_token: int = peaks().kv_bytes_per_token) -> MeasuredDecode:
    """The decode rounds of a condition by the bytes that they read; KV may take other bytes than in BF16.

    A shared prefix counts once: read for each request, 64 of them would have read faster than the peak. Between the
    batches of one condition that makes no difference, as either count of bytes grows evenly with the batch.
    """
    rows = [measured(condition, batch) for batch in batches(condition)]
    points = ((peaks().read_bytes(read_plan(row.batch, row.context, row.cached)), row.round_s) for row in rows)
    by = replace(peaks(), kv_bytes_per_token=kv_bytes_per_token)
    return MeasuredDecode(tuple((size, round(time * 1e9)) for size, time in points), by)
