"""The keys of exercise 8-5 by plain arithmetic; what its draws hold, what the book's numbers hide, what is said."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lib.exercise_8_5 import BOOK, EXERCISE, Inputs
from lib.exercises import Checker, Kind
from tests.test_exercises import Asked, numbers, variants

DRAWN = variants(EXERCISE)
ASKED = Asked(EXERCISE)
part, keys, mistaken = ASKED.part, ASKED.keys, ASKED.mistaken


def test_the_books_answers() -> None:
    assert keys(BOOK, "a") == [2304, 2016]
    assert keys(BOOK, "b") == [2, 1]
    assert keys(BOOK, "c") == [1, 1]
    assert keys(BOOK, "d") == pytest.approx([42.467328, 6.03979776])
    assert keys(BOOK, "e") == pytest.approx([10.82916864, 1.5401484288])
    assert keys(BOOK, "f") == pytest.approx([693.06679296])


@pytest.mark.parametrize("i", [BOOK, *DRAWN], ids=lambda i: f"{i.layers} {i.every} {i.output_tokens}")
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    n, S, steps = math.floor(i.layers / i.every), i.set_bytes, i.output_tokens - 1
    assert keys(i, "a") == [(n - buffers) * S / 2**20 for buffers in i.buffers]
    assert keys(i, "b") == [math.floor((n - buffers) * S / i.input_state_bytes) for buffers in i.buffers]
    assert keys(i, "c") == [math.floor((n - buffers) * S / i.request_bytes) for buffers in i.buffers]
    assert keys(i, "d") == pytest.approx([1000 * n * S / link for link in i.links_bytes_s])
    assert keys(i, "e") == pytest.approx([steps * n * S / link for link in i.links_bytes_s])
    assert keys(i, "f") == pytest.approx([steps * n * S / i.limit_s / 10**9])


def test_hidden_in_the_books_numbers() -> None:
    """With one buffer the input states fit exactly twice: only the second buffer tells forgetting and rounding."""
    for words in ("forgotten", "to the nearest", "rounded up"):
        assert numbers(part("b"), BOOK, mistaken("b", words)) == [2, 2]
    one_buffer = replace(BOOK, buffers=(1,))
    for words in ("forgotten", "to the nearest", "rounded up"):
        assert part("b").judge_function(one_buffer, mistaken("b", words)).kind is Kind.RIGHT
        assert not Checker(EXERCISE, one_buffer).earned("b", mistaken("b", words), draw="marks")


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("a", [2592, 2592], "memory gained at buffers 1: this comes out if the buffers are forgotten"),
        ("a", [10_080, 9792], "memory gained at buffers 1: this comes out if the sets of all layers are counted"),
        ("c", [2, 2], "more complete requests at buffers 1: this comes out if the buffers are forgotten"),
        ("d", [40.5, 5.76], "copies of a step at link_bytes_s 64,000,000,000: this comes out if MiB are taken for MB"),
        ("d", [37.75, 5.37], "copies of a step at link_bytes_s 64,000,000,000: this comes out if the set in the buffe"),
        ("d", [84.93, 12.08], "copies of a step at link_bytes_s 64,000,000,000: this comes out if the weights go back"),
        ("d", [42.47, 3.02], "copies of a step at link_bytes_s 450,000,000,000: this comes out if both directions of "),
        ("d", [169.87, 24.16], "copies of a step at link_bytes_s 64,000,000,000: this comes out if the sets of all la"),
        (
            "e",
            [10.872, 1.5462],
            "copies of all steps at link_bytes_s 64,000,000,000: this comes out if a step is count",
        ),
        ("e", [0.04247, 0.00604], "copies of all steps at link_bytes_s 64,000,000,000: this comes out if only one ste"),
        ("f", 2.718, "lowest bandwidth: this comes out if only one step is counted: every step copies all sets anew."),
        ("f", 695.8, "lowest bandwidth: this comes out if a step is counted for each output"),
        ("f", 1386, "lowest bandwidth: this comes out if both directions are given"),
        ("f", 346.5, "lowest bandwidth: this comes out if half is given"),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.sentence.startswith(said)


def test_who_takes_the_inputs_of_b_for_complete_requests_is_asked_by_what_was_divided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check = Checker(EXERCISE, BOOK)
    hints = []
    for name, answer in (("c", keys(BOOK, "b")), ("b", keys(BOOK, "b")[::-1])):
        for _ in range(2):
            check(name, answer)
        hints.append(capsys.readouterr().out.splitlines()[-1])
    assert hints[0].startswith(
        "c, hint: ask whether the memory of a was divided by the size of a complete request, not"
    )
    assert hints[1].startswith("b, hint: divide the memory of a by the bytes of one")


def test_what_the_chapter_prints_is_right_or_needs_another_digit() -> None:
    assert part("d").judge(BOOK, [42.5, 6.04]).kind is Kind.RIGHT
    assert part("e").judge(BOOK, [10.83, 1.54]).kind is Kind.RIGHT
    assert part("f").judge(BOOK, 693).kind is Kind.RIGHT
    assert part("d").judge(BOOK, [42.5, 6.0]).kind is Kind.ROUNDED
    assert part("e").judge(BOOK, [10.8, 1.54]).kind is Kind.ROUNDED


def test_mib_for_mb_is_a_slip_with_units_where_bytes_are_asked_for() -> None:
    for name, wrong in (("a", [2304 * 1.048576, 2016 * 1.048576]), ("f", 660.96)):
        verdict = part(name).judge(BOOK, wrong)
        assert verdict.kind is Kind.UNIT
        assert verdict.sentence.endswith("MB and MiB were mixed up.")


def test_bytes_a_second_are_named_where_gb_are_asked_for() -> None:
    verdict = part("f").judge(BOOK, 693_066_792_960)
    assert verdict.kind is Kind.UNIT
    assert verdict.sentence.endswith("bytes and GB were mixed up.")


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        assert 24 <= i.layers <= 80 and 2 <= i.every <= 6 and i.layers % i.every == 0
        assert 63 <= i.output_tokens - 1 <= 511
        assert 0.25 <= i.limit_s <= 2
        assert set(i.links_bytes_s) <= {rate * 10**9 for rate in (32, 64, 128, 450)}
        assert i.buffers == (1, 2)
        assert i.input_state_bytes < i.request_bytes
        step_ms = 26.26 * i.layers / 36
        slow, fast = keys(i, "d")
        assert slow > step_ms > fast
        for gained in keys(i, "a"):
            assert gained == int(gained)
            assert gained * 2**20 % i.input_state_bytes


def test_all_classes_are_drawn() -> None:
    dear = [first > second for first, second in (keys(i, "b") for i in DRAWN)]
    assert len(DRAWN) / 3 < sum(dear) < 2 * len(DRAWN) / 3
    assert {i.every for i in DRAWN} == {2, 3, 4, 5, 6}
    assert {i.set_bytes // 2**20 for i in DRAWN} == {288, 336, 750}
    assert {link // 10**9 for i in DRAWN for link in i.links_bytes_s} == {32, 64, 128, 450}


def test_a_draw_that_hides_something_is_refused() -> None:
    assert not EXERCISE.suits(BOOK)  # its input states fit exactly
    suiting = replace(BOOK, input_state_bytes=700 * 2**20, request_bytes=780 * 2**20)
    assert EXERCISE.suits(suiting) and EXERCISE.accepts(suiting)
    both_slow, both_fast = (
        replace(suiting, links_bytes_s=(first * 10**9, second * 10**9)) for first, second in ((32, 64), (128, 450))
    )
    assert not EXERCISE.suits(both_slow)
    assert not EXERCISE.suits(both_fast)
