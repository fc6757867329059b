"""The explorer of the load curve: curves, points and circle are where `lib` has them, and what is said is true."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from figures import style
from figures.exploration import book_values
from figures.guard import guard, visible_texts
from figures.load_curves import Curve, Gate, curve_at
from figures.registry import entry
from figures.words import LANGUAGES
from lib.arrivals import Arrivals
from lib.load_curve import RATES
from lib.service_record import Admission, Condition, recorded

LOAD_CURVE = entry("load-curve")
BOOK = book_values(LOAD_CURVE.draw, LOAD_CURVE.arguments)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"requests": 64},
    {"deadline": 13},
    {"deadline": 1, "requests": 32, "arrivals": Arrivals.POISSON},
    {"admission": Admission.ONE_AT_A_TIME, "deadline": 6},
    {"let_in": Gate.IN_TIME, "requests": 32},
    {"let_in": Gate.IN_TIME, "deadline": 1},
]


def curve(**settings: Any) -> Curve:
    return curve_at(**BOOK | settings)


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in LOAD_CURVE.exploration.readouts(**BOOK | settings)}


def lines(figure: Figure) -> list[tuple[str, list[list[float]]]]:
    return [(str(line.get_marker()), np.asarray(line.get_xydata()).tolist()) for line in figure.axes[0].lines]


@pytest.mark.parametrize("settings", SETTINGS)
def test_curves_points_and_circle_are_those_of_lib(settings: dict[str, Any]) -> None:
    here, figure = curve(**settings), LOAD_CURVE.figure(**settings)
    (_, completed), (_, good), (square, all_points), (dot, good_points), (_, down), (circle, top) = lines(figure)
    rates = sorted({*RATES, here.knee})
    assert completed == [[rate, here.load.completions(rate)] for rate in rates]
    assert good == [[rate, here.load.goodput(rate, here.deadline_s)] for rate in rates]
    assert (square, dot, circle) == ("s", "o", "o")
    windows = [(rate, each.window) for rate in (1, 4, 16) for each in recorded(Condition(here.load.admission, rate))]
    assert all_points == [[rate, window.completion_throughput] for rate, window in windows]
    assert good_points == [[rate, window.goodput(here.deadline_s)] for rate, window in windows]
    assert top == [down[1]] == [[here.knee, max(height for _, height in good)]]


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_told(settings: dict[str, Any]) -> None:
    here, shown = curve(**settings), readouts(**settings)
    texts = {text.get_text() for text in visible_texts(LOAD_CURVE.figure(**settings))}
    best = shown["goodput is highest at, per s"]
    assert best == f"{here.knee:g}" + (" or more" if here.knee == RATES[-1] else "")
    still = "goodput still rises at 16/s" if here.never_falls else f"goodput is highest at {here.knee:g}/s"
    assert still in texts
    assert any(f": {shown['goodput at 4/s, per s']} per s" in text for text in texts)
    window, *_ = here.load.windows(4)
    assert shown["right but late at 4/s"] == f"{window.correct_but_late(here.deadline_s)} of {here.load.requests}"
    refused = here.load.requests - window.completed
    assert shown["refused at 4/s"] == f"{refused} of {here.load.requests}"
    assert (refused > 0) == (here.load.refuse_beyond_s is not None)


def test_the_question_is_answered_by_the_long_window() -> None:
    question = LOAD_CURVE.exploration.question()
    long = curve(requests=question.reveals["requests"])
    assert question.answer == f"near {long.knee:g}/s"
    assert f"{long.load.saturation:.2f} a second" in question.because
    assert long.goodput(4) < 0.1 < curve().goodput(4)
    assert question.answer not in question.text


def test_the_gate_refuses_the_long_ones() -> None:
    shown = readouts(requests=256, let_in=Gate.IN_TIME)
    assert shown["refused at 4/s"] == "67 of 256"
    assert shown["of them long prompts"] == "67"


def test_points_are_told_from_curves_without_colour() -> None:
    squares, dots = (line for line in LOAD_CURVE.figure().axes[0].lines[2:4])
    assert squares.get_markerfacecolor() == style.PAPER != dots.get_markerfacecolor()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(LOAD_CURVE.figure(language=language, **settings), LOAD_CURVE.slug, LOAD_CURVE.may_overlap)
