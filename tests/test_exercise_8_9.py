"""The keys of exercise 8-9 by plain arithmetic; what its draws hold, what the book's numbers hide, what is said."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lib.checks import InputError
from lib.exercise_8_9 import BOOK, EXERCISE, B, D, E, Inputs, notes
from lib.exercises import Checker, Kind
from lib.serving import LESS_MEMORY, LIMITS, SHORT_OUTPUTS, WORKLOAD, choose, judge
from lib.units import MIB
from tests.test_exercises import Asked, copied, numbers, solved, variants

DRAWN = variants(EXERCISE)
ASKED = Asked(EXERCISE)
part, keys, mistaken, choice = ASKED.part, ASKED.keys, ASKED.mistaken, ASKED.choice
NAMES = "BDE"


def memory(i: Inputs, outputs: int) -> dict[str, Fraction]:
    blocks = i.shared_prefix_tokens // i.block_tokens
    last = i.input_tokens + outputs - 1
    for _ in range(i.requests):
        blocks += math.ceil((last - i.shared_prefix_tokens) / i.block_tokens)
    kv = Fraction(blocks * i.block_tokens * i.kv_bytes_per_token, 2**20)
    return {"B": kv, "D": kv + i.draft_memory_mib, "E": kv}


def rounds(i: Inputs, outputs: int) -> dict[str, int]:
    found = {}
    for name, each in (("B", 1), ("D", i.draft_outputs), ("E", i.lookup_outputs)):
        written, count = Fraction(1), 0
        while written < outputs:
            written, count = written + Fraction(each), count + 1
        found[name] = count
    return found


def time(i: Inputs, outputs: int) -> dict[str, float]:
    each = rounds(i, outputs)
    return {
        "B": i.prefill_s + each["B"] * i.round_ms / 1e3,
        "D": i.prefill_s * i.draft_prefill_factor + each["D"] * i.round_ms / 1e3,
        "E": i.prefill_s + each["E"] * (i.round_ms + i.query_ms) / 1e3,
    }


def broken(i: Inputs, outputs: int, limit_mib: int) -> dict[str, str]:
    held, took = memory(i, outputs), time(i, outputs)
    late = {name: "deadline" for name in NAMES if took[name] > i.deadline_s}
    return late | {name: "memory" for name in NAMES if held[name] > limit_mib}


def best(i: Inputs, outputs: int, limit_mib: int) -> str:
    rejected, took = broken(i, outputs, limit_mib), time(i, outputs)
    return min((name for name in NAMES if name not in rejected), key=took.__getitem__, default="none")


def test_the_books_answers() -> None:
    assert keys(BOOK, "a") == [6048, 9236, 6048, 5508, 8696, 5508]
    assert keys(BOOK, "b") == [255, 85, 128, 15, 5, 8]
    assert keys(BOOK, "c") == pytest.approx([9.01425, 4.55651, 5.5536, 2.45025, 2.36851, 2.2596])
    assert keys(BOOK, "d") == pytest.approx([0, 0.284782, 0.3471, 0.153141, 0.148032, 0.141225], abs=1e-6)
    assert [choice(BOOK, name) for name in ("e", "f1", "g")] == ["D", "E", "E"]
    assert choice(BOOK, "f2") == {"B deadline", "D memory"}
    assert keys(BOOK, "h") == pytest.approx([38.75, 255 / 180])


@pytest.mark.parametrize("i", [BOOK, *DRAWN], ids=lambda i: f"{i.requests} {i.output_tokens} {i.lookup_outputs}")
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    both = (i.output_tokens, i.short_output_tokens)
    assert keys(i, "a") == [value for outputs in both for value in memory(i, outputs).values()]
    assert keys(i, "b") == [value for outputs in both for value in rounds(i, outputs).values()]
    assert keys(i, "c") == pytest.approx([value for outputs in both for value in time(i, outputs).values()])
    per_result = [
        0 if name in broken(i, outputs, i.memory_mib) else took / i.requests
        for outputs in both
        for name, took in time(i, outputs).items()
    ]
    assert keys(i, "d") == pytest.approx(per_result)
    assert choice(i, "e") == best(i, i.output_tokens, i.memory_mib)
    assert choice(i, "f1") == best(i, i.output_tokens, i.less_memory_mib)
    rejected = broken(i, i.output_tokens, i.less_memory_mib)
    assert choice(i, "f2") == {f"{name} {limit}" for name, limit in rejected.items()}
    assert choice(i, "g") == best(i, i.short_output_tokens, i.memory_mib)
    longest, fewest = keys(i, "h")
    assert longest * rounds(i, i.output_tokens)["E"] / 1e3 + i.prefill_s == pytest.approx(i.deadline_s)
    assert is_in_time(i, fewest) and (fewest == 1 or not is_in_time(i, fewest - 0.01))


def is_in_time(i: Inputs, outputs_per_round: float) -> bool:
    needed = math.ceil((i.output_tokens - 1) / outputs_per_round - 1e-9)
    return i.prefill_s + needed * (i.round_ms + i.query_ms) / 1e3 <= i.deadline_s


def test_the_chapters_configurations_agree() -> None:
    """The exercise starts from rounded numbers; the configurations themselves give the same choices."""
    asked = (B, D, E)
    assert choose(asked).name == choice(BOOK, "e")
    assert choose(asked, limits=LESS_MEMORY).name == choice(BOOK, "f1")
    assert choose(asked, SHORT_OUTPUTS).name == choice(BOOK, "g")
    for place, configuration in enumerate(asked):
        judged = judge(configuration)
        assert judged.needs.memory_bytes == keys(BOOK, "a")[place] * MIB
        assert judged.needs.rounds == keys(BOOK, "b")[place]
        assert judged.needs.total_s == pytest.approx(keys(BOOK, "c")[place], rel=1e-3)
    one = judge(E)
    assert one.longest_round_s and one.longest_round_s * 1e3 == pytest.approx(keys(BOOK, "h")[0], rel=1e-3)
    assert one.fewest_outputs_per_round == pytest.approx(keys(BOOK, "h")[1])


def test_hidden_in_the_books_numbers() -> None:
    """G / n rounds for E and the last output stored pass with the book's inputs; a query is little beside a round."""
    stored = mistaken("a", "last output is stored")
    assert part("a").judge_function(BOOK, stored).kind is Kind.RIGHT
    assert not Checker(EXERCISE, BOOK).earned("a", stored, draw="marks")
    first, *_ = numbers(part("b"), BOOK, mistaken("b", "for the first output"))
    assert first == (256, 86, 128)  # wrong for B and D, right for E
    for words in ("paid for each output", "queries are left out"):
        of_book, of_slow = (
            numbers(part("c"), i, mistaken("c", words))[1][2] for i in (BOOK, replace(BOOK, query_ms=4))
        )
        assert of_book == pytest.approx(keys(BOOK, "c")[5], rel=0.0005)
        assert of_slow != pytest.approx(keys(replace(BOOK, query_ms=4), "c")[5], rel=0.01)
        assert part("c").judge_function(BOOK, mistaken("c", words)).kind is Kind.MISTAKE


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("a", [6048, 9236, 9236, 5508, 8696, 8696], "memory of E at output_tokens 256: this comes out if the memory"),
        ("a", [6048, 6048, 6048, 5508, 5508, 5508], "memory of D at output_tokens 256: this comes out if D's draft n"),
        ("a", [19008, 22196, 19008, 18468, 21656, 18468], "memory of B at output_tokens 256: this comes out if each"),
        ("a", [5472, 8660, 5472, 5472, 8660, 5472], "memory of B at output_tokens 256: this comes out if the KV after"),
        ("a", [5184, 8372, 5184, 4644, 7832, 4644], "memory of B at output_tokens 256: this comes out if the prefix"),
        ("b", [256, 86, 128, 16, 6, 8], "rounds of B at output_tokens 256: this comes out if a round is counted for t"),
        ("b", [255, 85, 127, 15, 5, 7], "rounds of E at output_tokens 256: this comes out if the quotient is rounded"),
        ("b", [255, 255, 255, 15, 15, 15], "rounds of D at output_tokens 256: this comes out if every output is giv"),
        ("b", [255, 64, 85, 15, 4, 5], "rounds of D at output_tokens 256: this comes out if the outputs of a round a"),
        ("c", [9.014, 4.5565, 5.745, 2.4503, 2.3685, 2.4514], "time of E at output_tokens 256: this comes out if E is"),
        ("c", [9.014, 4.365, 5.554, 2.4503, 2.1768, 2.2596], "time of D at output_tokens 256: this comes out if D's p"),
        ("c", [6.974, 2.3248, 3.5136, 0.41025, 0.13675, 0.2196], "time of B at output_tokens 256: this comes out if t"),
        ("c", [9.014, 4.5565, 5.7456, 2.4503, 2.3685, 2.2716], "time of E at output_tokens 256: this comes out if a q"),
        ("d", [0.5634, 0.2848, 0.3471, 0.1531, 0.148, 0.1412], "GPU time per result of B at output_tokens 256: this c"),
        ("d", [0, 4.5565, 5.5536, 2.4503, 2.3685, 2.2596], "GPU time per result of D at output_tokens 256: this comes"),
        ("h", [54.69, 1.0], "longest round of E: this comes out if the prefill is forgotten"),
        ("h", [19.45, 1.4167], "longest round of E: this comes out if every output is given a round"),
        ("h", [38.65, 1.4167], "longest round of E: this comes out if the query is taken off the longest round"),
        ("h", [38.75, 1.4113], "fewest outputs of a round: this comes out if parts of a round are counted"),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert (verdict.kind, verdict.sentence[: len(said)]) == (Kind.MISTAKE, said)


