"""Each fault that a printed figure must not have is planted and caught, and what is no fault is let through."""

from collections.abc import Callable

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style
from figures.guard import FigureFault, guard
from figures.page import box, new_page, write

NO_GLYPH = "\U00010330"  # Gothic, which none of the fonts has


def drawn(draw: Callable[[Figure], object]) -> Figure:
    with style.in_book_style():
        page = new_page(120)
        draw(page)
    return page


def frame(page: Figure) -> Axes:
    """Axes without ticks in the middle of the page."""
    axes = box(page, 100, 40, 200, 40)
    axes.set(xticks=[], yticks=[])
    return axes


def two_texts(page: Figure, down: float) -> None:
    """Two texts, one above the other, whose boxes overlap by so many points."""
    lower = write(page, 20, 20, "lower", va="bottom", gid="lower")
    page.draw_without_rendering()
    write(page, 20, 20 + lower.get_window_extent().height - down, "upper", va="bottom", gid="upper")


def small_tick_label(page: Figure) -> None:
    axes = frame(page)
    axes.set_xticks([0.5], ["tick"])
    axes.tick_params(labelsize=8)


def text_over_a_tick_label(page: Figure, turned_round: bool = False) -> None:
    axes = frame(page)
    axes.set_xticks([0.5], ["tick"])
    axes.set_xlim((1, 0) if turned_round else (0, 1))
    write(page, 196, 26, "over it")


def axes_turned_off(page: Figure) -> None:
    box(page, 50, 2, 300, 60).set_axis_off()
    write(page, 48, 2, "where a tick label would be")


def hidden_axes(page: Figure) -> None:
    axes = frame(page)
    axes.text(-9, -9, "far away")
    axes.set_visible(False)


def hidden_axis(page: Figure) -> None:
    axes = frame(page)
    axes.set_xlabel("a name too long for the page " * 5)
    axes.xaxis.set_visible(False)


def text_under_an_arrow(page: Figure) -> None:
    write(page, 180, 55, "under the arrow")
    frame(page).annotate("tail", (1, 0.5), (-0.4, 0.5), arrowprops={"arrowstyle": "->"})


FAULTS: dict[str, tuple[Callable[[Figure], object], str]] = {
    "text under 10 pt": (lambda page: write(page, 20, 50, "small", fontsize=9.9), "'small' is 9.9 pt, at least 10"),
    "a tick label under 10 pt": (small_tick_label, "'tick' is 8 pt, at least 10"),
    "text off the right edge": (lambda page: write(page, 400, 50, "far right"), "'far right' leaves the page"),
    "text off the left edge": (lambda page: write(page, 10, 50, "left", ha="right"), "'left' leaves the page"),
    "text off the upper edge": (lambda page: write(page, 20, 115, "high"), "'high' leaves the page"),
    "text off the lower edge": (lambda page: write(page, 20, -5, "low"), "'low' leaves the page"),
    "text over text": (lambda page: two_texts(page, 4), "'lower' lies over 'upper'"),
    "text over a tick label": (text_over_a_tick_label, "lies over"),
    "text over a tick label, turned round": (lambda page: text_over_a_tick_label(page, True), "lies over"),
    "a missing glyph": (lambda page: write(page, 20, 50, f"plain {NO_GLYPH}"), "Glyph 66352 "),
    "a missing glyph in a formula": (lambda page: write(page, 20, 50, f"$x + {NO_GLYPH}$"), "does not have a glyph"),
    "Chinese in a formula": (lambda page: write(page, 20, 50, "$队$"), "does not have a glyph"),
    "a page that is too wide": (lambda page: page.set_size_inches(421 / 72, 120 / 72), "421 pt wide, at most 420"),
}

NO_FAULTS: dict[str, Callable[[Figure], object]] = {
    "an empty page": lambda page: None,
    "text of just 10 pt": lambda page: write(page, 20, 50, "just right", fontsize=10),
    "an exponent and a subscript, small by nature": lambda page: write(page, 20, 50, "$x^2_i$"),
    "Chinese": lambda page: write(page, 20, 50, "排队，然后 prefill"),
    "hidden text": lambda page: write(page, 400, 50, "hidden and far", fontsize=5, visible=False),
    "empty text": lambda page: write(page, 600, 50, "", fontsize=5),
    "text of blanks": lambda page: write(page, 600, 50, "  ", fontsize=5),
    "tick labels outside the view": lambda page: frame(page).set(xticks=[0, 1, 50], xlim=(0, 1)),
    "tick labels outside a view turned round": lambda page: frame(page).set(xticks=[0, 1, 50], xlim=(1, 0)),
    "tick labels of axes turned off": axes_turned_off,
    "texts of hidden axes": hidden_axes,
    "the name of a hidden axis": hidden_axis,
    "text cut off with its axes": lambda page: frame(page).text(99, 0.5, "outside", clip_on=True),
    "text under the arrow of another": text_under_an_arrow,
    "boxes that touch": lambda page: two_texts(page, 0),
    "boxes that overlap by less than 1 pt": lambda page: two_texts(page, 0.9),
    "a box that leaves the page by less than 1 pt": lambda page: write(page, -0.9, 50, "at the edge"),
}


@pytest.mark.parametrize(("draw", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught_by_its_own_message(draw: Callable[[Figure], object], message: str) -> None:
    page = drawn(draw)
    for _ in range(2):  # matplotlib remembers formulas and must not hide what is wrong with them the second time
        with pytest.raises(FigureFault) as caught:
            guard(page, "the figure")
        assert str(caught.value).startswith("the figure: ")
        assert message in str(caught.value)
        assert ";" not in str(caught.value), "one fault was planted"


@pytest.mark.parametrize("draw", NO_FAULTS.values(), ids=NO_FAULTS)
def test_what_is_no_fault_is_let_through(draw: Callable[[Figure], object]) -> None:
    guard(drawn(draw), "the figure")


@pytest.mark.parametrize("pair", [("lower", "upper"), ("upper", "lower")])
def test_a_named_pair_may_overlap(pair: tuple[str, str]) -> None:
    guard(drawn(lambda page: two_texts(page, 4)), "the figure", {pair: "the two belong together"})


@pytest.mark.parametrize("pair", [("lower", "other"), ("lower", "lower"), ("upper", "upper")])
def test_no_other_pair_may(pair: tuple[str, str]) -> None:
    with pytest.raises(FigureFault, match="'lower' lies over 'upper'"):
        guard(drawn(lambda page: two_texts(page, 4)), "the figure", {pair: "the two belong together"})


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(FigureFault) as caught:
        guard(drawn(lambda page: (write(page, 20, 50, "small", fontsize=6), write(page, 410, 80, "far right"))), "two")
    assert str(caught.value) == "two: 'small' is 6 pt, at least 10; 'far right' leaves the page"
