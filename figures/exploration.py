"""What a reader may do with a figure: the controls, the question asked first, the named settings and the read-outs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from lib.clocks import Clock
from lib.units import UNITS, shown

IN_VIEW_AT_MOST = 4


@dataclass(frozen=True)
class Slider:
    """A number between two ends, moved in steps. Ends and step are in `unit`; the parameter itself is in base units.

    Whole ends and a whole step give whole positions.
    """

    label: str
    low: float
    high: float
    step: float
    unit: str = ""

    @property
    def is_whole(self) -> bool:
        return all(isinstance(number, int) for number in (self.low, self.high, self.step))

    @property
    def ends(self) -> tuple[Any, Any]:
        """The parameter's values at both ends."""
        return self.to_parameter(self.low), self.to_parameter(self.high)

    def to_parameter(self, position: float) -> Any:
        """The parameter's value at a position of the slider."""
        return UNITS[self.unit].to_base(position)

    def to_position(self, value: float) -> Any:
        """The position that shows a value of the parameter."""
        position = round(UNITS[self.unit].of(value), 9)
        return round(position) if self.is_whole else position


@dataclass(frozen=True)
class Choice:
    """One of a few values, each shown as its own text."""

    label: str
    options: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last option."""
        return self.options[0], self.options[-1]


Control = Slider | Choice


@dataclass(frozen=True)
class Readout:
    """One thing read off beside the picture: a number in base units, or words.

    `clocks` took the times in it (none for a count).
    """

    label: str
    amount: float | str
    unit: str = ""
    digits: int = 0
    clocks: tuple[Clock, ...] = ()
    signed: bool = False

    def __str__(self) -> str:
        if isinstance(self.amount, str):
            return self.amount
        return shown(self.amount, self.unit, self.digits, self.signed)

    @property
    def clock(self) -> str:
        return " + ".join(self.clocks)

    def change_from(self, book: "Readout") -> str:
        """How far this read-out is from the book's, as the two are shown, or a dash where both show the same."""
        if str(self) == str(book):
            return "–"
        if isinstance(self.amount, str) or isinstance(book.amount, str):
            return "changed"
        unit, digits = UNITS[self.unit], max(self.digits, book.digits)
        here, there = round(unit.of(self.amount), self.digits), round(unit.of(book.amount), book.digits)
        return shown(unit.to_base(here - there), self.unit, digits, signed=True)


@dataclass(frozen=True)
class Question:
    """A prediction asked before anything is moved: a click on a choice draws `reveals` and is judged."""

    text: str
    choices: tuple[str, ...]
    answer: str
    reveals: Mapping[str, Any]
    because: str

    def verdict(self, choice: str) -> str:
        """What the reader is told after choosing."""
        opening = "Right" if choice == self.answer else f"You said {choice}; it is {self.answer}"
        return f"{opening}. {self.because}"


@dataclass(frozen=True)
class Exploration:
    """How one figure is explored. Question and read-outs are computed when asked for, never written down.

    `in_view` names the controls that are always seen, the others open under "more". `why_still(moved, settings)` says
    in one line why moving a control changed nothing, or nothing itself where no more can be said than that.
    """

    question: Callable[[], Question]
    in_view: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]]
    readouts: Callable[..., tuple[Readout, ...]]
    why_still: Callable[[str, Mapping[str, Any]], str]


def controls_of(figure: Callable[..., Any]) -> dict[str, Control]:
    """The controls in a figure function's annotations, by parameter, in the order of its signature."""
    hints = get_type_hints(figure, include_extras=True)
    notes = ((name, note) for name in inspect.signature(figure).parameters for note in _notes(hints[name]))
    return {name: note for name, note in notes if isinstance(note, (Slider, Choice))}


def book_values(figure: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What each control stands at in the book's figure: the function's default, or what the registry sets instead."""
    parameters = inspect.signature(figure).parameters
    return {name: arguments.get(name, parameters[name].default) for name in controls_of(figure)}


def _notes(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())