def test_a_wrong_choice_gets_its_sentences() -> None:
    assert "the least memory is chosen" in EXERCISE.part("e").judge(BOOK, "E").sentence
    assert "what is late is chosen" in EXERCISE.part("e").judge(BOOK, "B").sentence
    assert "what holds for A to D is copied" in EXERCISE.part("f1").judge(BOOK, "none").sentence
    assert "whether or not it fits" in EXERCISE.part("f1").judge(BOOK, "D").sentence
    assert "the outputs are taken as they were" in EXERCISE.part("g").judge(BOOK, "D").sentence
    assert "the least memory is chosen" in EXERCISE.part("g").judge(BOOK, "B").sentence
    assert "late" not in EXERCISE.part("g").judge(BOOK, "B").sentence  # with short outputs nothing is
    assert "the memory is taken as it was" in EXERCISE.part("f2").judge(BOOK, {"B deadline"}).sentence
    assert EXERCISE.part("f2").judge(BOOK, {"E memory"}).kind is Kind.NOT_YET
    both = replace(BOOK, draft_outputs=1.25)  # D breaks both limits in less memory
    assert choice(both, "f2") == {"B deadline", "D memory"}
    assert "the deadline is asked first" in EXERCISE.part("f2").judge(both, {"B deadline", "D deadline"}).sentence
    tight = replace(BOOK, memory_mib=5_600)
    assert choice(tight, "g") == "E"
    assert "the memory of the longer outputs is kept" in EXERCISE.part("g").judge(tight, "none").sentence


