"""What a window of requests is worth: counts, rates, waits and energy, against a plain count of every request."""

import math
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from lib.checks import InputError
from lib.goodput import (
    MOST_COMPLETED,
    Outcome,
    Since,
    Window,
    completion_throughput,
    energy_per_qualified,
    goodput,
    gpu_time_per_qualified,
)

FOUR = Window(
    (
        Outcome(0.0, 0.0, 0.5, 1.0, True),
        Outcome(1.0, 3.5, 4.0, 5.0, True),
        Outcome(2.0, 2.0, 3.0, 4.0, False),
        Outcome(3.0, 5.0, 6.0, 8.0, False),
    ),
    8.0,
)
LOST = Outcome(1.0, 2.0, 2.5, None, False)
DEADLINES = (0.1, 0.5, 1.0, 2.0, 3.3, 7.0, 50.0)


def drawn(seed: int) -> Window:
    """Requests of all kinds: some refused, some cancelled before and some behind their first token."""
    random, outcomes = Random(seed), []
    for _ in range(random.randint(1, 40)):
        arrival = random.uniform(0, 20)
        times: list[float | None] = []
        for longest in (4.0, 1.0, 5.0):
            before = times[-1] if times else arrival
            comes = before is not None and random.random() < 0.9
            times.append(
                before + random.choice((0.0, random.uniform(0, longest))) if comes and before is not None else None
            )
        outcomes.append(Outcome(arrival, times[0], times[1], times[2], times[2] is not None and random.random() < 0.8))
    return Window(tuple(outcomes), 40.0)


def plain_qualified(window: Window, deadline_s: float, since: Since) -> int:
    found = 0
    for each in window.outcomes:
        if each.finish_s is None or each.sent_s is None or not each.is_correct:
            continue
        start = each.sent_s if since is Since.SENDING else each.arrival_s
        found += each.finish_s - start <= deadline_s
    return found


def test_only_right_answers_in_time_count() -> None:
    assert (FOUR.completed, FOUR.correct, FOUR.in_time(3), FOUR.qualified(3)) == (4, 2, 2, 1)
    assert (FOUR.correct_but_late(3), FOUR.in_time_but_wrong(3)) == (1, 1)
    assert (FOUR.completion_throughput, FOUR.goodput(3)) == (4 / 8, 1 / 8)


def test_the_other_clock_hides_the_wait_outside() -> None:
    assert [FOUR.goodput(3, since) for since in Since] == [1 / 8, 2 / 8]
    assert [FOUR.longest_s(since) for since in Since] == [5, 3]
    assert [FOUR.longest_ttft_s(since) for since in Since] == [3, 1]
    assert FOUR.longest_queue_s == 2.5


def test_the_formula_is_a_sum_of_products_over_the_time() -> None:
    assert goodput((True, True, False, True), (True, False, True, True), 4.0) == 0.5
    assert goodput([], [], 4.0) == 0
    assert completion_throughput(16, 8.0) == 2


@pytest.mark.parametrize("seed", range(40))
def test_counts_are_those_of_a_plain_loop(seed: int) -> None:
    window = drawn(seed)
    assert window.completed == sum(each.finish_s is not None for each in window.outcomes)
    for since in Since:
        for deadline in DEADLINES:
            qualified = plain_qualified(window, deadline, since)
            assert window.qualified(deadline, since) == qualified
            assert window.goodput(deadline, since) == pytest.approx(qualified / window.length_s)
            assert window.correct_but_late(deadline, since) == window.correct - qualified
            assert window.in_time_but_wrong(deadline, since) == window.in_time(deadline, since) - qualified


@pytest.mark.parametrize("seed", range(40))
def test_no_clock_and_no_deadline_makes_more_good_than_there_is(seed: int) -> None:
    window = drawn(seed)
    for since in Since:
        good = [window.goodput(deadline, since) for deadline in DEADLINES]
        assert good == sorted(good), "a later deadline loses an answer"
        assert good[-1] == window.correct / window.length_s <= window.completion_throughput
    for deadline in DEADLINES:
        assert window.qualified(deadline, Since.PLANNED_ARRIVAL) <= window.qualified(deadline, Since.SENDING)


