"""The figures of completions and goodput: bars, dots and outlines are the numbers of the windows."""

import re
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import Entry, entry
from figures.service_windows import Counted, Shown, Simulate, windows_at
from figures.words import LANGUAGES
from lib.goodput import Since, Window
from lib.load_curve import RATES, ServiceLoad
from lib.service_record import CONDITIONS, Admission, Condition, by_planned_rate, middle

COMPLETED, GOOD = entry("completion-throughput"), entry("goodput")
FOUR, SIXTEEN = {"simulate": Simulate.CONTINUOUS}, {"simulate": Simulate.CONTINUOUS, "rate_per_s": 16.0}
LONG = FOUR | {"requests": 256}
CASES: list[tuple[Entry, dict[str, Any]]] = [
    (COMPLETED, {}),
    (COMPLETED, {"windows": Shown.THIRD}),
    (COMPLETED, SIXTEEN),
    (COMPLETED, {"simulate": Simulate.ALL_AT_ONCE, "windows": Shown.SECOND}),
    (COMPLETED, {"counted": Counted.GOOD, "simulate": Simulate.ONE_AT_A_TIME, "rate_per_s": 0.5}),
    (GOOD, {}),
    (GOOD, {"deadline_s": 6.0} | LONG),
    (GOOD, {"deadline_s": 1.0, "since": Since.SENDING, "windows": Shown.FIRST}),
    (GOOD, {"deadline_s": 13.0, "rate_per_s": 2.5} | LONG),
    (GOOD, {"counted": Counted.COMPLETED}),
]
each_case = pytest.mark.parametrize(("figure", "settings"), CASES, ids=[str(place) for place in range(len(CASES))])


def readouts(figure: Entry, **settings: Any) -> dict[str, str]:
    given = {readout.label: str(readout) for readout in explore(figure.slug, **settings).readouts}
    assert given
    return given


def counted_by(figure: Entry, settings: dict[str, Any]) -> Callable[[Window], float]:
    if settings.get("counted", figure.arguments.get("counted", Counted.COMPLETED)) == Counted.COMPLETED:
        return lambda window: window.completed / window.length_s
    deadline, since = settings.get("deadline_s", 3.0), settings.get("since", Since.PLANNED_ARRIVAL)
    return lambda window: window.qualified(deadline, since) / window.length_s


def wanted_windows(settings: dict[str, Any]) -> list[tuple[Window, ...]]:
    recorded = [windows_at(condition) for condition in CONDITIONS]
    simulate = settings.get("simulate", Simulate.NOTHING)
    if simulate in (Simulate.NOTHING, Simulate.ALL_AT_ONCE):
        return recorded
    load = ServiceLoad(simulate.value, settings.get("requests", 16))
    return [*recorded, load.windows(settings.get("rate_per_s", 4.0))]


def shown_of(values: list[float], settings: dict[str, Any]) -> float:
    place = tuple(Shown).index(settings.get("windows", Shown.MEDIAN))
    return values[place - 1] if place and len(values) > 1 else median(values)


def axes_of(page: Figure) -> Axes:
    (axes,) = page.axes
    return axes


def bars(axes: Axes) -> Iterator[tuple[float, float]]:
    """Middle and height of each bar."""
    for found in axes.collections:
        assert isinstance(found, PolyCollection)
        corners = np.asarray(found.get_paths()[0].vertices)
        yield float(corners[:, 0].min() + corners[:, 0].max()) / 2, float(corners[:, 1].max())


def lines(axes: Axes, marker: str) -> list[list[float]]:
    return [np.asarray(line.get_ydata()).tolist() for line in axes.lines if line.get_marker() == marker]


@each_case
def test_bars_and_dots_are_what_the_windows_give(figure: Entry, settings: dict[str, Any]) -> None:
    axes, rate, wanted = axes_of(figure.figure(**settings)), counted_by(figure, settings), wanted_windows(settings)
    values = [[rate(window) for window in windows] for windows in wanted]
    heights = [height for _, height in bars(axes)]
    assert heights[: len(values)] == pytest.approx([shown_of(each, settings) for each in values])
    dots = lines(axes, "o")
    assert len(dots) == len(heights)
    for drawn, each in zip(dots, values, strict=False):
        assert drawn == pytest.approx(each)
    texts = [text.get_text() for text in axes.texts]
    assert texts[: len(heights)] != [] and all(f"{height:.2f}" in texts for height in heights)


