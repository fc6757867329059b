"""Numbers of section 8.2, as far as a foreign prefill inside a step and the legend of clocks need them."""

from lib import step_time
from lib.design_problem import SHORT_CHAT, foreign_delay, timed_request
from lib.latency import InsertedAs
from tests.claims.claim import Claim


def fit_ms(new_tokens: int, context: int) -> float:
    return step_time.FIT(step_time.step_plan((new_tokens, context))) / 1e6


def inside() -> float:
    return foreign_delay(InsertedAs.INSIDE_STEP) * 1e3


def late_inside() -> float:
    return timed_request(inserted=1, inserted_as=InsertedAs.INSIDE_STEP).total_s


CLAIMS = (
    Claim(("8.2.2-17",), "fixed part of a step", "input", ("26.22",), "ms", 0, lambda: step_time.FIT.fixed_ns / 1e6),
    Claim(
        ("8.2.2-18",), "part per new token", "input", ("30.4",), "us", 0, lambda: step_time.FIT.per_new_token_ns / 1e3
    ),
    Claim(("8.2.2-19",), "part per pair", "input", ("3",), "ns", 0, lambda: step_time.FIT.per_causal_pair_ns),
    Claim(("8.2.2-20",), "input the fit is checked on", "input", ("2K",), "token", 0, lambda: SHORT_CHAT.input_tokens),
    Claim(("8.2.2-21",), "decode step by the fit", "computed", ("26.26",), "ms", 0.005, lambda: fit_ms(1, 2048)),
    Claim(("8.2.2-22",), "prefill by the fit", "computed", ("94.8",), "ms", 0.05, lambda: fit_ms(2048, 0)),
    # Not printed, but what 8.2.2 makes of the insertion of 8.1.1: it shares the fixed part of the step.
    Claim((), "what a prefill inside a step adds", "computed", ("68.6",), "ms", 0.05, inside),
    Claim((), "request time with it", "computed", ("7.02",), "s", 0.005, late_inside),
)
