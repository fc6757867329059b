"""The questions asked of every value."""

import math
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError, one_of, seconds, share, whole, wholes


class Fruit(StrEnum):
    APPLE = "a red apple"
    PEAR = "a pear"


def refusal(ask: Any, *arguments: Any, **bounds: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        ask(*arguments, **bounds)
    return caught.value


def test_the_message_names_parameter_value_and_what_is_allowed() -> None:
    error = InputError("block", 0, "a whole number of at least 1")
    assert str(error) == "block is 0; allowed: a whole number of at least 1"
    assert (error.parameter, error.value, error.allowed) == ("block", 0, "a whole number of at least 1")
    assert isinstance(error, ValueError)


def test_an_array_is_named_by_type_and_shape_on_one_line() -> None:
    error = InputError("values", np.zeros((7, 31)), "an array of float32")
    assert str(error) == "values is an array of float64, shape (7, 31); allowed: an array of float32"
    assert str(refusal(whole, "n", np.ones(1, np.int64))).startswith("n is an array of int64, shape (1,); allowed: ")


def test_a_tuple_of_whole_numbers_is_asked_one_by_one() -> None:
    wholes("n", (1, np.int64(7)), 1, 9)
    wholes("n", (1, 7), count=2)
    for value in ((), [1], 1, None, "12", {1}):
        assert refusal(wholes, "n", value).allowed == "a tuple of whole numbers"
    assert refusal(wholes, "n", (1, 2, 3), count=2, allowed="a tuple of two contexts").allowed == (
        "a tuple of two contexts"
    )
    error = refusal(wholes, "n", (1, 10), 1, 9)
    assert (error.parameter, error.value, error.allowed) == ("n", 10, "a whole number from 1 to 9")


@given(st.integers())
def test_a_whole_number_comes_back_as_it_is_or_is_below_its_bound(number: int) -> None:
    if number >= 0:
        assert whole("n", number) == number
    else:
        assert refusal(whole, "n", number).value == number


@given(st.integers(-10, 10), st.integers(-10, 10), st.integers(-10, 10))
def test_both_bounds_of_a_whole_number_are_allowed_and_nothing_beyond(number: int, low: int, high: int) -> None:
    if low <= number <= high:
        assert whole("n", number, at_least=low, at_most=high) == number
    else:
        assert refusal(whole, "n", number, at_least=low, at_most=high).allowed == f"a whole number from {low} to {high}"


def test_without_an_upper_bound_a_whole_number_may_be_huge() -> None:
    assert whole("n", 10**400) == 10**400
    assert refusal(whole, "n", 0, at_least=1).allowed == "a whole number of at least 1"
    assert refusal(whole, "n", 5000, at_most=4096).allowed == "a whole number from 0 to 4,096"


@pytest.mark.parametrize("number", [np.int64(7), np.uint8(7), np.int32(7)])
def test_integers_of_arrays_are_whole_numbers_and_become_plain_ones(number: Any) -> None:
    assert type(whole("n", number)) is int
    assert whole("n", number) == 7


@pytest.mark.parametrize(
    "value",
    [
        2.5,
        2.0,
        math.nan,
        math.inf,
        "2",
        b"2",
        True,
        False,
        np.True_,
        None,
        [2],
        Fraction(2),
        Decimal(2),
        2j,
    ],
    ids=repr,
)
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    error = refusal(whole, "tokens", value)
    assert str(error) == f"tokens is {value!r}; allowed: a whole number of at least 0"


@given(st.floats(0, 1e9))
def test_a_time_comes_back_as_it_is(time: float) -> None:
    assert seconds("t", time) == time


@given(st.floats().filter(lambda time: not 0 <= time <= 1e9))
def test_a_time_beyond_its_bounds_is_refused(time: float) -> None:
    assert refusal(seconds, "t", time).allowed == "a time from 0 s to 1e9 s"


@pytest.mark.parametrize("time", [3, np.float32(3), np.int64(3), Fraction(3)], ids=repr)
def test_any_kind_of_number_may_be_a_time_and_becomes_a_float(time: Any) -> None:
    assert type(seconds("t", time)) is float
    assert seconds("t", time) == 3.0


def test_zero_is_a_time_unless_it_must_be_above() -> None:
    assert seconds("t", 0) == 0.0
    assert refusal(seconds, "t", 0, above_zero=True).allowed == "a time from above 0 s to 1e9 s"
    assert seconds("t", 5e-324, above_zero=True) == 5e-324


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        -1e-9,
        1.1e9,
        10**400,
        "3",
        b"3",
        bytearray(b"3"),
        True,
        False,
        np.True_,
        None,
        [3],
        3j,
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_time_is_refused(value: Any) -> None:
    error = refusal(seconds, "queue", value)
    assert (error.parameter, error.allowed) == ("queue", "a time from 0 s to 1e9 s")
    assert error.value is value


@pytest.mark.parametrize("value", [0, 0.622, 1, np.float64(0.5), Fraction(1, 2)])
def test_a_share_lies_between_0_and_1(value: Any) -> None:
    assert type(share("p", value)) is float
    assert share("p", value) == value


@pytest.mark.parametrize("value", [-1e-9, 1.2, math.nan, math.inf, "0.5", True, None])
def test_what_is_no_share_is_refused(value: Any) -> None:
    error = refusal(share, "p", value)
    assert (error.parameter, error.allowed) == ("p", "a share from 0 to 1")
    assert refusal(share, "p", 0, above_zero=True).allowed == "a share above 0 and at most 1"
    assert share("p", 5e-324, above_zero=True) == 5e-324


def test_one_of_gives_the_choice_itself_also_for_its_text() -> None:
    assert one_of("fruit", "a pear", Fruit) is Fruit.PEAR
    assert one_of("fruit", Fruit.APPLE, iter(Fruit)) is Fruit.APPLE


@pytest.mark.parametrize(
    "value", ["a plum", "A PEAR", "", None, 0, math.nan, ["a pear"], np.array(["a pear", "a red apple"])], ids=repr
)
def test_one_of_refuses_and_lists_the_choices(value: Any) -> None:
    error = refusal(one_of, "fruit", value, Fruit)
    assert error.allowed == "one of 'a red apple', 'a pear'"
    assert str(error).startswith("fruit is ")


@pytest.mark.parametrize(
    "ask", [lambda n: whole("n", n, at_most=9), lambda n: seconds("n", n)], ids=["whole", "seconds"]
)
def test_a_number_too_long_to_be_written_out_is_refused_all_the_same(ask: Any) -> None:
    assert refusal(ask, 10**5000).parameter == "n"
