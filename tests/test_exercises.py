"""An answer is found right, in another order or unit, rounded, a mistake by its name, or not yet; keys hold always."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lib import (
    exercise_8_1,
    exercise_8_2,
    exercise_8_3,
    exercise_8_4,
    exercise_8_5,
    exercise_8_6,
    exercise_8_7,
    exercise_8_8,
    exercise_8_9,
)
from lib.checks import InputError
from lib.exercises import (
    FEEDBACK,
    NOTHING_RETURNED,
    RATIO,
    RIGHT,
    SHARE,
    Checker,
    ChoicePart,
    Exercise,
    Kind,
    Mistake,
    NumberPart,
    Part,
    Quantity,
)
from lib.records import record
from tools import derive
from tools.notebooks import ROOT, code_cells, pairs

MODULES = (
    exercise_8_1,
    exercise_8_2,
    exercise_8_3,
    exercise_8_4,
    exercise_8_5,
    exercise_8_6,
    exercise_8_7,
    exercise_8_8,
    exercise_8_9,
)
EXERCISES = [module.EXERCISE for module in MODULES]
BOOK: dict[str, Any] = {module.EXERCISE.number: module.BOOK for module in MODULES}
SEEDS = range(50)
# Where each seed takes a while, a reader's run takes a few of them.
SOME_OR_ALL_SEEDS = pytest.mark.parametrize("seeds", [SEEDS[:5], pytest.param(SEEDS, marks=pytest.mark.long)], ids=len)

PARTS = [(exercise, part) for exercise in EXERCISES for part in exercise.parts]
NUMBERS = [(exercise, part) for exercise, part in PARTS if isinstance(part, NumberPart)]
CHOICES = [(exercise, part) for exercise, part in PARTS if isinstance(part, ChoicePart)]
MISTAKES = [(exercise, part, mistake) for exercise, part in PARTS for mistake in part.mistakes]


@cache
def variants(exercise: Exercise) -> tuple[Any, ...]:
    """A class's inputs for each of the seeds."""
    return tuple(map(exercise.variant, SEEDS))


def named(value: object) -> str:
    if isinstance(value, Exercise):
        return value.number
    return value.name if isinstance(value, Part) else value.says[:20] if isinstance(value, Mistake) else repr(value)


def untouched(*_: Any, **__: Any) -> Any:
    pass


def numbers(part: NumberPart, inputs: Any, formula: Any = None) -> list[Any]:
    """What a formula, by default the key, gives for each case."""
    return [(formula or part.key)(**case) for case in part.cases(inputs)]


def copied(line: str, name: str) -> Any:
    """The case in a line of `check`, read as a notebook reads it."""
    what, _, call = line.partition(", called with: ")
    assert what == f"{name}, function"
    modules = {module.__name__.removeprefix("lib."): module for module in MODULES}
    return eval(f"dict({call})", modules)


def solved(exercise: Exercise, inputs: Any) -> tuple[list[str], dict[str, Any]]:
    """The code of the solution's cells, and what its names are after the run with these inputs."""
    (pair,) = [pair for pair in derive.solutions(ROOT) if derive.exercise_of(Path(pair.name).name) is exercise]
    sources = [cell["source"] for cell in code_cells(derive.with_inputs(derive.read(pair), inputs))]
    scope: dict[str, Any] = {}
    for source in sources:
        exec(source, scope)
    return sources, scope


def flat(values: Sequence[Any]) -> list[Any]:
    return [one for value in values for one in (value if isinstance(value, tuple) else (value,))]


@dataclass(frozen=True)
class Asked:
    """What the tests of one exercise ask its parts by name."""

    exercise: Exercise

    def part(self, name: str) -> NumberPart:
        found = self.exercise.part(name)
        assert isinstance(found, NumberPart)
        return found

    def keys(self, inputs: Any, name: str) -> list[Any]:
        return flat(numbers(self.part(name), inputs))

    def choice(self, inputs: Any, name: str) -> Any:
        found = self.exercise.part(name)
        assert isinstance(found, ChoicePart)
        return found.key(inputs)

    def mistaken(self, name: str, words: str) -> Any:
        """The formula of the mistake that says this."""
        (formula,) = [mistake.formula for mistake in self.exercise.part(name).mistakes if words in mistake.says]
        return formula


