"""The keys of exercise 8-7 by plain arithmetic; what its draws hold, what the book's numbers hide, what is said."""

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lib.exercise_8_7 import BOOK, EXERCISE, Inputs
from lib.exercises import Checker, Kind
from tests.test_exercises import Asked, copied, numbers, solved, variants

DRAWN = variants(EXERCISE)
ASKED = Asked(EXERCISE)
part, keys, mistaken = ASKED.part, ASKED.keys, ASKED.mistaken


def outputs(i: Inputs, m: int) -> float:
    return 1 + sum(math.prod(i.acceptance[:j]) for j in range(1, m + 1))


def serial_ms(i: Inputs, m: int) -> float:
    return (i.verify_ms + i.draft_ms * m) / outputs(i, m)


def grouped_ms(i: Inputs, m: int) -> float:
    return (i.verify_ms + i.draft_ms * i.group * math.ceil(m / i.group)) / outputs(i, m)


def is_by_position(i: Inputs) -> bool:
    return len(set(i.acceptance)) > 1


def test_the_books_answers() -> None:
    assert keys(BOOK, "a") == [1.75, 2.3125, 3.05078125, pytest.approx(3.69966125)]
    assert keys(BOOK, "b") == pytest.approx([17.0857143, 14.4864865, 13.3408451, 14.8932554])
    assert keys(BOOK, "c") == [4, 4]
    assert keys(BOOK, "d") == pytest.approx([13.3408451, 16.7574696])
    assert keys(BOOK, "e") == pytest.approx([14.4, 0.2373046875, 60.6814815, 13.3408451])
    assert EXERCISE.part("f").key(BOOK) == 4


@pytest.mark.parametrize("i", [BOOK, *DRAWN], ids=lambda i: f"{i.acceptance[0]} {i.verify_ms} {i.draft_ms} {i.group}")
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    g = i.group
    assert keys(i, "a") == pytest.approx([outputs(i, m) for m in i.lengths])
    assert keys(i, "b") == pytest.approx([serial_ms(i, m) for m in i.lengths])
    by_time = sorted(range(1, len(i.acceptance) + 1), key=lambda m: serial_ms(i, m))
    assert keys(i, "c") == [next(m for m in by_time if m in i.lengths), by_time[0]]
    assert keys(i, "d") == pytest.approx([grouped_ms(i, g), grouped_ms(i, g + 1)])
    dT, dN = i.draft_ms * g, math.prod(i.acceptance[: g + 1])
    assert keys(i, "e") == pytest.approx([dT, dN, dT / dN, grouped_ms(i, g)])
    assert EXERCISE.part("f").key(i) == (g if dT / dN >= grouped_ms(i, g) else g + 1)


def test_where_all_positions_are_alike_the_sum_has_a_closed_form() -> None:
    alike = [i for i in DRAWN if not is_by_position(i)]
    for i in (BOOK, *alike):
        a = i.acceptance[0]
        assert keys(i, "a") == pytest.approx([(1 - a ** (m + 1)) / (1 - a) for m in i.lengths])
    assert alike


def test_one_token_more_pays_where_the_time_of_an_output_falls() -> None:
    for i in (BOOK, *DRAWN):
        shorter, longer = keys(i, "d")
        assert EXERCISE.part("f").key(i) == (i.group + 1 if longer < shorter else i.group)


def test_outputs_and_time_of_rounds_that_are_drawn() -> None:
    """Long runs of rounds, token by token, come near the keys of a and b."""
    i, rounds, draw = DRAWN[1], 20_000, Random(87)
    assert is_by_position(i)
    for m, expected, ms in zip(i.lengths, keys(i, "a"), keys(i, "b"), strict=True):
        written = 0
        for _ in range(rounds):
            accepted = 0
            while accepted < m and draw.random() < i.acceptance[accepted]:
                accepted += 1
            written += accepted + 1
        assert written / rounds == pytest.approx(expected, rel=0.02)
        assert rounds * (i.verify_ms + i.draft_ms * m) / written == pytest.approx(ms, rel=0.02)


def test_hidden_in_the_books_numbers() -> None:
    """A draft of one token hides two mistakes, a full group the price of one, alike positions that they may differ."""
    one_token = replace(BOOK, lengths=(1,))
    for name, words in (("a", "counted by itself"), ("b", "counted by itself"), ("b", "given one pass")):
        assert part(name).judge_function(one_token, mistaken(name, words)).kind is Kind.RIGHT
        assert part(name).judge_function(BOOK, mistaken(name, words)).kind is Kind.MISTAKE
    full, one_more = numbers(part("d"), BOOK, mistaken("d", "the time of its tokens that are drafted"))
    assert full == pytest.approx(keys(BOOK, "d")[0])
    assert one_more == pytest.approx(13.4728839)
    for name in "abcde":
        of_the_first = mistaken(name, "the first position is taken for all")
        assert part(name).judge_function(BOOK, of_the_first).kind is Kind.RIGHT
        assert not Checker(EXERCISE, BOOK).earned(name, of_the_first, draw="marks")
    of_list = mistaken("c", "only the lengths of the list")
    assert part("c").judge_function(BOOK, of_list).kind is Kind.RIGHT
    assert not Checker(EXERCISE, BOOK).earned("c", of_list, draw="marks")