def test_what_the_chapter_prints_is_right() -> None:
    assert part("c").judge(BOOK, [9.01, 4.56, 5.55, 2.45, 2.37, 2.2596]).kind is Kind.RIGHT
    assert part("d").judge(BOOK, [0, 0.285, 0.347, 0.153, 0.148, 0.141]).kind is Kind.RIGHT
    assert part("c").judge(BOOK, [9.01, 4.56, 5.55, 2.45, 2.37, 2.26]).kind is Kind.ROUNDED  # a query is 0.1 ms
    assert part("c").judge(BOOK, [9, 4.6, 5.6, 2.5, 2.4, 2.3]).kind is Kind.ROUNDED


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        assert 8 <= i.requests <= 32 and 128 <= i.output_tokens <= 401 and 8 <= i.short_output_tokens <= 32
        assert 1.25 <= i.lookup_outputs <= 4 and 0.1 <= i.query_ms <= 4 and 5 <= i.deadline_s <= 9
        held = memory(i, i.output_tokens)
        assert held["B"] <= i.less_memory_mib < held["D"]
        assert len({choice(i, name) for name in ("e", "f1", "g")}) > 1
        for outputs, limit in (
            (i.output_tokens, i.memory_mib), (i.output_tokens, i.less_memory_mib), (i.short_output_tokens, i.memory_mib)
        ):  # fmt: skip
            assert all(abs(float(mib) / limit - 1) >= 0.02 for mib in memory(i, outputs).values())
            took = time(i, outputs)
            assert all(abs(seconds / i.deadline_s - 1) >= 0.02 for seconds in took.values())
            kept = sorted(took[name] for name in NAMES if name not in broken(i, outputs, limit))
            assert len(kept) < 2 or kept[1] >= 1.02 * kept[0]


def test_all_classes_are_drawn() -> None:
    assert {choice(i, "e") for i in DRAWN} >= {"D", "none"}
    assert {choice(i, "f1") for i in DRAWN} >= {"E", "none"}
    assert {choice(i, "g") for i in DRAWN} >= {"D", "E"}
    whole = [i.lookup_outputs == int(i.lookup_outputs) for i in DRAWN]
    assert any(whole) and not all(whole)
    assert any((i.input_tokens + i.output_tokens - 1) % i.block_tokens == 0 for i in DRAWN)


