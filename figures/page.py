"""The paper a figure is drawn on: a fixed width, boxes placed in points, and the ways it leaves as a file."""

import io
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from PIL import Image

from figures import style
from figures.screen import pixels

FORMATS = ("svg", "pdf", "png")
SCREEN_DPI = 144
SCREEN_WIDTH_PX = 640
# Without these entries a file would carry the hour it was drawn or the program that drew it.
_NO_DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def new_page(height_pt: float) -> Figure:
    """An empty figure of the book's width and this height (pt)."""
    figure = Figure(figsize=(style.WIDTH_PT / 72, height_pt / 72), dpi=72)
    FigureCanvasAgg(figure)
    return figure


def box(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes whose frame lies exactly there, in points from the lower left corner of the page."""
    page_width, page_height = figure.get_size_inches() * 72
    return figure.add_axes((left / page_width, bottom / page_height, width / page_width, height / page_height))


def write(figure: Figure, left: float, bottom: float, text: str, **how: Any) -> Text:
    """Text on the page itself, in points from the lower left corner."""
    page_width, page_height = figure.get_size_inches() * 72
    return figure.text(left / page_width, bottom / page_height, text, **how)


def swatch(figure: Figure, left: float, bottom: float, text: str, role: str) -> None:
    """One entry of a key, in points from the lower left corner: a patch in the look of a role, and its meaning."""
    page_width, page_height = figure.get_size_inches() * 72
    patch = (left / page_width, bottom / page_height), 14 / page_width, 9 / page_height
    figure.add_artist(Rectangle(*patch, transform=figure.transFigure, **style.look(role)))
    write(figure, left + 20, bottom, text)


def save(figure: Figure, path: Path) -> None:
    """The figure as a file for print; the suffix decides the format. The same figure always gives the same bytes."""
    kind = path.suffix.removeprefix(".")
    with style.in_book_style():
        figure.savefig(path, format=kind, dpi=style.PRINT_DPI, metadata=_NO_DATES[kind])


def screen_png(figure: Figure) -> bytes:
    """The figure as a PNG for the screen, made quickly: a reader waits for it."""
    with style.in_book_style():
        figure.set_dpi(SCREEN_DPI)
        picture = Image.fromarray(pixels(figure)).convert("RGB")
    return _png(picture, compress_level=1)


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height of a picture, in its own pixels."""
    return Image.open(io.BytesIO(png)).size


def palette_png(png: bytes) -> bytes:
    """The same picture in at most 128 colours: a third of the bytes, for notebooks under version control."""
    picture = Image.open(io.BytesIO(png))
    return _png(picture.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE), optimize=True)


def _png(picture: Image.Image, **how: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", **how)
    return file.getvalue()
