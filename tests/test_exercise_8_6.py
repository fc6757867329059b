"""The keys of exercise 8-6 by plain arithmetic, what the book's numbers hide, what its draws hold and words say."""

from dataclasses import replace
from typing import Any

import pytest

from lib.exercise_8_6 import BOOK, BY_ANSWER, BY_TASK, EXERCISE, MOVED, ONE_WAY, SAME, Inputs
from lib.exercises import Checker, Kind
from lib.quality import TASKS, Config, Weights, recorded_answers
from lib.retries import Documents, recorded_runs
from tests.test_exercises import Asked, numbers, variants
from tools import derive

DRAWN = variants(EXERCISE)
ASKED = Asked(EXERCISE)
part, keys, choice = ASKED.part, ASKED.keys, ASKED.choice
BETTER, WORSE = "n512-r0 better", "n512-r1 worse"


def test_the_books_answers() -> None:
    assert (BOOK.input_kv_bytes, BOOK.request_kv_bytes) == (1152 * 2**20, 1188 * 2**20)
    assert keys(BOOK, "a") == [612, 324]
    assert keys(BOOK, "b") == [631.125, 334.125]
    assert keys(BOOK, "c") == [8.5, 4.5]
    assert (choice(BOOK, "d1"), choice(BOOK, "d2")) == ({BETTER, WORSE}, {"n512-r0 worse"})
    assert keys(BOOK, "e") == [8, 28, 28]
    assert keys(BOOK, "f") == pytest.approx([9.988724, 1.2485905])
    assert keys(BOOK, "g") == pytest.approx([8.006785, 1.981939, 0.198418], abs=1e-6)
    assert (choice(BOOK, "h1"), choice(BOOK, "h2")) == (MOVED, BY_TASK)


@pytest.mark.parametrize("i", [BOOK, *DRAWN[:20]], ids=lambda i: f"{i.group_values} {i.code_bits} {i.scale_bytes}")
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    g, z = i.group_values, i.scale_bytes
    for name, q in (("a", i.input_kv_bytes), ("b", i.request_kv_bytes)):
        assert keys(i, name) == [q / 2**20 * (g * w / 8 + z) / (2 * g) for w in i.code_bits]
    assert keys(i, "c") == [w + 8 * z / g for w in i.code_bits]
    for name, before, after in (("d1", i.bf16_kv, i.fp8_kv_bf16_q), ("d2", i.fp8_kv_bf16_q, i.fp8_default)):
        right = [(task, old.count("o"), new.count("o")) for task, old, new in zip(TASKS, before, after, strict=True)]
        wanted = {f"{task} {'better' if new > old else 'worse'}" for task, old, new in right if new != old}
        assert choice(i, name) == wanted
    letters = [
        (old, new) for rows in zip(i.bf16_kv, i.fp8_kv_bf16_q, strict=True) for old, new in zip(*rows, strict=True)
    ]
    totals = [sum(pair[side] == "o" for pair in letters) for side in (0, 1)]
    assert keys(i, "e") == [sum(old != new for old, new in letters), *totals]
    last = [first if retry is None else retry for first, retry in zip(i.first_s, i.retry_s, strict=True)]
    every = sum(i.first_s) + sum(retry for retry in i.retry_s if retry)
    assert keys(i, "f") == pytest.approx([every, every / len(last)])
    assert keys(i, "g") == pytest.approx([sum(last), every - sum(last), 1 - sum(last) / every])


