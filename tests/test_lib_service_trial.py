"""A trial runs the recorded tasks through a setting: what it tells of each request, and what it refuses."""

from itertools import pairwise

import pytest

from lib.arrivals import at_once, even
from lib.checks import InputError
from lib.goodput import goodput
from lib.load_curve import ORDERS
from lib.service_calibration import LONG_TASK, POOL, WRONG_TASK, serve
from lib.service_record import DEADLINE_S, Admission
from lib.service_trial import Setting, Trial, run_trial
from lib.units import GIB

TASKS = ORDERS[0]
RECORDED, ALONE = Setting("as recorded"), Setting("one at a time", most_running=1)


def trial(setting: Setting, rate: float = 4) -> Trial:
    return run_trial(setting, TASKS, even(rate, len(TASKS)))


@pytest.mark.parametrize("rate", [1, 4, 16])
def test_the_recorded_setting_is_the_recorded_service_simulated(rate: int) -> None:
    served = serve(TASKS, even(rate, len(TASKS)), Admission.CONTINUOUS)
    tried = trial(RECORDED, rate)
    assert tried.window == served
    assert tried.window_s == served.length_s


@pytest.mark.parametrize("setting", [RECORDED, ALONE, Setting("eight", most_running=8)], ids=lambda one: one.name)
def test_each_request_is_told_in_order(setting: Setting) -> None:
    rows = trial(setting).rows
    assert [row.task for row in rows] == list(TASKS)
    for row in rows:
        assert row.planned_s <= row.started_s < row.first_output_s < row.end_s
        assert row.is_correct == (row.task != WRONG_TASK)
    assert sum(not row.is_correct for row in rows) == 2
    in_engine = [sum(other.started_s <= row.started_s < other.end_s for other in rows) for row in rows]
    assert max(in_engine) <= setting.most_running


def test_one_at_a_time_is_one_behind_the_other() -> None:
    rows = trial(ALONE).rows
    assert all(later.started_s >= earlier.end_s for earlier, later in pairwise(rows))
    assert trial(ALONE).peak_bytes == POOL.private_bytes(LONG_TASK)


def test_goodput_counts_right_answers_from_the_planned_arrival() -> None:
    tried = trial(RECORDED)
    right = [row.is_correct for row in tried.rows]
    in_time = [row.end_s - row.planned_s <= DEADLINE_S for row in tried.rows]
    assert tried.window.goodput(DEADLINE_S) == pytest.approx(goodput(right, in_time, tried.window_s))
    assert tried.window.goodput(DEADLINE_S) > trial(ALONE).window.goodput(DEADLINE_S)


def test_more_at_once_hold_more() -> None:
    peaks = [run_trial(Setting("n", most_running=n), TASKS, at_once(16)).peak_bytes for n in (1, 2, 4, 8)]
    assert peaks == sorted(set(peaks))
    assert peaks[2] <= 4 * POOL.private_bytes(LONG_TASK)


def test_a_small_pool_keeps_requests_outside() -> None:
    small = run_trial(Setting("small", pool_bytes=2 * GIB), TASKS, at_once(16))
    assert small.peak_bytes <= 2 * GIB and small.preemptions == 0
    assert small.window_s >= run_trial(RECORDED, TASKS, at_once(16)).window_s


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: Setting(""), "name"),
        (lambda: Setting("x", most_running=0), "most_running"),
        (lambda: Setting("x", token_budget=3), "token_budget"),
        (lambda: Setting("x", pool_bytes=1), "pool_bytes"),
        (lambda: trial(Setting("x", pool_bytes=GIB // 2)), "pool_bytes"),
        (lambda: run_trial("x", TASKS, even(1, 16)), "setting"),  # type: ignore[arg-type]
        (lambda: run_trial(RECORDED, ["nothing"], [0]), "task"),
        (lambda: run_trial(RECORDED, TASKS, [0]), "arrivals_ns"),
    ],
    ids=range(8),
)
def test_what_makes_no_sense_is_refused(call: object, parameter: str) -> None:
    assert callable(call)
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.parameter == parameter
