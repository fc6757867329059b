"""What a user waits for."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import step_time
from lib.latency import (
    InsertedAs,
    TimedRequest,
    delay_of_inserted_prefill,
    evenly_timed_request,
    prefills_that_fit,
    request_time,
    slack,
    time_to_first_token,
)

TIMES = st.floats(0, 1000)
ABOVE_ZERO = st.floats(1e-6, 1000)
OUTPUTS = st.integers(1, 200)


@st.composite
def requests(draw: st.DrawFn) -> TimedRequest:
    outputs = draw(OUTPUTS)
    return evenly_timed_request(
        queue=draw(TIMES),
        prefill=draw(TIMES),
        interval=draw(TIMES),
        outputs=outputs,
        deadline=draw(ABOVE_ZERO),
        inserted=draw(st.integers(0, outputs - 1)),
        delay=draw(TIMES),
    )


@given(TIMES, TIMES)
def test_the_first_token_waits_for_queue_and_prefill(queue: float, prefill: float) -> None:
    assert time_to_first_token(queue, prefill) == queue + prefill


@given(TIMES, st.lists(TIMES, max_size=50))
def test_a_request_takes_its_first_token_and_all_intervals(first: float, intervals: list[float]) -> None:
    assert math.isclose(request_time(first, intervals), first + sum(intervals), rel_tol=1e-12)
    assert request_time(first, []) == first


@given(ABOVE_ZERO, TIMES)
def test_slack_is_negative_exactly_when_a_request_is_late(deadline: float, time: float) -> None:
    assert slack(deadline, time) == deadline - time
    assert slack(time + 1, time) > 0 > slack(deadline, deadline + 1)


@given(requests())
def test_g_outputs_have_g_minus_1_intervals_and_one_time_each(request: TimedRequest) -> None:
    assert len(request.output_times_s) == len(request.intervals_s) + 1


@given(OUTPUTS)
def test_as_many_outputs_as_were_asked_for(outputs: int) -> None:
    request = evenly_timed_request(queue=0, prefill=1, interval=1, outputs=outputs, deadline=1)
    assert len(request.output_times_s) == outputs


@given(requests())
def test_time_to_first_token_and_intervals_make_the_whole(request: TimedRequest) -> None:
    assert math.isclose(request.ttft_s + sum(request.intervals_s), request.total_s, rel_tol=1e-12)


@given(requests())
def test_outputs_come_in_order_from_the_first_token_to_the_end(request: TimedRequest) -> None:
    times = request.output_times_s
    assert times[0] == request.ttft_s
    assert math.isclose(times[-1], request.total_s, rel_tol=1e-12)
    assert all(earlier <= later for earlier, later in pairwise(times))


@given(requests())
def test_the_longest_interval_is_no_time_to_first_token(request: TimedRequest) -> None:
    assert request.longest_interval_s == (max(request.intervals_s) if request.intervals_s else 0.0)


@given(requests())
def test_slack_is_what_the_deadline_leaves(request: TimedRequest) -> None:
    assert request.slack_s == request.deadline_s - request.total_s


@given(OUTPUTS, TIMES, TIMES, st.data())
def test_each_inserted_prefill_lengthens_one_interval_by_its_delay(
    outputs: int, interval: float, delay: float, data: st.DataObject
) -> None:
    inserted = data.draw(st.integers(0, outputs - 1))
    request = evenly_timed_request(
        queue=0, prefill=0.1, interval=interval, outputs=outputs, deadline=7, inserted=inserted, delay=delay
    )
    assert len(set(request.delayed)) == len(request.delayed) == inserted
    for place, length in enumerate(request.intervals_s):
        assert length == (interval + delay if place in request.delayed else interval)


@given(st.integers(2, 200), st.data())
def test_inserted_prefills_lie_evenly_apart(outputs: int, data: st.DataObject) -> None:
    intervals = outputs - 1
    inserted = data.draw(st.integers(1, intervals))
    request = evenly_timed_request(
        queue=0, prefill=0, interval=1, outputs=outputs, deadline=7, inserted=inserted, delay=1
    )
    assert request.delayed[-1] < intervals
    gaps = [later - earlier for earlier, later in pairwise((0, *request.delayed, intervals))]
    assert min(gaps) >= 0
    assert max(gaps) - min(gaps) <= 1


@given(st.integers(1, 100_000), TIMES)
def test_a_prefill_as_its_own_pass_adds_exactly_its_time(tokens: int, alone: float) -> None:
    assert delay_of_inserted_prefill(tokens, alone, InsertedAs.OWN_PASS) == alone


@given(st.integers(1, 100_000))
def test_a_prefill_inside_a_step_adds_its_tokens_and_pairs_and_no_fixed_part(tokens: int) -> None:
    added = delay_of_inserted_prefill(tokens, 0.0, InsertedAs.INSIDE_STEP)
    alone = step_time.FIT(step_time.step_plan((tokens, 0))) / 1e9
    assert math.isclose(added, alone - step_time.FIT.fixed_ns / 1e9, rel_tol=1e-12)


@given(st.integers(1, 100), TIMES)
def test_own_passes_delay_the_whole_request_by_the_sum_of_their_times(inserted: int, alone: float) -> None:
    common = {"queue": 0.1, "prefill": 0.1, "interval": 0.02, "outputs": 128, "deadline": 7.0}
    delay = delay_of_inserted_prefill(2048, alone, InsertedAs.OWN_PASS)
    with_them = evenly_timed_request(**common, inserted=inserted, delay=delay)  # type: ignore[arg-type]
    without = evenly_timed_request(**common)  # type: ignore[arg-type]
    assert math.isclose(with_them.total_s - without.total_s, inserted * alone, rel_tol=1e-9, abs_tol=1e-9)


@given(requests(), ABOVE_ZERO)
def test_so_many_prefills_fit_and_not_one_more(request: TimedRequest, delay: float) -> None:
    fit = prefills_that_fit(request, delay)
    slip = 1e-9 * (abs(request.slack_s) + delay)
    assert fit >= 0
    assert (fit + 1) * delay > request.slack_s - slip
    assert fit == 0 or fit * delay <= request.slack_s + slip


@pytest.mark.parametrize(("left", "fit"), [(-0.5, 0), (0.0, 0), (0.5, 0), (1.0, 1), (2.75, 2)])
def test_a_late_request_bears_no_prefill(left: float, fit: int) -> None:
    request = evenly_timed_request(queue=0, prefill=1, interval=1, outputs=2, deadline=2 + left)
    assert prefills_that_fit(request, delay_s=1) == fit