def test_a_draw_that_hides_something_is_refused() -> None:
    suiting = replace(BOOK, less_memory_mib=7_000)
    assert EXERCISE.suits(suiting)
    assert not EXERCISE.suits(BOOK)  # B and E fit into the smaller memory by a hair
    assert not EXERCISE.suits(replace(suiting, lookup_outputs=4))  # E is best throughout
    assert not EXERCISE.suits(replace(suiting, deadline_s=5.6))  # E is in time by a hair
    assert not EXERCISE.suits(replace(suiting, lookup_outputs=2.75))  # as good as D
    assert not EXERCISE.suits(replace(suiting, deadline_s=1.0))  # none has time for a round


WRONG = {
    "requests": 0, "input_tokens": 0, "shared_prefix_tokens": 6145, "output_tokens": 1, "block_tokens": 0,
    "kv_bytes_per_token": 0, "prefill_s": -1, "round_ms": 0, "draft_memory_mib": -1, "draft_prefill_factor": 0.9,
    "draft_outputs": 0.5, "lookup_outputs": math.nan, "query_ms": -0.1, "memory_mib": 2.5, "deadline_s": 0,
    "less_memory_mib": True, "short_output_tokens": 257,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_inputs_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError) as refused:
        replace(BOOK, **{name: value})
    assert refused.value.parameter == name


def test_the_notes_say_what_was_left_out() -> None:
    slots, of_d, of_e, verdict = notes().splitlines()
    assert " 36 MiB more: 9,272 of 12,288." in slots  # a block for each of 16 requests
    assert "85.6 rounds on average" in of_d and "97.4" in of_d
    assert of_d.endswith(f"after {2.232261 + 97.4192 * 0.02735:.2f} s, where c has 4.56 s.")
    assert " 127.9 rounds" in of_e
    assert of_e.endswith(f"after {2.0405 + 140.438 * 0.02745:.2f} s, where c has 5.55 s.")
    assert verdict == "No verdict turns: both end within 7 s, and e, f1 and g choose the same."
    assert WORKLOAD.requests == 16 and LIMITS.deadline_s == 7


def test_none_stands_for_no_result() -> None:
    right = keys(BOOK, "d")
    assert right[0] == 0
    assert part("d").judge(BOOK, [None, *right[1:]]).kind is Kind.RIGHT
    assert part("d").judge(BOOK, [*right[:1], None, *right[2:]]) == part("d").judge(BOOK, [*right[:1], 0, *right[2:]])
    assert part("d").judge(BOOK, [*right[:1], None, *right[2:]]).kind is Kind.MISTAKE
    assert part("d").judge(BOOK, [None] * 6).kind is Kind.BLANK

    def with_none(**case: Any) -> list[float | None]:
        return [value or None for value in part("d").key(**case)]

    assert part("d").judge_function(BOOK, with_none).kind is Kind.RIGHT
    assert Checker(EXERCISE, BOOK).earned("d", with_none, draw="marks")
    assert part("b").judge(BOOK, [None, *keys(BOOK, "b")[1:]]).kind is Kind.BLANK


def test_the_solution_is_right_for_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    for i in (BOOK, DRAWN[1]):
        _, scope = solved(EXERCISE, i)
        said = [line for line in capsys.readouterr().out.splitlines() if ": right" in line or ": not" in line]
        assert said == [
            *[f"{name}{what}: right." for name in "abcd" for what in ("", ", function")],
            *[f"{name}: right." for name in ("e", "f1", "f2", "g")],
            "h: right.", "h, function: right.",
        ]  # fmt: skip
    assert [trial.window_s for trial in scope["trials"]] == sorted((t.window_s for t in scope["trials"]), reverse=True)
    goodput = [scope["goodput"](trial, 3) for trial in scope["trials"]]
    assert goodput == pytest.approx([trial.window.goodput(3) for trial in scope["trials"]])
    assert [round(each, 2) for each in goodput] == [0.31, 1.32]


def test_a_call_that_goes_wrong_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    Checker(EXERCISE, BOOK)("c", keys(BOOK, "c"), mistaken("c", "paid for each output"))
    *_, function, call = capsys.readouterr().out.splitlines()
    assert "a query is paid for each output" in function
    assert list(copied(call, "c")) == list(part("c").cases(BOOK)[0])