def test_a_mean_of_ratios_finds_another_length() -> None:
    assert numbers(part("c"), BOOK, mistaken("c", "ratios of single rounds")) == [(2, 2)]
    ratios = numbers(part("b"), BOOK, mistaken("b", "ratios of single rounds"))
    law = [1 - 0.75, 0.75 * (1 - 0.75), 0.75**2]
    assert ratios[1] == pytest.approx(sum(chance * 33.5 / n for n, chance in enumerate(law, start=1)))


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("a", [0.75, 1.3125, 2.051, 2.7], "outputs of a round at draft_tokens 1: this comes out if the extra token is"),
        ("a", [1.75, 2.5, 4, 7], "outputs of a round at draft_tokens 2: this comes out if each token is counted by"),
        ("a", [1, 1.75, 2.734, 3.6], "outputs of a round at draft_tokens 1: this comes out if the last token of the"),
        ("a", [2, 3, 5, 9], "outputs of a round at draft_tokens 1: this comes out if all is taken for accepted"),
        ("b", [39.87, 25.52, 19.85, 20.41], "time of an output at draft_tokens 1: this comes out if the extra token"),
        ("b", [17.09, 13.4, 10.17, 7.87], "time of an output at draft_tokens 2: this comes out if each token is count"),
        ("b", [18.69, 17.8, 19.55, 25.59], "time of an output at draft_tokens 1: this comes out if the ratios of sing"),
        ("b", [17.09, 12.93, 9.8, 8.08], "time of an output at draft_tokens 2: this comes out if the draft is given o"),
        ("b", [15.03, 11.37, 8.62, 7.11], "time of an output at draft_tokens 1: this comes out if the time to draft"),
        ("b", [29.9, 33.5, 40.7, 55.1], "time of an output at draft_tokens 1: this comes out if the time of a round"),
        ("c", [4, 5], "best of all: this comes out if the extra token is forgotten"),
        ("c", [2, 2], "best of the list: this comes out if the ratios of single rounds are averaged"),
        ("c", [1, 1], "best of the list: this comes out if the shortest round is looked for"),
        ("d", [13.34, 13.47], "time of an output at draft_tokens 5: this comes out if a group is given the time of it"),
        ("d", [13.34, 12.38], "time of an output at draft_tokens 5: this comes out if a group that is not full is lef"),
        ("d", [9.8, 10.19], "time of an output at draft_tokens 4: this comes out if a group is given the time of one "),
        ("e", [14.4, 0.3164, 45.51, 13.34], "outputs added: this comes out if a factor is missing"),
        ("e", [14.4, 0.75, 19.2, 13.34], "outputs added: this comes out if only the probability of the last position"),
        ("e", [14.4, 0.2373, 60.68, 16.76], "time per output before: this comes out if the average with the token"),
        ("e", [14.4, 0.2373, 60.68, 26.3], "time per output before: this comes out if the step without a draft is"),
        ("e", [3.6, 0.2373, 15.17, 13.34], "time added: this comes out if a group is given the time of its tokens"),
        ("e", [14.4, 0.2373, 60.68, 19.85], "time per output before: this comes out if the extra token is forgotten"),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.sentence.startswith(said)


def test_two_mistakes_that_make_the_longest_best_are_named_together() -> None:
    said = part("c").judge(BOOK, [8, 12]).sentence
    assert "each token is counted by itself" in said and "the most outputs of a round are looked for" in said


def test_a_wrong_choice_gets_its_sentences() -> None:
    stop = EXERCISE.part("f")
    assert stop.judge(BOOK, 5).sentence == (
        "this comes out if only outputs are compared: a longer draft never outputs less, but it takes longer."
    )
    pays = next(i for i in DRAWN if stop.key(i) == i.group + 1)
    assert stop.judge(pays, pays.group).sentence.startswith("this comes out if only the times of a round are compared")
    dear = replace(BOOK, draft_ms=2.0)  # five by the price of a token, four by that of a group
    assert stop.key(dear) == 4
    assert "a group is given the time of its tokens" in stop.judge(dear, 5).sentence
    assert "a group is given" not in stop.judge(BOOK, 5).sentence