@each_case
def test_where_good_ones_count_an_outline_shows_all_that_are_completed(figure: Entry, settings: dict[str, Any]) -> None:
    axes = axes_of(figure.figure(**settings))
    outlines = [each for each in lines(axes, "None") if len(each) == 4]
    is_good = settings.get("counted", figure.arguments.get("counted")) == Counted.GOOD
    assert len(outlines) == (len(list(bars(axes))) if is_good else 0)
    for (_, height), outline, windows in zip(bars(axes), outlines, wanted_windows(settings), strict=False):
        completed = shown_of([window.completion_throughput for window in windows], settings)
        assert outline == pytest.approx([height, completed, completed, height])


def test_both_figures_have_the_same_places_and_heights() -> None:
    completed, good = (axes_of(figure.figure()) for figure in (COMPLETED, GOOD))
    assert (completed.get_xlim(), completed.get_ylim()) == (good.get_xlim(), good.get_ylim())
    assert [place for place, _ in bars(completed)] == [place for place, _ in bars(good)]
    assert completed.get_position().bounds == good.get_position().bounds
    assert all(high >= low for (_, high), (_, low) in zip(bars(completed), bars(good), strict=True))


def test_a_simulated_bar_is_told_apart_by_its_hatch_and_its_name() -> None:
    plain, with_one = (axes_of(GOOD.figure(**settings)) for settings in ({}, FOUR))
    assert len(list(bars(with_one))) == len(list(bars(plain))) + 1
    hatches = [each.get_hatch() for each in with_one.collections]
    assert set(hatches[:-1]) == {None} or set(hatches[:-1]) == {""}
    assert hatches[-1] == style.HATCH["queue"]
    assert "simulated" in {text.get_text() for text in with_one.texts} - {text.get_text() for text in plain.texts}


def test_at_the_books_values() -> None:
    completed, good = readouts(COMPLETED), readouts(GOOD)
    assert [completed[f"completed: {name}"] for name in ("one by one, 4/s", "batched, 4/s", "batched, 16/s")] == [
        "1.22 /s", "2.33 /s", "2.38 /s",
    ]  # fmt: skip
    assert [good[f"good: {name}"] for name in ("one by one, 4/s", "batched, 4/s", "batched, 16/s")] == [
        "0.31 /s", "1.02 /s", "0.60 /s",
    ]  # fmt: skip
    assert (good["right but late, all 21 windows"], good["in time but wrong"]) == ("139 of 294", "18 of 173")
    assert (good["batched, 16/s against 4/s"], good["other clock: one by one, 4/s"]) == ("−41%", "1.07 /s")
    assert {value for label, value in (completed | good).items() if label.startswith("simulated:")} == {"none"}


@pytest.mark.parametrize("shown", Shown)
def test_littles_law_can_be_checked_on_the_readouts(shown: Shown) -> None:
    given = {readout.label: readout.amount for readout in explore("completion-throughput", windows=shown).readouts}
    rate, stay = given["completed: one by one, 4/s"], given["mean stay: one by one, 4/s"]
    assert isinstance(rate, float) and isinstance(stay, float)
    # The medians of three windows are of different ones, so that the law holds for them roughly.
    exactness = 0.03 if shown is Shown.MEDIAN else 1e-9
    assert given["in system: one by one, 4/s"] == pytest.approx(rate * stay, rel=exactness)
    assert given["in system if 4/s × mean stay"] == pytest.approx(4 * stay)
    assert 4 * stay > 16, "more than there are requests"


def test_the_stay_is_the_median_over_windows() -> None:
    given, one_by_one = readouts(COMPLETED), Condition(Admission.ONE_AT_A_TIME, 4)
    assert given["mean stay: one by one, 4/s"] == "4.95 s"
    assert middle(one_by_one, lambda each: each.window.mean_stay_s) == pytest.approx(4.95, abs=0.005)
    assert given["in system if 4/s × mean stay"] == f"{middle(one_by_one, by_planned_rate):.2f}"


