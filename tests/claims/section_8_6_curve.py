"""Numbers of section 8.6.2 about the recorded service simulated: how it is calibrated, how it errs, its load curve."""

from collections.abc import Callable
from typing import Literal

from lib.arrivals import Arrivals
from lib.goodput import Window
from lib.load_curve import MOST_REQUESTS, RATES, RECORDED_REQUESTS, ServiceLoad, tasks_of
from lib.service_calibration import (
    LONG_TASK,
    MOST_RUNNING,
    SHORT_TASK,
    TOKEN_BUDGET,
    UNSEEN,
    alone,
    decode_mbu,
    prediction_error,
    prefill_mfu,
    service_step,
    shape_of,
)
from lib.service_record import DEADLINE_S, Admission, Condition
from tests.claims.claim import Claim

LONG_WINDOW = 256
MIDDLE, HIGH = 4, 16
TWICE_S = 2 * DEADLINE_S
SHORT, LONG = ServiceLoad(), ServiceLoad(requests=LONG_WINDOW)
BY_CHANCE = ServiceLoad(requests=LONG_WINDOW, arrivals=Arrivals.POISSON)
ONE_BY_ONE = ServiceLoad(Admission.ONE_AT_A_TIME, LONG_WINDOW)
GATED = ServiceLoad(requests=LONG_WINDOW, refuse_beyond_s=DEADLINE_S)


def simulated(
    value: Callable[[], float],
    what: str,
    printed: str,
    unit: str,
    kind: Literal["input", "measured", "computed"] = "computed",
) -> Claim:
    """A number of 8.6.2 about the simulator, to half a unit of its last digit, or exact where it counts something."""
    digits = len(printed.partition(".")[2])
    return Claim(("8.6.2",), what, kind, (printed,), unit, 0.5 * 10**-digits if digits or unit == "%" else 0, value)


def completed(window: Window) -> float:
    return window.completion_throughput


def good(window: Window) -> float:
    return window.goodput(DEADLINE_S)


def largest_error(quantity: Callable[[Window], float]) -> float:
    """In percent, over the conditions that the calibration has not seen."""
    return 100 * max(abs(prediction_error(condition, quantity)) for condition in UNSEEN)


def refused(load: ServiceLoad, rate: float, task_shape: object) -> int:
    window, *_ = load.windows(rate)
    tasks = zip(tasks_of(load.requests), window.outcomes, strict=True)
    return sum(shape_of(task) == task_shape and outcome.sent_s is None for task, outcome in tasks)


def late(load: ServiceLoad, rate: float) -> int:
    window, *_ = load.windows(rate)
    return window.correct_but_late(DEADLINE_S)


