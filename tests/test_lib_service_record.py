"""The recorded service: every number that was recorded of a window comes out of its requests."""

from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from lib.checks import InputError
from lib.goodput import Since
from lib.quality import TASKS
from lib.records import record
from lib.service_calibration import prediction_error, replayed
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

WINDOWS = [each for condition in CONDITIONS for each in recorded(condition)]
# As the experiment's own summary has them, window by window: answers in time, of these right, completions and good
# answers per second, joules per good answer.
SUMMARY = (
    (16, 14, 1.025089, 0.896953, 608.1965), (16, 14, 1.02325, 0.895344, 622.1208),
    (16, 14, 1.024251, 0.896219, 624.324),
    (4, 4, 1.244738, 0.311184, 1982.259), (5, 4, 1.21426, 0.303565, 2039.875), (5, 5, 1.220521, 0.381413, 1663.3786),
    (3, 3, 1.231028, 0.230818, 2587.0046), (3, 3, 1.219336, 0.228625, 2755.2878),
    (4, 4, 1.23134, 0.307835, 2045.8106),
    (16, 14, 1.024916, 0.896802, 602.2796), (16, 14, 1.024972, 0.896851, 614.9501),
    (16, 14, 1.023637, 0.895683, 625.951),
    (11, 10, 2.390298, 1.493936, 441.1007), (8, 7, 2.334604, 1.021389, 651.9839), (7, 6, 2.104213, 0.78908, 852.4261),
    (4, 4, 2.416201, 0.60405, 1083.6551), (4, 3, 2.367592, 0.443924, 1491.4151), (6, 6, 2.377785, 0.891669, 744.0498),
    (4, 4, 2.370497, 0.592624, 1116.3047), (4, 3, 2.343174, 0.439345, 1536.8823), (5, 5, 2.356618, 0.736443, 898.7442),
)  # fmt: skip
# Times of requests are recorded to 0.1 ms, those of windows to 1 us.
TO_REQUESTS_S = 0.5e-4 + 1e-9


def name(each: Any) -> str:
    condition = each.condition if isinstance(each, RecordedWindow) else each
    number = f"-{each.number}" if isinstance(each, RecordedWindow) else ""
    return f"{condition.admission}-{condition.arrivals_per_s}{number}".replace(" ", "_")


def row_of(each: RecordedWindow) -> Any:
    condition = each.condition
    return record("service_windows").one(
        admission=condition.admission, arrivals_per_s=condition.arrivals_per_s, window=each.number
    )


@pytest.mark.parametrize(
    ("each", "summary"),
    list(zip(WINDOWS, SUMMARY, strict=True)),
    ids=lambda each: name(each) if isinstance(each, RecordedWindow) else "",
)
def test_the_summary_of_a_window_comes_out_of_its_requests(each: RecordedWindow, summary: Any) -> None:
    in_time, qualified, completions, good, joules = summary
    window = each.window
    assert (window.in_time(DEADLINE_S), window.qualified(DEADLINE_S)) == (in_time, qualified)
    assert window.completion_throughput == pytest.approx(completions, abs=1e-6)
    assert window.goodput(DEADLINE_S) == pytest.approx(good, abs=1e-6)
    assert each.energy_per_qualified() == pytest.approx(joules, abs=1e-4)


@pytest.mark.parametrize("each", WINDOWS, ids=name)
def test_the_longest_times_of_a_window_are_those_of_its_requests(each: RecordedWindow) -> None:
    row, window = row_of(each), each.window
    assert window.longest_s() == pytest.approx(row["longest_s"], abs=TO_REQUESTS_S)
    assert window.longest_ttft_s() == pytest.approx(row["longest_ttft_s"], abs=TO_REQUESTS_S)
    assert window.longest_queue_s == pytest.approx(row["longest_application_queue_s"], abs=TO_REQUESTS_S)
    last = max(outcome.finish_s or 0 for outcome in window.outcomes)
    assert 0 < window.length_s - last < 0.3e-3, "the window ends with its last request"
    assert window.latency_percentile_s(TAIL_PERCENT) == window.longest_s()


@pytest.mark.parametrize("each", WINDOWS, ids=name)
def test_the_requests_of_a_window_are_the_rows_of_the_record(each: RecordedWindow) -> None:
    condition = each.condition
    rows = record("service_requests").where(
        admission=condition.admission, arrivals_per_s=condition.arrivals_per_s, window=each.number
    )
    assert [row["request"] for row in rows] == list(range(1, 17))
    for place, (row, task, outcome) in enumerate(zip(rows, each.tasks, each.window.outcomes, strict=True)):
        assert outcome.arrival_s == (place / condition.arrivals_per_s if condition.arrivals_per_s else 0)
        assert (outcome.latency_s(), outcome.ttft_s()) == (row["total_s"], row["ttft_s"])
        assert (outcome.queue_s, outcome.is_correct, task) == (
            row["application_queue_s"],
            bool(row["right"]),
            row["task"],
        )
    assert each.longest_engine_queue_s == max(row["engine_queue_s"] for row in rows)


def test_each_window_asks_each_task_twice_in_an_order_that_its_number_keeps() -> None:
    assert all(Counter(each.tasks) == Counter(TASKS * 2) for each in WINDOWS)
    orders = {number: {each.tasks for each in WINDOWS if each.number == number} for number in (1, 2, 3)}
    assert [len(found) for found in orders.values()] == [1, 1, 1]
    assert len(set.union(*orders.values())) == 3


def test_a_task_is_right_at_every_condition_or_at_none() -> None:
    right: dict[str, set[bool]] = {}
    for each in WINDOWS:
        for task, outcome in zip(each.tasks, each.window.outcomes, strict=True):
            right.setdefault(task, set()).add(outcome.is_correct)
    assert right == {task: {task != "n512-r0"} for task in TASKS}
    assert wrong_by_task() == {"n512-r0": 42}


