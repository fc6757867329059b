"""Drafts looked up in the text itself: where its last few tokens stood before, what followed them is proposed.

No network and no training is needed, only an index. The target of this module is a stand-in: it continues a frozen
text, whatever that says, so that a round is accepted exactly as far as the text repeats itself. Source: section 8.5.3.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lib.acceptance import Verified
from lib.block_content import MOST_TOKEN_ID
from lib.checks import InputError, whole
from lib.greedy_check import GreedyCheck, check
from lib.speculation_setup import MOST_DRAFT

FOLDER = Path(__file__).parent / "texts"
# Tokens that must be found again, tokens that are then proposed, and tokens of the text that are known at the start.
LAST, DRAFT_TOKENS, KNOWN = 2, 8, 64
MOST_LAST, MOST_WORDS = 64, 2**14


@dataclass(frozen=True)
class FrozenText:
    """A text as token ids; the id of a word or a punctuation mark is its place in `vocabulary`."""

    vocabulary: tuple[str, ...]
    tokens: tuple[int, ...]

    def choose(self, known: tuple[int, ...]) -> int:
        """The target's choice behind some of its tokens: whatever stands there, right or wrong as they may be.

        Raises InputError behind as many tokens as the text has, or more.
        """
        whole("known tokens", len(known), at_most=len(self.tokens) - 1)
        return self.tokens[len(known)]

    def spelled(self, tokens: Sequence[int]) -> str:
        """Some of its tokens as words. Raises InputError for a token that is not in it."""
        last = len(self.vocabulary) - 1
        return " ".join(self.vocabulary[whole("token", token, at_most=last)] for token in tokens)


def tokenize(text: str) -> FrozenText:
    """Words and punctuation marks as token ids, in order of their first appearance. Raises InputError for no words."""
    found = re.findall(r"\w+|[^\w\s]", text) if isinstance(text, str) else []
    if not 0 < len(found) <= MOST_WORDS:
        raise InputError("text", text, f"a text of 1 to {MOST_WORDS:,} words")
    ids = {word: token for token, word in enumerate(dict.fromkeys(found))}
    return FrozenText(tuple(ids), tuple(ids[word] for word in found))


@cache
def serving_text() -> FrozenText:
    """The text that comes with the project: a few paragraphs about a server, in words that come back."""
    return tokenize((FOLDER / "serving.txt").read_text(encoding="utf-8"))


class NgramIndex:
    """The tokens so far, and where each run of `last` of them stood most recently before the end.

    It knows only what was appended, so a draft never looks ahead. Raises InputError for runs of no tokens.
    """

    def __init__(self, last: int = LAST) -> None:
        self.last = whole("last", last, at_least=1, at_most=MOST_LAST)
        self._tokens = list[int]()
        self._behind: dict[tuple[int, ...], int] = {}

    def append(self, token: int) -> None:
        """Go on behind one more token; from now on it can be proposed behind the tokens that it followed."""
        self._tokens.append(whole("token", token, at_most=MOST_TOKEN_ID))
        if len(self._tokens) > self.last:
            self._behind[tuple(self._tokens[-self.last - 1 : -1])] = len(self._tokens) - 1

    def draft(self, draft_tokens: int = DRAFT_TOKENS) -> tuple[int, ...]:
        """At most so many tokens that followed the last ones where they stood before; () where they never did."""
        length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
        start = self._behind.get(tuple(self._tokens[-self.last :]))
        return () if start is None else tuple(self._tokens[start : start + length])


@dataclass(frozen=True)
class LookedUp:
    """A round: the tokens known before it, and its check; None where nothing was found and a plain step ran."""

    known: int
    check: GreedyCheck | None

    @property
    def verified(self) -> Verified:
        """Draft tokens and how many of them were accepted."""
        return Verified(len(self.check.draft), self.check.accepted) if self.check else Verified(0, 0)


def write(
    text: FrozenText, last: int = LAST, draft_tokens: int = DRAFT_TOKENS, known: int = KNOWN
) -> tuple[LookedUp, ...]:
    """Rounds in which the target writes its text behind the first `known` tokens.

    How many tokens are left is known, as of a request that declares its outputs: no draft goes beyond them. Raises
    InputError for what is no FrozenText, counts that make no sense, and a text that is known whole.
    """
    if not isinstance(text, FrozenText):
        raise InputError("text", text, "a FrozenText, such as serving_text()")
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    index, written = NgramIndex(last), whole("known", known, at_least=1, at_most=len(text.tokens) - 1)
    for token in text.tokens[:written]:
        index.append(token)
    rounds = list[LookedUp]()
    while left := len(text.tokens) - written:
        draft = index.draft(length)[: left - 1]
        checked = check(text.choose, text.tokens[:written], draft) if draft else None
        rounds.append(LookedUp(written, checked))
        for token in checked.outputs if checked else (text.choose(text.tokens[:written]),):
            index.append(token)
            written += 1
    return tuple(rounds)
