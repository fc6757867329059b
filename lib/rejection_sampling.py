"""Rejection sampling: drafts drawn from one distribution are accepted or replaced so that the text follows another.

A token drawn from the draft's q is accepted with probability min(1, p / q); else one is drawn from what q gave too
little of, the positive part of p - q. The outcome follows the target's p, whatever q is; q decides only how much of the
draft is accepted. Laws are exact where probabilities are whole numbers and Fractions. Source: section 8.5.1, figures
8-30 and 8-31.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np

from lib.checks import InputError, finite, one_of, whole
from lib.speculation_setup import MOST_DRAFT, MOST_SEED

Probability = Fraction | float
Distribution = tuple[Probability, ...]
Text = tuple[int, ...]
# What comes behind a text: the distribution of the next token.
Model = Callable[[Text], Distribution]

# The example of figures 8-30 and 8-31: two tokens, what the target gives them, and drafts that are always the same.
A, B = 0, 1
TARGET: Distribution = (Fraction(1, 4), Fraction(3, 4))
ALWAYS_A: Distribution = (1, 0)
ALWAYS_B: Distribution = (0, 1)

# How far floats may be from a sum of 1; whole numbers and Fractions may not be at all.
TOLERANCE = 1e-9
MOST_TEXT, MOST_TEXTS, MOST_SAMPLES = 2**10, 2**13, 10**7


class Rule(StrEnum):
    """How a draft is judged; all but the first are faults, and give text of another law than the target's.

    To accept what equals a token drawn from p is no fault where that token itself is output otherwise: whatever comes
    out was drawn from p. But it accepts less, the sum of p q instead of that of min(p, q).
    """

    RESIDUAL = "a rejection draws from the positive part of p - q"
    FROM_TARGET = "a rejection draws from p"
    EQUAL_ONLY = "a draft must equal a draw from p, or the residual is drawn from"
    LIKELIEST = "the draft is the likeliest token of q, not one drawn from q"
    NO_CORRECTION = "a rejection gives no token"


class Outcome(NamedTuple):
    """What can happen at a position: the token drafted, whether it is accepted, the token that is output."""

    drafted: int
    accepted: bool
    output: int | None


@dataclass(frozen=True)
class Round:
    """A draft as it was drawn, and the tokens that came out: those accepted and one more."""

    drafted: Text
    outputs: Text

    @property
    def accepted(self) -> int:
        return len(self.outputs) - 1


@dataclass(frozen=True)
class Sampled:
    """Of so many positions: how often the draft was accepted, and how often each token was output."""

    positions: int
    accepted: int
    outputs: tuple[int, ...]


def distribution(parameter: str, values: object) -> Distribution:
    """Probabilities as a tuple: whole numbers and Fractions exact, others as float.

    Raises InputError for anything but a tuple or list of probabilities that sum to 1, floats to within 1e-9.
    """
    allowed = "a tuple of probabilities from 0 to 1 that sum to 1"
    if not isinstance(values, tuple | list) or not values:
        raise InputError(parameter, values, allowed)
    try:
        kept: Distribution = tuple(map(_probability, values))
    except InputError:
        raise InputError(parameter, values, allowed) from None
    tolerance = 0 if all(isinstance(each, Fraction) for each in kept) else TOLERANCE
    if not -tolerance <= sum(kept) - 1 <= tolerance:
        raise InputError(parameter, values, allowed)
    return kept


def acceptance_probability(target: Distribution, draft: Distribution, token: int) -> Probability:
    """min(1, p / q) of a token that was drawn from q.

    Raises InputError for what are no distributions of the same tokens, and for a token that q never gives.
    Source: section 8.5.1.
    """
    p, q = _both(target, draft)
    drawn = whole("token", token, at_most=len(q) - 1)
    if not q[drawn]:
        raise InputError("token", token, f"one that the draft can give: {[x for x, each in enumerate(q) if each]}")
    return min(Fraction(1), p[drawn] / q[drawn])


def acceptance_rate(target: Distribution, draft: Distribution) -> Probability:
    """How often a draft is accepted, the sum of min(p, q) over all tokens. Raises InputError as above."""
    return sum(map(min, *_both(target, draft)), Fraction(0))


def residual(target: Distribution, draft: Distribution) -> Distribution:
    """[p - q]_+ divided by its sum: what a rejected draft is replaced from.

    Where nothing is left p equals q, nothing is ever rejected, and p itself comes back. Raises InputError as above.
    Source: section 8.5.1.
    """
    p, q = _both(target, draft)
    lacking = [max(wanted - given, Fraction(0)) for wanted, given in zip(p, q, strict=True)]
    total = sum(lacking)
    return tuple(each / total for each in lacking) if total else p


def position_law(target: Distribution, draft: Distribution, rule: Rule = Rule.RESIDUAL) -> dict[Outcome, Probability]:
    """The probability of each outcome at one position, those that never happen left out: the tree of figure 8-30.

    Raises InputError for what are no distributions of the same tokens, and for an unknown rule.
    """
    drafted_from, accepts, replaced_from = _judging(target, draft, rule)
    law = dict[Outcome, Probability]()
    for drafted, chance in enumerate(drafted_from):
        rejected = chance * (1 - accepts[drafted])
        law[Outcome(drafted, True, drafted)] = chance * accepts[drafted]
        if replaced_from is None:
            law[Outcome(drafted, False, None)] = rejected
        else:
            law |= {Outcome(drafted, False, token): rejected * each for token, each in enumerate(replaced_from)}
    return {outcome: chance for outcome, chance in law.items() if chance}


def output_law(target: Distribution, draft: Distribution, rule: Rule = Rule.RESIDUAL) -> Distribution:
    """The law that the next token of the text follows: p by the right rule, whatever q is.

    Without a correction a rejection leaves the position to the next round. Raises InputError as `position_law` does,
    and for a rule by which no token ever comes. Source: section 8.5.1, figures 8-30 and 8-31.
    """
    accepted, replaced = _given(_judging(target, draft, rule))
    given = [one + other for one, other in zip(accepted, replaced, strict=True)]
    total = sum(given)
    if not total:
        raise InputError("rule", rule, "one by which a token comes, where the target gives none that the draft gives")
    return tuple(each / total for each in given)


def round_law(target: Model, draft: Model, draft_tokens: int) -> dict[Text, Probability]:
    """The probability of each text that one round may output, from one token to one more than the draft has.

    Both models give the distribution of the next token behind the tokens of this round. Raises InputError for what are
    no distributions of the same tokens, and for a draft that could go too many ways. Source: section 8.5.1.
    """
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    law, accepted = dict[Text, Probability](), dict[Text, Probability]({(): Fraction(1)})
    for _ in range(length):
        going_on = dict[Text, Probability]()
        for text, weight in accepted.items():
            for way in _ways(target, draft, text).judged:
                (going_on if way.accepted else law)[*text, way.token] = weight * way.chance
            _refuse_too_many(len(law) + len(going_on))
        accepted = going_on
    for text, weight in accepted.items():
        law |= {(*text, way.token): weight * way.chance for way in _ways(target, draft, text).behind_draft}
        _refuse_too_many(len(law))
    return law


def text_law(target: Model, draft: Model, draft_tokens: int, tokens: int) -> dict[Text, Probability]:
    """The law of the first so many tokens of a text that is written round after round, with drafts of one length.

    Raises InputError as `round_law` does. Source: section 8.5.1.
    """
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    # the probability of each text, by the draft tokens that its round has left
    reached = dict[Text, list[Probability]]({(): [*[Fraction(0)] * length, Fraction(1)]})
    for _ in range(whole("tokens", tokens, at_least=1, at_most=MOST_TEXT)):
        going_on = dict[Text, list[Probability]]()
        for text, weights in reached.items():
            ways = _ways(target, draft, text)
            for left, weight in enumerate(weights):
                for way in ways.judged if left else ways.behind_draft:
                    by_left = going_on.setdefault((*text, way.token), [Fraction(0)] * (length + 1))
                    by_left[left - 1 if way.accepted else length] += weight * way.chance
            _refuse_too_many(len(going_on))
        reached = going_on
    return {text: sum(weights, Fraction(0)) for text, weights in reached.items()}


def sample_round(target: Model, draft: Model, draft_tokens: int, generator: np.random.Generator) -> Round:
    """Draw a draft and judge it, as it is done: first all tokens from q, then each by the p behind those before it.

    The q that a token was drawn from is the one that its p is divided by. Raises InputError for what are no
    distributions of the same tokens. Source: section 8.5.1.
    """
    drafted, drawn_from = list[int](), list[Distribution]()
    for _ in range(whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)):
        drawn_from.append(distribution("draft", draft(tuple(drafted))))
        drafted.append(_draw(drawn_from[-1], generator))
    outputs = list[int]()
    for token, q in zip(drafted, drawn_from, strict=True):
        p = target(tuple(outputs))
        if generator.random() >= acceptance_probability(p, q, token):
            return Round(tuple(drafted), (*outputs, _draw(residual(p, q), generator)))
        outputs.append(token)
    return Round(tuple(drafted), (*outputs, _draw(distribution("target", target(tuple(outputs))), generator)))


def sample_positions(
    target: Distribution, draft: Distribution, samples: int, seed: int, rule: Rule = Rule.RESIDUAL
) -> Sampled:
    """Draft and judge at so many positions of their own: each takes three numbers, for draft, verdict, replacement.

    Raises InputError for what are no distributions of the same tokens, and for counts that make no sense.
    Source: section 8.5.1, figures 8-30 and 8-31.
    """
    judging = _judging(target, draft, rule)
    positions = whole("samples", samples, at_least=1, at_most=MOST_SAMPLES)
    numbers = np.random.default_rng(whole("seed", seed, at_most=MOST_SEED)).random((3, positions))
    outputs = np.searchsorted(_thresholds(judging.drafted_from), numbers[0], side="right")
    rejected = numbers[1] >= np.array(judging.accepts, float)[outputs]
    if judging.replaced_from is None:
        outputs = outputs[~rejected]
    else:
        replaced = np.searchsorted(_thresholds(judging.replaced_from), numbers[2, rejected], side="right")
        outputs[rejected] = replaced
    counts = np.bincount(outputs, minlength=len(target))
    return Sampled(positions, positions - int(rejected.sum()), tuple(counts.tolist()))


class _Judging(NamedTuple):
    """What a rule comes down to: where drafts come from, how often each token is accepted, what replaces it."""

    drafted_from: Distribution
    accepts: Distribution
    replaced_from: Distribution | None


class _Way(NamedTuple):
    accepted: bool
    token: int
    chance: Probability


class _Ways(NamedTuple):
    """How a text may go on, where a draft is judged and behind the last token of one."""

    judged: list[_Way]
    behind_draft: list[_Way]


def _judging(target: Distribution, draft: Distribution, rule: Rule) -> _Judging:
    p, q = _both(target, draft)
    accepts = tuple(min(Fraction(1), p[x] / q[x]) if q[x] else Fraction(0) for x in range(len(q)))
    match one_of("rule", rule, Rule):
        case Rule.FROM_TARGET:
            return _Judging(q, accepts, p)
        case Rule.EQUAL_ONLY:
            return _Judging(q, p, residual(p, q))
        case Rule.LIKELIEST:
            likeliest = q.index(max(q))
            return _Judging(tuple(Fraction(x == likeliest) for x in range(len(q))), accepts, residual(p, q))
        case Rule.NO_CORRECTION:
            return _Judging(q, accepts, None)
        case _:
            return _Judging(q, accepts, residual(p, q))


def _given(judging: _Judging) -> tuple[list[Probability], list[Probability]]:
    """How often each token is drafted and accepted, and how often it replaces one that is rejected."""
    accepted = [chance * accepts for chance, accepts in zip(judging.drafted_from, judging.accepts, strict=True)]
    rejected = sum(chance * (1 - accepts) for chance, accepts in zip(*judging[:2], strict=True))
    if judging.replaced_from is None:
        return accepted, [Fraction(0)] * len(accepted)
    return accepted, [rejected * each for each in judging.replaced_from]


def _ways(target: Model, draft: Model, text: Text) -> _Ways:
    p = distribution("target", target(text))
    accepted, replaced = _given(_judging(p, draft(text), Rule.RESIDUAL))
    judged = [_Way(True, token, chance) for token, chance in enumerate(accepted) if chance]
    judged += [_Way(False, token, chance) for token, chance in enumerate(replaced) if chance]
    return _Ways(judged, [_Way(False, token, chance) for token, chance in enumerate(p) if chance])


def _refuse_too_many(texts: int) -> None:
    if texts > MOST_TEXTS:
        raise InputError("texts", texts, f"at most {MOST_TEXTS:,} that have to be followed: fewer tokens")


def _both(target: Distribution, draft: Distribution) -> tuple[Distribution, Distribution]:
    p, q = distribution("target", target), distribution("draft", draft)
    if len(p) != len(q):
        raise InputError("draft", draft, f"probabilities of {len(p)} tokens, as many as the target has")
    if all(isinstance(each, Fraction) for each in (*p, *q)):
        return p, q
    return tuple(map(float, p)), tuple(map(float, q))


def _probability(value: object) -> Probability:
    if isinstance(value, Rational) and not isinstance(value, bool):
        number: Probability = Fraction(int(value.numerator), int(value.denominator))  # those of arrays would overflow
    else:
        number = finite("probability", value)
    if not 0 <= number <= 1:
        raise InputError("probability", value, "from 0 to 1")
    return number


def _draw(law: Distribution, generator: np.random.Generator) -> int:
    return int(np.searchsorted(_thresholds(law), generator.random(), side="right"))


def _thresholds(law: Distribution) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A number from 0 to below 1 draws the first token whose threshold is above it."""
    thresholds = np.cumsum(np.array(law, float))
    last = max(token for token, chance in enumerate(law) if chance)
    thresholds[last:] = 1  # what rounding leaves at the end is drawn as the last token that can be
    return thresholds
