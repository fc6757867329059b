"""Greedy verification: of a draft the target keeps what it would have written itself, and adds one token of its own.

The target computes all positions of the draft in one step, and the one behind it. Up to the first difference each of
its choices stands behind the right tokens; what it chose behind a wrong one is void.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from operator import eq

from lib.block_content import MOST_TOKEN_ID
from lib.checks import InputError, whole, wholes
from lib.paging import Copy, Pool, Sequence

Target = Callable[[tuple[int, ...]], int]
# The example of figure 8-29: a draft of so many tokens, and the position at which the target chooses another.
DRAFT_TOKENS, DIFFERS_AT = 4, 3
# A draft is spelled with the first letters, and what the target chooses instead with this one.
LETTERS, CORRECTION = "abcdefghi", "x"
LONGEST_EXAMPLE = len(LETTERS) - 1


@dataclass(frozen=True)
class GreedyCheck:
    """A draft of m tokens beside the m + 1 choices of the target, each made behind the draft up to there.

    Positions are counted from 1. Raises InputError for an empty draft and for another number of choices.
    Source: section 8.5.1, figure 8-29.
    """

    draft: tuple[int, ...]
    choices: tuple[int, ...]

    def __post_init__(self) -> None:
        wholes("draft", self.draft, at_most=MOST_TOKEN_ID)
        one_more = len(self.draft) + 1
        wholes("choices", self.choices, 0, MOST_TOKEN_ID, one_more, f"a tuple of {one_more} token ids")

    @property
    def accepted(self) -> int:
        """Draft tokens up to the first that the target would not have chosen."""
        return sum(takewhile(bool, map(eq, self.draft, self.choices)))

    @property
    def outputs(self) -> tuple[int, ...]:
        """The accepted tokens and exactly one more: the correction, or what follows a draft accepted in full."""
        return self.choices[: self.accepted + 1]

    @property
    def differs_at(self) -> int | None:
        """The position at which the target chose another token; None where it accepted the whole draft."""
        return None if self.accepted == len(self.draft) else self.accepted + 1

    @property
    def discarded(self) -> tuple[int, ...]:
        """The draft tokens that are thrown away: the first wrong one and all that were drafted behind it."""
        return self.draft[self.accepted :]

    @property
    def void_positions(self) -> range:
        """The positions whose choice was made behind a wrong token."""
        return range(self.accepted + 2, len(self.choices) + 1)

    def kv_written(self, known_tokens: int) -> int:
        """Tokens in KV right behind the step: of those known before, the last was not in it yet, so each row adds one.

        A row is computed for that last token and for each of the draft.
        """
        return whole("known_tokens", known_tokens, at_least=1, at_most=MOST_TOKEN_ID) - 1 + len(self.choices)

    def kv_kept(self, known_tokens: int) -> int:
        """Tokens in KV that count from then on: all that are known now but the last, which the next step computes."""
        return self.kv_written(known_tokens) - len(self.discarded)


def check(target: Target, known: tuple[int, ...], draft: tuple[int, ...]) -> GreedyCheck:
    """Ask a target that chooses a token behind given ones for its choice at each position of a draft, and behind it.

    Raises InputError as `GreedyCheck` does, and for what is no target and no tuple of known tokens. Source: section
    8.5.1.
    """
    if not callable(target):
        raise InputError("target", target, "what chooses a token behind those of a tuple")
    if not isinstance(known, tuple):
        raise InputError("known", known, "a tuple of token ids")
    wholes("draft", draft, at_most=MOST_TOKEN_ID)
    return GreedyCheck(draft, tuple(target((*known, *draft[:drafted])) for drafted in range(len(draft) + 1)))


def take_room(pool: Pool, sequence: Sequence, draft_tokens: int) -> Copy | None:
    """Take the blocks for all that a round may add, a draft and one token more, before its step is submitted.

    The pool is not told which tokens these are, so nobody can find them before they are confirmed. As with any growth,
    a `Copy` that comes back is done ahead of the step. Raises InputError and PagingError as the pool does.
    """
    return pool.grow(sequence, whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_TOKEN_ID - 1) + 1)


def confirm(pool: Pool, sequence: Sequence, outputs: tuple[int, ...]) -> Copy | None:
    """Add the outputs of a round and give back the blocks that only the rest of its draft needed. Section 8.5.1."""
    copy = pool.extend(sequence, outputs)
    pool.truncate(sequence, len(sequence.tokens))
    return copy


def example(draft_tokens: int = DRAFT_TOKENS, differs_at: int = DIFFERS_AT) -> GreedyCheck:
    """The round of figure 8-29, its tokens as letters: the target differs at this position, behind the draft at none.

    Raises InputError for no draft, one of more than 8 tokens, and a position that is neither in it nor right behind it.
    """
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=LONGEST_EXAMPLE)
    place = whole("differs_at", differs_at, at_least=1, at_most=length + 1) - 1
    letters = list(LETTERS[: length + 1])
    if place < length:
        letters[place] = CORRECTION
    return GreedyCheck(tuple(map(ord, LETTERS[:length])), tuple(map(ord, letters)))
