"""The keys of exercise 8-8 by plain arithmetic; what its draws hold, what the book's numbers hide, what is said."""

from dataclasses import replace
from typing import Any

import pytest

from lib.exercise_8_8 import BOOK, EXERCISE, HALVED, Inputs
from lib.exercises import Checker, Kind
from tests.test_exercises import Asked, copied, numbers, solved, variants

DRAWN = variants(EXERCISE)
ASKED = Asked(EXERCISE)
part, keys, mistaken = ASKED.part, ASKED.keys, ASKED.mistaken


def saved_s(i: Inputs) -> float:
    return i.decode_s - i.decode_s / i.speedup


def loses(i: Inputs) -> bool:
    return i.preparation_s > saved_s(i)


def test_the_books_answers() -> None:
    assert HALVED == 2
    assert keys(BOOK, "a") == [90, 75, 85]
    assert keys(BOOK, "b") == [70.5]
    assert keys(BOOK, "c") == pytest.approx([1.41843972])
    assert keys(BOOK, "d") == [37.5]


@pytest.mark.parametrize("i", [BOOK, *DRAWN], ids=lambda i: f"{i.prefill_s} {i.decode_s} {i.tools_s} {i.speedup}")
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    p, d, o = i.prefill_s, i.decode_s, i.tools_s
    assert keys(i, "a") == pytest.approx([p / 2 + d + o, p + d / 2 + o, p + d + o / 2])
    (new,) = keys(i, "b")
    assert new == pytest.approx(p + d / i.speedup + o + i.preparation_s)
    assert keys(i, "c") == pytest.approx([(p + d + o) / new])
    assert keys(i, "d") == pytest.approx([p + d + o - (new - i.preparation_s)])


@pytest.mark.parametrize("i", [BOOK, *DRAWN[:9]], ids=lambda i: f"{i.decode_s} {i.speedup}")
def test_with_the_preparation_of_d_the_task_takes_as_long_as_before(i: Inputs) -> None:
    at_break_even = replace(i, preparation_s=keys(i, "d")[0])
    assert keys(at_break_even, "b") == pytest.approx([i.prefill_s + i.decode_s + i.tools_s])
    assert keys(at_break_even, "c") == pytest.approx([1])
    assert (keys(i, "c")[0] < 1) == loses(i)


def test_at_twice_as_fast_what_remains_is_what_is_saved() -> None:
    """So no class has a factor of two: it would hide this mistake, in b and c as well."""
    twice = replace(BOOK, speedup=2)
    for name, words in (("b", "counted as saved"), ("c", "counted as saved"), ("d", "still takes is given")):
        assert part(name).judge_function(twice, mistaken(name, words)).kind is Kind.RIGHT
        assert part(name).judge_function(BOOK, mistaken(name, words)).kind is Kind.MISTAKE
    assert not EXERCISE.accepts(twice)


def test_without_preparation_its_mistakes_hide() -> None:
    none = replace(BOOK, preparation_s=0)
    for name in "bc":
        for words in ("the preparation is left out", "the preparation gets faster"):
            assert part(name).judge_function(none, mistaken(name, words)).kind is Kind.RIGHT
    assert not EXERCISE.accepts(none)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("a", [80, 50, 70], "task with prefill halved: this comes out if the whole part is taken off"),
        ("a", [90, 65, 50], "task with decode halved: this comes out if one halving follows another"),
        ("a", [10, 25, 15], "task with prefill halved: this comes out if only the halved part is given"),
        ("b", 62.5, "new time of the task: this comes out if the preparation is left out"),
        ("b", 64.5, "new time of the task: this comes out if the preparation gets faster, too"),
        ("b", 95.5, "new time of the task: this comes out if what decode still takes is counted as saved"),
        ("b", 20.5, "new time of the task: this comes out if only decode and its preparation are given"),
        ("b", 54.5, "new time of the task: this comes out if the preparation is taken off"),
        ("c", 1.6, "net speed-up: this comes out if the preparation is left out"),
        ("c", 1.55, "net speed-up: this comes out if the preparation gets faster, too"),
        ("c", 1.047, "net speed-up: this comes out if what decode still takes is counted as saved"),
        ("c", 2.44, "net speed-up: this comes out if only decode is compared"),
        ("c", 4, "net speed-up: this comes out if the speed-up of decode alone is given"),
        ("c", 0.705, "net speed-up: this comes out if the new time is divided by the old"),
        ("c", 1.532, "net speed-up: this comes out if the preparation is counted in the old time, too"),
        ("d", 12.5, "preparation at which nothing is gained: this comes out if what decode still takes is given"),
        ("d", 29.5, "preparation at which nothing is gained: this comes out if the preparation of b is taken off"),
        ("d", 50, "preparation at which nothing is gained: this comes out if all of decode is given"),
        ("d", 75, "preparation at which nothing is gained: this comes out if the whole task is taken for faster"),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.sentence.startswith(said)


