"""The figure of the atlas: each dot lies where `lib` has its error, and what is read off is true of what is drawn."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures import style
from figures.atlases import (
    EVERY,
    GROUPS,
    LEFT_OUT,
    MARKS,
    SHORT,
    SHOWN,
    Dots,
    _place,
    atlas_of_errors,
    atlas_readouts,
    dots_of,
)
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.tables import NEVER_WRAPPED
from figures.words import LANGUAGES, words
from lib.atlas import atlas
from lib.comparison import Group, Model

ATLAS = entry("atlas")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"fitted": LEFT_OUT},
    {"model": Model.FIT},
    {"group": Group.PREFILL},
    {"group": Group.DECODE, "fitted": LEFT_OUT},
    {"group": Group.SIX, "model": Model.OWN_HOST},
    {"group": Group.SERVICE, "model": Model.FIT},
    {"group": Group.RETRIES},
]
either = pytest.mark.parametrize("settings", SETTINGS, ids=[str(number) for number in range(len(SETTINGS))])


def dots(**settings: Any) -> Dots:
    return dots_of(**{"group": EVERY, "model": EVERY, "fitted": SHOWN} | settings)


def drawn(figure: Figure) -> Counter[tuple[str, bool, float, int]]:
    """Shape, whether hollow, place and row of each dot."""
    found: Counter[tuple[str, bool, float, int]] = Counter()
    for line in figure.axes[0].lines:
        if line.get_marker() in {shape for shape, _ in MARKS.values()}:
            hollow = to_hex(str(line.get_markerfacecolor())) == style.PAPER
            for x, y in np.asarray(line.get_xydata()):
                found[str(line.get_marker()), hollow, round(float(x), 9), round(float(y))] += 1
    return found


@either
def test_each_dot_lies_at_its_error(settings: dict[str, Any]) -> None:
    here = dots(**settings)
    expected = Counter(
        (MARKS[one.model][0], one.is_fitted, round(_place(one.error), 9), here.row_of(one))
        for one in (*here.others, *here.chosen)
    )
    assert drawn(atlas_of_errors(**settings)) == expected


def test_all_times_are_drawn_and_no_count() -> None:
    here = dots()
    assert [*here.chosen] == [one for one in atlas() if one.seen.clock] and not here.others
    assert set(here.rows) == set(GROUPS) == {one.seen.group for one in here.chosen}
    assert {one.model for one in here.chosen} == set(MARKS)
    assert len({shape for shape, _ in MARKS.values()}) == len(MARKS)


def test_the_axis_is_even_within_a_per_cent_and_then_logarithmic() -> None:
    assert _place(0) == 0 and _place(-0.3) == -_place(0.3)
    assert _place(0.001) == pytest.approx(0.001 * 100 / math.log(10), rel=0.06)
    assert _place(9.99) - _place(0.99) == pytest.approx(1, abs=0.001)
    errors = sorted(one.error for one in dots().chosen)
    assert [*map(_place, errors)] == sorted(map(_place, errors))
    low, high = atlas_of_errors().axes[0].get_xlim()
    assert low < _place(errors[0]) and _place(errors[-1]) < high


@either
def test_the_readouts_are_a_plain_count(settings: dict[str, Any]) -> None:
    asked = {"group": EVERY, "model": EVERY, "fitted": SHOWN} | settings
    said = {one.label: str(one) for one in atlas_readouts(**asked)}
    mine = [
        one for one in atlas()
        if one.seen.clock
        and asked["group"] in (EVERY, one.seen.group)
        and asked["model"] in (EVERY, one.model)
        and (asked["fitted"] == SHOWN or not one.is_fitted)
    ]  # fmt: skip
    tried = [one for one in mine if not one.is_fitted]
    assert said["comparisons"] == f"{len(mine)}"
    assert said["of them fitted"] == f"{len(mine) - len(tried)}"
    if not tried:
        assert said["best model"] == said["largest error"] == "none"
        return
    assert said["within 10 %"] == str(sum(abs(one.error) <= 0.1 for one in tried))
    middles = {
        model: float(np.median([abs(one.error) for one in tried if one.model == model]))
        for model in {one.model for one in tried}
    }
    assert said["its middle error"] == f"{min(middles.values()) * 100:.1f} %"
    best = [SHORT[model] for model in MARKS if middles.get(model, 1) == pytest.approx(min(middles.values()))]
    assert said["best model"] == best[0]
    assert said["and as good"] == (" + ".join(best[1:]) or "none")
    worst = max(abs(one.error) for one in tried)
    assert said["largest error"].lstrip("+−") == f"{worst * 100:.1f} %"


def test_what_is_not_chosen_is_pale() -> None:
    figure = atlas_of_errors(model=Model.FIT)
    bright = {colour.lower() for _, colour in MARKS.values()}
    lines = [line for line in figure.axes[0].lines if line.get_marker() in {shape for shape, _ in MARKS.values()}]
    coloured = [line for line in lines if {to_hex(str(line.get_markerfacecolor()))} & bright]
    assert {line.get_marker() for line in coloured} == {MARKS[Model.FIT][0]}


def test_the_middle_beside_a_row_is_that_of_its_models() -> None:
    shown = [text.get_text() for text in visible_texts(atlas_of_errors(group=Group.PREFILL))]
    assert [text for text in shown if text.endswith(" %") and text[0].isdigit()] == [
        "14.9 %",
        "6.4 %",
        "6.4 %",
        "41.7 %",
    ]
    text = words("en", "atlas")
    assert {text["fit"], text["device"], text["host"], text["bound"]} <= set(shown)


def test_two_models_that_are_as_good_are_both_named() -> None:
    said = {one.label: str(one) for one in atlas_readouts(Group.PREFILL, EVERY, SHOWN)}
    assert (said["best model"], said["and as good"]) == ("device", SHORT[Model.HOST])
    assert said["its middle error"] == "6.4 %"


def test_the_read_outs_never_wrap_anew() -> None:
    labels = set()
    for group in (EVERY, *GROUPS):
        for model in (EVERY, *MARKS):
            for fitted in (SHOWN, LEFT_OUT):
                readouts = atlas_readouts(group, model, fitted)
                labels.add(tuple(one.label for one in readouts))
                assert all(len(str(one)) <= NEVER_WRAPPED and ", " not in str(one) for one in readouts)
    assert len(labels) == 1


def test_the_question_is_answered_by_the_atlas() -> None:
    question = ATLAS.exploration.question()
    said = {
        one.model: one.error for one in atlas()
        if one.seen.group == Group.SIX and one.seen.what == "middle interval, 512 a step"
    }  # fmt: skip
    nearest = min(question.choices, key=lambda choice: abs(said[Model(choice)]))
    assert nearest == question.answer == "device"
    assert "26.3 ms" in question.text and "12.9 ms" in question.text
    for told in ("14.1 ms, +8.7 %", "26.4 ms, +104.3 %", "26.0 ms, +101.0 %"):
        assert told in question.because


@pytest.mark.parametrize(
    ("start", "name", "there", "line"),
    [
        ({"group": Group.CHUNKS}, "fitted", LEFT_OUT, "None of the dots here was fitted"),
        ({"group": Group.SERVICE, "model": Model.FIT}, "model", Model.DEVICE, "This model says nothing about"),
    ],
    ids=["fitted", "model"],
)
def test_why_nothing_moves(start: dict[str, Any], name: str, there: Any, line: str) -> None:
    explorer = explore("atlas", **start)
    explorer.widgets[name].value = there
    assert explorer.line.startswith(line)


@pytest.mark.parametrize("wrong", [{"group": "bytes"}, {"model": "count"}, {"fitted": "yes"}], ids=str)
def test_what_makes_no_sense_is_one_sentence(wrong: dict[str, str]) -> None:
    assert explore("atlas", **wrong).sentence.startswith(f"Nothing to draw: {next(iter(wrong))} is ")


@pytest.mark.parametrize("language", LANGUAGES)
@either
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(atlas_of_errors(**settings, language=language), "atlas", {})
