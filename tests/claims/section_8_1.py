"""Numbers of section 8.1, as far as figure 8-2 and the legend of clocks need them."""

from lib import clocks
from lib.clocks import Clock
from lib.design_problem import (
    ASSUMED_QUEUE_S,
    SHORT_CHAT,
    Prompt,
    foreign_delay,
    interval_alone,
    prefill_alone,
    timed_request,
)
from lib.latency import InsertedAs
from lib.records import record
from tests.claims.claim import Claim


def alone() -> dict[str, float]:
    return record("batch_sweep").one(input_kind="2k_independent", batch_requests=1)


def one_inserted() -> float:
    return timed_request(inserted=1).longest_interval_s * 1e3


def engine_step_ms() -> float:
    return next(reading.seconds for reading in clocks.one_decode_step() if reading.clock == Clock.ENGINE) * 1e3


def batch_of_the_measurement() -> float:
    return record("batch_sweep").one(mean_output_interval_median_ms=26.53)["batch_requests"]


CLAIMS = (
    Claim(
        ("8.1.1-01",), "input of the measured request", "input", ("2K",), "token", 0, lambda: SHORT_CHAT.input_tokens
    ),
    Claim(
        ("8.1.1-02", "8.1.1-19"),
        "prefill, client",
        "measured",
        ("0.096",),
        "s",
        0.0005,
        lambda: alone()["ttft_median_ms"] / 1e3,
    ),
    Claim(
        ("8.1.1-11",),
        "delay by an inserted prefill",
        "input",
        ("0.096",),
        "s",
        0,
        lambda: foreign_delay(InsertedAs.OWN_PASS),
    ),
    Claim(
        ("8.1.1-03", "8.1.1-21"),
        "interval, client",
        "measured",
        ("26.5",),
        "ms",
        0.05,
        lambda: alone()["mean_output_interval_median_ms"],
    ),
    Claim(("8.1.1-12",), "interval as used", "input", ("26.5",), "ms", 0, lambda: interval_alone().seconds * 1e3),
    Claim(
        ("8.1.1-08",), "interval in seconds", "computed", ("0.0265",), "s", 0.00005, lambda: interval_alone().seconds
    ),
    Claim(("8.1.1-04", "8.1.1-18"), "assumed queue", "input", ("0.1",), "s", 0, lambda: ASSUMED_QUEUE_S),
    Claim(("8.1.1-05",), "time to first token", "computed", ("0.196",), "s", 0.0005, lambda: timed_request().ttft_s),
    Claim(("8.1.1-06", "8.1.1-17"), "outputs", "input", ("256",), "token", 0, lambda: SHORT_CHAT.output_tokens),
    Claim(
        ("8.1.1-07", "8.1.1-16", "8.1.1-20"),
        "intervals",
        "computed",
        ("255",),
        "intervals",
        0,
        lambda: len(timed_request().intervals_s),
    ),
    Claim(("8.1.1-09", "8.1.1-15"), "request time", "computed", ("6.95",), "s", 0.005, lambda: timed_request().total_s),
    Claim(("8.1.1-10", "8.1.1-23"), "deadline", "input", ("7",), "s", 0, lambda: timed_request().deadline_s),
    # Exactly 122.5: both roundings of the half are printed somewhere, so the tolerance takes in both.
    Claim(("8.1.1-13",), "interval with an inserted prefill", "computed", ("123", "122.5"), "ms", 0.5, one_inserted),
    Claim(
        ("8.1.1-14",),
        "request time with it",
        "computed",
        ("7.05",),
        "s",
        0.005,
        lambda: timed_request(inserted=1).total_s,
    ),
    Claim(("8.1.1-22",), "batch of the measurement", "input", ("1",), "requests", 0, batch_of_the_measurement),
    Claim((), "prefill as used", "input", ("0.096",), "s", 0, lambda: prefill_alone(Prompt.SHORT).seconds),
    Claim(
        (),
        "prefill behind a cached prefix, client",
        "measured",
        ("0.133",),
        "s",
        0.0005,
        lambda: prefill_alone(Prompt.LONG_CACHED).seconds,
    ),
    Claim(("8.1.3-11",), "decode step, engine", "measured", ("26.26",), "ms", 0.005, engine_step_ms),
)
