"""The kernel's share of a move: from the new setting to the picture and the read-outs."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from figures.exploration import Choice, Control
from figures.explorer import Explorer, explore
from figures.page import new_page, screen_png

POSITIONS = 15
RANDOM_POINTS = 20


@dataclass(frozen=True)
class KernelTimes:
    """Milliseconds of each move, and of an empty figure of the same size drawn after each, to compare with."""

    moves: list[float]
    empty: list[float]
    refused: int

    @property
    def ratio(self) -> float:
        return median(self.moves) / median(self.empty)


def kernel_times(figure: str) -> KernelTimes:
    """Move each control alone over its range, then all of them at random."""
    explorer = explore(figure)
    height_pt = float(explorer.entry.figure().get_size_inches()[1]) * 72
    moves, empty, refused = [], [], 0
    for settings in _grid(explorer):
        taken = _milliseconds(partial(explorer.move, **settings))
        empty.append(_milliseconds(lambda: screen_png(new_page(height_pt))))
        if explorer.sentence:
            refused += 1
        else:
            moves.append(taken)
    return KernelTimes(moves, empty, refused)


def positions(control: Control) -> list[Any]:
    """Values of a control, evenly over its range."""
    if isinstance(control, Choice):
        return list(control.options)
    steps = round((control.high - control.low) / control.step)
    places = sorted({round(steps * place / (POSITIONS - 1)) for place in range(POSITIONS)})
    return [control.to_parameter(control.low + control.step * place) for place in places]


def _grid(explorer: Explorer) -> Iterator[dict[str, Any]]:
    for name, control in explorer.controls.items():
        for value in positions(control):
            yield explorer.book | {name: value}
    draw = random.Random(8)
    for _ in range(RANDOM_POINTS):
        yield {name: draw.choice(positions(control)) for name, control in explorer.controls.items()}


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3