@pytest.mark.parametrize("deadline", [1.0, 2.0, 3.0, 6.0, 13.0])
def test_the_knee_is_that_of_the_load_curve(deadline: float) -> None:
    knee = ServiceLoad().knee(deadline)
    told = readouts(GOOD, deadline_s=deadline)["goodput is highest at (simulated)"]
    assert told == (f"{knee:.1f} /s" if knee < RATES[-1] else "16 /s or more")


def test_where_nothing_is_good_at_4_a_second_nothing_is_compared() -> None:
    assert readouts(GOOD, deadline_s=1.0)["batched, 16/s against 4/s"] == "none at 4/s"


def test_the_other_clock_is_the_one_that_is_not_chosen() -> None:
    by_plan, by_sending = (readouts(GOOD, since=since) for since in Since)
    label = "good: one by one, 4/s"
    assert by_plan[label] == by_sending["other clock: one by one, 4/s"] == "0.31 /s"
    assert by_sending[label] == by_plan["other clock: one by one, 4/s"] == "1.07 /s"


def test_the_question_of_completions_asks_for_what_is_not_drawn() -> None:
    question = COMPLETED.exploration.question()
    assert question.choices == ("about 4 s", "about 15 s", "about 43 s")
    assert question.answer == "about 43 s" and "3.75 s (client)" in question.text
    here = readouts(COMPLETED)
    assert not {"43", "42.6"} & set(re.findall(r"[\d.]+", " ".join(here.values())))
    (window,) = ServiceLoad(Admission.CONTINUOUS, 256).windows(4.0)
    now = readouts(COMPLETED, **question.reveals)
    assert now["simulated: longest request"] == f"{window.longest_s():.1f} s"
    assert f"takes {window.longest_s():.1f} s (fit)" in question.because
    rate = window.completion_throughput
    assert f"{rate:.2f} are completed" in question.because and f"{4 - rate:.2f} more wait" in question.because


def test_the_question_of_the_deadline_is_answered_by_the_record() -> None:
    question = GOOD.exploration.question()
    now = readouts(GOOD, **question.reveals)
    assert question.answer == "no"
    assert (now["good: batched, 4/s"], now["good: batched, 16/s"]) == ("2.04 /s", "2.08 /s")
    long = readouts(GOOD, **dict(question.reveals) | LONG)
    assert f"finds {long['simulated: good'].removesuffix(' /s')}" in question.because
    assert "2.08 at 16/s, 2.04 at 4/s" in question.because


@pytest.mark.parametrize(("slug", "start", "name", "there", "line"), [
    ("goodput", {}, "requests", 64, "The recorded windows are as they are: choose what to simulate beside them."),
    ("goodput", {}, "rate_per_s", 2.0, "The recorded windows are as they are: choose what to simulate beside them."),
    ("goodput", {"simulate": Simulate.ALL_AT_ONCE}, "rate_per_s", 2.0, "All requests come at once: there is no rate."),
    ("completion-throughput", {}, "deadline_s", 6.0,
     "Completions count late answers too: no deadline and no clock matters."),
    ("completion-throughput", {}, "since", Since.SENDING,
     "Completions count late answers too: no deadline and no clock matters."),
    ("goodput", {"counted": Counted.COMPLETED}, "windows", Shown.FIRST, ""),
])  # fmt: skip
def test_why_nothing_moves(slug: str, start: dict[str, Any], name: str, there: Any, line: str) -> None:
    explorer = explore(slug, **start)
    explorer.widgets[name].value = there
    assert explorer.line == line


@pytest.mark.parametrize("settings", [{"rate_per_s": 0.0}, {"requests": 0}, {"deadline_s": 0.0}], ids=repr)
def test_zero_is_refused_though_nothing_is_simulated(settings: dict[str, Any]) -> None:
    (name,) = settings
    assert explore("goodput", **settings).sentence.startswith(f"Nothing to draw: {name} is 0")


@pytest.mark.parametrize("language", LANGUAGES)
@each_case
def test_no_fault_elsewhere(figure: Entry, settings: dict[str, Any], language: str) -> None:
    page = figure.figure(language=language, **settings)
    guard(page, figure.slug, figure.may_overlap)
    assert visible_texts(page)
