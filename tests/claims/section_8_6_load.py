"""Numbers of sections 8.6.1 and 8.6.2 and of the footnote that belongs to them."""

from collections.abc import Callable
from typing import Literal

from lib.goodput import Since, Window
from lib.latency import percentile
from lib.service_record import (
    CONDITIONS,
    DEADLINE_S,
    TAIL_PERCENT,
    Admission,
    Condition,
    RecordedWindow,
    all_windows,
    by_planned_rate,
    middle,
    recorded,
    wrong_by_task,
)
from tests.claims.claim import Claim

RATES = sorted({condition.arrivals_per_s for condition in CONDITIONS if condition.arrivals_per_s})
LOW, MIDDLE, HIGH = RATES
# A deadline of twice the chapter's: no request of the continuous windows is late then.
LATE_DEADLINE_S = 2 * DEADLINE_S


def one_by_one(rate: int) -> Condition:
    return Condition(Admission.ONE_AT_A_TIME, rate)


def batched(rate: int) -> Condition:
    return Condition(Admission.CONTINUOUS, rate)


def completed(condition: Condition) -> float:
    return middle(condition, lambda each: each.window.completion_throughput)


def good(condition: Condition, deadline_s: float = DEADLINE_S, since: Since = Since.PLANNED_ARRIVAL) -> float:
    return middle(condition, lambda each: each.window.goodput(deadline_s, since))


def good_of_each(condition: Condition) -> list[float]:
    return sorted(each.window.goodput(DEADLINE_S) for each in recorded(condition))


def longest(condition: Condition) -> float:
    return middle(condition, lambda each: each.window.longest_s())


def typical(condition: Condition) -> RecordedWindow:
    """The window with the median of completions: rate, stay and number in the system are of one window."""
    return sorted(recorded(condition), key=lambda each: each.window.completion_throughput)[1]


def in_all(count: Callable[[Window], int]) -> int:
    return sum(map(count, all_windows()))


def drop_percent(before: float, after: float) -> float:
    return 100 * (1 - after / before)


def the_only(values: set[int]) -> int:
    (value,) = values
    return value


def requests_a_window() -> int:
    return the_only({len(window.outcomes) for window in all_windows()})


def windows_a_condition() -> int:
    return the_only({len(recorded(condition)) for condition in CONDITIONS})


def tasks() -> int:
    return the_only({len(set(each.tasks)) for condition in CONDITIONS for each in recorded(condition)})


def recorded_claim(
    value: Callable[[], float],
    what: str,
    printed: str,
    unit: str,
    *ids: str,
    kind: Literal["input", "measured", "computed"] = "computed",
) -> Claim:
    """A number of 8.6.2 about the recorded windows, to half a unit of its last digit, or exact where it is whole."""
    digits = len(printed.partition(".")[2])
    ids = tuple(f"8.6.2{place}" if place.startswith("-") else place for place in ids) or ("8.6.2",)
    return Claim(ids, what, kind, (printed,), unit, 0.5 * 10**-digits if digits else 0, value)


def rate_claim(value: Callable[[], float], what: str, printed: str, *ids: str) -> Claim:
    return recorded_claim(value, f"{what}, median of three windows", printed, "/s", *ids, kind="measured")


def window_claim(value: Callable[[RecordedWindow], float], what: str, condition: Condition, printed: str) -> Claim:
    where = f"{condition.admission} at {condition.arrivals_per_s}/s"
    return recorded_claim(
        lambda: middle(condition, value), f"{what}, {where}, median of three windows", printed, "s", kind="measured"
    )


