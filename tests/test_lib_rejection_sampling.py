"""Rejection sampling: exact laws by enumeration, and draws that follow them."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from lib.checks import InputError
from lib.rejection_sampling import (
    ALWAYS_A,
    ALWAYS_B,
    TARGET,
    A,
    B,
    Distribution,
    Model,
    Outcome,
    Rule,
    Text,
    acceptance_probability,
    acceptance_rate,
    distribution,
    output_law,
    position_law,
    residual,
    round_law,
    sample_positions,
    sample_round,
    text_law,
)
from lib.speculation import output_distribution

EVEN: Distribution = (Fraction(1, 2), Fraction(1, 2))


def grid(symbols: int) -> list[Distribution]:
    """Every distribution of so many symbols whose probabilities are quarters."""
    return [tuple(Fraction(n, 4) for n in each) for each in product(range(5), repeat=symbols) if sum(each) == 4]


def always(law: Distribution) -> Model:
    return lambda text: law


def drawn_table(seed: int, symbols: int) -> Model:
    """Another distribution behind each text, zeros among them, the same in every run."""

    def behind(text: Text) -> Distribution:
        draw = random.Random(f"{seed} {text}")
        weights = [draw.choice((0, 1, 2, 5)) for _ in range(symbols)]
        weights[draw.randrange(symbols)] += 1
        return tuple(Fraction(weight, sum(weights)) for weight in weights)

    return behind


def law_of_texts(target: Model, tokens: int) -> dict[Text, Fraction]:
    """What the target writes token by token: the product of what it gives each."""
    law = {(): Fraction(1)}
    for _ in range(tokens):
        law = {
            (*text, token): weight * Fraction(chance)
            for text, weight in law.items()
            for token, chance in enumerate(target(text))
            if chance
        }
    return law


def cases() -> Iterator[tuple[Model, Model, int]]:
    for symbols in (2, 3):
        for p, q in product(grid(symbols), repeat=2):
            for draft_tokens in (1, 2, 3, 4):
                yield always(p), always(q), draft_tokens


def test_whatever_the_draft_the_text_follows_the_target() -> None:
    wanted: dict[tuple[Distribution, int], dict[Text, Fraction]] = {}
    for target, draft, draft_tokens in cases():
        tokens = draft_tokens + 1
        key = target(()), tokens
        wanted.setdefault(key, law_of_texts(target, tokens))
        assert text_law(target, draft, draft_tokens, tokens) == wanted[key]


@pytest.mark.parametrize("seed", range(200))
def test_tables_that_depend_on_the_text_give_the_targets_law(seed: int) -> None:
    symbols, draft_tokens = 2 + seed % 2, 1 + seed % 4
    target, draft = drawn_table(seed, symbols), drawn_table(-1 - seed, symbols)
    for tokens in (1, 4):
        assert text_law(target, draft, draft_tokens, tokens) == law_of_texts(target, tokens)


def plain_round_law(target: Model, draft: Model, draft_tokens: int) -> dict[Text, Fraction]:
    """All whole drafts first, then every verdict, as it is done."""
    law: dict[Text, Fraction] = {}

    def add(text: Text, chance: Fraction) -> None:
        if chance:
            law[text] = law.get(text, Fraction(0)) + chance

    for drafted, chance in law_of_texts(draft, draft_tokens).items():
        for place, token in enumerate(drafted):
            p, q = target(drafted[:place]), draft(drafted[:place])
            accepts = min(Fraction(1), Fraction(p[token]) / Fraction(q[token]))
            if accepts < 1:
                lacking = [max(Fraction(0), Fraction(a) - Fraction(b)) for a, b in zip(p, q, strict=True)]
                for other, lack in enumerate(lacking):
                    add((*drafted[:place], other), chance * (1 - accepts) * lack / sum(lacking))
            chance *= accepts
        for token, each in enumerate(target(drafted)):
            add((*drafted, token), chance * Fraction(each))
    return law


@pytest.mark.parametrize("seed", range(60))
def test_the_law_of_a_round_is_that_of_all_drafts_and_verdicts(seed: int) -> None:
    symbols, draft_tokens = 2 + seed % 2, 1 + seed % 4
    target, draft = drawn_table(seed, symbols), drawn_table(-1 - seed, symbols)
    law = round_law(target, draft, draft_tokens)
    assert law == plain_round_law(target, draft, draft_tokens)
    assert sum(law.values()) == 1
    assert {len(text) for text in law} <= set(range(1, draft_tokens + 2))


def test_the_number_of_outputs_follows_the_rate_of_acceptance() -> None:
    for p, q in product(grid(2), repeat=2):
        law, rate = round_law(always(p), always(q), 3), acceptance_rate(p, q)
        lengths = [sum(chance for text, chance in law.items() if len(text) == n) for n in (1, 2, 3, 4)]
        assert [float(each) for each in lengths] == pytest.approx(output_distribution([float(rate)] * 3), abs=1e-15)


def test_what_is_accepted_and_what_is_replaced_add_up_to_the_target() -> None:
    for p, q in product(grid(3), repeat=2):
        assert output_law(p, q) == p
        law = position_law(p, q)
        assert sum(law.values()) == 1
        assert sum(chance for outcome, chance in law.items() if outcome.accepted) == acceptance_rate(p, q)
        assert all(outcome.accepted == (outcome.drafted == outcome.output) for outcome in law)
        assert sum(residual(p, q)) == 1


@pytest.mark.parametrize("rule", Rule)
def test_the_law_of_the_output_is_that_of_all_outcomes(rule: Rule) -> None:
    for p, q in product(grid(3), repeat=2):
        law = position_law(p, q, rule)
        assert sum(law.values()) == 1
        given = [sum(chance for outcome, chance in law.items() if outcome.output == token) for token in range(3)]
        if sum(given):
            assert output_law(p, q, rule) == tuple(Fraction(each) / sum(given) for each in given)


def test_the_two_drafts_of_the_chapter() -> None:
    for draft, token, other, kept in ((ALWAYS_A, A, B, Fraction(1, 4)), (ALWAYS_B, B, A, Fraction(3, 4))):
        assert acceptance_probability(TARGET, draft, token) == kept == acceptance_rate(TARGET, draft)
        assert position_law(TARGET, draft) == {
            Outcome(token, True, token): kept,
            Outcome(token, False, other): 1 - kept,
        }
        assert output_law(TARGET, draft) == TARGET


def test_each_wrong_rule_gives_another_law() -> None:
    assert output_law(TARGET, ALWAYS_A, Rule.FROM_TARGET) == (Fraction(7, 16), Fraction(9, 16))
    assert output_law(TARGET, EVEN, Rule.FROM_TARGET) == (Fraction(5, 16), Fraction(11, 16))
    assert output_law(TARGET, EVEN, Rule.EQUAL_ONLY) == (Fraction(1, 8), Fraction(7, 8))
    assert output_law(TARGET, (Fraction(3, 4), Fraction(1, 4)), Rule.LIKELIEST) == (Fraction(1, 3), Fraction(2, 3))
    assert output_law(TARGET, ALWAYS_A, Rule.NO_CORRECTION) == (1, 0)
    for rule in set(Rule) - {Rule.RESIDUAL}:
        assert any(output_law(p, q, rule) != p for p, q in product(grid(2), repeat=2) if acceptance_rate(p, q)), rule


def test_nobodys_distributions_are_changed() -> None:
    p, q = [0.25, 0.75], [0.5, 0.5]
    for rule in Rule:
        output_law(p, q, rule)  # type: ignore[arg-type]
        sample_positions(p, q, 10, 8, rule)  # type: ignore[arg-type]
    round_law(lambda text: p, lambda text: q, 2)  # type: ignore[arg-type, return-value]
    sample_round(lambda text: p, lambda text: q, 2, np.random.default_rng(8))  # type: ignore[arg-type, return-value]
    assert (p, q) == ([0.25, 0.75], [0.5, 0.5])


@pytest.mark.parametrize("seed", range(20))
def test_floats_follow_the_same_laws(seed: int) -> None:
    draw = np.random.default_rng(seed)
    p, q = (tuple(map(float, draw.dirichlet(np.ones(5)))) for _ in range(2))
    assert output_law(p, q) == pytest.approx(p)
    assert sum(residual(p, q)) == pytest.approx(1)
    assert residual(p, p) == p
    assert sum(text_law(always(p), always(q), 2, 3).values()) == pytest.approx(1)


def plain_sample(target: Distribution, draft: Distribution, samples: int, seed: int, rule: Rule) -> tuple[int, Any]:
    """Position by position, with the same three numbers each."""
    numbers, accepted, outputs = np.random.default_rng(seed).random((3, samples)), 0, [0] * len(target)
    from_draft: Distribution = draft
    if rule is Rule.LIKELIEST:
        from_draft = tuple(int(token == int(np.argmax([float(x) for x in draft]))) for token in range(len(draft)))
    replaced = target if rule is Rule.FROM_TARGET else residual(target, draft)
    for first, second, third in numbers.T.tolist():
        token = by_number(from_draft, first)
        p, q = target[token], draft[token]
        if second < (p if rule is Rule.EQUAL_ONLY else min(1, p / q)):
            accepted += 1
        elif rule is Rule.NO_CORRECTION:
            continue
        else:
            token = by_number(replaced, third)
        outputs[token] += 1
    return accepted, tuple(outputs)


def by_number(law: Distribution, number: float) -> int:
    for token, chance in enumerate(law):
        number -= float(chance)
        if number < 0:
            return token
    raise AssertionError


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("draft", [ALWAYS_A, ALWAYS_B, EVEN, TARGET], ids=str)
def test_many_positions_at_once_are_those_one_by_one(rule: Rule, draft: Distribution) -> None:
    found = sample_positions(TARGET, draft, 400, 8, rule)
    assert (found.accepted, found.outputs) == plain_sample(TARGET, draft, 400, 8, rule)
    assert found.positions == 400


@pytest.mark.parametrize("rule", Rule)
def test_samples_come_near_their_law(rule: Rule) -> None:
    found = sample_positions(TARGET, EVEN, 10**5, 8, rule)
    shares = [count / sum(found.outputs) for count in found.outputs]
    assert shares == pytest.approx([float(each) for each in output_law(TARGET, EVEN, rule)], abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_rounds_come_near_their_law(seed: int) -> None:
    target, draft = drawn_table(seed, 2), drawn_table(-1 - seed, 2)
    generator, count = np.random.default_rng(seed), 1500
    rounds = [sample_round(target, draft, 2, generator) for _ in range(count)]
    law = round_law(target, draft, 2)
    assert {each.outputs for each in rounds} <= law.keys()
    for text, chance in law.items():
        assert sum(each.outputs == text for each in rounds) / count == pytest.approx(float(chance), abs=0.05)
    for each in rounds:
        assert each.outputs[: each.accepted] == each.drafted[: each.accepted]
        assert len(each.drafted) == 2


def test_a_token_is_divided_by_the_probability_that_it_was_drawn_with() -> None:
    """A draft that answers differently each time it is asked is still judged by what it said when it was drawn."""
    asked: list[Text] = []

    def draft(text: Text) -> Distribution:
        asked.append(text)
        return ALWAYS_A if len(asked) == 1 else ALWAYS_B

    for seed in range(20):
        asked.clear()
        sample_round(always(TARGET), draft, 1, np.random.default_rng(seed))
        assert asked == [()]


def test_a_number_just_below_one_draws_a_token_that_there_is() -> None:
    class Highest(np.random.Generator):
        def random(self, *_: Any, **__: Any) -> Any:
            return np.nextafter(1, 0)

    law = (*[0.1] * 10, 0.0)
    assert sum(law) < 1
    found = sample_round(always(law), always(law), 1, Highest(np.random.PCG64(8)))
    assert found.drafted == (9,)
    assert set(found.outputs) == {9}


NO_LAWS: tuple[Any, ...] = (
    (), (0.5, 0.4), (0.5, 0.5 + 1e-8), (Fraction(1, 3), Fraction(1, 3)), (1.5, -0.5), (2, -1), (1, float("nan")),
    (float("inf"), 0), ("1", 0), (True, False), (None, 1), (10**400, 0),
    (1 + Fraction(1, 10**400), -Fraction(1, 10**400)),
    "10", None, 1.0, {0: 1}, ((1, 0), (0, 1)),
)  # fmt: skip


@pytest.mark.parametrize("wrong", NO_LAWS, ids=repr)
def test_what_is_no_distribution_is_refused_by_name(wrong: Any) -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        ("target", lambda: output_law(wrong, EVEN)),
        ("draft", lambda: output_law(EVEN, wrong)),
        ("target", lambda: acceptance_rate(wrong, EVEN)),
        ("draft", lambda: residual(EVEN, wrong)),
        ("draft", lambda: acceptance_probability(EVEN, wrong, 0)),
        ("target", lambda: round_law(always(wrong), always(EVEN), 2)),
        ("draft", lambda: text_law(always(EVEN), always(wrong), 2, 2)),
        ("draft", lambda: sample_positions(EVEN, wrong, 10, 8)),
        ("draft", lambda: sample_round(always(EVEN), always(wrong), 2, np.random.default_rng(8))),
        ("target", lambda: sample_round(always(wrong), always(EVEN), 2, np.random.default_rng(8))),
        ("here", lambda: distribution("here", wrong)),
    ]
    for parameter, call in calls:
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.parameter == parameter


def test_a_draft_of_other_tokens_is_refused() -> None:
    with pytest.raises(InputError, match=r"^draft is .*; allowed: probabilities of 2 tokens"):
        output_law(TARGET, (1, 0, 0))


def test_a_token_that_the_draft_never_gives_is_refused() -> None:
    with pytest.raises(InputError, match=r"^token is 1; allowed: one that the draft can give: \[0\]$"):
        acceptance_probability(TARGET, ALWAYS_A, B)
    tiny = Fraction(1, 10**400)  # which is 0 as a float
    with pytest.raises(InputError, match=r"^token is 0"):
        acceptance_probability((0.5, 0.5), (tiny, 1 - tiny), 0)
    assert acceptance_probability((0.5, 0.5), (5e-324, 1.0), 0) == 1


def test_a_rule_by_which_nothing_ever_comes_is_refused() -> None:
    with pytest.raises(InputError, match=r"^rule is "):
        output_law(ALWAYS_B, ALWAYS_A, Rule.NO_CORRECTION)
    assert sample_positions(ALWAYS_B, ALWAYS_A, 10, 8, Rule.NO_CORRECTION).outputs == (0, 0)


def test_too_many_texts_are_refused() -> None:
    wide = always((Fraction(1, 100),) * 100)
    with pytest.raises(InputError, match=r"^texts is "):
        round_law(wide, wide, 2)
    with pytest.raises(InputError, match=r"^texts is "):
        text_law(wide, wide, 2, 2)


def test_to_output_a_draw_from_p_is_right_and_accepts_less() -> None:
    """The fault of the rule that compares is what replaces a rejection: the draw that was compared would be right."""
    for p, q in product(grid(3), repeat=2):
        equal = [a * b for a, b in zip(p, q, strict=True)]  # drafted and drawn, so that the draft is kept
        otherwise = [a * (1 - b) for a, b in zip(p, q, strict=True)]  # drawn, and something else was drafted
        assert tuple(a + b for a, b in zip(equal, otherwise, strict=True)) == p
        assert sum(equal) <= acceptance_rate(p, q)
        kept = sum(chance for outcome, chance in position_law(p, q, Rule.EQUAL_ONLY).items() if outcome.accepted)
        assert kept == sum(equal)


def test_whole_numbers_of_numpy_are_exact_too() -> None:
    found = distribution("p", (np.int64(1), np.uint8(0)))
    assert found == (1, 0) and all(type(each.numerator) is int for each in found if isinstance(each, Fraction))
    assert [type(each) for each in found] == [Fraction, Fraction]
    assert type(acceptance_probability(TARGET, (np.int64(1), np.int64(0)), A)) is Fraction  # type: ignore[arg-type]
