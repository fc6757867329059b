"""The self-test asks about every section, its answers come from `lib`, and what is stored gives none of them away."""

import re

import pytest

from figures.self_test import QUESTIONS, SelfTest, less_memory, self_test, waiting_for_tools
from lib.checks import InputError


@pytest.fixture(scope="module")
def test() -> SelfTest:
    return self_test()


def buttons(test: SelfTest, place: int) -> list[str]:
    return [button.description for button in test.predictions[place].rows[1].children]


def test_each_section_is_asked_about(test: SelfTest) -> None:
    assert {asked.section[:3] for asked in test.asked} == {f"8.{section}" for section in range(1, 7)}


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_one_choice_is_right_and_all_are_told_apart(test: SelfTest, place: int) -> None:
    question = test.asked[place].question
    assert len(set(question.choices)) == len(question.choices) >= 3
    assert question.choices.count(question.answer) == 1
    assert buttons(test, place) == list(question.choices)


def test_the_right_choice_is_not_always_at_the_same_place(test: SelfTest) -> None:
    assert len({asked.question.choices.index(asked.question.answer) for asked in test.asked}) >= 3


def test_a_verdict_stands_below_its_question_and_names_the_section(test: SelfTest) -> None:
    for place, asked in enumerate(test.asked):
        wrong = next(choice for choice in asked.question.choices if choice != asked.question.answer)
        for choice, opening in ((wrong, f"You said {wrong}"), (asked.question.answer, "Right.")):
            told = test.judge(place, choice)
            assert told.startswith(opening)
            assert told.endswith(f"(Section {asked.section}.)")
            row = test.predictions[place].rows[2].value
            assert opening in row.replace("&#x27;", "'")


def test_what_is_stored_are_the_questions_alone(test: SelfTest) -> None:
    before = repr(test)
    test.judge(0, test.asked[0].question.answer)
    assert repr(test) == before
    for asked in test.asked:
        assert asked.question.text in before
        assert asked.question.because not in before
    assert not re.search(r"0x[0-9a-f]{6}", before)


@pytest.mark.parametrize(("place", "choice"), [(-1, "x"), (len(QUESTIONS), "x"), (0, "no such choice"), (True, "x")])
def test_what_is_no_question_and_no_choice_is_refused(test: SelfTest, place: int, choice: str) -> None:
    with pytest.raises(InputError):
        test.judge(place, choice)


def test_what_a_tool_adds_is_not_hidden_in_a_queue() -> None:
    assert "None of that is queue." in waiting_for_tools().question.text


def test_what_misses_by_little_has_the_name_of_its_configuration() -> None:
    asked = less_memory().question
    assert asked.answer == "none of them"
    assert asked.because.endswith("what fits is too late, and D misses by little.")
    assert {"A", "B", "C", "D"} < set(asked.choices)