RECORDED_WINDOWS: tuple[Claim, ...] = (
    recorded_claim(tasks, "tasks of the service", "8", "tasks", "-01", "fn24-01", kind="input"),
    recorded_claim(lambda: DEADLINE_S, "deadline after the planned arrival", "3", "s", "-02", "-11", kind="input"),
    recorded_claim(lambda: len(Admission), "ways of admission", "3", "", "-03", kind="input"),
    recorded_claim(
        requests_a_window, "requests of a window", "16", "requests", "-04", "-10", "fn24-04", kind="input"
    ),
    recorded_claim(lambda: in_all(lambda each: each.completed), "answers in all windows", "336", "answers", "-05"),
    recorded_claim(
        lambda: in_all(lambda each: each.correct), "right answers", "294", "answers", "-06", kind="measured"
    ),
    recorded_claim(
        lambda: in_all(lambda each: each.qualified(DEADLINE_S)), "right answers in time", "155", "answers", "-07",
        kind="measured",
    ),
    recorded_claim(
        lambda: in_all(lambda each: each.correct_but_late(DEADLINE_S)), "right answers too late", "139", "answers",
        "-08",
    ),
    recorded_claim(windows_a_condition, "windows of a condition", "3", "windows", "-09", "fn24-03", kind="input"),
    recorded_claim(lambda: LOW, "lowest rate of arrival", "1", "/s", "-12", kind="input"),
    recorded_claim(
        lambda: sum(condition.arrivals_per_s == LOW for condition in CONDITIONS), "ways of admission at that rate", "2",
        "", "-13", kind="input",
    ),
    rate_claim(lambda: good(one_by_one(LOW)), "goodput, one at a time at 1/s", "0.90", "-14"),
    rate_claim(lambda: good(batched(LOW)), "goodput, continuous at 1/s", "0.90"),
    recorded_claim(lambda: MIDDLE, "middle rate of arrival", "4", "/s", "-15", kind="input"),
    rate_claim(lambda: completed(one_by_one(MIDDLE)), "completions, one at a time at 4/s", "1.22", "-16"),
    rate_claim(lambda: good(one_by_one(MIDDLE)), "goodput, one at a time at 4/s", "0.31", "-17"),
    rate_claim(lambda: completed(batched(MIDDLE)), "completions, continuous at 4/s", "2.33", "-18"),
    rate_claim(lambda: good(batched(MIDDLE)), "goodput, continuous at 4/s", "1.02", "-19"),
    recorded_claim(lambda: HIGH, "highest rate of arrival", "16", "/s", "-20", kind="input"),
    rate_claim(lambda: completed(batched(HIGH)), "completions, continuous at 16/s", "2.38", "-21"),
    rate_claim(lambda: good(batched(HIGH)), "goodput, continuous at 16/s", "0.60", "-22"),
    Claim(
        ("8.6.2-23",), "loss of goodput from 4/s to 16/s", "computed", ("41",), "%", 0.5,
        lambda: drop_percent(good(batched(MIDDLE)), good(batched(HIGH))),
    ),
    recorded_claim(lambda: len(CONDITIONS), "conditions", "7", "", "fn24-02", kind="input"),
    recorded_claim(lambda: sum(wrong_by_task().values()), "wrong answers", "42", "answers", "fn24-05"),
    recorded_claim(
        lambda: len(wrong_by_task()), "tasks that had a wrong answer", "1", "task", "fn24-06", kind="measured"
    ),
    recorded_claim(lambda: TAIL_PERCENT, "percentile reported", "95", "%", "fn24-07", kind="input"),
    recorded_claim(
        lambda: percentile(range(1, requests_a_window() + 1), TAIL_PERCENT), "its rank in a window", "16", "",
        "fn24-08",
    ),
    # What the notebook says beside that.
    recorded_claim(lambda: in_all(lambda each: each.in_time(DEADLINE_S)), "answers in time", "173", "answers"),
    recorded_claim(
        lambda: in_all(lambda each: each.in_time_but_wrong(DEADLINE_S)), "of these wrong", "18", "answers"
    ),
    recorded_claim(
        lambda: the_only({window.correct for window in all_windows()}), "right answers of each window", "14", "answers"
    ),
    rate_claim(
        lambda: good(one_by_one(MIDDLE), since=Since.SENDING), "goodput if time counts from sending, one by one, 4/s",
        "1.07",
    ),
    rate_claim(
        lambda: good(one_by_one(HIGH), since=Since.SENDING), "goodput if time counts from sending, one by one, 16/s",
        "1.08",
    ),
    rate_claim(lambda: good(one_by_one(HIGH)), "goodput, one at a time at 16/s", "0.23"),
    recorded_claim(
        lambda: in_all(lambda each: each.qualified(DEADLINE_S, Since.SENDING)), "good if time counts from sending",
        "216", "answers",
    ),
    window_claim(lambda each: each.window.longest_s(), "longest request", batched(MIDDLE), "3.75"),
    window_claim(lambda each: each.window.longest_s(), "longest request", batched(HIGH), "5.94"),
    window_claim(lambda each: each.window.longest_s(), "longest request", one_by_one(MIDDLE), "9.36"),
    window_claim(lambda each: each.window.longest_queue_s, "longest wait outside", one_by_one(MIDDLE), "8.75"),
    window_claim(lambda each: each.longest_engine_queue_s, "longest wait inside", batched(HIGH), "4.70"),
    rate_claim(lambda: good_of_each(batched(MIDDLE))[0], "least goodput, continuous at 4/s", "0.79"),
    rate_claim(lambda: good_of_each(batched(MIDDLE))[-1], "most goodput, continuous at 4/s", "1.49"),
    rate_claim(lambda: good_of_each(batched(HIGH))[0], "least goodput, continuous at 16/s", "0.44"),
    rate_claim(lambda: good_of_each(batched(HIGH))[-1], "most goodput, continuous at 16/s", "0.89"),
    # To so many digits that the length of each window is noticed.
    rate_claim(lambda: good(one_by_one(LOW)), "goodput, one at a time at 1/s", "0.8962"),
    rate_claim(lambda: good(batched(LOW)), "goodput, continuous at 1/s", "0.8968"),
    rate_claim(lambda: good(one_by_one(MIDDLE)), "goodput, one at a time at 4/s", "0.3112"),
    rate_claim(lambda: good(batched(HIGH)), "goodput, continuous at 16/s", "0.60405"),
    rate_claim(lambda: good_of_each(batched(HIGH))[0], "least goodput, continuous at 16/s", "0.4439"),
    recorded_claim(lambda: LATE_DEADLINE_S, "a later deadline", "6", "s"),
    rate_claim(lambda: good(batched(MIDDLE), LATE_DEADLINE_S), "goodput by 6 s, continuous at 4/s", "2.04"),
    rate_claim(lambda: good(batched(HIGH), LATE_DEADLINE_S), "goodput by 6 s, continuous at 16/s", "2.08"),
    recorded_claim(
        lambda: round(typical(one_by_one(MIDDLE)).window.mean_in_system),
        "requests in the system on average, one at a time at 4/s, rounded", "6", "requests", kind="measured",
    ),
    recorded_claim(
        lambda: round(by_planned_rate(typical(one_by_one(MIDDLE)))),
        "what 4/s times the mean stay would give, rounded", "19", "requests",
    ),
)  # fmt: skip


CLAIMS: tuple[Claim, ...] = (*RECORDED_WINDOWS,)
