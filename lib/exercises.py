"""Judges answers to the exercises: right, in another order or unit, rounded, a mistake that has a name, or not yet.

An exercise is data: parts, whose keys and mistakes are formulas in the same inputs. So one set of parts serves the
book's numbers, those of a class, and the hidden draws on which a function must be right. A number alone may be copied;
a function that holds for numbers it never saw is understood.
"""

import inspect
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from numbers import Rational, Real
from random import Random
from typing import Any

from lib.checks import InputError, finite, one_of

MOST_DRAWS = 100_000
UNIT_TOLERANCE = 0.005  # in another unit fewer digits are typed; the nearest factors lie 2 per cent apart
MOST_ROUNDED = 0.05  # how far rounding may lead from the key; what lies further has another reason
FEEDBACK = "feedback"

# What a number is multiplied or divided by when only its unit is wrong.
SHARE = "a share of 1"
RATIO = "a ratio"
TOKENS = "tokens"
TIME_UNITS = ("s", "ms", "us", "ns")
TIME_SLIPS = ((10**3, "units that are 1000 of each other (us, ms, s)"), (10**6, "ns and ms"))
BYTE_SLIPS = (
    (2**30 / 10**9, "GB and GiB"),
    (2**20 / 10**6, "MB and MiB"),
    (2**30 / 10**6, "MB and GiB"),
    (10**9 / 2**20, "MiB and GB"),
    (2**10, "units that are 1024 of each other (KiB, MiB, GiB)"),
    (10**3, "units that are 1000 of each other (kB, MB, GB)"),
    (8, "bits and bytes"),
    (2**20, "bytes and MiB"),
    (2**30, "bytes and GiB"),
    (10**9, "bytes and GB"),
)
# By the unit that is asked for. What has none counts something; a mean number of tokens has no other unit.
SLIPS = dict.fromkeys(TIME_UNITS, TIME_SLIPS) | {
    SHARE: ((100, "shares and per cent"),),
    RATIO: ((100, "ratios and per cent"),),
    TOKENS: (),
    "": (),
}


class Kind(StrEnum):
    """How an answer was found; only RIGHT earns the marks."""

    BLANK = "not answered yet"
    UNREADABLE = "unreadable"
    RIGHT = "right"
    ORDER = "another order"
    UNIT = "another unit"
    ROUNDED = "rounded too early"
    MISTAKE = "a named mistake"
    NOT_YET = "not yet"


@dataclass(frozen=True)
class Verdict:
    """How an answer was found, one sentence for whoever gave it, and the first case in which something is wrong."""

    kind: Kind
    sentence: str
    case: Mapping[str, Any] | None = field(default=None, compare=False)


BLANK = Verdict(Kind.BLANK, "not answered yet.")
RIGHT = Verdict(Kind.RIGHT, "right.")
NOTHING_RETURNED = Verdict(
    Kind.UNREADABLE, "it returns nothing: end it with return and the result; print only shows it."
)


@dataclass(frozen=True)
class Mistake:
    """A way to go wrong: a formula that takes what the key takes, and words that follow "this comes out if".

    An `accepted` one is another reading of the question: right, with a word. One that `may_coincide` equals the key on
    whole families of inputs, so that no variant is refused for it; among the draws for a function one is outside them.
    """

    says: str
    formula: Callable[..., Any]
    accepted: bool = False
    may_coincide: bool = False


@dataclass(frozen=True)
class Quantity:
    """What a number of an answer is: its name, its unit, and how far from the key is still right; 0 and 0 is exact."""

    name: str
    unit: str = ""
    relative: float = 0.0
    absolute: float = 0.0

    def tolerance(self, key: float) -> float:
        """How far from this key a number may be."""
        return self.absolute + self.relative * abs(key)


