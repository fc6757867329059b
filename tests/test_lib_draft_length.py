"""How long drafts should be: every length tried, groups and padded shapes, lengths that follow what was accepted."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from lib.acceptance import Verified, acceptance_by_position, count_positions
from lib.checks import InputError
from lib.draft_length import (
    CAPTURED,
    WINDOW,
    Passage,
    RoundTime,
    best_length,
    draw_rounds,
    next_length,
    one_more,
    s_per_output,
)
from lib.speculation import at_every_position, expected_outputs

SERIAL = RoundTime(0.0263, per_token_s=0.0036)
GROUPED = RoundTime(0.0263, per_token_s=0.0036, group=4)
PADDED = RoundTime(0.0263, draft_s=0.0001, row_s=0.002, captured_rows=CAPTURED)
TIMES = (SERIAL, GROUPED, PADDED, RoundTime(0.02), RoundTime(0.02, row_s=0.03))


def drawn(seed: int) -> tuple[float, ...]:
    draw = random.Random(seed)
    return tuple(round(draw.random(), 3) for _ in range(draw.randint(1, 20)))


def test_the_time_of_a_round() -> None:
    assert SERIAL(4) == pytest.approx(0.0263 + 4 * 0.0036)
    assert [round((GROUPED(m) - 0.0263) / 0.0036, 9) for m in (1, 4, 5, 8, 9)] == [4, 4, 8, 8, 12]
    rows = [round((PADDED(m) - 0.0264) / 0.002, 9) for m in (1, 3, 4, 7, 8, 15, 16)]
    assert rows == [7, 7, 7, 7, 15, 15, 16]
    assert RoundTime(0.02, draft_s=0.01)(9) == RoundTime(0.02, draft_s=0.01)(1) == pytest.approx(0.03)


@pytest.mark.parametrize("round_time", TIMES, ids=str)
@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_lengths(round_time: RoundTime, seed: int) -> None:
    acceptance = drawn(seed)
    tried = [round_time(m) / expected_outputs(acceptance[:m]) for m in range(1, len(acceptance) + 1)]
    best = best_length(acceptance, round_time)
    assert tried[best - 1] == pytest.approx(min(tried))
    assert s_per_output(acceptance, round_time, best) == pytest.approx(min(tried))


def test_of_several_best_lengths_the_shortest() -> None:
    assert best_length((0.5, 0.0, 1.0), RoundTime(0.02)) == 1
    assert best_length((1.0,) * 9, RoundTime(0.02)) == 9


@pytest.mark.parametrize("round_time", TIMES, ids=str)
@pytest.mark.parametrize("seed", range(20))
def test_one_more_pays_exactly_where_the_average_falls(round_time: RoundTime, seed: int) -> None:
    acceptance = drawn(seed)
    for m in range(1, len(acceptance)):
        step = one_more(acceptance, round_time, m)
        before, after = (s_per_output(acceptance, round_time, length) for length in (m, m + 1))
        assert step.average_s == pytest.approx(before)
        assert (step.round_s + step.extra_s) / (step.outputs + step.extra_outputs) == pytest.approx(after)
        if not math.isclose(before, after):
            assert step.pays == (after < before)
            assert step.pays == (step.price_s < step.average_s)


def test_what_is_never_accepted_has_no_price() -> None:
    step = one_more((0.5, 0.0), SERIAL, 1)
    assert (step.extra_outputs, step.price_s, step.pays) == (0, math.inf, False)


def test_in_groups_the_first_price_that_is_too_high_does_not_end_the_search() -> None:
    acceptance = at_every_position(0.95, 16)
    pays = [one_more(acceptance, GROUPED, m).pays for m in range(1, 16)]
    assert not pays[3] and pays[4]
    assert best_length(acceptance, GROUPED) > 4
    assert s_per_output(acceptance, GROUPED, 5) > s_per_output(acceptance, GROUPED, 4)


def plain_counts(rounds: list[Verified], place: int) -> tuple[int, int]:
    reached = [each for each in rounds if each.drafted >= place and each.accepted >= place - 1]
    return len(reached), len([each for each in reached if each.accepted >= place])


@pytest.mark.parametrize("seed", range(20))
def test_positions_are_counted_where_they_were_reached(seed: int) -> None:
    draw = random.Random(seed)
    rounds = [Verified(length, draw.randint(0, length)) for length in (draw.randint(0, 6) for _ in range(30))]
    counts = count_positions(rounds)
    assert [tuple(each) for each in counts] == [plain_counts(rounds, place) for place in range(1, len(counts) + 1)]
    assert len(counts) == max(each.drafted for each in rounds)
    for place, found in enumerate(acceptance_by_position(rounds), start=1):
        reached, accepted = plain_counts(rounds, place)
        assert found == Fraction(accepted, reached)


def test_with_one_length_it_is_the_quotient_of_the_chapter() -> None:
    rounds = [Verified(3, accepted) for accepted in (0, 1, 1, 2, 3, 3, 3)]
    assert acceptance_by_position(rounds) == (Fraction(6, 7), Fraction(4, 6), Fraction(3, 4))
    assert acceptance_by_position([Verified(3, 0)]) == (0,)
    assert acceptance_by_position([Verified(0, 0)]) == ()
    assert Verified(7, 1).discarded == 6


@pytest.mark.parametrize("wrong", [[(1, 2)], [(-1, 0)], [(2, -1)], [(2, True)], [(2.5, 1)], [], [(2, None)]], ids=str)
def test_rounds_that_cannot_be_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        count_positions([Verified(*each) for each in wrong])


@pytest.mark.parametrize("a", [0.3, 0.75, 0.95])
def test_drawn_rounds_are_accepted_as_they_should_be(a: float) -> None:
    rounds = draw_rounds([Passage(20_000, at_every_position(a, 4))], lambda _: 4, seed=8)
    assert sum(each.outputs for each in rounds) >= 20_000 > sum(each.outputs for each in rounds[:-1])
    assert [float(each) for each in acceptance_by_position(rounds)] == pytest.approx([a] * 4, abs=0.03)
    assert rounds == draw_rounds([Passage(20_000, at_every_position(a, 4))], lambda _: 4, seed=8)


def test_a_length_that_follows_what_was_accepted_beats_every_fixed_one() -> None:
    """An answer of easy and hard passages: short drafts waste the easy ones, long drafts the hard ones."""
    easy, hard = (Passage(400, at_every_position(a, 16)) for a in (0.98, 0.3))
    answer = [easy, hard] * 4

    def took(length_after: Any) -> float:
        return sum(SERIAL(each.drafted) for each in draw_rounds(answer, length_after, seed=8))

    fixed = [took(lambda _, m=m: m) for m in range(1, 17)]
    assert took(lambda history: next_length(history, 16, SERIAL)) < 0.9 * min(fixed)


def test_the_length_falls_with_bad_luck_and_rises_again() -> None:
    assert next_length([], 16, RoundTime(0.02)) == 16
    assert next_length([], 16, SERIAL) == best_length((1.0,) * 16, SERIAL)
    bad = [Verified(8, 0)] * WINDOW
    assert next_length(bad, 16, SERIAL) == 1
    good = [Verified(1, 1)] * WINDOW
    assert next_length(bad + good, 16, SERIAL) == 16
    assert 1 < next_length(bad + good, 16, SERIAL, window=2 * WINDOW) < 16
    assert next_length([Verified(16, 16)] * 3, 4, SERIAL) <= 4


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"step_s": 0}, "step_s"),
        ({"draft_s": -1}, "draft_s"),
        ({"per_token_s": math.nan}, "per_token_s"),
        ({"group": 0}, "group"),
        ({"group": 2.5}, "group"),
        ({"row_s": math.inf}, "row_s"),
        ({"captured_rows": (0,)}, "captured"),
        ({"captured_rows": 8}, "captured"),
    ],
)
def test_a_round_that_makes_no_sense_is_refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InputError) as refused:
        RoundTime(**{"step_s": 0.02} | fields)
    assert refused.value.parameter == parameter


def test_a_draft_beyond_the_known_positions_is_refused() -> None:
    with pytest.raises(InputError, match=r"^draft_tokens is 3; allowed: a whole number from 1 to 2$"):
        s_per_output((0.5, 0.5), SERIAL, 3)
    with pytest.raises(InputError, match=r"^draft_tokens is 2; allowed: a whole number from 1 to 1$"):
        one_more((0.5, 0.5), SERIAL, 2)
    with pytest.raises(InputError, match=r"^draft_tokens is 5"):
        draw_rounds([Passage(4, (0.5,) * 4)], lambda _: 5, seed=8)
    for length in (0, -1, 2.5, True, None):
        with pytest.raises(InputError, match=r"^draft_tokens is "):
            SERIAL(length)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [None, 3, "12", [3], [(4, 2)], [None], {1: 2}, iter([])], ids=lambda wrong: type(wrong).__name__
)
def test_what_are_no_rounds_and_no_passages_is_refused(wrong: Any) -> None:
    for call in (count_positions, acceptance_by_position):
        with pytest.raises(InputError, match=r"^rounds is "):
            call(wrong)
    with pytest.raises(InputError, match=r"^(history|rounds) is "):
        next_length(wrong, 4, GROUPED)
    with pytest.raises(InputError, match=r"^passages is "):
        draw_rounds(wrong, lambda _: 1, seed=8)


@pytest.mark.parametrize("wrong", [None, 0.02, True, "0.02"], ids=repr)
def test_what_is_no_time_of_a_round_is_refused(wrong: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: s_per_output((0.5,), wrong, 1),
        lambda: best_length((0.5,), wrong),
        lambda: one_more((0.5, 0.5), wrong, 1),
        lambda: next_length([], 4, wrong),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"^round_time is "):
            call()
