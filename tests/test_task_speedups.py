"""The explorer of a whole task: curves, dots and ceilings lie where they should, what is said is true."""

import math
import re
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures import style
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.task_speedups import MOST_SPEEDUP, ROLES, TASK_SPEEDUP_EXPLORATION
from figures.words import LANGUAGES
from lib.clocks import Clock
from lib.exercise_8_8 import BOOK as EXERCISE_BOOK
from lib.exercise_8_8 import EXERCISE
from lib.exercises import NumberPart
from tests.test_exercises import flat, numbers

TASK_SPEEDUP = entry("task-speedup")
BOOK = book_values(TASK_SPEEDUP.draw, TASK_SPEEDUP.arguments)
SHARES = ("first_share", "second_share", "third_share")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"speedup": 1},
    {"speedup": 100, "preparation_s": 60.0},
    {"preparation_s": 0.5, "speedup": 2.5},
    {"first_share": 0.0, "second_share": 0.95, "third_share": 0.05},
    {"first_share": 0.5, "second_share": 0.5, "third_share": 0.5, "preparation_s": 20.0, "speedup": 30},
    {"third_share": 1.0, "speedup": 42},
    {"first_share": 0.0, "second_share": 0.0, "third_share": 0.0, "preparation_s": 60.0, "speedup": 50},
)
each_setting = pytest.mark.parametrize("settings", SETTINGS, ids=repr)


def times_as_fast(part: float, speedup: float, preparation_s: float) -> float:
    """The old time over the new, second by second of a task that took 100 s."""
    return 100 / (100 - 100 * part + 100 * part / speedup + preparation_s)


def drawn(figure: Figure, role: str) -> tuple[list[list[float]], list[float]]:
    """The points of the curve in this role's look, and the heights of level lines in its colour."""
    colour, _ = style.LINE[role]
    lines = [np.asarray(line.get_xydata()) for line in figure.axes[0].lines if line.get_color() == colour]
    (curve,) = [points.tolist() for points in lines if len(points) > 2]
    return curve, [float(points[0, 1]) for points in lines if len(points) == 2]


def shares(settings: dict[str, Any]) -> list[float]:
    return [(BOOK | settings)[name] for name in SHARES]


@each_setting
def test_each_curve_is_the_old_time_over_the_new(settings: dict[str, Any]) -> None:
    figure, here = TASK_SPEEDUP.figure(**settings), BOOK | settings
    for part, role in zip(shares(settings), ROLES, strict=True):
        curve, ceilings = drawn(figure, role)
        assert [curve[0][0], curve[-1][0]] == [1, pytest.approx(MOST_SPEEDUP)]
        for speedup, height in curve:
            assert height == pytest.approx(times_as_fast(part, speedup, here["preparation_s"]))
        left_s = 100 - 100 * part + here["preparation_s"]
        assert ceilings == pytest.approx([100 / left_s] if left_s else [])
        assert all(curve[-1][1] <= ceiling + 1e-9 for ceiling in ceilings)


@each_setting
def test_the_dots_stand_on_the_curves_at_the_chosen_speedup(settings: dict[str, Any]) -> None:
    here = BOOK | settings
    (dots,) = [line for line in TASK_SPEEDUP.figure(**settings).axes[0].lines if line.get_marker() == "o"]
    heights = [times_as_fast(part, here["speedup"], here["preparation_s"]) for part in shares(settings)]
    assert np.asarray(dots.get_xdata()).tolist() == [here["speedup"]] * 3
    assert np.asarray(dots.get_ydata()).tolist() == pytest.approx(heights)


@each_setting
def test_all_that_is_drawn_lies_in_the_box(settings: dict[str, Any]) -> None:
    figure = TASK_SPEEDUP.figure(**settings)
    low, high = figure.axes[0].get_ylim()
    for role in ROLES:
        curve, ceilings = drawn(figure, role)
        assert low == 0 and all(0 < height <= high for height in [*(height for _, height in curve), *ceilings])