@dataclass(frozen=True)
class _Slot:
    """One number of an answer: what it is, where and in which case, its key, and what each mistake makes of it."""

    quantity: Quantity
    where: str
    case: Mapping[str, Any]
    key: float
    mistaken: tuple[float, ...]

    @property
    def tolerance(self) -> float:
        """At most half the way to the nearest mistake."""
        ways = [abs(value - self.key) / 2 for value in self.mistaken if self.is_told_apart(value)]
        return min([self.quantity.tolerance(self.key), *ways])

    def is_told_apart(self, value: float) -> bool:
        """Whether a mistake differs from the key in digits that somebody types."""
        return abs(value - self.key) > self.quantity.tolerance(self.key) / 10

    def is_far(self, value: float) -> bool:
        """Whether a mistake is so far from the key that the full tolerance keeps them apart."""
        return abs(value - self.key) > 2 * self.quantity.tolerance(self.key)

    def is_near(self, value: float, to: float) -> bool:
        return abs(value - to) <= self.tolerance

    def is_rounded(self, value: float) -> bool:
        """Whether a value is the key cut or rounded to few digits, or is not yet rounded where it counts something."""
        if not self.quantity.unit:
            return value != math.floor(value) and abs(value - self.key) < 1
        if abs(value - self.key) > MOST_ROUNDED * abs(self.key):
            return False
        scales = (10**digits for digits in range(4))
        scale = next((scale for scale in scales if math.isclose(value * scale, round(value * scale))), None)
        return scale is not None and -0.5 - 1e-9 <= (self.key - value) * scale < 1

    def verdict(self, kind: Kind, sentence: str) -> Verdict:
        return Verdict(kind, f"{self.quantity.name}{self.where}: {sentence}", self.case)