@pytest.mark.parametrize("seed", range(40))
def test_the_mean_in_the_system_is_what_a_look_at_each_moment_finds(seed: int) -> None:
    window = drawn(seed)
    if not window.completed:
        return
    came = [each for each in window.outcomes if each.finish_s is not None]
    moments = sorted({time for each in came for time in (each.arrival_s, each.finish_s) if time is not None})
    held = 0.0
    for start, stop in pairwise(moments):
        inside = sum(each.arrival_s <= start and stop <= (each.finish_s or 0) for each in came)
        held += inside * (stop - start)
    assert window.mean_in_system == pytest.approx(held / window.length_s, abs=1e-7)
    assert window.mean_in_system == pytest.approx(window.completion_throughput * window.mean_stay_s)


def test_the_tail_of_sixteen_is_the_longest() -> None:
    sixteen = Window(tuple(Outcome(place, place, place, place + 1 + place / 100, True) for place in range(16)), 17.0)
    assert sixteen.latency_percentile_s(95) == sixteen.longest_s() == 1.15
    assert sixteen.latency_percentile_s(93.75) == 1.14


def test_exactly_the_deadline_is_in_time_whatever_binary_fractions_say() -> None:
    window = Window((Outcome(0.1, 0.1, 0.2, 0.1 + 0.2, True),), 1.0)
    assert 0.1 + 0.2 - 0.1 > 0.2
    assert window.qualified(0.2) == 1
    assert window.qualified(0.2 - 1e-6) == 0


def test_what_never_came_counts_in_no_rate_and_in_no_wait() -> None:
    window = Window((*FOUR.outcomes, LOST, Outcome(7.0, None, None, None, False)), 8.0)
    assert (window.completed, window.correct, window.in_time(1e9)) == (4, 2, 4)
    assert window.mean_in_system == FOUR.mean_in_system
    assert (LOST.latency_s(), LOST.ttft_s(), LOST.ttft_s(Since.SENDING), LOST.queue_s) == (None, 1.5, 0.5, 1.0)


def test_of_nothing_that_came_nothing_is_longest() -> None:
    nobody = Window((LOST,), 8.0)
    assert (nobody.completion_throughput, nobody.goodput(3), nobody.mean_in_system) == (0, 0, 0)
    assert nobody.longest_ttft_s() == 1.5
    for asked in ("longest_s", "latency_percentile_s"):
        with pytest.raises(InputError, match=r"^values is "):
            getattr(nobody, asked)(*([] if asked == "longest_s" else [95]))
    with pytest.raises(InputError, match=r"^outcomes is .*at least one request that came back$"):
        _ = nobody.mean_stay_s
    refused = Window((Outcome(7.0, None, None, None, False),), 8.0)
    assert refused.longest_queue_s == 0


def test_wrong_and_late_answers_stay_in_the_numerator() -> None:
    assert energy_per_qualified(4500, 6) == 750
    assert gpu_time_per_qualified(9.0, 16) == 0.5625


