"""Outputs, times and rounds of speculative decoding: against sums over everything that can happen."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from lib.checks import InputError
from lib.model import QWEN3_8B, matrix_flops
from lib.speculation import (
    ACCEPTS_A,
    ACCEPTS_B,
    PLAIN_S,
    Speculation,
    at_every_position,
    expected_outputs,
    expected_rounds,
    extra_verify_flops,
    extra_verify_s,
    mean_of_ratios,
    output_distribution,
    outputs_at_least,
    per_position,
    plain_time,
    time_per_output,
)

DRAFTS = [(0.25,) * 4, (0.75,) * 4, (0.9, 0.5, 0.7), (1.0, 0.0, 1.0), (0.3,), (1.0,) * 5, (0.0, 0.5)]


def plain_distribution(acceptance: tuple[float, ...]) -> list[float]:
    """The chance of each pattern of verdicts, all of them drawn, booked to what its first rejection leaves."""
    law = [0.0] * (len(acceptance) + 1)
    for verdicts in product((True, False), repeat=len(acceptance)):
        outputs = verdicts.index(False) if False in verdicts else len(verdicts)
        law[outputs] += math.prod(a if kept else 1 - a for a, kept in zip(acceptance, verdicts, strict=True))
    return law


@pytest.mark.parametrize("acceptance", DRAFTS, ids=str)
def test_outputs_follow_the_first_rejection(acceptance: tuple[float, ...]) -> None:
    law = plain_distribution(acceptance)
    assert output_distribution(acceptance) == pytest.approx(law)
    assert expected_outputs(acceptance) == pytest.approx(sum((n + 1) * chance for n, chance in enumerate(law)))
    reaching = [sum(law[n:]) for n in range(len(law))]
    assert outputs_at_least(acceptance) == pytest.approx(reaching)


@pytest.mark.parametrize("a", [0.0, 0.25, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("length", [1, 2, 4, 9])
def test_constant_acceptance_is_a_geometric_sum(a: float, length: int) -> None:
    closed = length + 1 if a == 1 else (1 - a ** (length + 1)) / (1 - a)
    assert expected_outputs(at_every_position(a, length)) == pytest.approx(closed)


@pytest.mark.parametrize("acceptance", DRAFTS, ids=str)
@pytest.mark.parametrize("outputs", [1, 2, 5, 30])
def test_rounds_are_those_that_begin_before_the_last_output(acceptance: tuple[float, ...], outputs: int) -> None:
    """R is the sum, over all r, of the chance that r rounds together output less than is wanted."""
    law, total, rounds = plain_distribution(acceptance), np.zeros(outputs), 0.0
    total[0] = 1.0
    for _ in range(outputs):
        rounds += total.sum()
        total = np.convolve(total, [0.0, *law])[:outputs]
    assert total.sum() == 0
    assert expected_rounds(acceptance, outputs) == pytest.approx(rounds)
    assert expected_rounds(acceptance, outputs) >= outputs / expected_outputs(acceptance) - 1e-9


def test_whole_rounds_are_more_than_the_ratio() -> None:
    assert expected_rounds((1.0,) * 4, 256) == 52
    assert expected_rounds((0.0,) * 4, 256) == 256
    assert expected_rounds((0.75,) * 4, 256) == pytest.approx(84.386, abs=5e-4)
    assert 256 / expected_outputs((0.75,) * 4) == pytest.approx(83.913, abs=5e-4)


def test_two_ways_to_average() -> None:
    rounds = [(1.0, 1), (3.0, 4), (2.0, 5)]
    assert time_per_output(rounds) == 0.6
    assert mean_of_ratios(rounds) == pytest.approx((1 + 0.75 + 0.4) / 3)
    assert time_per_output(rounds[:1]) == mean_of_ratios(rounds[:1]) == 1


@pytest.mark.parametrize("acceptance", [(ACCEPTS_A,) * 4, (ACCEPTS_B,) * 4], ids=str)
def test_at_the_break_even_an_output_takes_a_plain_step(acceptance: tuple[float, ...]) -> None:
    limit = Speculation(acceptance, 0.0001).break_even_draft_s
    assert Speculation(acceptance, limit).s_per_output == pytest.approx(PLAIN_S)
    assert Speculation(acceptance, limit * 0.99).saved_s_per_output > 0
    assert Speculation(acceptance, limit * 1.01).saved_s_per_output < 0
    assert Speculation(acceptance, limit * 1.01).outputs_to_repay(2) is None


def test_a_draft_that_is_never_accepted_only_costs() -> None:
    useless = Speculation((0.0,), draft_s=0.001, verify_s=0.02, plain_s=0.02)
    assert useless.saved_s_per_output == pytest.approx(-0.001)
    assert useless.break_even_draft_s == 0
    assert Speculation((0.0,), 0.0, verify_s=0.03, plain_s=0.02).break_even_draft_s < 0


def test_preparation_is_repaid_by_whole_outputs() -> None:
    half = Speculation((1.0,), draft_s=0, verify_s=1, plain_s=1)
    assert [half.outputs_to_repay(prepared) for prepared in (0, 0.4, 0.5, 0.6, 2)] == [0, 1, 1, 2, 4]
    assert half.time_of(4, 2) == plain_time(4, 1)
    assert half.time_of(5, 2) == 2 + 3
    assert plain_time(256) == pytest.approx(256 * PLAIN_S)


def test_a_draft_adds_rows_of_every_matrix_and_the_pairs_they_see() -> None:
    rows = [matrix_flops(QWEN3_8B, 1, 2048 + row, 1) for row in range(5)]
    assert extra_verify_flops(4, 2048) == sum(rows[1:])
    assert extra_verify_s(4, 2048) == pytest.approx(extra_verify_flops(4, 2048) / (0.622 * 503.8e12))
    assert extra_verify_s(4, 2048) < 0.01 * PLAIN_S


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        [],
        0.5,
        None,
        "0.5",
        (0.5, 1.5),
        (-0.1,),
        (math.nan,),
        (math.inf,),
        (True,),
        ("0.5",),
        (10**400,),
        (0,) * 1025,
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_acceptance_is_refused(wrong: Any) -> None:
    for call in (per_position, outputs_at_least, expected_outputs, output_distribution):
        with pytest.raises(InputError, match=r"^acceptance is "):
            call(wrong)
    with pytest.raises(InputError, match=r"^acceptance is "):
        Speculation(wrong, 0.001)
    with pytest.raises(InputError, match=r"^acceptance is "):
        expected_rounds(wrong, 4)


@pytest.mark.parametrize(
    "wrong",
    [(), None, 3, ((1.0, 0),), ((-1.0, 1),), ((math.nan, 1),), ((1.0, 1.5),), ((1.0, True),), (1.0, 2), ((1.0,),)],
)
def test_what_are_no_rounds_is_refused(wrong: Any) -> None:
    for call in (time_per_output, mean_of_ratios):
        with pytest.raises(InputError):
            call(wrong)


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [({"draft_s": -1}, "draft_s"), ({"verify_s": 0}, "verify_s"), ({"plain_s": math.nan}, "plain_s")],
)
def test_times_that_make_no_sense_are_refused(fields: dict[str, float], parameter: str) -> None:
    with pytest.raises(InputError) as refused:
        Speculation(**{"acceptance": (0.5,), "draft_s": 0.001} | fields)  # type: ignore[arg-type]
    assert refused.value.parameter == parameter
    for outputs in (0, -1, 2.5, True, 10**9):
        with pytest.raises(InputError, match=r"^outputs is "):
            Speculation((0.5,), 0.001).time_of(outputs)  # type: ignore[arg-type]


def test_what_was_checked_is_kept() -> None:
    given = [0.5, np.float64(0.25)]
    kept = Speculation(given, 0.001)  # type: ignore[arg-type]
    given[0] = 7
    assert kept.acceptance == (0.5, 0.25) and hash(kept)
    assert kept.outputs_per_round == 1.625