class Cases(list[dict[str, Any]]):
    """The arguments of each case of a part by name, shown as a table with a line for each case."""

    def __repr__(self) -> str:
        lines = [list(self[0]), *([_with_commas(value) for value in case.values()] for case in self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


@dataclass(frozen=True)
class NumberPart:
    """A part that asks for numbers, and for the function that computes them.

    `cases` gives the arguments of each case of the inputs, by name; `key` and the mistakes take them (more by `**_`)
    and give one number for each quantity asked. With `none_is_0`, None among them is 0.
    """

    name: str
    asked: tuple[Quantity, ...]
    cases: Callable[[Any], Sequence[Mapping[str, Any]]]
    key: Callable[..., Any]
    mistakes: tuple[Mistake, ...]
    first_step: str
    hint: str
    none_is_0: bool = False

    def judge(self, inputs: Any, answer: Any) -> Verdict:
        """Judge the numbers of an answer, in the order of the cases."""
        given = _flat(answer)
        if all(value is None for value in given):
            return BLANK
        slots = self._slots(inputs)
        answer = self._read(answer, len(slots))
        given = _flat(answer)
        missing = sum(value is None for value in given)
        if missing:
            return Verdict(Kind.BLANK, f"not answered yet: {missing} of {len(given)} numbers.")
        why = _why_not_so_many(len(slots), answer)
        return Verdict(Kind.UNREADABLE, why) if why else self._judge_numbers(slots, given)

    def judge_function(self, inputs: Any, function: Any) -> Verdict:
        """Judge a function by what it gives for the cases of these inputs."""
        if function is None:
            return BLANK
        if not callable(function):
            return Verdict(Kind.UNREADABLE, "a function is asked for, which takes the inputs by name.")
        cases = self.cases(inputs)
        if not _takes(function, cases[0]):
            return Verdict(Kind.UNREADABLE, f"keep the names of its parameters: {', '.join(cases[0])}.")
        answers: list[Any] = []
        for case in cases:
            try:
                answers.append(self._read(function(**case), len(self.asked)))
            except (Exception, SystemExit) as error:  # whatever a student's own code raises
                return Verdict(Kind.UNREADABLE, f"it stops with {_told(error)}.", case)
        if _is_stub(function) and all(answer is None for answer in answers):
            return BLANK
        if all(value is None for value in _flat(answers)):
            return NOTHING_RETURNED
        for case, answer in zip(cases, answers, strict=True):
            if any(value is None for value in _flat(answer)):
                why = "it returns nothing in some cases: each way through it must end with return."
                return Verdict(Kind.UNREADABLE, why, case)
            why = _why_not_so_many(len(self.asked), answer)
            if why:
                return Verdict(Kind.UNREADABLE, why, case)
        return self._judge_numbers(self._slots(inputs), _flat(answers))

    def _read(self, answer: Any, count: int) -> Any:
        """The answer, with 0 for None if that is what None stands for among so many numbers."""
        given = _flat(answer)
        if not self.none_is_0 or len(given) != count or None not in given:
            return answer
        return [0 if value is None else value for value in given]

    def tells_apart(self, inputs: Any) -> bool:
        """Whether, on these inputs, each mistake leads clearly away from the key."""
        away = self.led_away(inputs)
        return all(mistake.may_coincide or mistake in away for mistake in self.mistakes)

    def led_away(self, inputs: Any) -> list[Mistake]:
        """The mistakes that, on these inputs, lead clearly away from the key."""
        slots = self._slots(inputs)
        return [
            mistake
            for number, mistake in enumerate(self.mistakes)
            if any(slot.is_far(slot.mistaken[number]) for slot in slots)
        ]

    def _slots(self, inputs: Any) -> list[_Slot]:
        cases = self.cases(inputs)
        varying = [name for name in cases[0] if any(case[name] != cases[0][name] for case in cases)]
        slots = []
        for case in cases:
            where = " at " + ", ".join(f"{name} {_with_commas(case[name])}" for name in varying) if varying else ""
            mistaken = [_flat(mistake.formula(**case)) for mistake in self.mistakes]
            for number, (quantity, key) in enumerate(zip(self.asked, _flat(self.key(**case)), strict=True)):
                slots.append(_Slot(quantity, where, case, key, tuple(values[number] for values in mistaken)))
        return slots

    def _order(self, slots: Sequence[_Slot]) -> str:
        """In which order the numbers are asked for, such as "at context 2,048; at context 8,192"."""
        places = (slot.where if len(self.asked) == 1 else slot.quantity.name + slot.where for slot in slots)
        return "; ".join(place.strip() for place in places)

    def _judge_numbers(self, slots: list[_Slot], given: list[Any]) -> Verdict:
        answered = list(zip(slots, given, strict=True))
        wrong = [(slot, value) for slot, value in answered if not slot.is_near(value, slot.key)]
        if not wrong:
            return RIGHT
        if _is_reordered(answered):
            said = f"the right numbers, but not in the order asked for: {self._order(slots)}."
            return Verdict(Kind.ORDER, said, wrong[0][0].case)
        fitting = [number for number in range(len(self.mistakes)) if _explains(number, answered)]
        accepted = [self.mistakes[number] for number in fitting if self.mistakes[number].accepted]
        if accepted:
            return Verdict(Kind.RIGHT, f"right {accepted[0].says}.")
        slot, _ = wrong[0]
        unit = _unit_slip([pair for pair in answered if pair[0].quantity == slot.quantity])
        if unit:
            said = f"right but for the unit, {slot.quantity.unit} is asked for: {unit} were mixed up."
            return slot.verdict(Kind.UNIT, said)
        further = [pair for pair in wrong if not pair[0].is_rounded(pair[1])]
        if not further:
            said = "give more digits" if slot.quantity.unit else "a whole number is asked for"
            return slot.verdict(Kind.ROUNDED, f"close, but not rounded as it should be: {said}.")
        slot, _ = further[0]
        here = [number for number in range(len(self.mistakes)) if _explains(number, further[:1])]
        if here:
            says = ", or if ".join(self.mistakes[number].says for number in fitting or here)
            return slot.verdict(Kind.MISTAKE, f"this comes out if {says}.")
        return slot.verdict(Kind.NOT_YET, f"not yet. First step: {self.first_step}.")


@dataclass(frozen=True)
class ChoicePart:
    """A part that asks to choose one option, or with `several` a set of them; all its formulas take the inputs."""

    name: str
    options: Callable[[Any], Sequence[Any]]
    key: Callable[[Any], Any]
    mistakes: tuple[Mistake, ...]
    first_step: str
    hint: str
    several: bool = False

    def judge(self, inputs: Any, answer: Any) -> Verdict:
        """Judge the choice."""
        if answer is None:
            return BLANK
        options, chosen = self.options(inputs), self._chosen(_plain(answer))
        strange = [choice for choice in chosen if not any(_same(choice, option) for option in options)]
        if strange:
            is_quoted = isinstance(strange[0], str) and not any(isinstance(option, str) for option in options)
            why = "text, the choices are numbers without quotation marks" if is_quoted else "not among the choices"
            return Verdict(Kind.UNREADABLE, f"{_shown(strange[0])} is {why}: {', '.join(map(repr, options))}.")
        if self._is(chosen, self.key(inputs)):
            return RIGHT
        says = ", or if ".join(mistake.says for mistake in self.mistakes if self._is(chosen, mistake.formula(inputs)))
        if says:
            return Verdict(Kind.MISTAKE, f"this comes out if {says}.")
        return Verdict(Kind.NOT_YET, f"not yet. First step: {self.first_step}.")

    def tells_apart(self, inputs: Any) -> bool:
        """Whether, on these inputs, each mistake leads to another choice."""
        key = self.key(inputs)
        return all(mistake.may_coincide or mistake.formula(inputs) != key for mistake in self.mistakes)

    def _chosen(self, answer: Any) -> list[Any]:
        if self.several and answer == {}:  # a slip for set()
            return []
        is_set = isinstance(answer, (list, tuple, set, frozenset)) and (self.several or len(answer) == 1)
        return list(answer) if is_set else [answer]

    def _is(self, chosen: Any, wanted: Any) -> bool:
        wanted = wanted if self.several else [wanted]
        return all(any(_same(choice, one) for one in wanted) for choice in chosen) and all(
            any(_same(choice, one) for choice in chosen) for one in wanted
        )


Part = NumberPart | ChoicePart


@dataclass(frozen=True)
class Exercise:
    """An exercise: its number, its parts, how inputs are drawn for it, and which of those suit it."""

    number: str
    parts: tuple[Part, ...]
    drawn: Callable[[Random], Any]
    suits: Callable[[Any], bool]

    def part(self, name: str) -> Part:
        """The part of this name; raises InputError for an unknown one."""
        known = {part.name: part for part in self.parts}
        return known[one_of("part", name, known)]

    def accepts(self, inputs: Any) -> bool:
        """Whether these inputs suit the exercise and lead each named mistake away from its key."""
        return self.suits(inputs) and all(part.tells_apart(inputs) for part in self.parts)

    def variant(self, seed: int | str) -> Any:
        """Other inputs for the same exercise, the same ones for the same seed."""
        random = Random(f"{self.number} {seed}")
        for _ in range(MOST_DRAWS):
            inputs = self.drawn(random)
            if self.accepts(inputs):
                return inputs
        raise AssertionError(f"no draw of exercise {self.number} suits it")

    def draws(self, word: int | str) -> tuple[Any, ...]:
        """Inputs for functions: so many variants that on one of them each mistake leads clearly away from its key."""
        return _draws(self, word)


@lru_cache(maxsize=256)
def _draws(exercise: Exercise, word: int | str) -> tuple[Any, ...]:
    asked = [part for part in exercise.parts if isinstance(part, NumberPart)]
    hidden = {(part.name, mistake) for part in asked for mistake in part.mistakes}
    found: list[Any] = []
    while hidden:
        assert len(found) < MOST_DRAWS, f"a mistake of exercise {exercise.number} never shows"
        found.append(exercise.variant(f"{word} {len(found)}"))
        hidden -= {(part.name, mistake) for part in asked for mistake in part.led_away(found[-1])}
    return tuple(found)


class Checker:
    """Judges the answers in one notebook, and helps more when a part goes wrong twice in a row."""

    def __init__(self, exercise: Exercise, inputs: Any) -> None:
        self._exercise, self._inputs = exercise, inputs
        self._wrong: dict[str, int] = {}

    def cases(self, name: str) -> Cases:
        """The arguments for which a part asks for numbers, in that order; raises InputError for an unknown part."""
        return Cases(dict(case) for case in self._number_part(name).cases(self._inputs))

    def by_case(self, name: str, answer: Any) -> list[tuple[Any, ...]]:
        """The numbers of an answer to such a part, those of each case together; fewer where the answer is too short."""
        part, given = self._number_part(name), _flat(answer)
        each = len(part.asked)
        return [tuple(given[each * place :][:each]) for place in range(len(part.cases(self._inputs)))]

    def _number_part(self, name: str) -> NumberPart:
        part = self._exercise.part(name)
        if not isinstance(part, NumberPart):
            raise InputError("part", name, "a part that asks for numbers")
        return part

    def __call__(self, name: str, answer: Any = None, function: Any = None) -> None:
        """Print how an answer was found, and the function where one is asked for."""
        part = self._exercise.part(name)
        verdicts = [part.judge(self._inputs, answer)]
        print(f"{name}: {verdicts[0].sentence}")
        if isinstance(part, NumberPart):
            verdicts.append(self._function_verdict(part, function))
            print(f"{name}, function: {verdicts[1].sentence}")
            if verdicts[1].case is not None:
                print(f"{name}, function, called with: {_as_arguments(verdicts[1].case)}")
        self._hint_at_second_wrong_try(part, {verdict.kind for verdict in verdicts})

    def _hint_at_second_wrong_try(self, part: Part, kinds: set[Kind]) -> None:
        wrong = self._wrong.get(part.name, 0)
        if kinds <= {Kind.RIGHT, Kind.BLANK}:
            self._wrong[part.name] = 0
        elif not kinds <= {Kind.RIGHT, Kind.BLANK, Kind.UNREADABLE}:  # what cannot be read is no try
            self._wrong[part.name] = wrong + 1
            if wrong:
                print(f"{part.name}, hint: {part.hint}.")

    def earned(self, name: str, answer: Any, draw: int | str = FEEDBACK) -> bool:
        """Whether an answer earns the marks: a choice by the notebook's inputs, a function by those and drawn ones."""
        part = self._exercise.part(name)
        if isinstance(part, ChoicePart):
            return part.judge(self._inputs, answer).kind is Kind.RIGHT
        return all(verdict.kind is Kind.RIGHT for verdict in self._function_verdicts(part, answer, draw))

    def _function_verdicts(self, part: NumberPart, function: Any, draw: int | str) -> list[Verdict]:
        """What is found with the notebook's inputs, then with each of the drawn ones."""
        return [part.judge_function(inputs, function) for inputs in (self._inputs, *self._exercise.draws(draw))]

    def _function_verdict(self, part: NumberPart, function: Any) -> Verdict:
        verdicts = self._function_verdicts(part, function, FEEDBACK)
        wrong = [verdict for verdict in verdicts if verdict.kind is not Kind.RIGHT]
        if not wrong:
            return verdicts[0]
        named = [verdict for verdict in wrong if verdict.kind is Kind.MISTAKE]
        found = (named or wrong)[0]
        if verdicts[0].kind is Kind.RIGHT and found.kind in {Kind.NOT_YET, Kind.ORDER, Kind.UNIT}:
            said = "right for the inputs above only: it does not follow when they change."
            return replace(found, sentence=said)
        return found


def some_of(inputs: Any, names: Sequence[str]) -> dict[str, Any]:
    """The inputs of these names, in the order in which they were declared."""
    return {each.name: getattr(inputs, each.name) for each in fields(inputs) if each.name in names}


def _explains(number: int, answered: Sequence[tuple[_Slot, Any]]) -> bool:
    """Whether a mistake gives all these values, and one of them is not the key."""
    return all(slot.is_near(value, slot.mistaken[number]) for slot, value in answered) and any(
        slot.is_told_apart(slot.mistaken[number]) for slot, _ in answered
    )


def _is_reordered(answered: Sequence[tuple[_Slot, Any]]) -> bool:
    """Whether all the keys were given, though at each other's places."""
    slots, values = zip(*answered, strict=True)
    by_size = zip(sorted(slots, key=lambda slot: slot.key), sorted(values), strict=True)
    return all(slot.is_near(value, slot.key) for slot, value in by_size)


def _unit_slip(answered: Sequence[tuple[_Slot, Any]]) -> str:
    """The units that were mixed up in all these values alike; empty where none explains them."""
    unit = answered[0][0].quantity.unit
    for factor, units in SLIPS.get(unit, BYTE_SLIPS):
        for by in (factor, 1 / factor):
            if all(abs(value / by - slot.key) <= UNIT_TOLERANCE * abs(slot.key) for slot, value in answered):
                return units
    return ""


def _flat(answer: Any) -> list[Any]:
    """The single values of an answer, in their order."""
    answer = _plain(answer)
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, (list, tuple)):
        return [value for part in answer for value in _flat(part)]
    return [answer]


def _plain(answer: Any) -> Any:
    """Python's own lists and numbers in place of numpy's arrays and scalars, and a float for a Decimal."""
    if isinstance(answer, Decimal):
        return float(answer)
    return answer.tolist() if hasattr(answer, "tolist") else answer


def _takes(function: Callable[..., Any], case: Mapping[str, Any]) -> bool:
    """Whether a function can be called with these arguments by name, as far as it tells."""
    try:
        inspect.signature(function).bind(**case)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not tell
        return True
    return True


def _with_commas(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _as_arguments(case: Mapping[str, Any]) -> str:
    """A case as it is written in a call; a notebook imports the module of its inputs, not their class."""
    modules = {
        name: f"{type(value).__module__.rpartition('.')[2]}." if is_dataclass(value) else ""
        for name, value in case.items()
    }
    return ", ".join(f"{name}={modules[name]}{value!r}" for name, value in case.items())


def _is_stub(function: Callable[..., Any]) -> bool:
    """Whether a function has no more instructions than one whose body is `pass`."""
    code = getattr(function, "__code__", None)
    return code is not None and len(code.co_code) == len(_does_nothing.__code__.co_code)


def _does_nothing() -> None:
    pass


def _told(error: BaseException) -> str:
    """The name of an error and its message, if it has one."""
    try:
        message = str(error).strip().removesuffix(".")
    except Exception:  # it may fail at that too
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _why_not_so_many(count: int, answer: Any) -> str:
    """A sentence on what keeps an answer from being so many numbers; empty where nothing does."""
    given = _flat(answer)
    is_alone = count > 1 and not isinstance(_plain(answer), (Mapping, list, tuple))
    wanted = f"a list of {count} numbers" if is_alone else "a number"
    strange = [why for why in (_why_no_number(value, wanted) for value in given) if why]
    if strange:
        return f"{strange[0]}."
    return "" if len(given) == count else f"numbers asked for: {count}, given: {len(given)}."


def _why_no_number(value: Any, wanted: str = "a number") -> str:
    """What keeps a value from being a finite number; empty where it is one."""
    if isinstance(value, str):
        return f"{_shown(value)} is text: write {wanted}, without quotation marks or a unit"
    if isinstance(value, bool) or not isinstance(value, Real):
        return f"{_shown(value)} is of type {type(value).__name__}: write {wanted}"
    try:
        finite("answer", value)
    except InputError:
        return "one number is too large" if isinstance(value, Rational) else f"{value} is no finite number"
    return ""


def _shown(value: object) -> str:
    """A value as it is written in code, cut where it is long."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes out no number of more than some thousand digits
        return "this number"


def _same(one: Any, other: Any) -> bool:
    """Whether two choices are the same, however text is spaced or capitalised and whatever type a number has."""
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    one, other = (_plain(choice) for choice in (one, other))
    return not any(map(_why_no_number, (one, other))) and bool(one == other)
