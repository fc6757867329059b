"""How often each position of a draft is accepted, counted from rounds that were run.

A position is reached by the rounds whose draft has a token there and accepted all before it. Of those that accepted
j - 1 or more, the share that accepted j or more is the a_j of section 8.5.4. Nothing makes it the same for all j.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from lib.checks import InputError, whole
from lib.speculation_setup import MOST_DRAFT


class Verified(NamedTuple):
    """A round: draft tokens, and how many of them were accepted."""

    drafted: int
    accepted: int

    @property
    def discarded(self) -> int:
        """Draft tokens that were thrown away."""
        return self.drafted - self.accepted

    @property
    def outputs(self) -> int:
        """The accepted tokens and one more."""
        return self.accepted + 1


class Position(NamedTuple):
    """Rounds that reached a position of their draft, and those of them that accepted its token."""

    reached: int
    accepted: int


def count_positions(rounds: Sequence[Verified]) -> tuple[Position, ...]:
    """The counts of each position, up to the last that a draft has; those that no round reached are 0.

    Raises InputError for no rounds, and for one that accepts more than it drafts.
    """
    if not isinstance(rounds, tuple | list) or not rounds:
        raise InputError("rounds", rounds, "at least one round, in a tuple or list")
    if not all(isinstance(each, Verified) for each in rounds):
        raise InputError("rounds", rounds, "rounds such as Verified(drafted=4, accepted=2)")
    for drafted, accepted in rounds:
        whole("accepted", accepted, at_most=whole("drafted", drafted, at_most=MOST_DRAFT))
    return tuple(
        Position(
            sum(each.drafted >= place and each.accepted >= place - 1 for each in rounds),
            sum(each.accepted >= place for each in rounds),
        )
        for place in range(1, max(each.drafted for each in rounds) + 1)
    )


def acceptance_by_position(rounds: Sequence[Verified]) -> tuple[Fraction, ...]:
    """a_j = (rounds that accepted j or more) / (those that accepted j - 1 or more), as far as any round came.

    Raises InputError as `count_positions` does. Source: section 8.5.4.
    """
    return tuple(Fraction(each.accepted, each.reached) for each in count_positions(rounds) if each.reached)