@pytest.mark.parametrize(("times", "wrong"), [
    ((-1.0, 0.0, 1.0, 2.0, True), "arrival_s"),
    ((None, 0.0, 1.0, 2.0, True), "arrival_s"),
    ((math.nan, 0.0, 1.0, 2.0, True), "arrival_s"),
    ((1.0, 0.5, 1.0, 2.0, True), "sent_s"),
    ((1.0, math.nan, 1.0, 2.0, True), "sent_s"),
    ((1.0, 2.0, 1.5, 2.0, True), "first_token_s"),
    ((1.0, 2.0, True, 2.0, True), "first_token_s"),
    ((1.0, None, 1.5, 2.0, True), "first_token_s"),
    ((1.0, 2.0, 2.5, 2.2, True), "finish_s"),
    ((1.0, 2.0, None, 2.2, True), "finish_s"),
    ((1.0, 2.0, 2.5, math.inf, True), "finish_s"),
    ((1.0, 2.0, 2.5, "3", True), "finish_s"),
    ((1.0, 2.0, 2.5, 3.0, 1), "is_correct"),
    ((1.0, 2.0, 2.5, 3.0, 2), "is_correct"),
    ((1.0, 2.0, 2.5, 3.0, None), "is_correct"),
    ((1.0, 2.0, 2.5, None, True), "is_correct"),
])  # fmt: skip
def test_an_outcome_that_makes_no_sense_is_refused(times: Any, wrong: str) -> None:
    with pytest.raises(InputError) as refusal:
        Outcome(*times)
    assert refusal.value.parameter == wrong


@pytest.mark.parametrize(("outcomes", "length_s", "wrong"), [
    ((), 8.0, "outcomes"),
    ([LOST], 8.0, "outcomes"),
    ((LOST, None), 8.0, "outcomes"),
    ((LOST,), 0, "length_s"),
    ((LOST,), -1.0, "length_s"),
    ((LOST,), math.nan, "length_s"),
    ((LOST,), True, "length_s"),
    ((LOST,), 0.5, "length_s"),
    (FOUR.outcomes, 7.9, "length_s"),
])  # fmt: skip
def test_a_window_that_makes_no_sense_is_refused(outcomes: Any, length_s: Any, wrong: str) -> None:
    with pytest.raises(InputError) as refusal:
        Window(outcomes, length_s)
    assert refusal.value.parameter == wrong


@pytest.mark.parametrize("deadline", [0, -1, math.nan, math.inf, True, None, "3"], ids=repr)
@pytest.mark.parametrize("count", ["in_time", "qualified", "goodput", "correct_but_late", "in_time_but_wrong"])
def test_a_deadline_is_a_time_above_zero(count: str, deadline: Any) -> None:
    with pytest.raises(InputError, match=r"^deadline_s is .*above 0 s"):
        getattr(FOUR, count)(deadline)


@pytest.mark.parametrize("since", ["the weekend", None, 0], ids=repr)
def test_there_are_two_clocks(since: Any) -> None:
    for ask in (FOUR.longest_s, FOUR.longest_ttft_s, FOUR.outcomes[0].latency_s, lambda one: FOUR.goodput(3, one)):
        with pytest.raises(InputError, match=r"^since is .*one of 'planned arrival', 'sending'$"):
            ask(since)


@pytest.mark.parametrize(("correct", "in_time", "wrong"), [
    ((True, 1), (True, True), "correct"),
    ((True,), (0.5,), "in_time"),
    ((True,), (True, True), "in_time"),
    (3, (True,), "correct"),
    ((True,), None, "in_time"),
])  # fmt: skip
def test_correct_and_in_time_are_true_or_false_for_each_request(correct: Any, in_time: Any, wrong: str) -> None:
    with pytest.raises(InputError) as refusal:
        goodput(correct, in_time, 8.0)
    assert refusal.value.parameter == wrong


@pytest.mark.parametrize("call", [
    lambda count: completion_throughput(count, 1.0), lambda count: energy_per_qualified(1.0, count),
    lambda count: gpu_time_per_qualified(1.0, count),
], ids=["completed", "energy", "time"])  # fmt: skip
def test_so_many_requests_are_none(call: Any) -> None:
    assert call(MOST_COMPLETED) in (MOST_COMPLETED, 1 / MOST_COMPLETED)
    for count in (MOST_COMPLETED + 1, 10**400):
        with pytest.raises(InputError, match=r"^(completed|qualified) is .* to 1,000,000,000,000$"):
            call(count)


def test_so_much_energy_is_none() -> None:
    with pytest.raises(InputError, match=r"^energy_j is 1e\+16; allowed: an energy from 0 J to 1e\+15 J$"):
        energy_per_qualified(1e16, 1)
