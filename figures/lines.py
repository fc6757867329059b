"""What figures with curves have in common: round ends and ticks of an axis, lines in a key, labels beside curves."""

import math
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.page import write

LABELS_APART_PT = 13
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


def doubling_axis(axes: Axes, most: int) -> None:
    """A horizontal axis from 1 to a power of two on which each doubling takes the same width."""
    axes.set_xscale("log", base=2)
    doublings = [2**power for power in range(most.bit_length())]
    axes.set_xticks(doublings, [str(number) for number in doublings])
    axes.set_xlim(1, most)
    axes.minorticks_off()


def log_height(axes: Axes, values: Iterable[float]) -> None:
    """A vertical logarithmic axis with round ends around these values; far stretches get a tick a decade."""
    least, most = round_below(min(values := list(values)) / 1.02), round_above(1.02 * max(values))
    axes.set_yscale("log")
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    steps = (1, 2, 5) if most / least <= 3000 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    seen = [tick for tick in ticks if least * (1 - _SLIP) <= tick <= most * (1 + _SLIP)]
    axes.set_yticks(seen, [f"{tick:g}" for tick in seen])
    axes.set_ylim(least, most)
    axes.minorticks_off()


def token_axis(axes: Axes, most: int) -> None:
    """A horizontal axis from 0 to so many tokens with at most nine ticks, at round numbers of 1024."""
    every = round_above(most / 1024 / 8) * 1024
    ticks = [place * every for place in range(int(most / every) + 1)]
    axes.set_xticks(ticks, [f"{tick / 1024:g}K" if tick else "0" for tick in ticks])
    axes.set_xlim(0, most)


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
