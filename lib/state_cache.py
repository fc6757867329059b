"""Where a request can go on whose model has recurrent layers: at a saved state, of which more cost memory.

Full attention keeps the KV of each token, so it goes on wherever the text stops being the same. A recurrent layer keeps
one state and changes it with each token: only to a snapshot, a copy that was put aside, can it go back.
Source: section 8.3.3, figure 8-19.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise

from lib.checks import InputError, keep_whole, whole

# The worked example: a text that matches so far, a snapshot after every so many tokens, and the cards of one request.
MATCHED_TOKENS, SPACING_TOKENS, CARDS = 10_752, 4096, 8
MOST_TOKENS, MOST_BYTES = 2**20, 2**60


@dataclass(frozen=True)
class RecurrentState:
    """What the recurrent layers keep after one token: a square matrix per head, and the last inputs of convolutions.

    Its bytes do not depend on the length of the text. Sizes are checked: raises InputError.
    """

    layers: int
    heads: int
    head_dim: int
    conv_streams: int
    conv_positions: int
    matrix_element_bytes: int = 4
    conv_element_bytes: int = 2

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, layers=1, heads=1, head_dim=1, conv_streams=0, conv_positions=0)
        keep_whole(self, MOST_TOKENS, matrix_element_bytes=1, conv_element_bytes=1)

    @property
    def matrix_bytes(self) -> int:
        return self.layers * self.heads * self.head_dim**2 * self.matrix_element_bytes

    @property
    def conv_bytes(self) -> int:
        inputs = self.conv_streams * self.conv_positions * self.heads * self.head_dim
        return self.layers * inputs * self.conv_element_bytes

    @property
    def snapshot_bytes(self) -> int:
        return self.matrix_bytes + self.conv_bytes

    def on_each_of(self, cards: int) -> "RecurrentState":
        """What one of so many cards keeps, between which the heads of each layer are split evenly."""
        count = whole("cards", cards, at_least=1)
        if self.heads % count:
            raise InputError("cards", cards, f"a number that divides {self.heads} heads evenly")
        return replace(self, heads=self.heads // count)


# Shape as published; that matrices are FP32 and convolution inputs BF16 is concluded from the bytes of the record.
KIMI_K3 = RecurrentState(layers=69, heads=96, head_dim=128, conv_streams=3, conv_positions=3)


@dataclass(frozen=True)
class CachedText:
    """A text of so many tokens, and after how many of them a snapshot was put aside, in ascending order.

    Raises InputError for snapshots out of order, twice at one place, at the very beginning or beyond the text.
    """

    tokens: int
    snapshots: tuple[int, ...]

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, tokens=0)
        if not isinstance(self.snapshots, tuple):
            raise InputError("snapshots", self.snapshots, "a tuple of positions")
        allowed = f"positions from 1 to the end of the text, {self.tokens}, each beyond the one before"
        snapshots = tuple(whole("snapshots", position) for position in self.snapshots)
        if any(here >= there for here, there in pairwise((0, *snapshots, self.tokens + 1))):
            raise InputError("snapshots", self.snapshots, allowed)
        object.__setattr__(self, "snapshots", snapshots)

    def resume_at(self, matched: int) -> int:
        """The latest snapshot that is not beyond the match; 0, the beginning of the text, if there is none."""
        before = bisect_right(self.snapshots, whole("matched", matched, at_most=self.tokens))
        return self.snapshots[before - 1] if before else 0

    def recomputed(self, matched: int) -> int:
        """Tokens that run once more, from the snapshot to the end of the match."""
        return whole("matched", matched, at_most=self.tokens) - self.resume_at(matched)

    @property
    def mean_recomputed(self) -> float:
        """The mean of `recomputed` over all matches, from none of the text to all of it."""
        stretches = (there - here for here, there in pairwise((0, *self.snapshots, self.tokens + 1)))
        return sum(length * (length - 1) // 2 for length in stretches) / (self.tokens + 1)

    def stored_bytes(self, snapshot_bytes: int) -> int:
        """Bytes of all its snapshots: their number times the bytes of one."""
        return len(self.snapshots) * whole("snapshot_bytes", snapshot_bytes, at_most=MOST_BYTES)


def cached_text(tokens: int, spacing: int, last: int | None = None) -> CachedText:
    """A text with a snapshot after every `spacing` tokens, of which all are kept or only the last so many.

    Raises InputError for a spacing of 0 and for none to keep. Source: section 8.3.3.
    """
    every, end = whole("spacing", spacing, at_least=1), whole("tokens", tokens, at_most=MOST_TOKENS)
    positions = range(every, end + 1, every)
    kept = positions if last is None else positions[-whole("last", last, at_least=1) :]
    return CachedText(end, tuple(kept))


def mean_between_snapshots(spacing: int) -> float:
    """Tokens recomputed on average where all snapshots are kept and a match ends anywhere between two: about half.

    The match ends on a snapshot or up to `spacing - 1` tokens behind it, each with the same chance.
    Source: section 8.3.3.
    """
    return (whole("spacing", spacing, at_least=1, at_most=MOST_TOKENS) - 1) / 2