def test_few_digits_are_enough_and_too_few_are_told() -> None:
    assert part("c").judge(BOOK, 1.42).kind is Kind.RIGHT
    for name, answer in (("b", 70), ("b", 71), ("c", 1.4), ("d", 38), ("d", 37)):
        assert part(name).judge(BOOK, answer).kind is Kind.ROUNDED
    assert part("a").judge(BOOK, [90.5, 75, 85]).kind is Kind.NOT_YET


def test_another_unit_is_named() -> None:
    per_cent = part("c").judge(BOOK, 142)
    assert per_cent.kind is Kind.UNIT
    assert per_cent.sentence == (
        "net speed-up: right but for the unit, a ratio is asked for: ratios and per cent were mixed up."
    )
    assert part("a").judge(BOOK, [90_000, 75_000, 85_000]).kind is Kind.UNIT
    assert part("d").judge(BOOK, 37_500).kind is Kind.UNIT


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        assert len({i.prefill_s, i.decode_s, i.tools_s}) == 3
        assert all(5 <= one <= 70 for one in (i.prefill_s, i.decode_s, i.tools_s))
        assert 2 < i.speedup <= 10
        assert 0 < i.preparation_s <= 1.5 * saved_s(i) + 0.05
        assert abs(keys(i, "c")[0] - 1) >= 0.02
        for name in "abcd":
            assert part(name).judge(i, numbers(part(name), BOOK)).kind is not Kind.RIGHT


def test_about_a_third_of_the_draws_lose_time() -> None:
    many = [EXERCISE.variant(f"loses {seed}") for seed in range(200)]
    assert 0.25 < sum(map(loses, many)) / len(many) < 0.45


def test_a_draw_that_hides_something_is_refused() -> None:
    suiting = Inputs(prefill_s=24, decode_s=59, tools_s=48, speedup=9.5, preparation_s=33.3)
    assert EXERCISE.suits(suiting) and EXERCISE.accepts(suiting)
    assert not EXERCISE.suits(BOOK)  # else its answers would be right
    assert not EXERCISE.suits(replace(suiting, preparation_s=53.0))  # nothing is gained and nothing lost
    assert not EXERCISE.accepts(replace(suiting, preparation_s=0.1))  # left out, it is hardly missed
    assert not EXERCISE.suits(replace(suiting, decode_s=45, speedup=6.0))  # the book's answer to d
    assert not EXERCISE.suits(replace(suiting, speedup=4.0))  # a function that does not ask for it would be right


def test_the_solution_is_right_for_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    losing = next(i for i in DRAWN if loses(i))
    for i in (BOOK, DRAWN[0], losing):
        solved(EXERCISE, i)
        said = capsys.readouterr().out.splitlines()
        assert [line for line in said if line[0] in "abcd" and ":" in line] == [
            f"{name}{what}: right." for name in "abcd" for what in ("", ", function")
        ]


def test_a_call_that_goes_wrong_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    Checker(EXERCISE, BOOK)("d", keys(BOOK, "d"), lambda decode_s, **_: decode_s * 0.75)
    *_, function, call = capsys.readouterr().out.splitlines()
    assert "right for the inputs above only" in function
    assert list(copied(call, "d")) == ["prefill_s", "decode_s", "tools_s", "speedup", "preparation_s"]
