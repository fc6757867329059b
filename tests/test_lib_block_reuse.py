"""The story of shared blocks: who refers to them, when they are free, and what happens to those who cannot wait."""

from itertools import groupby, product
from typing import Any

import pytest

from lib.block_reuse import (
    MOST_IN_FLIGHT,
    NEWCOMER,
    POOL_BLOCKS,
    PREFIX_BLOCKS,
    SHARED_BLOCK,
    VALUE_SIZE,
    Ending,
    Kind,
    Moment,
    Rule,
    story,
)
from lib.blocks import State
from lib.checks import InputError

EACH = list(product((2, 3, 4), range(MOST_IN_FLIGHT + 1), Rule, Ending))
each_story = pytest.mark.parametrize(("sharers", "in_flight", "rule", "ending"), EACH)
ROUNDING = 1e-12


def path(moments: tuple[Moment, ...], of: Any) -> list[Any]:
    """What it passes through, each once in a row."""
    return [value for value, _ in groupby(map(of, moments))]


def kinds(moments: tuple[Moment, ...]) -> list[Kind]:
    return [moment.event.kind for moment in moments]


def test_the_book_goes_from_two_references_to_none_and_waits_for_the_step() -> None:
    moments = story(2, 1, Rule.AFTER_STEP, Ending.FIRST_ADMITTED)
    told = [
        (*moment.event, moment.references[SHARED_BLOCK], moment.states[SHARED_BLOCK], moment.free, moment.steps)
        for moment in moments
    ]
    assert told == [
        ("admitted", "A", 1, State.HELD, 5, ()),
        ("finds", "B", 2, State.HELD, 4, ()),
        ("submitted", "1", 2, State.HELD, 4, ("1",)),
        ("ended", "A", 1, State.HELD, 4, ("1",)),
        ("complete", "1", 1, State.HELD, 5, ()),
        ("submitted", "2", 1, State.HELD, 5, ("2",)),
        ("ended", "B", 0, State.WAITING, 5, ("2",)),
        ("refused", "N", 0, State.WAITING, 5, ("2",)),
        ("complete", "2", 0, State.IDLE, 8, ()),
        ("takes", "N", 1, State.HELD, 0, ()),
    ]


def test_given_back_at_once_the_blocks_are_taken_from_under_the_step() -> None:
    moments = story(2, 1, Rule.AT_ONCE, Ending.FIRST_ADMITTED)
    taken = kinds(moments).index(Kind.TAKES)
    assert moments[taken].steps == ("2",)
    assert path(moments, lambda moment: moment.states[SHARED_BLOCK]) == [State.HELD, State.IDLE, State.HELD]
    assert all(moment.error is None or moment.error < ROUNDING for moment in moments[:taken])
    assert all((moment.error or 0) > 0.1 for moment in moments[taken:])


@each_story
def test_each_moment_adds_up(sharers: int, in_flight: int, rule: Rule, ending: Ending) -> None:
    for moment in story(sharers, in_flight, rule, ending):
        assert len(moment.states) == len(moment.references) == len(moment.holders) == POOL_BLOCKS
        assert moment.free == moment.states.count(State.IDLE) + moment.states.count(State.EMPTY)
        for state, references, holders in zip(moment.states, moment.references, moment.holders, strict=True):
            assert references == len(holders)
            assert (state is State.HELD) == (references > 0)
        shared = slice(SHARED_BLOCK, SHARED_BLOCK + PREFIX_BLOCKS)
        assert len(set(moment.holders[shared])) == len(set(moment.states[shared])) == 1


@each_story
def test_the_count_rises_to_all_sharers_and_falls_one_by_one(
    sharers: int, in_flight: int, rule: Rule, ending: Ending
) -> None:
    counts = path(story(sharers, in_flight, rule, ending), lambda moment: moment.references[SHARED_BLOCK])
    assert counts == [*range(1, sharers), *range(sharers, -1, -1), 1]


