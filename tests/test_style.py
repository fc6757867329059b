"""The palette is safe for the colour-blind and in grey, and every text can be read on what lies behind it."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.typing import ColorType
from numpy.typing import NDArray

from figures import style
from figures.guard import visible_texts
from figures.registry import FIGURES, Entry

Colour = NDArray[np.float64]
PAIRS = list(combinations(style.FILL, 2))
# The first group are lines of reads, the second lines of models of a step's time: groups never share a picture.
LINES_TOGETHER = [("one", "other", "weights"), ("fit", "device", "launch")]

# Full loss of one kind of cone, on linear RGB (Machado, Oliveira and Fernandes 2009).
EYES = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)

# In CIELAB a distance of 2.3 is just noticed side by side; nine times that holds across a page and on poor paper.
FAR_APART = 20
GREYS_APART = 20
# WCAG 2: the least contrast of text of this size, and of lines.
TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0


def linear(colour: ColorType) -> Colour:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def cielab(rgb: Colour) -> Colour:
    share = (TO_XYZ @ np.clip(rgb, 0, 1)) / (TO_XYZ @ np.ones(3))
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: ColorType, other: ColorType) -> float:
    dark, light = sorted(float((TO_XYZ @ linear(colour))[1]) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def test_the_arithmetic_of_colours() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert cielab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    for eye in EYES.values():
        assert eye @ np.ones(3) == pytest.approx(np.ones(3), abs=1e-5)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_fills_differ_to_every_eye(one: str, other: str, eye: str) -> None:
    seen = [cielab(EYES[eye] @ linear(style.FILL[role])) for role in (one, other)]
    assert np.linalg.norm(seen[0] - seen[1]) >= FAR_APART


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_fills_differ_in_grey_by_lightness_or_hatch(one: str, other: str) -> None:
    lightness = [cielab(linear(style.FILL[role]))[0] for role in (one, other)]
    assert abs(lightness[0] - lightness[1]) >= GREYS_APART or style.HATCH[one] != style.HATCH[other]


def test_each_fill_says_how_it_is_hatched() -> None:
    assert style.FILL.keys() == style.HATCH.keys()


@pytest.mark.parametrize("name", ["INK", "LIMIT"])
def test_colours_for_text_can_be_read_on_paper(name: str) -> None:
    assert contrast(getattr(style, name), style.PAPER) >= TEXT_CONTRAST


def test_faint_lines_can_be_seen_on_paper() -> None:
    assert contrast(style.FAINT, style.PAPER) >= LINE_CONTRAST


@pytest.mark.parametrize("role", style.LINE)
def test_each_line_can_be_seen_on_paper(role: str) -> None:
    assert contrast(style.LINE[role][0], style.PAPER) >= LINE_CONTRAST
    assert any(role in together for together in LINES_TOGETHER)


@pytest.mark.parametrize("together", LINES_TOGETHER)
def test_lines_of_a_picture_differ_in_grey_by_lightness_or_dashes(together: tuple[str, ...]) -> None:
    for one, other in combinations(together, 2):
        (colour, dashes), (its_colour, its_dashes) = style.LINE[one], style.LINE[other]
        apart = abs(cielab(linear(colour))[0] - cielab(linear(its_colour))[0])
        assert apart >= GREYS_APART or dashes != its_dashes


@pytest.mark.parametrize("entry", FIGURES, ids=lambda entry: entry.slug)
def test_each_text_can_be_read_on_what_lies_behind_it(entry: Entry) -> None:
    figure = entry.figure()
    for text, behind in with_backgrounds(figure):
        assert contrast(text.get_color(), behind) >= TEXT_CONTRAST, f"{text.get_text()!r} on {behind}"


def with_backgrounds(figure: Figure) -> list[tuple[Text, ColorType]]:
    """Each visible text with the colour of its own box or else the most common one that is drawn in its place."""
    with style.in_book_style():
        figure.set_dpi(72)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        texts = [(text, text.get_window_extent()) for text in visible_texts(figure)]
        for text, _ in texts:
            text.set_visible(False)
        canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255
    found: list[tuple[Text, ColorType]] = []
    for text, extent in texts:
        box = text.get_bbox_patch()
        left, bottom, right, top = np.rint(np.maximum(extent.extents, 0)).astype(int)
        place = pixels[bottom:top, left:right].reshape(-1, 3)
        found.append((text, box.get_facecolor()[:3] if box else Counter(map(tuple, place)).most_common(1)[0][0]))
    return found


@pytest.mark.parametrize(("colour", "background"), [(style.INK, style.PAPER), (style.PAPER, style.FILL["prefill"])])
def test_what_lies_behind_a_text_is_found(colour: str, background: str) -> None:
    with style.in_book_style():
        figure = Figure(figsize=(5, 1))
        figure.patch.set_facecolor(background)
        figure.text(0.1, 0.5, "text", color=colour)
        figure.text(0.5, 0.5, "boxed", bbox={"facecolor": "#123456"})
    (_, behind), (_, box) = with_backgrounds(figure)
    assert behind == pytest.approx(to_rgb(background), abs=1e-9)
    assert box == pytest.approx(to_rgb("#123456"), abs=1e-9)
