"""What a value must be, asked before anything is done with it."""

import math
import operator
import reprlib
from collections.abc import Iterable
from numbers import Real
from typing import Any, SupportsIndex, TypeVar, cast

T = TypeVar("T")


class _Short(reprlib.Repr):
    """Of an array type and shape: what its numbers are is seldom what is wrong, and they take several lines."""

    def repr_ndarray(self, array: Any, level: int) -> str:
        return f"an array of {array.dtype}, shape {array.shape}"


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


class InputError(ValueError):
    """A value that makes no sense: the message names the parameter, the value and what is allowed."""

    def __init__(self, parameter: str, value: object, allowed: str) -> None:
        super().__init__(f"{parameter} is {_brief(value)}; allowed: {allowed}")
        self.parameter, self.value, self.allowed = parameter, value, allowed


def _brief(value: object) -> str:
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes out no number of more than some thousand digits
        return f"a very long {type(value).__name__}"


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


def wholes(
    parameter: str,
    values: object,
    at_least: int = 0,
    at_most: int | None = None,
    count: int | None = None,
    allowed: str = "a tuple of whole numbers",
) -> None:
    """Check that a value is a tuple of whole numbers between these bounds: at least one, or so many.

    Raises InputError, which says what is allowed, for everything else.
    """
    if not isinstance(values, tuple) or (len(values) != count if count else not values):
        raise InputError(parameter, values, allowed)
    for value in values:
        whole(parameter, value, at_least, at_most)


def keep_whole(owner: object, at_most: int | None = None, **at_least: int) -> None:
    """Check fields of a frozen dataclass as `whole` does and keep them as plain int: those of arrays would overflow."""
    for name, bound in at_least.items():
        object.__setattr__(owner, name, whole(name, getattr(owner, name), bound, at_most))


def finite(parameter: str, value: object, at_least: float = -math.inf, allowed: str = "a finite number") -> float:
    """The value as a float, if it is a finite number of at least `at_least`.

    Raises InputError, which says what is allowed, for NaN, infinities, text, truth values and smaller numbers.
    """
    if type(value) is float:  # as most are, and what follows takes several times as long
        number = value
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(parameter, value, allowed)
    else:
        try:
            number = float(value)
        except OverflowError:
            raise InputError(parameter, value, allowed) from None
    if not math.isfinite(number) or number < at_least:
        raise InputError(parameter, value, allowed)
    return number


def share(parameter: str, value: object, above_zero: bool = False) -> float:
    """The value as a float, if it lies from 0 (or from just above it) to 1. Raises InputError for everything else."""
    allowed = "a share above 0 and at most 1" if above_zero else "a share from 0 to 1"
    number = finite(parameter, value, 0, allowed)
    if number > 1 or (above_zero and number == 0):
        raise InputError(parameter, value, allowed)
    return number


def seconds(parameter: str, value: object, above_zero: bool = False) -> float:
    """The value as a float, if it is a time from 0 s (or from just above it) to 1e9 s, some thirty years.

    Raises InputError for everything else.
    """
    allowed = f"a time from {'above ' if above_zero else ''}0 s to 1e9 s"
    number = finite(parameter, value, 0, allowed)
    if number > 1e9 or (above_zero and number == 0):
        raise InputError(parameter, value, allowed)
    return number


def one_of(parameter: str, value: object, choices: Iterable[T]) -> T:
    """The choice that equals the value; raises InputError, which lists the choices, if none does."""
    known = {choice: choice for choice in choices}
    try:
        return known[cast(T, value)]
    except (KeyError, TypeError):
        allowed = "one of " + ", ".join(repr(str(choice)) for choice in known)
        raise InputError(parameter, value, allowed) from None
