"""What no figure may have in print: small text, text off the page or over other text, missing glyphs, excess width."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from figures import style

_TOUCHING_PT = 1


class FigureFault(Exception):
    """A figure that must not be printed; the message lists every fault found."""


def guard(figure: Figure, name: str, may_overlap: Mapping[tuple[str, str], str] | None = None) -> None:
    """Raise FigureFault if the figure breaks a rule of print.

    `may_overlap` names pairs of texts by their gid, each with the reason why they may share a place.
    """
    faults = list(_faults(figure, may_overlap or {}))
    if faults:
        raise FigureFault(f"{name}: " + "; ".join(faults))


def _faults(figure: Figure, may_overlap: Mapping[tuple[str, str], str]) -> Iterator[str]:
    with style.in_book_style(), _complaints_of_fonts() as complaints:
        figure.set_dpi(72)
        FigureCanvasAgg(figure).draw()
    yield from complaints
    width = figure.get_size_inches()[0] * 72
    if width > style.WIDTH_PT + 0.01:
        yield f"{width:.0f} pt wide, at most {style.WIDTH_PT}"
    texts = [(text, _shrunk(text.get_window_extent())) for text in visible_texts(figure)]
    page = Bbox.from_bounds(0, 0, *(figure.get_size_inches() * 72))
    for text, extent in texts:
        if float(text.get_fontsize()) < style.SMALLEST_TEXT_PT:
            yield f"{text.get_text()!r} is {float(text.get_fontsize()):g} pt, at least {style.SMALLEST_TEXT_PT}"
        if not (page.x0 <= extent.x0 and extent.x1 <= page.x1 and page.y0 <= extent.y0 and extent.y1 <= page.y1):
            yield f"{text.get_text()!r} leaves the page"
    for (one, its_extent), (other, other_extent) in combinations(texts, 2):
        allowed = {(one.get_gid(), other.get_gid()), (other.get_gid(), one.get_gid())} & may_overlap.keys()
        if its_extent.overlaps(other_extent) and not allowed:
            yield f"{one.get_text()!r} lies over {other.get_text()!r}"


def visible_texts(figure: Figure) -> list[Text]:
    """The texts that are drawn: visible, not empty, and no label of a tick outside its axis."""
    hidden: set[Text] = set()
    for axis in figure.findobj(Axis):
        low, high = sorted(axis.get_view_interval())
        slip = 1e-9 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            in_view = low - slip <= float(tick.get_loc()) <= high + slip
            if not (axis.get_visible() and axis.axes.get_visible() and in_view):
                hidden |= {tick.label1, tick.label2}
    texts = figure.findobj(Text)
    return [text for text in texts if text.get_visible() and text.get_text().strip() and text not in hidden]


def _shrunk(extent: Bbox) -> Bbox:
    return Bbox.from_extents(
        extent.x0 + _TOUCHING_PT, extent.y0 + _TOUCHING_PT, extent.x1 - _TOUCHING_PT, extent.y1 - _TOUCHING_PT
    )


@contextmanager
def _complaints_of_fonts() -> Iterator[list[str]]:
    """What matplotlib says of missing glyphs while drawing: as warnings for plain text, in a log for formulas."""
    complaints: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            complaints.append(record.getMessage())

    listener, log = Listener(), logging.getLogger("matplotlib")
    log.addHandler(listener)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield complaints
        complaints += [str(warning.message) for warning in caught]
    finally:
        log.removeHandler(listener)
