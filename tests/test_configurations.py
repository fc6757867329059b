"""The figure of configurations: points, limits and fates are those of `lib`, and what is said of them is true."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import style
from figures.configurations import FEWER_REQUESTS, HOST_S, Prefix, case_of, configurations_readouts
from figures.exploration import book_values, controls_of
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.words import LANGUAGES, words
from lib.flip_distance import Case, Input, flip
from lib.serving import LESS_MEMORY, LIMITS, Limit, needs
from lib.units import GIB

FIGURE = entry("configurations")
BOOK = book_values(FIGURE.draw, FIGURE.arguments)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"memory_bytes": 6 * GIB},
    {"memory_bytes": 6 * GIB, "requests": FEWER_REQUESTS},
    {"output_tokens": 16},
    {"output_tokens": 512, "requests": 35},
    {"host_removed_s": 0.0176},
    {"prefix": Prefix.COLD, "deadline_s": 3.0},
    {"memory_bytes": 20 * GIB, "deadline_s": 16.0, "outputs_per_round": 8.0},
    {"requests": 4, "outputs_per_round": 1.0},
]
each_setting = pytest.mark.parametrize("settings", SETTINGS, ids=[str(place) for place in range(len(SETTINGS))])


def case(**settings: Any) -> Case:
    return case_of(**BOOK | settings)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in visible_texts(figure)]


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in configurations_readouts(**BOOK | settings)}


@each_setting
def test_points_limits_and_region_are_where_lib_has_them(settings: dict[str, Any]) -> None:
    figure, here = FIGURE.figure(**settings), case(**settings)
    axes = figure.axes[0]
    limits = here.limits.memory_bytes / GIB, here.limits.deadline_s
    marked = ((mark, line) for line in axes.lines for mark in "so" if line.get_marker() == mark)
    points = {tuple(np.asarray(line.get_xydata())[0]): mark for mark, line in marked}
    expected = {
        (each.needs.memory_bytes / GIB, each.needs.total_s): "s" if each.broken is Limit.MEMORY else "o"
        for each in here.choice.judged
    }
    assert points == expected
    dashed = [np.asarray(line.get_xydata()).tolist() for line in axes.lines if line.get_color() == style.LIMIT]
    assert dashed == [[[limits[0], 0], [limits[0], 1]], [[0, limits[1]], [1, limits[1]]]]
    (region,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert (region.get_xy(), region.get_width(), region.get_height()) == ((0, 0), *limits)
    for x, y in [*expected, limits]:
        assert x < axes.get_xlim()[1] and y < axes.get_ylim()[1]


@each_setting
def test_full_marks_keep_both_limits_and_the_chosen_one_is_ringed(settings: dict[str, Any]) -> None:
    choice, axes = case(**settings).choice, FIGURE.figure(**settings).axes[0]
    for each in choice.judged:
        place = [each.needs.memory_bytes / GIB, each.needs.total_s]
        marks = [line for line in axes.lines if np.asarray(line.get_xydata()).tolist() == [place]]
        assert len(marks) == (2 if each.name == choice.name else 1)
        assert (marks[-1].get_markerfacecolor() == style.INK) == (each.broken is None)


@each_setting
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_key_says_what_became_of_each(settings: dict[str, Any], language: str) -> None:
    text, here = words(language, "configurations"), case(**settings)
    found = texts(FIGURE.figure(language=language, **settings))
    for each in here.choice.judged:
        late = text["late"].format(seconds=f"{each.needs.total_s - here.limits.deadline_s:.2f}")
        fates = {Limit.MEMORY: text["too_large"], Limit.DEADLINE: late, None: text["kept"]}
        fate = text["chosen"] if each.name == here.choice.name else fates[each.broken]
        assert f"{each.name}  {text[each.name]}{text['colon']}{fate}" in found


@each_setting
def test_read_outs_are_those_of_lib(settings: dict[str, Any]) -> None:
    shown, here = readouts(**settings), case(**settings)
    choice = here.choice
    assert shown["chosen"] == (choice.name or "none")
    words = {None: "none", Limit.MEMORY: "memory", Limit.DEADLINE: "time"}
    told = [word for pair in ("A and B", "C and D") for word in shown[f"{pair} break"].split(" / ")]
    assert told == [words[each.broken] for each in choice.judged]
    if choice.chosen:
        assert shown["its time"] == f"{choice.chosen.needs.total_s:.2f} s"
        assert shown["its memory"] == f"{choice.chosen.needs.memory_bytes / GIB:.2f} GiB"
    else:
        assert shown["its time"] == shown["GPU time a result"] == "–"
    edges = flip(Input.REQUESTS, here)
    ways = [
        (abs(edge.last - here.workload.requests), f"{side} {edge.last:.0f}: {edge.then or 'none'}")
        for edge, side in ((edges.below, "↓"), (edges.above, "↑"))
        if edge
    ]
    assert shown["requests turn it"] == min(ways, key=lambda way: way[0], default=(0, "never"))[1]


@each_setting
def test_the_read_outs_never_wrap_anew(settings: dict[str, Any]) -> None:
    shown = readouts(**settings)
    assert list(shown) == list(readouts())
    assert len(shown) <= 12
    assert all(len(value) <= len("memory / memory") and ", " not in value for value in shown.values())


def test_the_book_s_read_outs() -> None:
    shown = readouts()
    assert shown["chosen"] == "D" and shown["its time"] == "4.56 s" and shown["GPU time a result"] == "0.285 s"
    assert shown["its memory"] == "9.02 GiB"
    assert (shown["A and B break"], shown["C and D break"]) == ("memory / time", "time / none")
    assert shown["memory turns it, GiB"] == "↓ 9.02: none"
    assert shown["deadline turns it, s"] == "↓ 4.56: none"
    assert shown["outputs a round turn it"] == "↓ 1.47: none"
    assert shown["host time off turns it, ms"] == "never"


def test_the_named_settings_do_what_they_promise() -> None:
    assert getattr(flip(Input.REQUESTS, Case(limits=LESS_MEMORY)).below, "first", None) == FEWER_REQUESTS
    assert controls_of(FIGURE.draw)["host_removed_s"].ends[1] == round(HOST_S, 4)
    chosen = {name: case(**values).choice for name, values in FIGURE.exploration.settings.items()}
    assert {name: choice.within_limits for name, choice in chosen.items()} == {
        "host overhead gone": ("B", "D"), "16 outputs": ("B", "D"), "6 GiB, 6 requests": ("D",),
    }  # fmt: skip


def test_the_question_is_answered_by_what_it_reveals() -> None:
    question = FIGURE.exploration.question()
    there = case(**question.reveals).choice
    assert question.answer == "none of them" and not there.within_limits
    assert "9.01 s" in question.because and "9.02 GiB" in question.because and "5.91 GiB" in question.because
    assert "none" not in question.text


def test_a_line_says_why_nothing_moves() -> None:
    explorer = explore("configurations", outputs_per_round=2.95)
    explorer.widgets["outputs_per_round"].value = 2.9
    assert needs(case(outputs_per_round=2.9).configurations[3]).rounds == 88
    quick = explore("configurations", host_removed_s=0.017)
    quick.widgets["host_removed_s"].value = 17.2
    assert quick.line.startswith("No round gets shorter")


def test_e_is_nobody_s_default() -> None:
    assert [each.name for each in case().choice.judged] == ["A", "B", "C", "D"]
    assert case() == Case() and case().limits == LIMITS


@each_setting
@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_overlaps_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(FIGURE.figure(language=language, **settings), FIGURE.slug, FIGURE.may_overlap)