@each_setting
def test_the_key_and_the_readouts_say_the_same(settings: dict[str, Any]) -> None:
    here = BOOK | settings
    texts = [text.get_text() for text in visible_texts(TASK_SPEEDUP.figure(**settings))]
    shown = {one.label: one for one in TASK_SPEEDUP_EXPLORATION.readouts(**here)}
    for name, part in zip(("first", "second", "third"), shares(settings), strict=True):
        gain = times_as_fast(part, here["speedup"], here["preparation_s"])
        new_s = 100 / gain
        assert str(shown[f"{name} share: task, times as fast"]) == f"{gain:.2f}"
        assert shown[f"{name} share: the task takes"].amount == pytest.approx(new_s)
        assert shown[f"{name} share: then decode, in %"].amount == pytest.approx(1e4 * part / here["speedup"] / new_s)
        told = f"decode {100 * part:.4g} % of the time: the task {gain:.2f} times as fast"
        line = next(text for text in texts if text.startswith(told))
        assert ("slower" in line) == (gain < 1)
        ceiling = str(shown[f"{name} share: ceiling"])
        assert line.endswith("without a ceiling" if ceiling == "none" else f"at most {ceiling}")
    assert any("Nothing is prepared." in text for text in texts) == (here["preparation_s"] == 0)


def test_the_books_readouts() -> None:
    shown = [str(one) for one in TASK_SPEEDUP_EXPLORATION.readouts(**BOOK)]
    assert shown[:4] == ["1.18", "1.25", "6", "85.0 s"]
    assert shown[4:8] == ["1.60", "2.00", "20", "62.5 s"]
    assert shown[8:] == ["2.50", "5.00", "50", "40.0 s"]
    assert {clock for one in TASK_SPEEDUP_EXPLORATION.readouts(**BOOK) for clock in one.clocks} == {Clock.ASSUMED}


def test_the_question_is_about_what_is_not_drawn() -> None:
    question = TASK_SPEEDUP_EXPLORATION.question()
    assert question.answer == "slower" and question.answer in question.choices
    shown = [text.get_text() for text in visible_texts(TASK_SPEEDUP.figure())]
    assert not any("slower" in text for text in shown)
    revealed = BOOK | dict(question.reveals)
    gain = times_as_fast(revealed["second_share"], revealed["speedup"], revealed["preparation_s"])
    assert gain < 1 and f"{gain:.2f} times as fast" in question.because
    assert "50 %" in question.text and "4 times" in question.text and "60 s" in question.text
    assert "122.5 s" in question.because and "it is 0.90" in question.because
    shown = [text.get_text() for text in visible_texts(TASK_SPEEDUP.figure(**dict(question.reveals)))]
    assert any(f"50 % of the time: the task {gain:.2f} times as fast (slower)" in text for text in shown)


def test_the_question_gives_no_answer_of_exercise_8_8_away() -> None:
    question = TASK_SPEEDUP_EXPLORATION.question()
    answers = [each for part in EXERCISE.parts if isinstance(part, NumberPart) for each in numbers(part, EXERCISE_BOOK)]
    assert len(answers) > 3
    for answer in flat(answers):
        assert f"{answer:g}" not in re.findall(r"\d+\.\d+", question.text + question.because)


def test_the_named_settings_answer_it() -> None:
    for settings in TASK_SPEEDUP_EXPLORATION.settings.values():
        here = BOOK | dict(settings)
        gain = times_as_fast(here["second_share"], here["speedup"], here["preparation_s"])
        assert gain < 100 / 50
        assert (gain < 1) == (here["preparation_s"] == 60)


@pytest.mark.parametrize("wrong", [0, 0.5, 101, math.nan, True])
def test_a_speedup_off_the_axis_is_one_sentence(wrong: Any) -> None:
    sentence = explore("task-speedup", speedup=wrong).sentence
    assert sentence.startswith(f"Nothing to draw: speedup is {wrong!r}; allowed: a factor from 1 to 100 (")


@pytest.mark.parametrize("language", LANGUAGES)
@each_setting
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(TASK_SPEEDUP.figure(language=language, **settings), TASK_SPEEDUP.slug, TASK_SPEEDUP.may_overlap)
