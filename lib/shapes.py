"""Shapes that a step can be executed in: rows are padded up to a captured graph, and a further graph has its price."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lib.checks import InputError, seconds, whole

# The example of section 8.2.4: graphs captured for so many rows, and the rows of a further one.
CAPTURED, FURTHER = (16, 32), 17

MOST_ROWS = 2**50


def padded_rows(rows: int, captured: Sequence[int]) -> int:
    """The rows that are executed: those of the smallest captured graph that holds them.

    More rows than the largest graph run as they are, kernel by kernel. Source: section 8.2.4.
    """
    needed = whole("rows", rows, at_least=1, at_most=MOST_ROWS)
    if not isinstance(captured, Sequence):
        raise InputError("captured", captured, "a sequence of row counts")
    sizes = [whole("captured", size, at_least=1, at_most=MOST_ROWS) for size in captured]
    return min((size for size in sizes if size >= needed), default=needed)


@dataclass(frozen=True)
class FurtherGraph:
    """A graph for one more shape: seconds to capture it, bytes it holds for good, seconds that each step then saves.

    Raises InputError for times that make no sense. Source: section 8.2.4.
    """

    capture_s: float
    held_bytes: int
    saved_s_per_step: float

    def __post_init__(self) -> None:
        seconds("capture_s", self.capture_s)
        whole("held_bytes", self.held_bytes)
        seconds("saved_s_per_step", self.saved_s_per_step, above_zero=True)

    @property
    def steps_to_repay(self) -> int:
        """Steps of this shape after which capturing has paid for itself."""
        # As written, not as stored: in binary fractions 2.1 is a little more than seven times 0.3.
        return math.ceil(Fraction(str(self.capture_s)) / Fraction(str(self.saved_s_per_step)))

    def blocks_lost(self, block_bytes: int) -> int:
        """Blocks of KV that the pool has to give up for the graph's buffers."""
        return -(-self.held_bytes // whole("block_bytes", block_bytes, at_least=1))
