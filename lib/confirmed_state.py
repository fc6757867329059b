"""What goes back with a draft that is thrown away: the numbers a sampler has drawn, the place a grammar has reached.

A target that draws its tokens from a seeded generator, and may only write balanced brackets, writes position by
position or through drafts. It is the same text only if sampler and grammar return to the confirmed position.
Source: section 8.5.1.
"""

from collections.abc import Collection
from enum import StrEnum
from random import Random

from lib.checks import InputError, one_of, whole
from lib.greedy_check import GreedyCheck
from lib.speculation_setup import MOST_DRAFT, MOST_SEED

OPEN, CLOSE = 0, 1
SYMBOLS = "()"
# The most brackets that are open at once, and the probability that the target opens one where it may choose.
DEEPEST, OPENS = 3, 0.5
MOST_TOKENS = 2**16


class State(StrEnum):
    """What a round moves on for each row of the target, the rows that turn out void among them."""

    SAMPLER = "sampler"
    GRAMMAR = "grammar"


class Sampler:
    """A seeded generator that gives one number from 0 to below 1 a position, and can be set back to a position."""

    def __init__(self, seed: int) -> None:
        self._random = Random(whole("seed", seed, at_most=MOST_SEED))
        self._numbers = list[float]()  # those drawn, as the state behind each would take a thousand times the room
        self.position = 0

    def draw(self) -> float:
        """The number of this position; the next one is that of the position behind it."""
        if self.position == len(self._numbers):
            self._numbers.append(self._random.random())
        self.position += 1
        return self._numbers[self.position - 1]

    def rewind(self, position: int) -> None:
        """Go back to a position, to draw its number again. Raises InputError for one that is not reached yet."""
        self.position = whole("position", position, at_most=self.position)


class Brackets:
    """A grammar: nothing is closed that is not open, and at most so many brackets are open at once."""

    def __init__(self, deepest: int = DEEPEST) -> None:
        self.deepest = whole("deepest", deepest, at_least=1, at_most=MOST_TOKENS)
        self._open = [0]

    @property
    def position(self) -> int:
        """Tokens accepted so far."""
        return len(self._open) - 1

    @property
    def allowed(self) -> tuple[int, ...]:
        """The tokens that may come next."""
        may_come = {OPEN: self._open[-1] < self.deepest, CLOSE: self._open[-1] > 0}
        return tuple(token for token in may_come if may_come[token])

    def accept(self, token: int) -> None:
        """Go on behind a token; raises InputError for one that may not come next."""
        token = whole("token", token, at_most=CLOSE)
        if token not in self.allowed:
            raise InputError("token", token, f"one of {self.allowed}, as {self._open[-1]} brackets are open")
        self._open.append(self._open[-1] + (1 if token == OPEN else -1))

    def rewind(self, position: int) -> None:
        """Go back to a position. Raises InputError for one that is not reached yet."""
        del self._open[whole("position", position, at_most=self.position) + 1 :]


def plain_text(tokens: int, seed: int) -> str:
    """What the target writes one position after another. Raises InputError for values that make no sense."""
    sampler, grammar, text = Sampler(seed), Brackets(), list[int]()
    for _ in range(whole("tokens", tokens, at_least=1, at_most=MOST_TOKENS)):
        text.append(_choose(sampler, grammar))
        grammar.accept(text[-1])
    return _spelled(text)


def text_through_drafts(tokens: int, seed: int, draft_tokens: int, goes_back: Collection[State] = tuple(State)) -> str:
    """What it writes through drafts that open brackets as long as the grammar lets them, and then close one.

    A state that does not go back stays where the last row of the round has left it. Raises InputError for values that
    make no sense. Source: section 8.5.1.
    """
    wanted = whole("tokens", tokens, at_least=1, at_most=MOST_TOKENS)
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    if not isinstance(goes_back, Collection):
        raise InputError("goes_back", goes_back, "some of the states, such as tuple(State)")
    going_back = {one_of("goes_back", state, State) for state in goes_back}
    sampler, grammar, text = Sampler(seed), Brackets(), list[int]()
    while len(text) < wanted:
        drawn, followed = sampler.position, grammar.position
        checked = _verify(sampler, grammar, length)
        if State.SAMPLER in going_back:
            sampler.rewind(drawn + len(checked.outputs))
        if State.GRAMMAR in going_back:
            grammar.rewind(followed + checked.accepted)
        last = checked.outputs[-1]
        if last in grammar.allowed:  # a grammar that stands at a wrong place may refuse what it let through before
            grammar.accept(last)
        text += checked.outputs
    return _spelled(text[:wanted])


def breaks_at(text: str) -> int | None:
    """The first place, from 0, whose bracket the grammar forbids; None where it forbids none.

    Raises InputError for what is no text of brackets.
    """
    if not isinstance(text, str):
        raise InputError("text", text, "a text of brackets")
    grammar = Brackets()
    for place, symbol in enumerate(text):
        token = SYMBOLS.index(one_of("symbol", symbol, SYMBOLS))
        if token not in grammar.allowed:
            return place
        grammar.accept(token)
    return None


def _choose(sampler: Sampler, grammar: Brackets) -> int:
    """The target's token here: as the number drawn says, if the grammar leaves a choice."""
    wanted = OPEN if sampler.draw() < OPENS else CLOSE
    return wanted if wanted in grammar.allowed else grammar.allowed[0]


def _verify(sampler: Sampler, grammar: Brackets, length: int) -> GreedyCheck:
    """Each row draws a number and chooses behind the draft up to there, along which the grammar follows."""
    draft, choices = list[int](), list[int]()
    for _ in range(length):
        choices.append(_choose(sampler, grammar))
        draft.append(grammar.allowed[0])
        grammar.accept(draft[-1])
    choices.append(_choose(sampler, grammar))
    return GreedyCheck(tuple(draft), tuple(choices))


def _spelled(text: list[int]) -> str:
    return "".join(SYMBOLS[token] for token in text)
