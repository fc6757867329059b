"""One entry of the table of claims."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Claim:
    """A quantity of the chapter and how `lib` answers it.

    An id without a place, such as "8.2.3", names a section that states the quantity although the chapter prints it not.
    kind: an input is a constant of `lib`, a measured value stands in its records, a computed one follows from others.
    """

    ids: tuple[str, ...]
    what: str
    kind: Literal["input", "measured", "computed"]
    printed: tuple[str, ...]
    unit: str
    tolerance: float
    value: Callable[[], float]

    def holds(self) -> bool:
        """Whether `lib` gives each printed form."""
        return self.agrees(self.value())

    def agrees(self, value: float) -> bool:
        """Whether a value is each printed form, within the tolerance (and what binary fractions cost)."""
        return all(abs(value - parse(form)) <= self.tolerance + 1e-9 for form in self.printed)


def parse(printed: str) -> float:
    """A number as the chapter prints it: thousands commas, K for 1024, fractions."""
    above, _, below = printed.replace(",", "").partition("/")
    factor = 1024 if above.endswith("K") else 1
    return float(above.removesuffix("K")) * factor / (float(below) if below else 1)