CLAIMS: tuple[Claim, ...] = (
    simulated(lambda: SHORT_TASK.input_tokens, "input of a short task", "1863", "token", "input"),
    simulated(lambda: LONG_TASK.input_tokens, "input of a long task", "7239", "token", "input"),
    simulated(lambda: LONG_TASK.output_tokens, "outputs of each task", "46", "token", "input"),
    simulated(lambda: MOST_RUNNING, "most requests running", "4", "requests", "input"),
    simulated(lambda: TOKEN_BUDGET, "token budget, taken to be", "16384", "token", "input"),
    simulated(lambda: RECORDED_REQUESTS, "requests of a window simulated", "16", "requests"),
    simulated(lambda: MOST_REQUESTS, "most requests of a window simulated", "4096", "requests", "input"),
    simulated(lambda: len(RATES), "rates of a curve", "19", "rates"),
    simulated(lambda: sum(RATES), "their sum", "75.000", "/s"),
    simulated(lambda: alone(SHORT_TASK).prefill_s * 1e3, "prefill of a short task alone", "88.65", "ms", "measured"),
    simulated(lambda: alone(LONG_TASK).prefill_s * 1e3, "prefill of a long task alone", "452.35", "ms", "measured"),
    simulated(lambda: alone(SHORT_TASK).interval_s * 1e3, "interval of a short task alone", "11.63", "ms", "measured"),
    simulated(lambda: alone(LONG_TASK).interval_s * 1e3, "interval of a long task alone", "12.24", "ms", "measured"),
    simulated(lambda: service_step().per_new_token_ns / 1e3, "computing, a new token", "42.4", "us"),
    simulated(lambda: service_step().per_thousand_pairs_ns / 1e3, "computing, a thousand pairs", "5.5", "us"),
    simulated(lambda: service_step().per_step_ns / 1e6, "reading, a step", "11.41", "ms"),
    simulated(lambda: service_step().per_context_token_ns, "reading, a token in context", "115", "ns"),
    simulated(lambda: 100 * prefill_mfu(SHORT_TASK), "MFU of a short prefill, percent", "60", "%"),
    simulated(lambda: 100 * prefill_mfu(LONG_TASK), "MFU of a long prefill, percent", "51", "%"),
    simulated(lambda: 100 * decode_mbu(SHORT_TASK), "MBU of short decode, percent", "74", "%"),
    simulated(lambda: 100 * decode_mbu(LONG_TASK), "MBU of long decode, percent", "74", "%"),
    simulated(lambda: largest_error(completed), "largest error of completions, unseen, percent", "1.5", "%"),
    simulated(lambda: largest_error(good), "largest error of goodput, unseen, percent", "0.9", "%"),
    simulated(
        lambda: 100 * prediction_error(Condition(Admission.CONTINUOUS, 1), Window.longest_s),
        "error of the longest request, continuous at 1/s, percent", "-31", "%",
    ),
    simulated(lambda: SHORT.knee(DEADLINE_S), "knee, windows of 16", "2.9", "/s"),
    simulated(lambda: LONG.knee(DEADLINE_S), "knee, windows of 256", "2.4", "/s"),
    simulated(lambda: LONG.goodput(LONG.knee(DEADLINE_S), DEADLINE_S), "goodput there", "2.08", "/s"),
    simulated(lambda: LONG.saturation, "saturation, windows of 256", "2.42", "/s"),
    simulated(lambda: SHORT.saturation, "saturation, windows of 16", "2.40", "/s"),
    simulated(lambda: SHORT.goodput(MIDDLE, DEADLINE_S), "goodput at 4/s, windows of 16", "1.03", "/s"),
    simulated(lambda: LONG.goodput(MIDDLE, DEADLINE_S), "goodput at 4/s, windows of 256", "0.09", "/s"),
    simulated(lambda: LONG.completions(MIDDLE), "completions at 4/s, windows of 256", "2.42", "/s"),
    simulated(lambda: late(LONG, MIDDLE), "right but late of 256 at 4/s", "215", "answers"),
    simulated(lambda: LONG.windows(MIDDLE)[0].longest_s(), "longest of them", "42.6", "s"),
    simulated(lambda: TWICE_S, "twice the deadline", "6", "s"),
    simulated(lambda: LONG.knee(TWICE_S), "knee by twice the deadline, windows of 256", "2.5", "/s"),
    simulated(lambda: SHORT.knee(DEADLINE_S + 1), "knee by 4 s, windows of 16", "4.0", "/s"),
    simulated(lambda: BY_CHANCE.knee(DEADLINE_S), "knee, arrivals by chance, windows of 256", "2", "/s"),
    simulated(lambda: BY_CHANCE.goodput(2, DEADLINE_S), "goodput there, by chance", "1.40", "/s"),
    simulated(lambda: LONG.goodput(2, DEADLINE_S), "goodput at that rate, even", "1.75", "/s"),
    simulated(lambda: ONE_BY_ONE.knee(DEADLINE_S), "knee one at a time, windows of 256", "1.2", "/s"),
    simulated(lambda: ONE_BY_ONE.saturation, "saturation one at a time", "1.24", "/s"),
    simulated(lambda: GATED.goodput(MIDDLE, DEADLINE_S), "goodput at 4/s, late ones refused", "2.57", "/s"),
    simulated(lambda: GATED.goodput(HIGH, DEADLINE_S), "goodput at 16/s, late ones refused", "2.33", "/s"),
    simulated(lambda: LONG.goodput(HIGH, DEADLINE_S), "goodput at 16/s, all let in", "0.04", "/s"),
    simulated(lambda: refused(GATED, MIDDLE, LONG_TASK), "long ones refused of 128 at 4/s", "67", "requests"),
    simulated(lambda: refused(GATED, MIDDLE, SHORT_TASK), "short ones refused at 4/s", "0", "requests"),
    simulated(lambda: late(GATED, HIGH), "let in and late at 16/s", "37", "answers"),
)  # fmt: skip
