"""The explorer of admission: bars and marks stand where `lib` has the requests, and what is said is true."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.admissions import span
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.words import LANGUAGES, words
from lib.admission import deadline_ns
from lib.arrivals import Arrivals
from lib.overload import Fate, Outcome, Served
from lib.service_overload import Guess, Way, overloaded
from lib.step_time import NS

ADMISSION = entry("admission")
BOOK = book_values(ADMISSION.draw, ADMISSION.arguments)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"way": Way.GIVE_UP},
    {"way": Way.GIVE_UP, "rate_per_s": 16.0, "deadline_s": 1.0},
    {"way": Way.REFUSE, "arrivals": Arrivals.POISSON},
    {"way": Way.REFUSE, "rate_per_s": 16.0, "deadline_s": 1.0, "requests": 16},
    {"way": Way.REFUSE, "rate_per_s": 16.0, "deadline_s": 2.0, "guess": Guess.ALONE},
    {"way": Way.PASS_ON, "rate_per_s": 8.0},
    {"way": Way.FASTER, "rate_per_s": 16.0, "arrivals": Arrivals.POISSON},
    {"rate_per_s": 1.0, "deadline_s": 13.0},
    {"rate_per_s": 1.0, "deadline_s": 13.0, "way": Way.PASS_ON, "requests": 16},
]


def served(**settings: Any) -> Served:
    return overloaded(**BOOK | settings)


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in ADMISSION.exploration.readouts(**BOOK | settings)}


def texts(**settings: Any) -> set[str]:
    return {text.get_text() for text in visible_texts(ADMISSION.figure(**settings))}


def bars(axes: Axes) -> dict[str, list[tuple[int, float, float]]]:
    """By hatch, the row of each bar and its ends, in seconds."""
    found = {}
    for collection in axes.collections:
        if isinstance(collection, PolyCollection):
            corners = [np.asarray(path.vertices) for path in collection.get_paths()]
            found[str(collection.get_hatch() or "")] = [
                (round(float(each[:4, 1].mean())), float(each[:, 0].min()), float(each[:, 0].max())) for each in corners
            ]
    return found


def marks(axes: Axes, marker: str) -> list[tuple[float, float]]:
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return [tuple(point) for line in lines for point in np.asarray(line.get_xydata()).tolist()]


def seconds_of(outcome: Outcome, due_ns: int) -> tuple[float, float]:
    """When it was in the engine, written out once more."""
    leaves = outcome.finish_ns if outcome.fate != Fate.GIVEN_UP else outcome.request.arrival_ns + due_ns
    enters = leaves if outcome.started_ns < 0 else outcome.started_ns
    return enters / NS, max(enters, leaves) / NS


@pytest.mark.parametrize("settings", SETTINGS)
def test_each_bar_is_a_request_in_its_engine_in_the_look_of_its_fate(settings: dict[str, Any]) -> None:
    here, due_ns = served(**settings), deadline_ns((BOOK | settings)["deadline_s"])
    (axes,) = ADMISSION.figure(**settings).axes
    drawn = bars(axes)
    for fate, role in ((Fate.IN_TIME, "decode"), (Fate.LATE, "foreign"), (Fate.GIVEN_UP, "queue")):
        expected = [
            (row, *seconds_of(outcome, due_ns)) for row, outcome in enumerate(here.outcomes) if outcome.fate == fate
        ]
        assert drawn[style.HATCH[role]] == expected
    (waits,) = (each for each in axes.collections if isinstance(each, LineCollection))
    for (left, row), (right, _) in (np.asarray(segment).tolist() for segment in waits.get_segments()):
        outcome = here.outcomes[round(row)]
        assert left == outcome.request.arrival_ns / NS < right == seconds_of(outcome, due_ns)[0]


@pytest.mark.parametrize("settings", SETTINGS)
def test_marks_stand_at_refusals_long_prompts_and_the_second_engine(settings: dict[str, Any]) -> None:
    here, due = served(**settings), (BOOK | settings)["deadline_s"]
    (axes,) = ADMISSION.figure(**settings).axes
    outcomes = list(enumerate(here.outcomes))
    refused = [(each.request.arrival_ns / NS, row) for row, each in outcomes if each.fate == Fate.REFUSED]
    assert marks(axes, "x") == refused
    longest = max(each.request.prompt for each in here.outcomes)
    assert [row for _, row in marks(axes, "s")] == [row for row, each in outcomes if each.request.prompt == longest]
    assert [row for _, row in marks(axes, "o")] == [row for row, each in outcomes if each.engine == 1]
    (limit,) = (np.asarray(line.get_xydata()) for line in axes.lines if line.get_linestyle() == "--")
    assert limit[:, 0].tolist() == pytest.approx([each.request.arrival_ns / NS + due for _, each in outcomes])
    end = axes.get_xlim()[1]
    assert limit[:, 0].max() <= end and all(span(each, deadline_ns(due))[2] <= end for _, each in outcomes)


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_told_is_what_became_of_them(settings: dict[str, Any]) -> None:
    here, shown, asked = served(**settings), readouts(**settings), BOOK | settings
    counts = {fate: sum(outcome.fate == fate for outcome in here.outcomes) for fate in Fate}
    assert [shown[fate] for fate in Fate] == [str(count) for count in counts.values()]
    assert sum(counts.values()) == asked["requests"] == len(here.outcomes)
    # A user who gives up ends the wait, but not a step that is submitted.
    hard = asked["way"] == Way.GIVE_UP and counts[Fate.LATE]
    told = words("en", "admission")["late_though_given_up" if hard else "counts"].format(
        requests=asked["requests"], **{fate.name.lower(): count for fate, count in counts.items()}
    )
    assert told in texts(**settings)
    all_in = sum(outcome.fate == Fate.IN_TIME for outcome in served(**settings | {"way": Way.ALL_IN}).outcomes)
    assert shown["in time if all let in"] == str(all_in)
    late = [outcome for outcome in here.outcomes if outcome.fate != Fate.IN_TIME]
    assert shown["tokens in vain"] == f"{sum(outcome.computed_tokens for outcome in late):,} token"


def test_who_is_late_though_users_give_up_was_in_a_step_at_the_deadline() -> None:
    here, due_ns = served(way=Way.GIVE_UP), deadline_ns(BOOK["deadline_s"])
    (schedule,) = here.schedules
    assert schedule
    ends = [(each.start_ns, each.end_ns(step)) for each in schedule.stretches for step in range(1, each.steps + 1)]
    late = [outcome for outcome in here.outcomes if outcome.fate == Fate.LATE]
    assert len(late) == 2
    for outcome in late:
        due = outcome.request.arrival_ns + due_ns
        assert max(end for _, end in ends if end < outcome.finish_ns) <= due < outcome.finish_ns


def test_picture_and_readouts_use_the_same_words() -> None:
    named = {words("en", "admission")[fate.name.lower()] for fate in Fate}
    assert named == {str(fate) for fate in Fate} <= set(readouts())


def test_the_books_setting() -> None:
    shown = readouts()
    assert (shown["in time"], shown["late"], shown["engine can bear, /s"]) == ("10", "22", "2.39")
    assert readouts(way=Way.REFUSE)["in time"] == "24"
    assert readouts(way=Way.REFUSE)["refused"] == "8"
    assert readouts(way=Way.GIVE_UP)["in time"] == readouts(way=Way.REFUSE, guess=Guess.ALONE)["in time"] == "10"
    given_up = readouts(way=Way.GIVE_UP)
    assert (given_up["late"], given_up["given up"]) == ("2", "20")
    (told,) = (text for text in texts(way=Way.GIVE_UP) if text.startswith("Of 32"))
    assert told == "Of 32: 10 in time, 2 late (last step was submitted), 20 given up, 0 refused"
    assert readouts(way=Way.PASS_ON)["in time"] == readouts(way=Way.FASTER)["in time"] == "32"
    nobody = readouts(way=Way.REFUSE, deadline_s=0.5)
    assert (nobody["refused"], nobody["of all tokens"], nobody["device, each in time"]) == ("32", "0 %", "–")


def test_below_what_the_engine_can_bear_each_way_lets_all_in() -> None:
    for way in Way:
        assert readouts(way=way, rate_per_s=2.0)["in time"] == "32"


def test_the_question_is_answered_by_three_ways() -> None:
    question = ADMISSION.exploration.question()
    assert question.answer == "only the gateway" and question.answer in question.choices
    assert readouts(**question.reveals)["in time"] == "24"
    for number in ("4 requests", "1.7 times", "10 of 32", "after 3 s"):
        assert number in question.text
    for number in ("refuses 8", "24 are", "it is 10", "69 %"):
        assert number in question.because


@pytest.mark.parametrize(("start", "name", "there", "line"), [
    ({}, "guess", Guess.ALONE, "No gateway decides here, so nothing is forecast."),
    ({"rate_per_s": 1.0}, "way", Way.REFUSE, "Nobody is late and nobody refused: each way lets all in."),
    ({"rate_per_s": 1.0, "way": Way.REFUSE}, "guess", Guess.ALONE, "By both forecasts the same requests are in time."),
])  # fmt: skip
def test_why_nothing_moves(start: dict[str, Any], name: str, there: Any, line: str) -> None:
    explorer = explore("admission", **start)
    explorer.widgets[name].value = there
    assert explorer.line == line


def test_what_makes_no_sense_is_one_sentence() -> None:
    assert explore("admission", rate_per_s=0.0).sentence.startswith("Nothing to draw: rate_per_s is 0.0; ")
    assert explore("admission", deadline_s=-1.0).sentence.startswith("Nothing to draw: deadline_s is -1.0; ")
    assert explore("admission", way="hope").sentence.startswith("Nothing to draw: way is 'hope'; ")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    figure: Figure = ADMISSION.figure(language=language, **settings)
    guard(figure, ADMISSION.slug, ADMISSION.may_overlap)
