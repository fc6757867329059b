"""Pixels for the screen, where a move of a slider draws again most of the words that were there before."""

from functools import lru_cache
from math import floor
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

_TEXTS_KEPT = 4096
_SIZES_KEPT = 64

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Glyph = tuple[Pixels, int, int]


def pixels(figure: Figure) -> Pixels:
    """The figure as matplotlib's own canvas draws it (height, width, RGBA); it lasts until the next of its size."""
    renderer: RendererAgg = _renderer(*figure.bbox.size, figure.dpi)
    renderer.clear()
    figure.draw(renderer)
    return np.asarray(renderer.buffer_rgba())


class ScreenRenderer(RendererAgg):
    """Draws the same as its parent, which shapes and renders the glyphs of each text anew every time.

    Here they are kept, for each place that a text has had between two pixels.
    """

    def __init__(self, width: float, height: float, dpi: float) -> None:
        RendererAgg.__init__(self, width, height, dpi)
        self._glyphs = lru_cache(_TEXTS_KEPT)(self._rendered)

    def draw_text(
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Draw a text; a formula is left to the parent."""
        if ismath:
            RendererAgg.draw_text(self, gc, x, y, s, prop, angle, ismath, mtext)
            return
        left, top = floor(x), floor(y)
        for image, right, down in self._glyphs(s, prop.copy(), angle, x - left, y - top):
            self._renderer.draw_text_image(image, left + right, top + down, 0, gc)

    def _rendered(self, text: str, font: FontProperties, angle: float, x: float, y: float) -> list[Glyph]:
        """The glyphs as the parent renders them, caught on their way to the picture."""
        catcher = _Catcher()
        picture, self._renderer = self._renderer, catcher
        try:
            RendererAgg.draw_text(self, self.new_gc(), x, y, text, font, angle)
        finally:
            self._renderer = picture
        return catcher.caught


class _Catcher:
    """Takes the place of the picture, and keeps what would have been drawn into it."""

    def __init__(self) -> None:
        self.caught: list[Glyph] = []

    def draw_text_image(self, image: Pixels, x: int, y: int, angle: float, gc: Any) -> None:
        self.caught.append((np.array(image), x, y))


# matplotlib keeps with a renderer how wide each text is: one for each size of picture is worth keeping.
_renderer = lru_cache(_SIZES_KEPT)(ScreenRenderer)
