"""What a value must be, asked before anything is done with it."""

import operator
from collections.abc import Iterable
from typing import SupportsFloat, SupportsIndex, TypeVar, cast

T = TypeVar("T")


class InputError(ValueError):
    """A value that makes no sense: the message names the parameter, the value and what is allowed."""

    def __init__(self, parameter: str, value: object, allowed: str) -> None:
        super().__init__(f"{parameter} is {value!r}; allowed: {allowed}")
        self.parameter, self.value, self.allowed = parameter, value, allowed


def whole(parameter: str, value: object, at_least: int = 0, at_most: int | None = None) -> int:
    """The value as an int, if it is a whole number between these bounds.

    Raises InputError for fractions, text, truth values and numbers outside.
    """
    bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most:,}"
    allowed = f"a whole number {bounds}"
    try:
        number = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise InputError(parameter, value, allowed) from None
    if isinstance(value, bool) or number < at_least or (at_most is not None and number > at_most):
        raise InputError(parameter, value, allowed)
    return number


def seconds(parameter: str, value: object, above_zero: bool = False) -> float:
    """The value as a float, if it is a time from 0 s (or from just above it) to 1e9 s, some thirty years.

    Raises InputError for NaN, infinities, negative times, text and truth values.
    """
    allowed = f"a time from {'above ' if above_zero else ''}0 s to 1e9 s"
    if isinstance(value, (bool, str)):
        raise InputError(parameter, value, allowed)
    try:
        number = float(cast(SupportsFloat, value))
    except (TypeError, ValueError, OverflowError):
        raise InputError(parameter, value, allowed) from None
    if not 0 <= number <= 1e9 or (above_zero and number == 0):
        raise InputError(parameter, value, allowed)
    return number


def one_of(parameter: str, value: object, choices: Iterable[T]) -> T:
    """The choice that equals the value; raises InputError, which lists the choices, if none does."""
    choices = tuple(choices)
    for choice in choices:
        if choice == value:
            return choice
    raise InputError(parameter, value, "one of " + ", ".join(repr(str(choice)) for choice in choices))