def test_totals() -> None:
    windows = all_windows()
    assert windows == tuple(each.window for each in WINDOWS)

    def total(count: Callable[[Any], int]) -> int:
        return sum(map(count, windows))

    assert total(lambda each: each.completed) == 336
    assert total(lambda each: each.correct) == 294
    assert total(lambda each: each.qualified(3)) == 155
    assert total(lambda each: each.correct_but_late(3)) == 139
    assert (total(lambda each: each.in_time(3)), total(lambda each: each.in_time_but_wrong(3))) == (173, 18)


@pytest.mark.parametrize(("condition", "completions", "good"), [
    (CONDITIONS[0], 1.02, 0.90), (CONDITIONS[1], 1.22, 0.31), (CONDITIONS[2], 1.23, 0.23),
    (CONDITIONS[3], 1.02, 0.90), (CONDITIONS[4], 2.33, 1.02), (CONDITIONS[5], 2.38, 0.60), (CONDITIONS[6], 2.36, 0.59),
], ids=lambda each: name(each) if isinstance(each, Condition) else "")  # fmt: skip
def test_medians_as_the_chapter_prints_them(condition: Condition, completions: float, good: float) -> None:
    assert middle(condition, lambda each: each.window.completion_throughput) == pytest.approx(completions, abs=0.005)
    assert middle(condition, lambda each: each.window.goodput(DEADLINE_S)) == pytest.approx(good, abs=0.005)


def test_a_median_is_the_middle_one_of_three() -> None:
    for condition in CONDITIONS:
        goods = sorted(each.window.goodput(1.5) for each in recorded(condition))
        assert middle(condition, lambda each: each.window.goodput(1.5)) == goods[1] == median(goods)


@pytest.mark.parametrize("condition", CONDITIONS, ids=name)
def test_only_one_way_of_admission_waits_outside(condition: Condition) -> None:
    waits = middle(condition, lambda each: each.window.longest_queue_s)
    if condition.admission is Admission.ONE_AT_A_TIME:
        assert middle(condition, lambda each: each.longest_engine_queue_s) < 0.001
        assert (waits > 1) == (condition.arrivals_per_s != 1)
    else:
        assert waits == 0
        assert all(each.window.goodput(3) == each.window.goodput(3, Since.SENDING) for each in recorded(condition))


@pytest.mark.parametrize("each", WINDOWS, ids=name)
def test_littles_law_holds_with_the_rate_that_the_window_saw(each: RecordedWindow) -> None:
    window = each.window
    assert window.mean_in_system == pytest.approx(window.completion_throughput * window.mean_stay_s)
    assert 0 < window.mean_in_system < len(window.outcomes)


def test_with_the_planned_rate_it_can_give_more_requests_than_there_are() -> None:
    for condition in CONDITIONS[:-1]:
        steady = condition.arrivals_per_s == 1
        for each in recorded(condition):
            by_rate = by_planned_rate(each)
            assert by_rate == pytest.approx(each.window.mean_in_system, rel=0.03) if steady else by_rate > 9
    assert all(by_planned_rate(each) > 16 for each in recorded(CONDITIONS[1]))
    with pytest.raises(InputError, match=r"^condition is .*; allowed: one with a rate of arrivals$"):
        by_planned_rate(recorded(CONDITIONS[-1])[0])


def test_by_six_seconds_nothing_of_the_continuous_windows_is_late() -> None:
    for condition in CONDITIONS[3:6]:
        for each in recorded(condition):
            assert each.window.correct_but_late(6) == 0
    at_4, at_16 = (middle(condition, lambda each: each.window.goodput(6)) for condition in CONDITIONS[4:6])
    assert at_16 > at_4


@pytest.mark.parametrize(("admission", "rate", "wrong"), [
    ("by turns", 4, "admission"),
    (None, 4, "admission"),
    (Admission.CONTINUOUS, 2, "arrivals_per_s"),
    (Admission.CONTINUOUS, None, "arrivals_per_s"),
    (Admission.CONTINUOUS, True, "arrivals_per_s"),
    (Admission.ALL_AT_ONCE, 4, "arrivals_per_s"),
    (Admission.CONTINUOUS, [1], "arrivals_per_s"),
    ([], 1, "admission"),
])  # fmt: skip
def test_a_condition_that_was_not_recorded_is_refused(admission: Any, rate: Any, wrong: str) -> None:
    with pytest.raises(InputError) as refusal:
        Condition(admission, rate)
    assert refusal.value.parameter == wrong


def test_a_condition_keeps_its_way_of_admission_as_such() -> None:
    assert Condition("one at a time", 4).admission is Admission.ONE_AT_A_TIME  # type: ignore[arg-type]


@pytest.mark.parametrize("condition", ["one at a time", None, 4, [], {}], ids=repr)
def test_what_is_no_condition_has_no_windows(condition: Any) -> None:
    for call in (recorded, replayed):
        with pytest.raises(InputError, match=r"^condition is "):
            call(condition)
    for quantity_of in (middle, prediction_error):
        with pytest.raises(InputError, match=r"^condition is "):
            quantity_of(condition, lambda _: 1.0)


@pytest.mark.parametrize("window", [None, CONDITIONS[0], []], ids=["None", "a condition", "[]"])
def test_what_is_no_window_has_no_rate(window: Any) -> None:
    with pytest.raises(InputError, match=r"^window is "):
        by_planned_rate(window)


def test_without_a_good_answer_there_is_no_energy_for_one() -> None:
    with pytest.raises(InputError, match=r"^qualified is 0"):
        recorded(CONDITIONS[5])[0].energy_per_qualified(deadline_s=0.1)