def test_what_the_chapter_prints_is_right_or_needs_another_digit() -> None:
    assert part("a").judge(BOOK, [1.75, 2.31, 3.05, 3.7]).kind is Kind.RIGHT
    assert part("b").judge(BOOK, [17.1, 14.5, 13.3, 14.9]).kind is Kind.RIGHT
    assert part("e").judge(BOOK, [14.4, 0.237, 60.7, 13.3]).kind is Kind.RIGHT
    assert part("a").judge(BOOK, [1.75, 2.3, 3.1, 3.7]).kind is Kind.ROUNDED
    assert part("a").judge(BOOK, [1.8, 2.3, 3.1, 3.7]).kind is Kind.ROUNDED  # 1.75 lies halfway
    assert part("b").judge(BOOK, [17, 14, 13, 15]).kind is Kind.ROUNDED
    assert part("e").judge(BOOK, [14.4, 0.24, 60.7, 13.3]).kind is Kind.ROUNDED


def test_tokens_have_no_other_unit() -> None:
    """Whatever the factor: bits, MiB or thousands are nothing to mix up here."""
    for factor in (8, 1000, 1024, 2**20 / 10**6, 2**30 / 10**9):
        assert part("a").judge(BOOK, [value * factor for value in keys(BOOK, "a")]).kind is not Kind.UNIT
    seconds = [value / 1000 for value in keys(BOOK, "b")]
    assert part("b").judge(BOOK, seconds).kind is Kind.UNIT


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        assert len(i.acceptance) == 12
        assert all(0.5 <= a <= 0.9 for a in i.acceptance)
        assert 10 <= i.verify_ms <= 40 and 1 <= i.draft_ms <= 8 and 2 <= i.group <= 8
        assert i.lengths == (1, 2, 4, 8)
        times = dict(zip(i.lengths, keys(i, "b"), strict=True))
        best, following, *_ = sorted(times, key=times.__getitem__)
        assert best in {2, 4}
        assert times[following] >= 1.02 * times[best]
        shorter, longer = sorted(keys(i, "d"))
        assert longer >= 1.02 * shorter
        _, of_all = keys(i, "c")
        others = [serial_ms(i, m) for m in range(1, 13) if m != of_all]
        assert min(others) >= 1.002 * serial_ms(i, of_all)
        assert of_all < 12


def test_all_classes_are_drawn() -> None:
    by_position = [is_by_position(i) for i in DRAWN]
    assert len(DRAWN) / 4 < sum(by_position) < 3 * len(DRAWN) / 4
    pays = [EXERCISE.part("f").key(i) == i.group + 1 for i in DRAWN]
    assert len(DRAWN) / 6 < sum(pays) < len(DRAWN) / 2
    assert {keys(i, "c")[0] for i in DRAWN} == {2, 4}
    assert {i.group for i in DRAWN} == {2, 3, 4, 5, 6, 7, 8}
    inside = [keys(i, "c")[0] == keys(i, "c")[1] for i in DRAWN]
    assert any(inside) and not all(inside)


def with_two_together(acceptance: float, verify_ms: float, draft_ms: float) -> Inputs:
    return Inputs((acceptance,) * 12, (1, 2, 4, 8), verify_ms, draft_ms, group=2)


def test_a_draw_that_hides_something_is_refused() -> None:
    suiting = replace(BOOK, draft_ms=7.0)
    assert EXERCISE.suits(suiting) and EXERCISE.accepts(suiting)
    assert not EXERCISE.suits(BOOK)  # else its answer to c would be right
    assert not EXERCISE.suits(replace(suiting, verify_ms=40.0, draft_ms=1.0))  # eight is the best of the list
    assert not EXERCISE.suits(replace(suiting, verify_ms=10.0, draft_ms=8.0))  # one is
    three_is_best = with_two_together(0.5, 38.0, 1.6)
    assert keys(three_is_best, "c") == [4, 3]
    assert not EXERCISE.suits(three_is_best)  # two and three together take nearly the same
    assert EXERCISE.suits(replace(three_is_best, group=3))
    five_is_barely_best = with_two_together(0.65, 36.0, 2.0)
    assert keys(five_is_barely_best, "c") == [4, 5]
    assert not EXERCISE.suits(five_is_barely_best)
    assert EXERCISE.suits(with_two_together(0.65, 36.0, 1.6))


def test_the_solution_is_right_for_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    for i in (BOOK, DRAWN[1]):
        solved(EXERCISE, i)
        said = capsys.readouterr().out.splitlines()
        assert [line for line in said if line[0] in "abcdef" and ":" in line] == [
            *[f"{name}{what}: right." for name in "abcde" for what in ("", ", function")],
            "f: right.",
        ]


def test_a_call_that_goes_wrong_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    Checker(EXERCISE, BOOK)("e", keys(BOOK, "e"), mistaken("e", "the first position is taken for all"))
    *_, function, call = capsys.readouterr().out.splitlines()
    assert "the probability of the first position is taken for all" in function
    case = copied(call, "e")
    assert len(set(case["acceptance"])) > 1
    assert list(case) == ["acceptance", "verify_ms", "draft_ms", "group"]
