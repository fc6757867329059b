"""How long a draft should be: each further token adds time for certain, and an output only if all before are accepted.

Times are seconds; `acceptance` has a probability for each position of the longest draft. Source: section 8.5.4.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple

from lib.acceptance import Verified, count_positions
from lib.checks import InputError, keep_whole, seconds, whole
from lib.memory import pages_for
from lib.shapes import padded_rows
from lib.speculation import MOST_OUTPUTS, expected_outputs, outputs_at_least, per_position
from lib.speculation_setup import MOST_DRAFT, MOST_SEED

# The example of section 8.5.4: steps are captured for so many rows, and these are verified.
CAPTURED, VERIFIED = (8, 16), (4, 5, 8, 9)
# How many rounds back an estimate looks: an answer has easy passages and hard ones.
WINDOW = 8


@dataclass(frozen=True)
class RoundTime:
    """The time of a round by the length of its draft; with `per_token_s` alone it is T_v + t_d m.

    A step that verifies takes `step_s`, and `row_s` for each row that it executes beyond the first: one for each draft
    token, padded up to a captured shape. A draft takes `draft_s` whatever its length, and `per_token_s` for each token
    of the whole groups of `group` that are drafted. Raises InputError for values that make no sense.
    """

    step_s: float
    draft_s: float = 0
    per_token_s: float = 0
    group: int = 1
    row_s: float = 0
    captured_rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        seconds("step_s", self.step_s, above_zero=True)
        for name in ("draft_s", "per_token_s", "row_s"):
            seconds(name, getattr(self, name))
        keep_whole(self, MOST_DRAFT, group=1)
        padded_rows(1, self.captured_rows)

    def __call__(self, draft_tokens: int) -> float:
        length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
        drafted = self.group * pages_for(length, self.group)
        extra_rows = padded_rows(length + 1, self.captured_rows) - 1
        return self.step_s + self.row_s * extra_rows + self.draft_s + self.per_token_s * drafted


def s_per_output(acceptance: Sequence[float], round_time: RoundTime, draft_tokens: int) -> float:
    """T_m / E[N_m] with drafts of so many tokens, of the positions that are given.

    Raises InputError for values that make no sense. Source: section 8.5.4.
    """
    length = _length(draft_tokens, acceptance)
    _refuse_unless_round_time(round_time)
    return round_time(length) / expected_outputs(acceptance[:length])


def best_length(acceptance: Sequence[float], round_time: RoundTime) -> int:
    """Of all lengths the one with the least time per output; the shortest of several. Source: exercise 8-7.

    Raises InputError for values that make no sense.
    """
    _refuse_unless_round_time(round_time)
    outputs = list(accumulate(outputs_at_least(acceptance)))
    return min(range(1, len(outputs)), key=lambda length: round_time(length) / outputs[length])


class OneMore(NamedTuple):
    """A draft of one token more: time and outputs that it adds to a round, and those of the round before."""

    extra_s: float
    extra_outputs: float
    round_s: float
    outputs: float

    @property
    def price_s(self) -> float:
        """dT / dN, the seconds that an added output takes; infinite where none is ever added."""
        return self.extra_s / self.extra_outputs if self.extra_outputs else math.inf

    @property
    def average_s(self) -> float:
        """T / N, the seconds that an output took before."""
        return self.round_s / self.outputs

    @property
    def pays(self) -> bool:
        """Whether dT / dN < T / N, so that the average falls. Source: section 8.5.4."""
        return self.extra_s * self.outputs < self.round_s * self.extra_outputs


def one_more(acceptance: Sequence[float], round_time: RoundTime, draft_tokens: int) -> OneMore:
    """What one token more than so many adds. To stop at the first that does not pay may miss a better length.

    In groups the first token of the next group bears its whole price, and what follows is free. Raises InputError for
    values that make no sense, and where no position follows. Source: section 8.5.4.
    """
    length = _length(draft_tokens, acceptance, beyond=1)
    _refuse_unless_round_time(round_time)
    shorter, longer = round_time(length), round_time(length + 1)
    outputs = outputs_at_least(acceptance)
    return OneMore(longer - shorter, outputs[length + 1], shorter, sum(outputs[: length + 1]))


def next_length(history: Sequence[Verified], longest: int, round_time: RoundTime, window: int = WINDOW) -> int:
    """The best length by what the last rounds accepted.

    A position is estimated from the rounds that reached it and, as if one more had, from the share that all positions
    together accepted; that share itself starts from one imagined acceptance. So a position that nobody reached is taken
    to be like the others, and before the first round all is hoped for. Raises InputError for values that make no sense.
    Source: section 8.5.4.
    """
    most = whole("longest", longest, at_least=1, at_most=MOST_DRAFT)
    if not isinstance(history, tuple | list):
        raise InputError("history", history, "the rounds before, in a tuple or list")
    seen = history[-whole("window", window, at_least=1, at_most=MOST_OUTPUTS) :]
    counts = count_positions(seen)[:most] if seen else ()
    of_all = (1 + sum(each.accepted for each in counts)) / (1 + sum(each.reached for each in counts))
    estimates = [(each.accepted + of_all) / (each.reached + 1) for each in counts]
    return best_length((*estimates, *[of_all] * (most - len(estimates))), round_time)


class Passage(NamedTuple):
    """A part of an answer: its tokens, and how probably each position of a draft is accepted there."""

    outputs: int
    acceptance: tuple[float, ...]


def draw_rounds(
    passages: Sequence[Passage], length_after: Callable[[Sequence[Verified]], int], seed: int
) -> tuple[Verified, ...]:
    """Rounds that write an answer, drawn at random; `length_after` says the next draft's length from those before.

    Raises InputError for values that make no sense, and for a draft longer than the positions of its passage.
    """
    if not isinstance(passages, tuple | list) or not all(isinstance(each, Passage) for each in passages):
        raise InputError("passages", passages, "passages such as Passage(outputs=400, acceptance=(0.75,) * 4)")
    draw, rounds, written, end = Random(whole("seed", seed, at_most=MOST_SEED)), list[Verified](), 0, 0
    for outputs, acceptance in passages:
        chances = per_position(acceptance)
        end += whole("outputs", outputs, at_least=1, at_most=MOST_OUTPUTS)
        while written < end:
            length = _length(length_after(rounds), chances)
            accepted = next((place for place in range(length) if draw.random() >= chances[place]), length)
            rounds.append(Verified(length, accepted))
            written += rounds[-1].outputs
    return tuple(rounds)


def _refuse_unless_round_time(round_time: RoundTime) -> None:
    if not isinstance(round_time, RoundTime):
        raise InputError("round_time", round_time, "a RoundTime, such as RoundTime(step_s=0.026)")


def _length(draft_tokens: int, acceptance: Sequence[float], beyond: int = 0) -> int:
    """A draft's length, if that many positions are given, and so many beyond it."""
    return whole("draft_tokens", draft_tokens, at_least=1, at_most=len(per_position(acceptance)) - beyond)