def test_the_inputs_of_the_book_are_the_recorded_ones() -> None:
    for config, rows in (
        (Config.BF16_KV, BOOK.bf16_kv),
        (Config.FP8_DEFAULT, BOOK.fp8_default),
        (Config.FP8_KV_BF16_Q, BOOK.fp8_kv_bf16_q),
    ):
        assert [row.count("o") for row in rows] == [sum(row) for row in recorded_answers(Weights.BF16, config).right]
    runs = recorded_runs(Documents.KNOWN)
    assert BOOK.task_s == tuple(run.task_s for run in runs)
    assert sum(retry is not None for retry in BOOK.retry_s) == sum(len(run.answers) == 2 for run in runs) == 2
    assert all(run.solved for run in runs)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("a", [576, 288], "KV in the format at code_bits 8: this comes out if the scale is forgotten"),
        ("a", [1728, 1440], "KV in the format at code_bits 8: this comes out if each value is given a scale"),
        ("a", [1224, 648], "KV in the format at code_bits 8: this comes out if the format is compared with 8 bits"),
        ("b", [594, 297], "KV in the format at code_bits 8: this comes out if the scale is forgotten"),
        ("b", [598.640625, 301.640625], "KV in the format at code_bits 8: this comes out if the bytes of the scale"),
        ("c", [8, 4], "bits of a value at code_bits 8: this comes out if the scale is forgotten"),
        ("c", [24, 20], "bits of a value at code_bits 8: this comes out if each value is given a scale"),
        ("e", [0, 28, 28], "answers changed: this comes out if the totals are subtracted"),
        ("e", [2, 28, 28], "answers changed: this comes out if tasks are counted"),
        ("e", [4, 28, 28], "answers changed: this comes out if only answers that got better are counted"),
        ("e", [8, 4, 4], "right before: this comes out if wrong answers are counted"),
        ("f", [8.007, 1.0008], "time of all answers: this comes out if only the last answer of each task is counted"),
        ("f", [9.989, 2.009], "time of a solved task: this comes out if only the tasks with a retry are averaged"),
        ("f", [9.989, 0.9989], "time of a solved task: this comes out if it is divided by the answers"),
        ("g", [7.952, 2.0368, 0.2039], "time of the last answers: this comes out if the retries are left out"),
        ("g", [8.007, 1.982, 0.2475], "its share of all answers: this comes out if it is divided by the time of the"),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.sentence.startswith(said)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("d1", set(), "only totals are compared"),
        ("d1", {BETTER}, "only the tasks are listed that were wrong before"),
        ("d1", {BETTER}, "the runs with FP8 weights are read"),
        ("d1", {WORSE}, "only the tasks are listed that are wrong after"),
        ("d1", {"n512-r0 worse", "n512-r1 better"}, "the directions are turned round"),
        ("d2", {BETTER, WORSE}, "the grid with BF16 KV is compared"),
        ("h1", SAME, "totals are taken for answers"),
        ("h1", ONE_WAY, "one direction is overlooked"),
        ("h2", BY_ANSWER, "each answer is taken for a trial"),
    ],
)
def test_a_choice_that_is_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = EXERCISE.part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert said in verdict.sentence


def test_whole_tasks_are_accepted_with_a_word() -> None:
    verdict = part("f").judge(BOOK, [10.0051, 1.25064])
    assert verdict.kind is Kind.RIGHT
    assert verdict.sentence.startswith("right for whole tasks, with checks and switches")


def test_bytes_of_a_value_are_right_but_for_the_unit() -> None:
    verdict = part("c").judge(BOOK, [8.5 / 8, 4.5 / 8])
    assert (verdict.kind, "bits and bytes" in verdict.sentence) == (Kind.UNIT, True)


def test_four_digits_of_a_time_are_enough_and_two_are_not() -> None:
    assert part("f").judge(BOOK, [9.989, 1.249]).kind is Kind.RIGHT
    assert part("g").judge(BOOK, [8.007, 1.982, 0.198]).kind is Kind.RIGHT
    assert part("f").judge(BOOK, [10.0, 1.2]).kind is Kind.ROUNDED


def test_hidden_in_the_books_numbers() -> None:
    """With no answer wrong in both grids, adding up the wrong ones gives those that changed."""
    (formula,) = [mistake.formula for mistake in part("e").mistakes if "added up" in mistake.says]
    assert numbers(part("e"), BOOK, formula) == numbers(part("e"), BOOK)
    check = Checker(EXERCISE, BOOK)
    assert not check.earned("e", formula) and not check.earned("e", formula, draw="marks")


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        assert i.group_values in {16, 32, 64, 128} and 1 <= i.scale_bytes <= 4
        assert 3 <= i.code_bits[1] < i.code_bits[0] <= 8
        assert i.request_kv_bytes > i.input_kv_bytes
        assert {one.split()[1] for one in choice(i, "d1")} == {"better", "worse"}
        assert choice(i, "d2")
        assert keys(i, "e") != keys(BOOK, "e")
        assert 1 <= sum(retry is not None for retry in i.retry_s) <= 4
        assert 6 <= len(i.first_s) <= 9


def test_all_classes_are_drawn() -> None:
    equal = [keys(i, "e")[1] == keys(i, "e")[2] for i in DRAWN]
    assert len(DRAWN) / 2 < sum(equal) < len(DRAWN)
    assert {sum(retry is not None for retry in i.retry_s) for i in DRAWN} == {1, 2, 3, 4}
    times = {kind: {run.answers[0].generation_s for run in recorded_runs(kind)} for kind in Documents}
    apart = [{kind for kind in Documents if set(i.first_s) <= times[kind]} for i in DRAWN]
    assert all(apart) and {kind for kinds in apart for kind in kinds} == set(Documents)


def test_a_draw_in_which_a_mistake_looks_rounded_is_refused() -> None:
    """One byte for 128 values adds so little to 8 bits that forgetting it looks like rounding."""
    assert EXERCISE.suits(BOOK)
    assert not EXERCISE.suits(replace(BOOK, group_values=128, scale_bytes=1))
    assert not EXERCISE.accepts(replace(BOOK, fp8_kv_bf16_q=BOOK.bf16_kv))


def test_words_and_nothing_are_written_as_code() -> None:
    assert derive.written(("ox", None, (1.5, 1000))) == '("ox", None, (1.5, 1_000))'