@pytest.mark.parametrize(("exercise", "part"), NUMBERS, ids=named)
class TestNumbers:
    def test_the_right_ones_are_right(self, exercise: Exercise, part: NumberPart) -> None:
        right = numbers(part, BOOK[exercise.number])
        assert part.judge(BOOK[exercise.number], right).kind is Kind.RIGHT
        assert part.judge(BOOK[exercise.number], np.array(flat(right))).kind is Kind.RIGHT
        assert part.judge(BOOK[exercise.number], dict(enumerate(flat(right)))).kind is Kind.RIGHT
        assert part.judge(BOOK[exercise.number], [Decimal(value) for value in flat(right)]).kind is Kind.RIGHT
        assert part.judge_function(BOOK[exercise.number], part.key).kind is Kind.RIGHT

    def test_none_is_blank(self, exercise: Exercise, part: NumberPart) -> None:
        count = len(flat(numbers(part, BOOK[exercise.number])))
        for blank in (None, [], [None] * count):
            assert part.judge(BOOK[exercise.number], blank).kind is Kind.BLANK
        assert part.judge_function(BOOK[exercise.number], None).kind is Kind.BLANK
        assert part.judge_function(BOOK[exercise.number], untouched).kind is Kind.BLANK

    def test_a_function_that_returns_nothing_is_not_blank(self, exercise: Exercise, part: NumberPart) -> None:
        def forgets_return(**case: Any) -> None:
            part.key(**case)

        def prints(**case: Any) -> None:
            print(part.key(**case))

        for function in (
            forgets_return,
            prints,
            lambda **_: [],
            lambda **_: [None],
            type("", (), {"__call__": untouched})(),
        ):
            assert part.judge_function(BOOK[exercise.number], function) == NOTHING_RETURNED

    def test_a_way_without_return_is_told(self, exercise: Exercise, part: NumberPart) -> None:
        inputs, seen = BOOK[exercise.number], list[Any]()

        def forgets(**case: Any) -> Any:
            seen.append(case)
            return part.key(**case) if len(seen) == 1 else None

        if len(part.cases(inputs)) > 1:
            sentence = part.judge_function(inputs, forgets).sentence
            assert sentence == "it returns nothing in some cases: each way through it must end with return."

    @pytest.mark.parametrize(
        ("strange", "said"),
        [
            ("14.4", "'14.4' is text: write a number, without quotation marks or a unit."),
            (math.nan, "nan is no finite number."),
            (-math.inf, "-inf is no finite number."),
            (Decimal("NaN"), "nan is no finite number."),
            (True, "True is of type bool: write a number."),
            (1j, "1j is of type complex: write a number."),
            ({1, 2}, "{1, 2} is of type set: write a number."),
            (10**400, "one number is too large."),
            (Fraction(10**5000), "one number is too large."),
        ],
    )
    def test_no_number_is_named(self, exercise: Exercise, part: NumberPart, strange: object, said: str) -> None:
        answer = flat(numbers(part, BOOK[exercise.number]))
        answer[-1] = strange
        verdict = part.judge(BOOK[exercise.number], answer)
        assert (verdict.kind, verdict.sentence) == (Kind.UNREADABLE, said)

    @pytest.mark.parametrize(
        ("strange", "said"),
        [
            ("9504 MiB", "'9504 MiB' is text: write {}, without quotation marks or a unit."),
            ({1, 2}, "{{1, 2}} is of type set: write {}."),
        ],
    )
    def test_a_list_is_asked_for_where_there_are_many_numbers(
        self, exercise: Exercise, part: NumberPart, strange: object, said: str
    ) -> None:
        asked = {"answer": len(flat(numbers(part, BOOK[exercise.number]))), "case": len(part.asked)}
        wanted = {what: "a number" if count == 1 else f"a list of {count} numbers" for what, count in asked.items()}
        verdict = part.judge(BOOK[exercise.number], strange)
        assert (verdict.kind, verdict.sentence) == (Kind.UNREADABLE, said.format(wanted["answer"]))
        verdict = part.judge_function(BOOK[exercise.number], lambda **_: strange)
        assert (verdict.kind, verdict.sentence) == (Kind.UNREADABLE, said.format(wanted["case"]))

    def test_the_numbers_of_a_function_are_counted_for_each_case(self, exercise: Exercise, part: NumberPart) -> None:
        asked = len(part.asked)
        verdict = part.judge_function(BOOK[exercise.number], lambda **_: [1] * (asked + 1))
        assert verdict.sentence == f"numbers asked for: {asked}, given: {asked + 1}."

    def test_a_function_right_above_only_is_told_a_call_with_which_it_is_not(
        self, exercise: Exercise, part: NumberPart, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The call can be copied into a notebook, and no right answer stands beside it."""
        inputs = BOOK[exercise.number]
        above = part.cases(inputs)

        def follows_not(**case: Any) -> Any:
            return (
                part.key(**case) if case in above else [value * 37.123 + 12.3456 for value in flat([part.key(**case)])]
            )

        def stops(**case: Any) -> Any:
            return part.key(**case) if case in above else part.key(**case) / None

        for function, said in (
            (follows_not, "right for the inputs above only: it does not follow when they change."),
            (stops, "it stops with TypeError: unsupported operand type(s) for /: "),
        ):
            Checker(exercise, inputs)(part.name, numbers(part, inputs), function)
            numbers_line, function_line, call_line = capsys.readouterr().out.splitlines()
            assert numbers_line == f"{part.name}: right."
            assert function_line.startswith(f"{part.name}, function: {said}")
            case = copied(call_line, part.name)
            assert case in [case for drawn in exercise.draws(FEEDBACK) for case in part.cases(drawn)]
            assert case not in above

    def test_a_wrong_function_is_told_the_first_call_that_goes_wrong(
        self, exercise: Exercise, part: NumberPart, capsys: pytest.CaptureFixture[str]
    ) -> None:
        inputs = BOOK[exercise.number]
        last = part.cases(inputs)[-1]

        def returns(wrong: Any) -> Any:
            return lambda **case: wrong if case == last else part.key(**case)

        wild = [value * 37.123 + 12.3456 for value in flat([part.key(**last)])]
        for wrong in (wild, ["text"] * len(part.asked), [1] * 4, [math.nan] * len(part.asked), [*wild[:-1], None]):
            if wrong == [None] and len(part.cases(inputs)) == 1:  # then it returns nothing in any case
                continue
            Checker(exercise, inputs)(part.name, None, returns(wrong))
            assert copied(capsys.readouterr().out.splitlines()[-1], part.name) == last

    def test_the_numbers_of_each_case_are_found_in_any_form(self, exercise: Exercise, part: NumberPart) -> None:
        right = numbers(part, BOOK[exercise.number])
        check, each = Checker(exercise, BOOK[exercise.number]), len(part.asked)
        wanted = [tuple(flat([one])) for one in right]
        for answer in (right, flat(right), tuple(right), dict(enumerate(right)), [*flat(right), 1]):
            assert check.by_case(part.name, answer) == wanted
        assert check.by_case(part.name, flat(right)[:-1]) == [*wanted[:-1], wanted[-1][: each - 1]]
        assert check.by_case(part.name, "text") == [("text",), *[()] * (len(right) - 1)]

    def test_a_missing_one_is_counted(self, exercise: Exercise, part: NumberPart) -> None:
        answer = flat(numbers(part, BOOK[exercise.number]))
        verdict = part.judge(BOOK[exercise.number], [None, *answer[1:]])
        if part.none_is_0:
            assert verdict == part.judge(BOOK[exercise.number], [0, *answer[1:]])
            return
        assert verdict.kind is Kind.BLANK
        assert len(answer) == 1 or verdict.sentence == f"not answered yet: 1 of {len(answer)} numbers."

    def test_too_few_and_too_many_are_counted(self, exercise: Exercise, part: NumberPart) -> None:
        right = flat(numbers(part, BOOK[exercise.number]))
        verdict = part.judge(BOOK[exercise.number], [*right, 1])
        assert verdict.kind is Kind.UNREADABLE
        assert verdict.sentence == f"numbers asked for: {len(right)}, given: {len(right) + 1}."

    def test_a_wild_number_gets_the_first_step(self, exercise: Exercise, part: NumberPart) -> None:
        answer = [value * 37.123 + 12.3456 for value in flat(numbers(part, BOOK[exercise.number]))]
        verdict = part.judge(BOOK[exercise.number], answer)
        assert verdict.kind is Kind.NOT_YET
        assert part.first_step in verdict.sentence

    def test_another_order_is_told_before_any_mistake(self, exercise: Exercise, part: NumberPart) -> None:
        right = flat(numbers(part, BOOK[exercise.number]))
        for answer in (right[::-1], right[1:] + right[:1], [*right[::2], *right[1::2]]):
            if answer != right:
                verdict = part.judge(BOOK[exercise.number], answer)
                assert verdict.kind is Kind.ORDER
                assert verdict.sentence.count(";") == len(right) - 1
        shifted = [value + 1 for value in right]
        assert part.judge(BOOK[exercise.number], shifted[::-1]).kind not in {Kind.RIGHT, Kind.ORDER}

    def test_another_unit_is_named(self, exercise: Exercise, part: NumberPart) -> None:
        right = flat(numbers(part, BOOK[exercise.number]))
        units = [quantity.unit for quantity in part.asked] * (len(right) // len(part.asked))
        factors_of = {
            "GiB": (1000, 1 / 1000, 2**30 / 10**9, 10**9 / 2**30, 2**20 / 10**6, 2**30 / 10**6, 1024, 8, 2**30),
            "MiB": (1000, 1 / 1000, 2**20 / 10**6, 2**20 / 10**9, 1 / 1024, 1024, 8, 2**20),
            "ms": (1000, 1 / 1000),
            SHARE: (100,),
            RATIO: (100,),
        }
        for slipped, factors in factors_of.items():
            for factor in factors if slipped in units else ():
                answer = [
                    value * factor if unit == slipped else value for value, unit in zip(right, units, strict=True)
                ]
                verdict = part.judge(BOOK[exercise.number], answer)
                assert verdict.kind is Kind.UNIT, factor
                assert f"{slipped} is asked for" in verdict.sentence

    def test_cases_are_shown_one_a_line(self, exercise: Exercise, part: NumberPart) -> None:
        cases = Checker(exercise, BOOK[exercise.number]).cases(part.name)
        header, *lines = repr(cases).splitlines()
        assert header.split() == list(cases[0])
        assert len(lines) == len(cases) == len(part.cases(BOOK[exercise.number]))
        if all(isinstance(value, int) for value in cases[0].values()):
            shown = [[int(word.replace(",", "")) for word in line.split()] for line in lines]
            assert shown == [list(case.values()) for case in cases]

    def test_a_constant_is_no_function(self, exercise: Exercise, part: NumberPart) -> None:
        book = BOOK[exercise.number]
        key = numbers(part, book)[0]
        for drawn in (*variants(exercise), *map(exercise.variant, ("feedback", "marks"))):
            if drawn != book:
                assert part.judge_function(drawn, lambda **_: key).kind is not Kind.RIGHT

    def test_a_table_of_the_books_answers_earns_nothing(
        self, exercise: Exercise, part: NumberPart, capsys: pytest.CaptureFixture[str]
    ) -> None:
        book = BOOK[exercise.number]
        table = {str(case): part.key(**case) for case in part.cases(book)}
        check = Checker(exercise, book)
        check(part.name, list(table.values()), lambda **case: table.get(str(case), next(iter(table.values()))))
        said = capsys.readouterr().out.splitlines()
        assert said[0] == f"{part.name}: right."
        assert "right." not in said[1]
        assert not check.earned(part.name, lambda **case: table.get(str(case), 1), draw="marks")

    def test_a_function_that_fails_says_how(self, exercise: Exercise, part: NumberPart) -> None:
        verdict = part.judge_function(BOOK[exercise.number], lambda **_: 1 / 0)
        assert verdict.sentence == "it stops with ZeroDivisionError: division by zero."
        assert part.judge_function(BOOK[exercise.number], 51).kind is Kind.UNREADABLE

    def test_whatever_stops_a_function_is_told(self, exercise: Exercise, part: NumberPart) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("mute")

        told = {
            SystemExit(3): "SystemExit: 3.",
            ValueError(): "ValueError.",
            ValueError(" No.\n"): "ValueError: No.",
            Mute(): "Mute.",
        }
        for error, said in told.items():

            def stops(error: BaseException = error, **_: Any) -> None:
                raise error

            verdict = part.judge_function(BOOK[exercise.number], stops)
            assert (verdict.kind, verdict.sentence) == (Kind.UNREADABLE, f"it stops with {said}")

    def test_other_names_of_parameters_are_told(self, exercise: Exercise, part: NumberPart) -> None:
        book = BOOK[exercise.number]
        verdict = part.judge_function(book, lambda x: x)
        assert verdict.kind is Kind.UNREADABLE
        assert verdict.sentence == f"keep the names of its parameters: {', '.join(part.cases(book)[0])}."
        assert part.judge_function(book, type("", (), {"__call__": lambda _, **case: part.key(**case)})()).kind is (
            Kind.RIGHT
        )

    def test_right_for_the_draws_only_earns_nothing(self, exercise: Exercise, part: NumberPart) -> None:
        book, check = BOOK[exercise.number], Checker(exercise, BOOK[exercise.number])
        cases = part.cases(book)
        assert not check.earned(part.name, lambda **case: part.key(**case) if case not in cases else -1, draw="marks")

    def test_no_mistake_earns_the_marks_of_any_draw(self, exercise: Exercise, part: NumberPart) -> None:
        check = Checker(exercise, BOOK[exercise.number])
        for mistake in part.mistakes:
            for word in ("marks", FEEDBACK, *range(5)):
                assert check.earned(part.name, mistake.formula, draw=word) is mistake.accepted

    @SOME_OR_ALL_SEEDS
    def test_the_key_earns_the_marks_of_any_draw(self, exercise: Exercise, part: NumberPart, seeds: range) -> None:
        check = Checker(exercise, BOOK[exercise.number])
        assert all(check.earned(part.name, part.key, draw=seed) for seed in seeds)


@pytest.mark.parametrize(("exercise", "part", "mistake"), MISTAKES, ids=named)
def test_each_mistake_is_called_by_its_name(exercise: Exercise, part: Part, mistake: Mistake) -> None:
    for inputs in (BOOK[exercise.number], *variants(exercise)):
        if isinstance(part, ChoicePart):
            wrong, verdict = mistake.formula(inputs), part.judge(inputs, mistake.formula(inputs))
            right = part.key(inputs)
        else:
            wrong, verdict = numbers(part, inputs, mistake.formula), part.judge_function(inputs, mistake.formula)
            right = numbers(part, inputs)
        if mistake.says in verdict.sentence:
            assert verdict.kind is (Kind.RIGHT if mistake.accepted else Kind.MISTAKE)
        else:
            assert verdict == RIGHT
            assert wrong == right or flat(wrong) == pytest.approx(flat(right), rel=0.001, abs=0.03)
            assert mistake.may_coincide or inputs == BOOK[exercise.number]


def test_hidden_in_the_books_numbers() -> None:
    """With these only one context tells storing too little, and none storing too much."""
    part = exercise_8_1.EXERCISE.part("c")
    prefill_only, last_output, no_pages = part.mistakes
    assert numbers(part, exercise_8_1.BOOK, prefill_only.formula) == [42, 10]
    for mistake in (last_output, no_pages):
        assert numbers(part, exercise_8_1.BOOK, mistake.formula) == numbers(part, exercise_8_1.BOOK) == [37, 10]


def test_prefill_only_gets_its_sentence() -> None:
    verdict = exercise_8_1.EXERCISE.part("c").judge(exercise_8_1.BOOK, [42, 10])
    assert (verdict.kind, verdict.sentence) == (
        Kind.MISTAKE,
        "requests that fit at context 2,048: this comes out if only the KV after prefill is reserved: a request grows "
        "until its last output.",
    )


def test_one_context_after_the_other_is_asked_for() -> None:
    part = exercise_8_1.EXERCISE.part("a")
    assert part.judge(exercise_8_1.BOOK, [14.38, 15.22, 3.81, 4.65, 1.16, 2.01, 0.502, 1.345]).sentence == (
        "the right numbers, but not in the order asked for: at context 2,048, batch 1; at context 2,048, batch 4; "
        "at context 2,048, batch 16; at context 2,048, batch 64; at context 8,192, batch 1; at context 8,192, batch 4; "
        "at context 8,192, batch 16; at context 8,192, batch 64."
    )
    tokens_last = exercise_8_2.EXERCISE.part("a").judge(exercise_8_2.BOOK, (4_196_352, 163.33, 4096)).sentence
    assert tokens_last.endswith("asked for: new tokens; query-key pairs; time of the step.")


def test_the_step_of_c_is_not_always_the_longest() -> None:
    part, admitting = (exercise_8_2.EXERCISE.part(name) for name in ("d1", "c"))
    assert isinstance(part, NumberPart) and isinstance(admitting, NumberPart)
    drawn = exercise_8_2.EXERCISE.draws("marks")
    verdicts = [part.judge_function(inputs, lambda inputs: admitting.key(inputs)[2]) for inputs in drawn]
    assert {verdict.kind for verdict in verdicts} == {Kind.RIGHT, Kind.MISTAKE}
    assert any("the step of c is taken whatever else comes" in verdict.sentence for verdict in verdicts)


def test_the_newcomers_prompt_alone_is_not_the_interval() -> None:
    verdict = exercise_8_2.EXERCISE.part("d1").judge(exercise_8_2.BOOK, 375.94)
    assert verdict.kind is Kind.MISTAKE
    assert "only the newcomer's prompt is counted" in verdict.sentence


def test_the_books_tokens_that_fit() -> None:
    part = exercise_8_2.EXERCISE.part("f")
    assert isinstance(part, NumberPart)
    assert numbers(part, exercise_8_2.BOOK) == [753, 438]
    assert "the pairs are forgotten" in part.judge(exercise_8_2.BOOK, [781, 781]).sentence
    assert "the fixed part is forgotten" in part.judge(exercise_8_2.BOOK, [1528, 911]).sentence
    assert "rounded up" in part.judge(exercise_8_2.BOOK, [753, 439]).sentence


def test_one_pass_too_many_gets_its_sentence() -> None:
    verdict = exercise_8_2.EXERCISE.part("a").judge(exercise_8_2.BOOK, (4096, 4_196_352, 163.33 + 26.22))
    assert (verdict.kind, verdict.sentence) == (
        Kind.MISTAKE,
        "time of the step: this comes out if the fixed part is paid once per request: all work of a step shares one "
        "pass.",
    )


def test_a_time_in_seconds_may_be_typed_with_few_digits() -> None:
    verdict = exercise_8_2.EXERCISE.part("a").judge(exercise_8_2.BOOK, (4096, 4_196_352, 0.163))
    assert verdict.sentence == (
        "time of the step: right but for the unit, ms is asked for: units that are 1000 of each other (us, ms, s) "
        "were mixed up."
    )


def test_one_request_alone_is_accepted_with_a_word() -> None:
    part = exercise_8_2.EXERCISE.part("a")
    verdict = part.judge(exercise_8_2.BOOK, (2048, 2_098_176, 94.77))
    assert verdict.kind is Kind.RIGHT
    assert verdict.sentence.startswith("right for one request by itself; here both")


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        (exercise_8_1.EXERCISE.part("a"), [14.4, 3.8, 1.2, 0.5, 15.2, 4.6, 2.0, 1.3]),
        (exercise_8_1.EXERCISE.part("b"), [50.12, 12.53]),
        (exercise_8_1.EXERCISE.part("c"), [37.9, 10.3]),
        (exercise_8_1.EXERCISE.part("e"), [16, 15]),
    ],
    ids=named,
)
def test_rounding_is_told_from_a_mistake(part: NumberPart, answer: list[float]) -> None:
    assert part.judge(exercise_8_1.BOOK, answer).kind is Kind.ROUNDED


@pytest.mark.parametrize(
    ("batch", "far"), [(1, 15), (1, 14.5), (4, 4), (16, 2), (16, 1.1), (16, 1), (64, 1), (64, 0.6)]
)
def test_an_answer_far_off_is_not_called_rounded(batch: int, far: float) -> None:
    part = exercise_8_1.EXERCISE.part("a")
    answer = dict(zip((1, 4, 16, 64), (14.378, 3.806, 1.162, 0.5015), strict=True))
    others = [15.22, 4.649, 2.007, 1.3455]
    assert part.judge(exercise_8_1.BOOK, [*answer.values(), *others]).kind is Kind.RIGHT
    assert part.judge(exercise_8_1.BOOK, [*(answer | {batch: far}).values(), *others]).kind is Kind.NOT_YET


@pytest.mark.parametrize(("part", "time"), [("a", 163.3), ("c", 376), ("d1", 376.0), ("b", 26)])
def test_a_rounded_time_is_told_from_a_mistake(part: str, time: float) -> None:
    asked = exercise_8_2.EXERCISE.part(part)
    key = flat(numbers(asked, exercise_8_2.BOOK))
    assert asked.judge(exercise_8_2.BOOK, [*key[:-1], time]).kind is Kind.ROUNDED


@pytest.mark.parametrize(("exercise", "part"), CHOICES, ids=named)
class TestChoices:
    def test_the_right_one_earns_the_marks(self, exercise: Exercise, part: ChoicePart) -> None:
        for inputs in (BOOK[exercise.number], *variants(exercise)):
            check = Checker(exercise, inputs)
            assert check.earned(part.name, part.key(inputs))
            for option in part.options(inputs):
                if option != part.key(inputs) and {option} != part.key(inputs):
                    assert not check.earned(part.name, option)

    def test_none_is_blank(self, exercise: Exercise, part: ChoicePart) -> None:
        assert part.judge(BOOK[exercise.number], None).kind is Kind.BLANK

    @pytest.mark.parametrize(
        "strange", ["nope", math.nan, True, 3, pytest.param(10**5000, id="long"), {1: 2}, ["r0", "r1"]]
    )
    def test_an_unknown_one_is_answered_with_the_choices(
        self, exercise: Exercise, part: ChoicePart, strange: object
    ) -> None:
        verdict = part.judge(BOOK[exercise.number], strange)
        assert verdict.kind is Kind.UNREADABLE
        assert all(str(option) in verdict.sentence for option in part.options(BOOK[exercise.number]))

    def test_a_set_of_one_is_that_one(self, exercise: Exercise, part: ChoicePart) -> None:
        key = part.key(BOOK[exercise.number])
        chosen = set(key) if part.several else {key}
        for answer in (chosen, [*chosen], (*chosen,), frozenset(chosen), *(chosen if len(chosen) == 1 else ())):
            assert part.judge(BOOK[exercise.number], answer).kind is Kind.RIGHT

    def test_case_and_spaces_do_not_matter(self, exercise: Exercise, part: ChoicePart) -> None:
        key = part.key(BOOK[exercise.number])
        if isinstance(key, str):
            assert part.judge(BOOK[exercise.number], f" {key.upper()} ").kind is Kind.RIGHT


def test_a_set_may_be_given_in_any_form_and_be_empty() -> None:
    part = exercise_8_2.EXERCISE.part("g")
    for answer in ({512}, [512], (512, 512), 512, frozenset({512}), {np.int64(512)}, np.array([512]), {512.0}):
        assert part.judge(exercise_8_2.BOOK, answer).kind is Kind.RIGHT
    for empty in (set(), [], {}):
        assert part.judge(exercise_8_2.BOOK, empty).kind is Kind.NOT_YET
        assert part.judge(replace(exercise_8_2.BOOK, limit_ms=31), empty).kind is Kind.RIGHT
    assert part.judge(exercise_8_2.BOOK, {"512"}).sentence == (
        "'512' is text, the choices are numbers without quotation marks: 512, 8192."
    )
    assert part.judge(exercise_8_2.BOOK, {256}).sentence == "256 is not among the choices: 512, 8192."
    both = part.judge(exercise_8_2.BOOK, {512, 8192}).sentence
    assert "the median is compared" in both and "the 95th percentile is compared" in both


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
class TestVariants:
    @SOME_OR_ALL_SEEDS
    def test_each_is_accepted_by_the_rule(self, exercise: Exercise, seeds: range) -> None:
        drawn = [exercise.variant(seed) for seed in seeds]
        assert all(map(exercise.accepts, drawn))
        assert len(set(drawn)) == len(drawn)
        assert drawn == [exercise.variant(seed) for seed in seeds]

    def test_a_mistake_near_the_key_refuses_them(self, exercise: Exercise) -> None:
        inputs = exercise.variant(0)
        part = next(part for part in exercise.parts if isinstance(part, NumberPart))
        near = replace(part, mistakes=(Mistake("nothing", part.key),))
        assert not replace(exercise, parts=(near,)).accepts(inputs)
        assert replace(exercise, parts=(part,)).accepts(inputs)
        assert not replace(exercise, suits=lambda _: False).accepts(inputs)


def chosen(exercise: Exercise, inputs: Any, *names: str) -> tuple[Any, ...]:
    return tuple(part.key(inputs) for part in map(exercise.part, names) if isinstance(part, ChoicePart))


def test_all_classes_of_8_1_are_drawn() -> None:
    drawn = [exercise_8_1.EXERCISE.variant(seed) for seed in SEEDS]
    assert {chosen(exercise_8_1.EXERCISE, inputs, "d1", "d2") for inputs in drawn} == {
        ("capacity", "capacity"),
        ("crossing", "crossing"),
    }
    assert {chosen(exercise_8_1.EXERCISE, inputs, "d3", "d4") for inputs in drawn} == {
        ("capacity", "crossing"),
        ("crossing", "capacity"),
    }


def test_all_outcomes_of_8_2_are_drawn() -> None:
    drawn = [exercise_8_2.EXERCISE.variant(seed) for seed in SEEDS]
    found = [chosen(exercise_8_2.EXERCISE, inputs, "d2", "d4", "g") for inputs in drawn]
    whose, terms, limits = map(set, zip(*found, strict=True))
    assert (whose, limits) == ({"r0", "r2"}, {frozenset(), frozenset({512})})
    assert terms >= {"new tokens", "pairs"}
    for place in (0, 1, 2, 3):
        assert len({inputs.output_tokens[place] for inputs in drawn}) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_keys_of_8_1_by_plain_arithmetic(seed: int) -> None:
    i = exercise_8_1.EXERCISE.variant(seed)
    keys = {part.name: numbers(part, i) for exercise, part in NUMBERS if exercise.number == "8-1"}
    D, k, p, G = i.streamed_weight_bytes, i.kv_bytes_per_token, i.page_tokens, i.output_tokens
    assert keys["a"] == pytest.approx([(D / b + L * k) / 2**30 for L in i.contexts for b in i.batches])
    cross = [math.ceil(D / (L * k)) for L in i.contexts]
    assert keys["b"] == cross
    each = [p * k * math.ceil((L + G - 1) / p) for L in i.contexts]
    fit = [math.floor(i.pool_bytes / size) for size in each]
    assert keys["c"] == fit
    assert keys["e"] == pytest.approx([batch * size / 2**30 for batch, size in zip(cross, each, strict=True)])
    for name, c, b in zip(("d1", "d2"), fit, cross, strict=True):
        assert exercise_8_1.EXERCISE.part(name).key(i) == ("capacity" if c < b else "crossing")
    fit = [math.floor(i.other_pool_bytes / size) for size in each]
    for name, c, b in zip(("d3", "d4"), fit, cross, strict=True):
        assert exercise_8_1.EXERCISE.part(name).key(i) == ("capacity" if c < b else "crossing")


def triangle(tokens: int) -> int:
    return tokens * (tokens + 1) // 2


def pauses(i: Any) -> list[tuple[float, str, str, list[float]]]:
    """All intervals of the four requests, two of which run at once: ms, whose, its outputs, the terms of the step."""
    given, row, waiting, found = [0, 0, 0, 0], [0, 1], [2, 3], list[tuple[float, str, str, list[float]]]()
    while row:
        new = sum(1 if given[r] else i.input_tokens[r] for r in row)
        pairs = sum(i.input_tokens[r] + given[r] if given[r] else triangle(i.input_tokens[r]) for r in row)
        terms = [i.fixed_ns / 1e6, i.per_new_token_ns * new / 1e6, i.per_causal_pair_ns * pairs / 1e6]
        found += [(sum(terms), f"r{r}", f"{given[r]} and {given[r] + 1}", terms) for r in row if given[r]]
        for r in row:
            given[r] += 1
        row = [r for r in row if given[r] < i.output_tokens[r]]
        while waiting and len(row) < 2:
            row.append(waiting.pop(0))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_keys_of_8_2_by_plain_arithmetic(seed: int) -> None:
    i = exercise_8_2.EXERCISE.variant(seed)
    r0, r1, r2, _ = i.input_tokens
    work = {
        "a": (r0 + r1, triangle(r0) + triangle(r1)),
        "b": (2, r0 + 1 + r1 + 1),
        "c": (r2 + 1, triangle(r2) + r0 + i.output_tokens[1]),
    }

    def time(new: int, pairs: int) -> float:
        return float(i.fixed_ns + i.per_new_token_ns * new + i.per_causal_pair_ns * pairs) / 1e6

    keys = {part.name: flat(numbers(part, i)) for exercise, part in NUMBERS if exercise.number == "8-2"}
    for name in work:
        assert keys[name] == [*work[name], pytest.approx(time(*work[name]))]
    longest, whose, between, terms = max(pauses(i))
    assert keys["d1"] == [pytest.approx(longest)]
    largest = ("fixed part", "new tokens", "pairs")[terms.index(max(terms))]
    assert chosen(exercise_8_2.EXERCISE, i, "d2", "d3", "d4") == (whose, between, largest)
    assert keys["e"] == [i.chunk * h + triangle(i.chunk) for h in i.chunk_contexts]
    for h, fit in zip(i.chunk_contexts, keys["f"], strict=True):
        takes = [time(c + 1, c * h + triangle(c) + r0 + 1) for c in (fit, fit + 1)]
        assert fit > 0 and takes[0] <= i.limit_ms < takes[1]
    within = {limit for limit, longest in ((512, 31.94), (8192, 183.066)) if longest < i.limit_ms}
    last = (within, 8192, "longest interval", "queue in the engine")
    assert chosen(exercise_8_2.EXERCISE, i, "g", "h", "i1", "i2") == last


def test_the_replay_compares_runs_that_differ_in_the_budget_alone() -> None:
    assert [row["token_budget_per_step"] for row in exercise_8_2.REPLAY] == [512, 8192]
    assert len(record("six_request_replay_summary").rows) == 4


def test_a_second_wrong_try_in_a_row_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    check, part = Checker(exercise_8_1.EXERCISE, exercise_8_1.BOOK), exercise_8_1.EXERCISE.part("b")
    for answer, hinted in [([7, 8], False), ([7, 9], True), ([51, 13], False), ([7, 8], False), (None, False)]:
        check("b", answer)
        assert (part.hint in capsys.readouterr().out) is hinted


def test_what_cannot_be_read_is_no_wrong_try(capsys: pytest.CaptureFixture[str]) -> None:
    check, part = Checker(exercise_8_1.EXERCISE, exercise_8_1.BOOK), exercise_8_1.EXERCISE.part("b")
    unreadable: list[tuple[Any, Any]] = [("7 8", None), ([7], None), (None, lambda: 7), (None, lambda **_: 1 / 0)]
    for answer, function in unreadable * 2:
        check("b", answer, function)
        assert part.hint not in capsys.readouterr().out
    for answer, hinted in [([7, 8], False), ("7 8", False), ([7, 9], True), ("7 8", False), ([7, 9], True)]:
        check("b", answer)
        assert (part.hint in capsys.readouterr().out) is hinted
    for choice, hinted in [("capacity?", False), ("crossing", False), ("capacity?", False), ("crossing", True)]:
        check("d1", choice)
        assert (exercise_8_1.EXERCISE.part("d1").hint in capsys.readouterr().out) is hinted


def test_a_tolerance_shrinks_before_a_near_mistake() -> None:
    part = NumberPart(
        name="x",
        asked=(Quantity("share", "GiB", relative=0.01),),
        cases=lambda _: [{}],
        key=lambda: 100.0,
        mistakes=(Mistake("near", lambda: 100.8), Mistake("too near to type", lambda: 100.01)),
        first_step="",
        hint="",
    )
    assert part.judge(None, 100.39).kind is Kind.RIGHT
    assert part.judge(None, 99.5).kind is not Kind.RIGHT
    assert part.judge(None, 100.8).sentence == "share: this comes out if near."
    assert not part.tells_apart(None)


def test_two_mistakes_that_cannot_be_told_apart_are_named_together() -> None:
    part = NumberPart(
        name="x",
        asked=(Quantity("count"),),
        cases=lambda _: [{}],
        key=lambda: 3,
        mistakes=(Mistake("one", lambda: 5), Mistake("another", lambda: 5), Mistake("none", lambda: 3)),
        first_step="",
        hint="",
    )
    assert part.judge(None, 5).sentence == "count: this comes out if one, or if another."
    assert part.judge(None, 3).kind is Kind.RIGHT


def test_an_unknown_part_is_named() -> None:
    check = Checker(exercise_8_1.EXERCISE, exercise_8_1.BOOK)
    with pytest.raises(InputError, match=r"^part is 'z'; allowed: one of 'a', 'b'"):
        check("z", 1)
    for ask in (check.cases, lambda name: check.by_case(name, None)):
        with pytest.raises(InputError, match=r"^part is 'd1'; allowed: a part that asks for numbers"):
            ask("d1")
    assert check.cases("b")[1]["context"] == 8192


@pytest.mark.parametrize(
    ("inputs", "name", "value"),
    [
        (exercise_8_1.BOOK, "streamed_weight_bytes", 0),
        (exercise_8_1.BOOK, "contexts", (2048,)),
        (exercise_8_1.BOOK, "page_tokens", 2.5),
        (exercise_8_2.BOOK, "fixed_ns", -1),
        (exercise_8_2.BOOK, "input_tokens", (2048, 2048)),
        (exercise_8_2.BOOK, "limit_ms", math.nan),
        (exercise_8_2.BOOK, "limit_ms", 0),
        (exercise_8_1.BOOK, "other_pool_bytes", 0),
        (exercise_8_1.BOOK, "contexts", ()),
        (exercise_8_1.BOOK, "contexts", None),
        (exercise_8_1.BOOK, "batches", ()),
        (exercise_8_1.BOOK, "batches", [1, 4]),
        (exercise_8_1.BOOK, "batches", (1, 0)),
        (exercise_8_2.BOOK, "fixed_ns", 10**13),
        (exercise_8_2.BOOK, "input_tokens", [2048] * 4),
        (exercise_8_2.BOOK, "input_tokens", (2048, 2048, 0, 2048)),
        (exercise_8_2.BOOK, "input_tokens", (2**40, 1, 1, 1)),
        (exercise_8_2.BOOK, "output_tokens", (1, 1, 1, 1)),
        (exercise_8_2.BOOK, "output_tokens", (3, 3, 2, 2)),
        (exercise_8_2.BOOK, "output_tokens", (8, 1, 2, 2)),
        (exercise_8_2.BOOK, "arrivals_ns", (0, 1, 2, 3)),
        (exercise_8_2.BOOK, "arrivals_ns", (0, 0, 3, 2)),
        (exercise_8_2.BOOK, "arrivals_ns", (-1, -1, 0, 0)),
        (exercise_8_2.BOOK, "chunk_contexts", ()),
        (exercise_8_2.BOOK, "chunk_contexts", 7680),
        (exercise_8_2.BOOK, "limit_ms", 10**9),
        (exercise_8_2.BOOK, "chunk", True),
        (exercise_8_3.BOOK, "lengths", ()),
        (exercise_8_3.BOOK, "lengths", [9, 13]),
        (exercise_8_3.BOOK, "lengths", (9, 0)),
        (exercise_8_3.BOOK, "block_sizes", None),
        (exercise_8_3.BOOK, "block_sizes", (2.0, 4.0, 8.0)),
        (exercise_8_3.BOOK, "batches", (8, 16)),
        (exercise_8_3.BOOK, "batches", (8, 16, -1)),
        (exercise_8_3.BOOK, "input_tokens", 0),
        (exercise_8_3.BOOK, "shared_prefix_tokens", 8192),
        (exercise_8_3.BOOK, "output_tokens", math.nan),
        (exercise_8_3.BOOK, "block_tokens", 0),
        (exercise_8_3.BOOK, "kv_bytes_per_token", 144.5),
        (exercise_8_3.BOOK, "pool_bytes", 2**61),
        (exercise_8_4.BOOK, "room_bytes", 905_969_663),
        (exercise_8_4.BOOK, "a_tokens", 0),
        (exercise_8_4.BOOK, "b_count", 65),
        (exercise_8_4.BOOK, "a_probability", 1.5),
        (exercise_8_4.BOOK, "b_probability", math.nan),
        (exercise_8_4.BOOK, "layer_weights", 0.5),
        (exercise_8_4.BOOK, "efficiency", 0),
        (exercise_8_4.BOOK, "efficiency", 62),
        (exercise_8_4.BOOK, "link_bytes_s", 0),
        (exercise_8_4.BOOK, "link_bytes_s", 10**9),
        (exercise_8_4.BOOK, "other_link_bytes_s", 10**9),
        (exercise_8_4.BOOK, "rounds", 1),
        (exercise_8_4.BOOK, "rounds", 13),
        (exercise_8_4.BOOK, "block_sizes", ()),
        (exercise_8_4.BOOK, "block_sizes", (16, 0)),
        (exercise_8_4.BOOK, "gap_requests", 6),
        (exercise_8_4.BOOK, "gap_request_tokens", True),
        (exercise_8_4.BOOK, "pool_tokens", (43_680,)),
        (exercise_8_4.BOOK, "pool_tokens", (43_680, 3_999)),
        (exercise_8_4.BOOK, "pool_tokens", (2**24 + 1, 7_280)),
        (exercise_8_6.BOOK, "input_kv_bytes", 0),
        (exercise_8_6.BOOK, "input_kv_bytes", 1_207_959_551),
        (exercise_8_6.BOOK, "request_kv_bytes", 1.5),
        (exercise_8_6.BOOK, "request_kv_bytes", 2**61),
        (exercise_8_6.BOOK, "group_values", 12),
        (exercise_8_6.BOOK, "code_bits", (8,)),
        (exercise_8_6.BOOK, "code_bits", (8, 0)),
        (exercise_8_6.BOOK, "code_bits", (17, 4)),
        (exercise_8_6.BOOK, "scale_bytes", True),
        (exercise_8_6.BOOK, "bf16_kv", ("oooo",) * 7),
        (exercise_8_6.BOOK, "bf16_kv", ["oooo"] * 8),
        (exercise_8_6.BOOK, "fp8_default", ("oooo",) * 7 + ("ooo",)),
        (exercise_8_6.BOOK, "fp8_default", ("oooo",) * 7 + ("oo?o",)),
        (exercise_8_6.BOOK, "fp8_kv_bf16_q", (None,) * 8),
        (exercise_8_6.BOOK, "first_s", ()),
        (exercise_8_6.BOOK, "first_s", 1.0),
        (exercise_8_6.BOOK, "first_s", (math.nan,) * 8),
        (exercise_8_6.BOOK, "retry_s", (None,) * 7),
        (exercise_8_6.BOOK, "retry_s", (0,) * 8),
        (exercise_8_6.BOOK, "task_s", (None,) * 8),
        (exercise_8_6.BOOK, "task_s", (0.9,) * 8),
        (exercise_8_5.BOOK, "layers", 3),
        (exercise_8_5.BOOK, "layers", True),
        (exercise_8_5.BOOK, "every", 0),
        (exercise_8_5.BOOK, "every", 19),
        (exercise_8_5.BOOK, "set_bytes", 288.5),
        (exercise_8_5.BOOK, "buffers", ()),
        (exercise_8_5.BOOK, "buffers", [1, 2]),
        (exercise_8_5.BOOK, "buffers", (1, 9)),
        (exercise_8_5.BOOK, "buffers", (0, 1)),
        (exercise_8_5.BOOK, "input_state_bytes", 0),
        (exercise_8_5.BOOK, "request_bytes", 2**51),
        (exercise_8_5.BOOK, "links_bytes_s", (64 * 10**9,)),
        (exercise_8_5.BOOK, "links_bytes_s", (64, 450)),
        (exercise_8_5.BOOK, "output_tokens", 1),
        (exercise_8_5.BOOK, "limit_s", 0),
        (exercise_8_5.BOOK, "limit_s", 1e-4),
        (exercise_8_5.BOOK, "limit_s", math.nan),
        (exercise_8_7.BOOK, "acceptance", 0.75),
        (exercise_8_7.BOOK, "acceptance", (0.75,)),
        (exercise_8_7.BOOK, "acceptance", [0.75] * 12),
        (exercise_8_7.BOOK, "acceptance", (0.75,) * 65),
        (exercise_8_7.BOOK, "acceptance", (0.75,) * 11 + (0,)),
        (exercise_8_7.BOOK, "acceptance", (0.75,) * 11 + (1.1,)),
        (exercise_8_7.BOOK, "acceptance", (0.75,) * 11 + (math.nan,)),
        (exercise_8_7.BOOK, "acceptance", (0.75,) * 11 + (True,)),
        (exercise_8_7.BOOK, "lengths", ()),
        (exercise_8_7.BOOK, "lengths", [1, 2]),
        (exercise_8_7.BOOK, "lengths", (0, 1)),
        (exercise_8_7.BOOK, "lengths", (1, 13)),
        (exercise_8_7.BOOK, "verify_ms", 0),
        (exercise_8_7.BOOK, "verify_ms", math.inf),
        (exercise_8_7.BOOK, "verify_ms", "26.3"),
        (exercise_8_7.BOOK, "draft_ms", -1),
        (exercise_8_7.BOOK, "draft_ms", 10**400),
        (exercise_8_7.BOOK, "draft_ms", 10**6 + 1),
        (exercise_8_7.BOOK, "group", 0),
        (exercise_8_7.BOOK, "group", 12),
        (exercise_8_7.BOOK, "group", 4.0),
        (exercise_8_8.BOOK, "prefill_s", 0),
        (exercise_8_8.BOOK, "decode_s", -1),
        (exercise_8_8.BOOK, "decode_s", math.nan),
        (exercise_8_8.BOOK, "tools_s", "30"),
        (exercise_8_8.BOOK, "tools_s", 10**400),
        (exercise_8_8.BOOK, "speedup", 0),
        (exercise_8_8.BOOK, "speedup", 0.5),
        (exercise_8_8.BOOK, "speedup", 1001),
        (exercise_8_8.BOOK, "speedup", True),
        (exercise_8_8.BOOK, "preparation_s", -8),
        (exercise_8_8.BOOK, "preparation_s", None),
        (exercise_8_8.BOOK, "preparation_s", 10**6 + 1),
    ],
    ids=named,
)
def test_inputs_that_make_no_sense_are_refused(inputs: Any, name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{name} is "):
        replace(inputs, **{name: value})


@pytest.mark.parametrize(
    "inputs",
    [
        replace(exercise_8_1.BOOK, contexts=(1, 1), batches=(1,), pool_bytes=1),
        replace(exercise_8_2.BOOK, input_tokens=(1, 1, 1, 1)),
        replace(exercise_8_2.BOOK, input_tokens=(2**16, 2**16, 1, 1), output_tokens=(1000, 2, 1, 1)),
        replace(exercise_8_2.BOOK, arrivals_ns=(0, 0, 10**18, 10**18), chunk_contexts=(0, 0)),
        replace(exercise_8_2.BOOK, fixed_ns=1, per_new_token_ns=1, per_causal_pair_ns=1, limit_ms=10**6),
        replace(exercise_8_2.BOOK, fixed_ns=3600 * 10**9, limit_ms=1),
        replace(exercise_8_3.BOOK, lengths=(1,), block_sizes=(1,), batches=(1, 1, 1), block_tokens=1, pool_bytes=1),
        replace(exercise_8_3.BOOK, input_tokens=1, shared_prefix_tokens=0, output_tokens=1, kv_bytes_per_token=1),
        replace(exercise_8_3.BOOK, lengths=(2**40,), block_sizes=(2**40,), batches=(2**40,) * 3, block_tokens=2**40),
        replace(exercise_8_4.BOOK, a_tokens=1, b_tokens=1, b_count=1, kv_bytes_per_token=1, efficiency=1),
        replace(exercise_8_4.BOOK, a_probability=0, b_probability=1, rounds=2, block_sizes=(1,), gap_requests=1),
        replace(exercise_8_4.BOOK, link_bytes_s=2**60, other_link_bytes_s=2**60, b_count=2, block_sizes=(64, 64, 1)),
        replace(exercise_8_4.BOOK, gap_requests=5, gap_request_tokens=1, pool_tokens=(3136, 2**24), room_bytes=2**60),
        replace(exercise_8_6.BOOK, group_values=8, input_kv_bytes=16, request_kv_bytes=2**59, scale_bytes=0),
        replace(exercise_8_6.BOOK, bf16_kv=("xxxx",) * 8, fp8_kv_bf16_q=("xoxo",) * 8, fp8_default=("xoxo",) * 8),
        replace(exercise_8_6.BOOK, code_bits=(16, 1), first_s=(1.0,), retry_s=(None,), task_s=(1.0,)),
        replace(exercise_8_6.BOOK, first_s=(1,), retry_s=(1e9 - 2,), task_s=(1e9,)),
        replace(exercise_8_5.BOOK, layers=4, every=2, buffers=(1,), set_bytes=1, output_tokens=2, limit_s=1e9),
        replace(
            exercise_8_5.BOOK, layers=1024, every=1, buffers=(1023,), set_bytes=2**36, links_bytes_s=(10**6, 2**60)
        ),
        replace(exercise_8_5.BOOK, layers=37, every=18, buffers=(1,), output_tokens=2**20, limit_s=1e-3),
        replace(exercise_8_7.BOOK, acceptance=(0.01, 1), lengths=(2,), group=1, verify_ms=1e-3, draft_ms=10**6),
        replace(exercise_8_7.BOOK, acceptance=(0.01,) * 64, lengths=(64, 64), group=63, draft_ms=10**6),
        replace(exercise_8_7.BOOK, acceptance=(1,) * 64, lengths=(1,), group=1, verify_ms=10**6, draft_ms=1e-3),
        replace(exercise_8_8.BOOK, prefill_s=0.001, decode_s=0.001, tools_s=0.001, speedup=1, preparation_s=0),
        replace(exercise_8_8.BOOK, prefill_s=10**6, decode_s=0.001, tools_s=10**6, speedup=1000, preparation_s=10**6),
        replace(exercise_8_8.BOOK, prefill_s=0.001, decode_s=10**6, tools_s=0.001, speedup=1.5, preparation_s=0),
    ],
    ids=lambda inputs: type(inputs).__module__,
)
def test_each_part_has_a_key_for_inputs_at_the_edge(inputs: Any) -> None:
    exercise = next(module.EXERCISE for module in MODULES if isinstance(inputs, module.Inputs))
    for part in exercise.parts:
        if isinstance(part, NumberPart):
            assert part.judge_function(inputs, part.key).kind is Kind.RIGHT
            assert part.judge(inputs, [1.5] * len(flat(numbers(part, inputs)))).kind is not Kind.UNREADABLE
        else:
            assert part.judge(inputs, part.key(inputs)).kind is Kind.RIGHT
            assert all(mistake.formula(inputs) is not None for mistake in part.mistakes)


def test_each_solution_has_its_exercise() -> None:
    names = [pair.name.removeprefix("solutions/") for pair in pairs() if pair.name.startswith("solutions/")]
    assert [derive.exercise_of(name).number for name in names] == [exercise.number for exercise in EXERCISES]
