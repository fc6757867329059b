"""Amounts in units and as text."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.units import GB, GIB, KB, KIB, MB, MIB, UNITS, shown


def test_binary_units_are_powers_of_1024_and_decimal_ones_of_1000() -> None:
    assert (KIB, MIB, GIB) == (1024, 1024**2, 1024**3)
    assert (KB, MB, GB) == (1000, 1000**2, 1000**3)


@pytest.mark.parametrize(
    ("symbol", "one_in_base"),
    [
        ("s", 1), ("ms", Fraction(1, 10**3)), ("us", Fraction(1, 10**6)), ("ns", Fraction(1, 10**9)),
        ("bytes", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9),
        ("", 1), ("token", 1), ("token/s", 1),
    ],
)  # fmt: skip
def test_one_of_each_unit(symbol: str, one_in_base: Fraction) -> None:
    assert UNITS[symbol].symbol == symbol
    assert Fraction(UNITS[symbol].times, UNITS[symbol].per) == one_in_base
    assert UNITS[symbol].to_base(1) == float(one_in_base)
    assert UNITS[symbol].of(float(one_in_base)) == 1


@given(st.sampled_from(sorted(UNITS)), st.floats(-1e12, 1e12))
def test_an_amount_survives_the_way_to_a_unit_and_back(symbol: str, amount: float) -> None:
    unit = UNITS[symbol]
    assert math.isclose(unit.to_base(unit.of(amount)), amount, rel_tol=1e-15, abs_tol=1e-300)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0.0265, "ms", 1), "26.5 ms"),
        ((12 * GIB, "GiB"), "12 GiB"),
        ((1_792 * GB, "GB"), "1,792 GB"),
        ((0.05, "s", 2, True), "+0.05 s"),
        ((-0.05, "s", 2, True), "−0.05 s"),
        ((-0.05, "s", 2), "−0.05 s"),
        ((1e-7, "us", 1), "0.1 us"),
        ((255, ""), "255"),
        ((37.31, "token/s", 1), "37.3 token/s"),
    ],
)
def test_amounts_as_text(arguments: tuple[Any, ...], text: str) -> None:
    assert shown(*arguments) == text


@pytest.mark.parametrize(("signed", "text"), [(False, "0.00 s"), (True, "+0.00 s")])
def test_what_rounds_to_zero_has_no_minus_sign(signed: bool, text: str) -> None:
    assert shown(-0.004, "s", 2, signed) == text
    assert shown(-0.0, "s", 2, signed) == text
    assert shown(-0.005000001, "s", 2, signed) == "−0.01 s"


@given(st.integers(-(10**12), 10**12), st.integers(0, 6))
def test_the_text_reads_back_as_the_rounded_amount(microseconds: int, digits: int) -> None:
    number, symbol = shown(microseconds / 1e6, "ms", digits).split(" ")
    assert symbol == "ms"
    read_back = float(number.replace(",", "").replace("−", "-"))
    assert math.isclose(read_back, microseconds / 1e3, abs_tol=0.501 * 10**-digits)


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, "1", None, True], ids=repr)
def test_an_amount_that_is_no_number_is_refused(amount: Any) -> None:
    with pytest.raises(InputError, match=r"^amount is .*; allowed: "):
        shown(amount, "s", 2)


@pytest.mark.parametrize("digits", [-1, 1.5, "1", None, True], ids=repr)
def test_digits_that_make_no_sense_are_refused(digits: Any) -> None:
    with pytest.raises(InputError, match=r"^digits is .*; allowed: a whole number "):
        shown(1.0, "s", digits)


def test_an_unknown_unit_is_refused_and_the_units_are_listed() -> None:
    with pytest.raises(InputError, match=r"^unit is 'parsec'; allowed: one of 's', 'ms'"):
        shown(1.0, "parsec")