@each_story
def test_attention_is_right_unless_blocks_are_taken_while_a_step_reads_them(
    sharers: int, in_flight: int, rule: Rule, ending: Ending
) -> None:
    moments = story(sharers, in_flight, rule, ending)
    error = moments[-1].error
    if not in_flight:
        assert error is None
    elif rule is Rule.AFTER_STEP:
        assert error is not None and 0 <= error < ROUNDING
    else:
        assert error is not None and error > 0.1


@each_story
def test_the_newcomer_waits_for_all_steps_or_for_none(sharers: int, in_flight: int, rule: Rule, ending: Ending) -> None:
    moments = story(sharers, in_flight, rule, ending)
    waits = in_flight and rule is Rule.AFTER_STEP
    assert (Kind.REFUSED in kinds(moments)) == bool(waits)
    taken = moments[kinds(moments).index(Kind.TAKES)]
    assert taken.holders == ((NEWCOMER,),) * POOL_BLOCKS
    assert len(taken.steps) == (0 if rule is Rule.AFTER_STEP else in_flight)
    assert moments[-1].steps == ()


@each_story
def test_a_block_without_references_waits_while_a_step_is_in_flight(
    sharers: int, in_flight: int, rule: Rule, ending: Ending
) -> None:
    for moment in story(sharers, in_flight, rule, ending):
        if not moment.steps or rule is Rule.AT_ONCE:
            assert State.WAITING not in moment.states
        elif not moment.references[SHARED_BLOCK]:
            assert moment.states[SHARED_BLOCK] is State.WAITING


def test_who_ends_first_makes_no_difference_to_the_count() -> None:
    first, last = (story(3, 1, Rule.AFTER_STEP, ending) for ending in Ending)
    assert [moment.references[SHARED_BLOCK] for moment in first] == [moment.references[SHARED_BLOCK] for moment in last]
    ended = [[moment.event.who for moment in told if moment.event.kind is Kind.ENDED] for told in (first, last)]
    assert ended == [["A", "B", "C"], ["C", "B", "A"]]


def test_with_two_steps_in_flight_one_is_not_enough() -> None:
    moments = story(2, 2, Rule.AFTER_STEP, Ending.FIRST_ADMITTED)
    asked = kinds(moments).index(Kind.REFUSED)
    first = moments[asked + 1]
    assert (first.event, first.steps) == ((Kind.COMPLETE, "2"), ("3",))
    assert (first.references[SHARED_BLOCK], first.states[SHARED_BLOCK], first.free) == (0, State.WAITING, 5)


@each_story
def test_the_others_go_on_with_a_step_of_their_own_after_one_has_ended(
    sharers: int, in_flight: int, rule: Rule, ending: Ending
) -> None:
    moments = story(sharers, in_flight, rule, ending)
    ended = kinds(moments).index(Kind.ENDED)
    later = [moment for moment in moments[ended:] if moment.event.kind is Kind.SUBMITTED]
    assert len(later) == bool(in_flight)
    gone = moments[ended].event.who
    for moment in later:
        assert len(moment.holders[SHARED_BLOCK]) == sharers - 1
        assert gone not in moment.holders[SHARED_BLOCK]
        assert len(moment.steps) == in_flight


def test_values_are_about_1_in_size() -> None:
    assert abs(VALUE_SIZE - 1) < 0.1


@pytest.mark.parametrize("sharers", [1, 5])
def test_too_few_or_too_many_sharers_are_refused(sharers: int) -> None:
    with pytest.raises(InputError, match=rf"^sharers is {sharers}; allowed: a whole number from 2 to 4$"):
        story(sharers, 1, Rule.AFTER_STEP, Ending.FIRST_ADMITTED)


def test_too_many_steps_in_flight_are_refused() -> None:
    with pytest.raises(InputError, match=r"^in_flight is 3; allowed: a whole number from 0 to 2$"):
        story(2, 3, Rule.AFTER_STEP, Ending.FIRST_ADMITTED)
