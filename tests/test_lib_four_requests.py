"""The worked example of section 8.2.2, as the chapter prints it."""

import pytest

from lib.checks import InputError
from lib.fast_forward import simulate
from lib.four_requests import MS, NAMES, Batching, four_requests, policy_of
from lib.schedule import Schedule
from lib.scheduling import Entry, Order


def run(policy: Batching) -> Schedule:
    return simulate(four_requests(), policy_of(policy))


@pytest.mark.parametrize(
    ("policy", "total_ms", "longest_ms", "first_ms", "idle", "rows", "steps"),
    [
        (Batching.FIXED, 870, 26, 772, 8, 24, 12),
        (Batching.CONTINUOUS, 766, 376, 546, 0, 16, 8),
        (Batching.CHUNKED, 844, 133, 624, 3, 22, 11),
    ],
)
def test_the_three_runs_come_out_as_printed(
    policy: Batching, total_ms: int, longest_ms: int, first_ms: int, idle: int, rows: int, steps: int
) -> None:
    schedule = run(policy)
    longest = schedule.longest_interval()
    assert longest
    in_ms = [round(time / MS) for time in (schedule.total_ns, longest.length_ns, int(schedule.ttft_ns[2]))]
    assert in_ms == [total_ms, longest_ms, first_ms]
    assert (schedule.idle_rows, schedule.row_steps, schedule.step_count) == (idle, rows, steps)


def test_the_requests_are_those_of_the_chapter() -> None:
    load = four_requests()
    assert tuple(request.name for request in load) == NAMES
    assert [request.arrival_ns for request in load] == [0, 0, 20 * MS, 30 * MS]
    assert [request.prompt for request in load] == [2048, 2048, 8192, 2048]
    assert [request.output for request in load] == [8, 2, 2, 4]


def test_what_is_changed_changes_and_nothing_else() -> None:
    load = four_requests(r0_outputs=3, r1_outputs=5, r2_arrival_ns=7, r3_arrival_ns=9, r2_prompt=11)
    assert [request.output for request in load] == [3, 5, 2, 4]
    assert [request.arrival_ns for request in load] == [0, 0, 7, 9]
    assert [request.prompt for request in load] == [2048, 2048, 11, 2048]


def test_who_arrives_first_comes_first() -> None:
    assert [request.name for request in four_requests(r2_arrival_ns=30, r3_arrival_ns=20)] == ["r0", "r1", "r3", "r2"]
    assert [request.name for request in four_requests(r2_arrival_ns=0, r3_arrival_ns=0)] == list(NAMES)


def test_each_policy_has_the_limits_that_are_its_own() -> None:
    fixed = policy_of(Batching.FIXED, 3, wait_to_fill_ns=5)
    assert (fixed.entry, fixed.max_running, fixed.wait_to_fill_ns, fixed.chunk) == (Entry.WHEN_ALL_ENDED, 3, 5, None)
    continuous = policy_of(Batching.CONTINUOUS, 3, wait_to_fill_ns=5, chunk=7)
    assert (continuous.entry, continuous.wait_to_fill_ns, continuous.chunk) == (Entry.AT_BORDER, 0, None)
    chunked = policy_of(Batching.CHUNKED, 3, chunk=7, token_budget=9, order=Order.PROMPTS_FIRST)
    assert (chunked.chunk, chunked.token_budget, chunked.order) == (7, 9, Order.PROMPTS_FIRST)


def test_a_budget_below_the_running_requests_is_refused() -> None:
    with pytest.raises(InputError, match=r"^token_budget is 3; allowed: at least max_running, 4"):
        policy_of(Batching.CHUNKED, 4, token_budget=3)
