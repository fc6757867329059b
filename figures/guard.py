"""What no figure may have in print: small text, text off the page or over other text, missing glyphs, excess width."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
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
    seen = []
    for text in visible_texts(figure):
        if float(text.get_fontsize()) < style.SMALLEST_TEXT_PT:
            yield f"{text.get_text()!r} is {float(text.get_fontsize()):g} pt, at least {style.SMALLEST_TEXT_PT}"
        if (extent := _seen_extent(text)) is not None:
            seen.append((text, extent))
            if extent.width < Text.get_window_extent(text).width - 4 * _TOUCHING_PT:
                yield f"{text.get_text()!r} is cut off"
    page = Bbox.from_bounds(0, 0, *(figure.get_size_inches() * 72))
    for text, extent in seen:
        if not (page.x0 <= extent.x0 and extent.x1 <= page.x1 and page.y0 <= extent.y0 and extent.y1 <= page.y1):
            yield f"{text.get_text()!r} leaves the page"
    for (one, its_extent), (other, other_extent) in combinations(seen, 2):
        allowed = {(one.get_gid(), other.get_gid()), (other.get_gid(), one.get_gid())} & may_overlap.keys()
        if its_extent.overlaps(other_extent) and not allowed:
            yield f"{one.get_text()!r} lies over {other.get_text()!r}"


def visible_texts(artist: Artist) -> list[Text]:
    """The texts that are drawn: not empty, not hidden by themselves or by what holds them, no tick out of its axis."""
    if not artist.get_visible():
        return []
    if isinstance(artist, Text) and artist.get_text().strip():
        return [artist]
    return [text for child in _drawn_children(artist) for text in visible_texts(child)]


def _drawn_children(artist: Artist) -> list[Artist]:
    children = artist.get_children()
    if isinstance(artist, Axes) and not artist.axison:
        return [child for child in children if not isinstance(child, Axis)]
    if isinstance(artist, Axis):
        low, high = sorted(artist.get_view_interval())
        slip = 1e-9 * (high - low)
        return [
            child for child in children if not (isinstance(child, Tick) and _outside(child, low - slip, high + slip))
        ]
    return children


def _outside(tick: Tick, low: float, high: float) -> bool:
    return not low <= float(tick.get_loc()) <= high


def _seen_extent(text: Text) -> Bbox | None:
    """Where a text is seen, without the arrow it may have; None if it is cut off wholly, as text can be by its axes."""
    extent = Text.get_window_extent(text)
    frame = text.get_clip_box() if text.get_clip_on() else None
    seen = extent if frame is None else Bbox.intersection(extent, frame)
    if seen is None or min(seen.width, seen.height) <= 2 * _TOUCHING_PT:
        return None
    return seen.padded(-_TOUCHING_PT)


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
