"""The grids of answers: each mark stands where the record has it, and what is framed, counted and asked is true."""

from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures.answer_grids import (
    BOTTOM_PT,
    HEIGHT_PT,
    KEY_PT,
    LEFT_PT,
    WIDTH_PT,
    Compare,
    Count,
    Order,
    Served,
    case_of,
)
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import Entry, entry
from figures.words import LANGUAGES
from lib.quality import TASKS, Config, Weights
from lib.records import record

FAMILY = tuple(map(entry, ("bf16-kv-answers", "fp8-default-answers", "fp8-kv-bf16-q-answers")))
COLUMNS = tuple(range(4))
CASES: tuple[dict[str, Any], ...] = (
    {},
    {"compare": Compare.FP8_KV_BF16_Q},
    {"compare": Compare.BF16_KV, "order": Order.BY_RUN, "count": Count.TASKS},
    {"compare": Compare.FP8_DEFAULT, "served": Served.TOGETHER, "count": Count.TASKS},
    {"served": Served.ALONE, "order": Order.BY_RUN},
    {"weights": Weights.FP8, "compare": Compare.FP8_DEFAULT, "count": Count.TASKS},
)
each_case = pytest.mark.parametrize("settings", CASES, ids=repr)
each_figure = pytest.mark.parametrize("figure", FAMILY, ids=lambda known: known.slug)


def settings_of(figure: Entry, settings: dict[str, Any]) -> dict[str, Any]:
    book = {"compare": Compare.NOTHING, "served": Served.ALL, "weights": Weights.BF16, "config": Config.BF16_KV}
    return {"order": Order.BY_TASK, "count": Count.ANSWERS} | book | dict(figure.arguments) | settings


def recorded(weights: Weights, config: str, served: Served) -> dict[tuple[int, int], str]:
    """The marks of the record at the places of tasks and runs."""
    row = record("answers").one(weights=weights, config=config)
    shown = {Served.ALL: COLUMNS, Served.ALONE: COLUMNS[:2], Served.TOGETHER: COLUMNS[2:]}[served]
    return {(task, run): row[name][run] for task, name in enumerate(TASKS) for run in shown}


def marks(figure: Figure, shape: str, order: Order) -> set[tuple[int, int]]:
    """Tasks and runs at whose places a mark of this shape stands, the key left out."""
    lines, places = (8, 4) if order == Order.BY_TASK else (4, 8)
    points = [
        (x, y)
        for line in figure.axes[0].lines
        if line.get_marker() == shape
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)  # type: ignore[arg-type]
        if y > KEY_PT + 4
    ]
    found = set()
    for x, y in points:
        place, line = (x - LEFT_PT) / WIDTH_PT * places - 0.5, (BOTTOM_PT + HEIGHT_PT - y) / HEIGHT_PT * lines - 0.5
        assert (place, line) == pytest.approx((round(place), round(line)))
        found.add((round(line), round(place)) if order == Order.BY_TASK else (round(place), round(line)))
    assert len(found) == len(points)
    return found


@each_figure
@each_case
def test_each_mark_is_the_recorded_answer(figure: Entry, settings: dict[str, Any]) -> None:
    at = settings_of(figure, settings)
    drawn = figure.figure(**settings)
    answers = recorded(at["weights"], at["config"], at["served"])
    assert marks(drawn, "o", at["order"]) == {place for place, mark in answers.items() if mark == "o"}
    assert marks(drawn, "X", at["order"]) == {place for place, mark in answers.items() if mark == "x"}
    framed = set[tuple[int, int]]()
    if at["compare"] != Compare.NOTHING:
        others = recorded(at["weights"], at["compare"], at["served"])
        framed = {place for place, mark in answers.items() if mark != others[place]}
    assert marks(drawn, "s", at["order"]) == framed


@each_figure
@each_case
def test_lines_are_counted_and_tasks_with_an_error_are_shaded(figure: Entry, settings: dict[str, Any]) -> None:
    at = settings_of(figure, settings)
    drawn = figure.figure(**settings)
    said = [text.get_text() for text in visible_texts(drawn)]
    answers = recorded(at["weights"], at["config"], at["served"])
    axis = 0 if at["order"] == Order.BY_TASK else 1
    of_line = [[mark for place, mark in answers.items() if place[axis] == line] for line in {p[axis] for p in answers}]
    counts = [f"{line.count('o')} of {len(line)}" for line in of_line]
    assert [text for text in said if text in counts] == counts
    wrong = {task for (task, _), mark in answers.items() if mark == "x"}
    bands = [band for band in drawn.axes[0].collections if isinstance(band, PolyCollection)]
    assert sum(len(band.get_paths()) for band in bands) == (len(wrong) if at["count"] == Count.TASKS else 0)
    right = list(answers.values()).count("o")
    heading = f"{right} of {len(answers)} answers right"
    if at["count"] == Count.TASKS:
        heading = f"{8 - len(wrong)} of 8 tasks without an error"
    assert said[0] == f"{at['config']}, {at['weights']} weights: {heading}"


def test_the_readouts_at_the_book_values() -> None:
    expected = {
        "bf16-kv-answers": ("28", "32", "1", "5 (4)", "none", *["nothing to compare"] * 4, "72 to 95", "53 to 98"),
        "fp8-default-answers": (
            *("26", "32", "2", "5 (2), 6 (4)", "5", "KV and Q", "6", "5 better, 6 worse", "1.00"),
            *("65 to 91", "47 to 96"),
        ),
        "fp8-kv-bf16-q-answers": (
            *("28", "32", "1", "6 (4)", "none", "KV", "8", "5 better, 6 worse", "1.00"),
            *("72 to 95", "53 to 98"),
        ),
    }
    for slug, values in expected.items():
        assert tuple(map(str, explore(slug).readouts)) == values


def test_the_questions_are_answered_by_the_record() -> None:
    where, alone, q = (known.exploration.question() for known in FAMILY)
    assert where.answer == "all in task 5 again"
    assert "with BF16 KV this document fails with either weights" in where.because
    for weights in Weights:
        grids = {config: case_of(config, Compare.NOTHING, Served.ALL, weights).grid for config in Config}
        assert set(grids[Config.BF16_KV].wrong_by_task) == {"n512-r0"}
        assert "n512-r0" not in grids[Config.FP8_KV_BF16_Q].wrong_by_task  # it is not too hard for the model
    assert alone.choices == ("12 against 14", "13 against 14", "14 against 14")
    assert alone.answer == "14 against 14"
    assert "task 5 is right with FP8 and wrong with BF16 KV" in alone.because
    assert q.choices == ("0, in none", "2, in one task", "8, in two tasks")
    assert q.answer == "2, in one task"
    assert "Only task 5 turns, with 4 requests at once." in q.because
    assert "Task 6 is wrong here with FP8 KV whatever" in q.because


def test_what_is_asked_is_seen_after_the_answer() -> None:
    for known in FAMILY:
        explorer = explore(known.slug)
        explorer.predict(explorer.question.answer)
        case = case_of(
            settings_of(known, {})["config"], *(explorer.settings[name] for name in ("compare", "served", "weights"))
        )
        said = {readout.label: str(readout) for readout in explorer.readouts}
        assert said["right answers"] == str(case.grid.right_answers)
        assert said["answers changed"] == (str(case.changes.changed_cells) if case.changes else "nothing to compare")


@each_figure
@each_case
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_hidden_or_cut_off(figure: Entry, settings: dict[str, Any], language: str) -> None:
    guard(figure.figure(language=language, **settings), figure.slug)
