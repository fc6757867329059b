"""Flip distances against a search that asks at every value, and edges that really are edges."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lib.checks import InputError
from lib.flip_distance import (
    BOOK,
    LEAST_DEADLINE_S,
    MOST_DEADLINE_S,
    MOST_FACTOR,
    MOST_HOST_S,
    MOST_OUTPUTS,
    MOST_REQUESTS,
    MOST_ROUND_S,
    OF_DRAFT,
    Case,
    Edge,
    Flip,
    Input,
    chosen,
    flip,
    flips,
    within_limits,
)
from lib.serving import (
    CONFIGURATIONS,
    LESS_MEMORY,
    SHORT_OUTPUTS,
    Configuration,
    Draft,
    Judged,
    Limits,
    Workload,
    judge,
    needs,
)
from lib.units import GIB, MIB

A, B, C, D = CONFIGURATIONS
CASES = {
    "book": BOOK,
    "6 GiB": Case(limits=LESS_MEMORY),
    "16 outputs": Case(workload=SHORT_OUTPUTS),
    "few requests": Case(workload=Workload(requests=6), limits=LESS_MEMORY),
    "no host": Case(workload=Workload(host_removed_s=0.0176)),
    "late": Case(limits=Limits(20 * GIB, 16.0)),
}
WHOLE = (Input.OUTPUTS, Input.REQUESTS)


def verdict_at(case: Case, moved: Input, value: float) -> str | None:
    return case.at(moved, value).choice.name


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("moved", Input)
def test_an_edge_lies_between_two_verdicts(name: str, moved: Input) -> None:
    case = CASES[name]
    found = flip(moved, case)
    assert found.now == case.value(moved)
    for edge, side in ((found.below, -1), (found.above, 1)):
        if edge is None:
            continue
        assert (edge.first - edge.last) * side > 0 and (edge.last - found.now) * side >= 0
        assert verdict_at(case, moved, edge.last) == case.choice.name
        assert verdict_at(case, moved, edge.first) == edge.then != case.choice.name
        gap = abs(edge.first - edge.last)
        assert gap == 1 if moved in (*WHOLE, Input.MEMORY) else gap <= 1e-8 * max(edge.first, edge.last)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("moved", WHOLE)
def test_no_nearer_whole_number_turns_the_choice(name: str, moved: Input) -> None:
    case = CASES[name]
    found = flip(moved, case)
    for edge, step in ((found.below, -1), (found.above, 1)):
        end = edge.first if edge else case.range_of(moved)[step > 0]
        value = int(found.now)
        while value != end and abs(value - found.now) < 300:
            assert verdict_at(case, moved, value) == case.choice.name
            value += step


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("moved", [each for each in Input if each not in WHOLE])
def test_no_nearer_value_on_a_fine_grid_turns_the_choice(name: str, moved: Input) -> None:
    case, points = CASES[name], 150
    found = flip(moved, case)
    for edge, end in zip((found.below, found.above), case.range_of(moved), strict=True):
        last = edge.last if edge else end
        for step in range(points + 1):
            value = found.now + (last - found.now) * step / points
            value = int(value) if moved is Input.MEMORY else value
            assert verdict_at(case, moved, value) == case.choice.name


def edge(found: Edge | None) -> Edge:
    assert found
    return found


def test_limits_turn_where_a_need_meets_them() -> None:
    assert edge(flip(Input.MEMORY).below) == Edge(needs(D).memory_bytes, needs(D).memory_bytes - 1, None)
    assert edge(flip(Input.DEADLINE).below).last == needs(D).total_s
    assert edge(flip(Input.DEADLINE, CASES["6 GiB"]).above).first == needs(B).total_s
    assert edge(flip(Input.OUTPUTS_PER_ROUND).below).last == pytest.approx(judge(D).fewest_outputs_per_round)
    assert flip(Input.HOST) == Flip(Input.HOST, 0, None, None)


def _draft(one: Judged) -> Draft:
    assert one.needs.configuration.draft
    return one.needs.configuration.draft


# Values beyond the most, and below the least, that an input is moved to, and where a verdict on D can read them.
BEYOND: dict[Input, tuple[float, Callable[[Judged], Any]]] = {
    Input.MEMORY: (200 * GIB, lambda one: one.limits.memory_bytes),
    Input.DEADLINE: (2 * MOST_DEADLINE_S, lambda one: one.limits.deadline_s),
    Input.OUTPUTS: (2 * MOST_OUTPUTS, lambda one: one.needs.workload.output_tokens),
    Input.REQUESTS: (2 * MOST_REQUESTS, lambda one: one.needs.workload.requests),
    Input.HOST: (2 * MOST_HOST_S, lambda one: one.needs.workload.host_removed_s),
    Input.DRAFT_ROUND: (2 * MOST_ROUND_S, lambda one: _draft(one).round_s),
    Input.DRAFT_PREFILL: (2 * MOST_FACTOR, lambda one: _draft(one).prefill_factor),
}
BELOW: dict[Input, float] = {Input.MEMORY: MIB // 2, Input.DEADLINE: LEAST_DEADLINE_S / 2}


@pytest.mark.parametrize("moved", BEYOND)
def test_beyond_the_end_of_its_range_nothing_lies_further(moved: Input) -> None:
    now, value_of = BEYOND[moved]
    case = BOOK.at(moved, now)
    turn = (case.range_of(moved)[1] + now) / 2
    found = flip(moved, case, lambda choice: value_of(choice.of("D")) > turn)
    assert found.above is None
    assert edge(found.below).first <= turn < edge(found.below).last < now


@pytest.mark.parametrize("moved", BELOW)
def test_below_the_least_nothing_lies_further_down(moved: Input) -> None:
    now, (_, value_of) = BELOW[moved], BEYOND[moved]
    case = BOOK.at(moved, now)
    turn = (case.range_of(moved)[0] + now) / 2
    found = flip(moved, case, lambda choice: value_of(choice.of("D")) > turn)
    assert found.below is None
    assert now < edge(found.above).last <= turn < edge(found.above).first


def test_another_verdict_turns_elsewhere() -> None:
    found = edge(flip(Input.HOST, verdict=within_limits).above)
    longest = judge(B).longest_round_s
    assert longest is not None
    assert found.first == pytest.approx(needs(B).round_s - longest) and found.then == ("B", "D")


def test_the_nearest_of_two_edges() -> None:
    found = flip(Input.OUTPUTS)
    assert (edge(found.below).first, edge(found.above).first) == (12, 524)
    assert found.nearest == found.below
    assert flip(Input.HOST).nearest is None


def test_all_inputs_are_asked() -> None:
    assert [each.moved for each in flips()] == list(Input)


@pytest.mark.parametrize("seed", range(15))
def test_one_configuration_alone_turns_where_its_own_needs_say(seed: int) -> None:
    draw = Random(seed)
    draft = Draft("some", draw.randint(100, 500) / 100, 5, draw.randint(0, 3000) * MIB)
    one = Configuration("D", True, draft=draft)
    workload = Workload(requests=draw.randint(1, 20), output_tokens=draw.randint(2, 400))
    case = Case((one,), workload, Limits(draw.randint(3, 20) * GIB, draw.uniform(2, 12)))
    found, judged = needs(one, workload), judge(one, workload, case.limits)
    memory, deadline = flip(Input.MEMORY, case), flip(Input.DEADLINE, case)
    if judged.broken is None:
        assert edge(memory.below).last == found.memory_bytes and memory.above is None
        assert edge(deadline.below).last == found.total_s and deadline.above is None
    else:
        fits, is_timely = found.memory_bytes <= case.limits.memory_bytes, found.total_s <= case.limits.deadline_s
        assert (edge(memory.above).first if is_timely else memory.above) == (found.memory_bytes if is_timely else None)
        assert (edge(deadline.above).first if fits else deadline.above) == (found.total_s if fits else None)


@pytest.mark.parametrize("moved", Input)
def test_a_case_with_an_input_moved_has_it(moved: Input) -> None:
    low, high = BOOK.range_of(moved)
    for value in (low, high):
        there = BOOK.at(moved, value)
        assert there.value(moved) == value
        assert there.at(moved, BOOK.value(moved)) == BOOK


WRONG: list[Any] = [
    lambda: flip("no input"),  # type: ignore[arg-type]
    lambda: flip(Input.MEMORY, "book"),  # type: ignore[arg-type]
    lambda: flip(Input.MEMORY, verdict=7),  # type: ignore[arg-type]
    lambda: Case([B]),  # type: ignore[arg-type]
    lambda: Case(()).choice,
    lambda: BOOK.at(Input.REQUESTS, 0),
    lambda: BOOK.at(Input.OUTPUTS_PER_ROUND, 9),
    *(lambda moved=moved: flip(moved, replace(BOOK, drafting="B")) for moved in OF_DRAFT),
]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_what_makes_no_sense_is_refused(place: int) -> None:
    with pytest.raises(InputError, match="allowed: "):
        WRONG[place]()


def test_the_choice_is_a_verdict() -> None:
    assert chosen(BOOK.choice) == "D" and within_limits(BOOK.choice) == ("D",)
