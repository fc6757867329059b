"""Times that a reader sets, in seconds, as the whole nanoseconds that `lib` counts in."""

from lib.checks import InputError, finite
from lib.step_time import NS

MOST_S = 3600


def in_ns(parameter: str, time: float, at_most: int = MOST_S, above_zero: bool = False) -> int:
    """A time in seconds as whole ns; raises InputError for all but a time from 0, or just above, to `at_most`."""
    allowed = f"a time from {'above ' if above_zero else ''}0 s to {at_most} s"
    number = finite(parameter, time, 0, allowed)
    if number > at_most or (above_zero and number == 0):
        raise InputError(parameter, time, allowed)
    return round(number * NS)
