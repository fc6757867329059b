"""The prefix-value explorer: areas are the times they stand for, and what is said of the choice is true."""

from itertools import product
from typing import Any

import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import style
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard
from figures.prefix_values import PAGE_PT, WIDTH_PT, Scale, both_kinds
from figures.registry import entry
from figures.words import LANGUAGES, words
from lib.prefix_value import A_TOKENS, B_TOKENS, GEN4, break_even_link, prefix_of, switching_probability
from lib.units import GB

PREFIX_VALUE = entry("prefix-value")
BOOK = book_values(PREFIX_VALUE.draw, PREFIX_VALUE.arguments)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"link_bytes_s": 4 * GB},
    {"a_tokens": 16384, "b_tokens": 512, "probability_b": 0.03},
    {"a_tokens": 4096, "b_tokens": 2560, "probability_a": 0.0},
    {"a_tokens": 2048, "link_bytes_s": 450 * GB, "efficiency": 0.35, "probability_a": 1.0},
    {"a_tokens": 512, "b_tokens": 16384, "efficiency": 0.7, "link_bytes_s": 4 * GB},
]


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in PREFIX_VALUE.exploration.readouts(**BOOK | settings)}


def bar_areas(figure: Figure) -> list[list[float]]:
    """The area of each bar, row by row, in MiB times points of height; below the line it counts as negative."""
    zeros = [lines.get_segments()[0][0][1] for lines in figure.axes[0].collections if isinstance(lines, LineCollection)]
    rows = [found.get_paths() for found in figure.axes[0].collections if isinstance(found, PolyCollection)]
    return [
        [extent.width * (extent.y1 + extent.y0 - 2 * zero) for path in row for extent in [path.get_extents()]]
        for row, zero in zip(rows, zeros[1:], strict=True)
    ]


@pytest.mark.parametrize("settings", SETTINGS)
def test_each_area_is_the_time_saved(settings: dict[str, Any]) -> None:
    kinds = both_kinds(**BOOK | settings)
    scale = Scale(kinds)
    for kind, areas in zip(kinds, bar_areas(PREFIX_VALUE.figure(**settings)), strict=True):
        times = [area * WIDTH_PT / scale.room * scale.ms_of_pt2 for area in areas]
        assert times == pytest.approx([1e3 * kind.one.value_s] * kind.count)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_square_says_how_much_an_area_is(settings: dict[str, Any]) -> None:
    figure, scale = PREFIX_VALUE.figure(**settings), Scale(both_kinds(**BOOK | settings))
    (square,) = (patch for patch in figure.artists if isinstance(patch, Rectangle))
    width, height = square.get_width() * style.WIDTH_PT, square.get_height() * PAGE_PT
    assert width == pytest.approx(height)
    told = words("en", "prefix-value")["area"].format(time=f"{width * height * scale.ms_of_pt2:g} ms")
    assert told in [text.get_text() for text in figure.texts]


def test_the_book() -> None:
    shown = readouts()
    assert shown["kept in the same room"] == "1 A"
    assert (shown["all A together save"], shown["all B together save"]) == ("132.7 ms", "120.9 ms")
    assert (shown["one B saves"], shown["A pays from p, in %"]) == ("40.3 ms", "4.8")
    assert readouts(link_bytes_s=GEN4.bandwidth_bytes_s)["A pays from p, in %"] == "10.1"
    assert shown["recomputing makes KV of A at"] == "2.9 GB/s"
    assert readouts(link_bytes_s=4 * GB)["A pays from p, in %"] == "never"


def test_what_is_kept_is_worth_most() -> None:
    for p_a, p_b, link, a, b in product((0.0, 0.3, 1.0), (0.1, 0.6), (4, 12, 64), (512, 6144), (2048, 5120)):
        kinds = both_kinds(p_a, p_b, link * GB, a, b, 0.622)
        best = max(0, *(kind.value_s for kind in kinds))
        assert sum(kind.kept * kind.one.value_s for kind in kinds) == pytest.approx(best)
        assert all(kind.kept in (0, kind.count) for kind in kinds)


def test_below_the_switching_probability_three_b_are_kept() -> None:
    switch = switching_probability(prefix_of(A_TOKENS), prefix_of(B_TOKENS), 3, 0.5)
    assert switch is not None
    assert readouts(probability_a=switch - 0.001)["kept in the same room"] == "3 B"
    assert readouts(probability_a=switch + 0.001)["kept in the same room"] == "1 A"


def test_the_question_is_answered_by_the_link_at_which_nothing_is_saved() -> None:
    question = PREFIX_VALUE.exploration.question()
    assert question.choices == ("3 GB/s", "6 GB/s", "9 GB/s", "32 GB/s") and question.answer == "9 GB/s"
    link = question.reveals["link_bytes_s"]
    assert link <= break_even_link(prefix_of(A_TOKENS), 0.5) < link + GB
    assert readouts(**question.reveals)["kept in the same room"] == "neither"
    assert readouts(link_bytes_s=link + GB)["kept in the same room"] == "1 A"


def test_what_makes_no_sense_is_one_sentence() -> None:
    assert explore("prefix-value", probability_a=1.2).sentence.startswith("Nothing to draw: probability_a is 1.2; ")
    assert explore("prefix-value", b_tokens=0).sentence.startswith("Nothing to draw: b_tokens is 0; allowed: ")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", [*SETTINGS, {"b_tokens": A_TOKENS}])
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(PREFIX_VALUE.figure(language=language, **settings), "prefix-value", PREFIX_VALUE.may_overlap)
