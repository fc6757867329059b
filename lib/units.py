"""Units of bytes and of time, and amounts shown in them.

Functions of this package take and give bytes, seconds, FLOP and tokens; another unit appears in a name
or where an amount is shown. KiB, MiB and GiB are powers of 1024; kB, MB and GB are powers of 1000.
"""

from dataclasses import dataclass

from lib.checks import finite, one_of, whole

KIB, MIB, GIB = 2**10, 2**20, 2**30
KB, MB, GB = 10**3, 10**6, 10**9


@dataclass(frozen=True)
class Unit:
    """A unit beside its base unit (bytes, seconds or the thing counted): one of it is `times / per` of the base."""

    symbol: str
    times: int = 1
    per: int = 1

    def of(self, amount: float) -> float:
        """A base amount expressed in this unit."""
        return amount * self.per / self.times

    def to_base(self, number: float) -> float:
        """A number of this unit as a base amount; whole if the number is whole and so is the unit."""
        return number * self.times / self.per if self.per > 1 else number * self.times


UNITS = {
    unit.symbol: unit
    for unit in (
        Unit("s"), Unit("ms", per=10**3), Unit("us", per=10**6), Unit("ns", per=10**9),
        Unit("bytes"), Unit("KiB", KIB), Unit("MiB", MIB), Unit("GiB", GIB),
        Unit("kB", KB), Unit("MB", MB), Unit("GB", GB),
        Unit("GB/s", GB), Unit("TFLOP/s", 10**12), Unit("W"),
        Unit(""), Unit("token"), Unit("token/s"), Unit("/s"),
    )
}  # fmt: skip


def shown(amount: float, unit: str, digits: int = 0, signed: bool = False) -> str:
    """A base amount as text in a unit, such as `shown(0.0265, "ms", 1)` -> "26.5 ms".

    Raises InputError for what is no finite number, for an unknown unit and for a negative number of digits. The minus
    sign is the true one; a value that rounds to zero has none.
    """
    amount = finite("amount", amount)
    known, digits = UNITS[one_of("unit", unit, UNITS)], whole("digits", digits, at_most=12)
    number = f"{known.of(amount):{'+' if signed else ''},.{digits}f}"
    if not any(digit in number for digit in "123456789"):
        number = number.replace("-", "+" if signed else "")
    return f"{number} {unit}".rstrip().replace("-", "−")
