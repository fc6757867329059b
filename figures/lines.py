"""What figures with curves have in common: round ends and ticks of an axis, lines in a key, labels beside curves."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation, Transform

from figures import style
from figures.page import write

LABELS_APART_PT = 13
TICK_PT, NAME_BELOW_PT = 3.5, 20
ROUND, FINER = (1, 2, 5, 10), (1, 1.5, 2, 3, 4, 6, 8, 10)
_SLIP = 1e-9


def round_above(value: float, steps: Sequence[float] = ROUND) -> float:
    """The smallest of these steps times a power of ten that is not below the value: an end that moves rarely."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in steps if step * power >= value * (1 - _SLIP))


def round_below(value: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above the value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in reversed(ROUND) if step * power <= value * (1 + _SLIP))


def ticks_below(axes: Axes, ticks: Mapping[float, str], name: str = "", **how: Any) -> None:
    """Ticks with their labels below a box, and what they measure; `how` says more of the labels' look.

    They stand in place of matplotlib's own axis, which takes several times as long to draw.
    """
    axes.xaxis.set_visible(False)
    edge = axes.get_xaxis_transform()
    _tick_marks(axes, list(ticks), [0] * len(ticks), TICKDOWN, edge)
    below = edge + _shifted(axes, 0, -2 * TICK_PT)
    for place, label in ticks.items():
        axes.text(place, 0, label, transform=below, ha="center", va="top", **how)
    if name:
        axes.text(0.5, 0, name, transform=axes.transAxes + _shifted(axes, 0, -NAME_BELOW_PT), ha="center", va="top")


def ticks_left(axes: Axes, ticks: Mapping[float, str]) -> None:
    """The same left of a box; without any ticks its line is not drawn either."""
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(bool(ticks))
    edge = axes.get_yaxis_transform()
    _tick_marks(axes, [0] * len(ticks), list(ticks), TICKLEFT, edge)
    beside = edge + _shifted(axes, -2 * TICK_PT, 0)
    for place, label in ticks.items():
        axes.text(0, place, label, transform=beside, ha="right", va="center_baseline")


def _tick_marks(axes: Axes, x: Sequence[float], y: Sequence[float], marker: int, edge: Transform) -> None:
    figure = axes.get_figure()
    assert figure
    look: dict[str, Any] = {
        "marker": marker,
        "markersize": TICK_PT,
        "markeredgewidth": style.THIN_PT,
        "color": style.INK,
        "linestyle": "",
    }
    figure.add_artist(Line2D(x, y, transform=edge, **look))


def _shifted(axes: Axes, right_pt: float, up_pt: float) -> Transform:
    figure = axes.get_figure()
    assert figure
    return ScaledTranslation(right_pt / 72, up_pt / 72, figure.dpi_scale_trans)


def doubling_axis(axes: Axes, most: int, name: str) -> None:
    """A horizontal axis from 1 to a power of two on which each doubling takes the same width."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(1, most)
    ticks_below(axes, {2**power: str(2**power) for power in range(most.bit_length())}, name)


def height_from_zero(axes: Axes, highest: float) -> None:
    """A vertical axis from 0 to a round end above this value."""
    end = round_above(1.02 * highest, FINER)
    axes.set_ylim(0, end)
    ticks_left(axes, {tick: f"{tick:g}" for tick in round_ticks(end)})


def round_ticks(end: float) -> list[float]:
    """Six to eight round places from 0 to an end of an axis."""
    return [tick for tick in MaxNLocator(7, steps=ROUND).tick_values(0, end) if tick <= end * (1 + _SLIP)]


def log_height(axes: Axes, values: Iterable[float]) -> None:
    """A vertical logarithmic axis with round ends around these values; far stretches get a tick a decade."""
    least, most = round_below(min(values := list(values)) / 1.02), round_above(1.02 * max(values))
    axes.set_yscale("log")
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    steps = (1, 2, 5) if most / least <= 3000 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    seen = [tick for tick in ticks if least * (1 - _SLIP) <= tick <= most * (1 + _SLIP)]
    axes.set_ylim(least, most)
    ticks_left(axes, {tick: f"{tick:g}" for tick in seen})


def token_axis(axes: Axes, most: int, name: str) -> None:
    """A horizontal axis from 0 to so many tokens with at most nine ticks, at round numbers of 1024."""
    every = round_above(most / 1024 / 8) * 1024
    ticks = [place * every for place in range(int(most / every) + 1)]
    axes.set_xlim(0, most)
    ticks_below(axes, {tick: f"{tick / 1024:g}K" if tick else "0" for tick in ticks}, name)


def spread(heights: Sequence[float], apart: float = LABELS_APART_PT) -> list[float]:
    """The heights, each raised as far as needed to lie so far above the next lower one."""
    placed, floor = dict[int, float](), -math.inf
    for place in sorted(range(len(heights)), key=heights.__getitem__):
        placed[place] = floor = max(heights[place], floor + apart)
    return [placed[place] for place in range(len(heights))]


def label_ends(axes: Axes, ends: Sequence[float], texts: Sequence[str]) -> None:
    """A text right of the box beside the end of each curve, moved apart where the curves end close together."""
    place = axes.get_window_extent()
    heights = [float(axes.transData.transform((1, end))[1]) - place.y0 for end in ends]
    for height, text in zip(spread(heights), texts, strict=True):
        axes.annotate(text, (1, height / place.height), (6, 0), "axes fraction", "offset points", va="center")


def line_key(figure: Figure, left: float, bottom: float, text: str, role: str) -> None:
    """One entry of a key, in points from the lower left corner: a piece of a line of this role, and its meaning."""
    width, height = figure.get_size_inches() * 72
    ends = [left / width, (left + 18) / width], [(bottom + 4) / height] * 2
    figure.add_artist(Line2D(*ends, transform=figure.transFigure, **style.line(role)))
    write(figure, left + 24, bottom, text)
