"""Pictures for the screen are those that matplotlib's own canvas draws."""

from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from figures import style
from figures.page import SCREEN_DPI, new_page, write
from figures.registry import FIGURES, Entry
from figures.screen import Pixels, pixels
from figures.words import LANGUAGES


def remembered(figure: Figure) -> Pixels:
    with style.in_book_style():
        figure.set_dpi(SCREEN_DPI)
        return np.array(pixels(figure))


def plain(figure: Figure) -> Pixels:
    with style.in_book_style():
        figure.set_dpi(SCREEN_DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())


each_figure = pytest.mark.parametrize("entry", FIGURES, ids=lambda known: known.slug)


@each_figure
def test_each_figure_is_drawn_as_by_the_plain_canvas(entry: Entry) -> None:
    figure = entry.figure()
    assert np.array_equal(remembered(figure), plain(figure))


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
@each_figure
def test_so_it_is_at_other_settings_and_drawn_again(entry: Entry, language: str) -> None:
    for settings in entry.exploration.settings.values():
        figure = entry.figure(language=language, **settings)
        first = remembered(figure)
        assert np.array_equal(remembered(figure), first)
        assert np.array_equal(plain(figure), first)


@pytest.mark.parametrize(
    "how", [{}, {"rotation": 30}, {"rotation": 90}, {"alpha": 0.3}, {"bbox": {"boxstyle": "round"}}]
)
def test_a_text_between_two_pixels_upright_or_not(how: dict[str, Any]) -> None:
    """The same words elsewhere, in another size and colour, and those of a formula, in a page of no whole height."""
    page = new_page(100.3)
    for place in range(12):
        text = "$x^2$ and words" if place % 4 == 3 else "two words\nin lines" if place % 4 == 2 else "words fi Äg"
        looks: dict[str, Any] = {"fontsize": 10 + place % 3, "color": ("black", "C1")[place % 2]} | how
        write(page, 20.13 + 17.77 * place, 5.01 + 6.3 * place, text, **looks)
    assert np.array_equal(remembered(page), plain(page))
    assert len(np.unique(remembered(page).reshape(-1, 4), axis=0)) > 2
