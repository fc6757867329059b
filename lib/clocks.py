"""Which clock took a time: a number of milliseconds means little without it."""

from dataclasses import dataclass
from enum import StrEnum

from lib import records, step_time


class Clock(StrEnum):
    """Where a time comes from; every time shown in the chapter carries one of these tags."""

    CLIENT = "client"
    ENGINE = "engine"
    FIT = "fit"
    FLOP_RULE = "FLOP rule"
    MEASURED = "measured"
    ASSUMED = "assumed"


MEANING = {
    Clock.CLIENT: "taken where the user sits: engine work, delivery and whatever else ran in between",
    Clock.ENGINE: "taken inside the engine, from the start of a step to its end",
    Clock.FIT: "computed: a fixed part, a part per new token, a part per query-key pair, fitted to engine times",
    Clock.FLOP_RULE: "computed: FLOP divided by the share of peak compute that was measured",
    Clock.MEASURED: "taken on the device itself or with a stop-watch of its own; the text says which",
    Clock.ASSUMED: "taken by no clock: set by us, to have something to count with",
}


@dataclass(frozen=True)
class Reading:
    """A time in seconds with its clock and what lies between its two ends."""

    seconds: float
    clock: Clock
    covers: str


def one_decode_step() -> tuple[Reading, ...]:
    """The same decode step (one request, 2048 tokens of input) by three clocks, and the term it is confused with.

    Source: sections 8.1.1, 8.1.3 and 8.2.2; records batch_sweep, step_efficiency and step_time_fit.
    """
    condition = {"input_kind": "2k_independent", "batch_requests": 1}
    client = records.record("batch_sweep").one(**condition)
    engine = records.record("step_efficiency").one(**condition)
    fit_ns = step_time.FIT(step_time.step_plan((1, 2048)))
    return (
        Reading(
            client["mean_output_interval_median_ms"] / 1e3, Clock.CLIENT, "between two outputs, as received (mean)"
        ),
        Reading(engine["decode_step_median_ms"] / 1e3, Clock.ENGINE, "one decode step, nothing else"),
        Reading(fit_ns / 1e9, Clock.FIT, "one decode step, by the three terms of the fit"),
        Reading(step_time.FIT.fixed_ns / 1e9, Clock.FIT, "only the fixed part of a step; not yet a step"),
    )
