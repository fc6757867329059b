"""The keys of exercise 8-4 by plain arithmetic, by the record and by a replay; what its draws hold and words say."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lib.agent_replay import Setup, found_if_all_lives, replay
from lib.exercise_8_4 import (
    ALL,
    BOOK,
    CHANGES,
    EXERCISE,
    MODELS,
    NO_ROOM,
    NONE,
    NOTHING_EQUAL,
    PART,
    RUNS,
    STAYS,
    TOO_OLD,
    A,
    B,
    Inputs,
)
from lib.exercises import Checker, Kind
from lib.model import kv_bytes_per_token, matrix_flops
from lib.prefix_value import EFFICIENCY, prefix_of
from lib.records import record
from tests.test_exercises import Asked, numbers, solved, variants

DRAWN = variants(EXERCISE)
ASKED = Asked(EXERCISE)
part, keys, choice, mistaken = ASKED.part, ASKED.keys, ASKED.choice, ASKED.mistaken
SHARE_OF_EQUAL, SHARE_OF_HITS = 16376 / 19556, 16304 / 19556


def test_the_books_answers() -> None:
    assert keys(BOOK, "a") == pytest.approx([308.895, 95.048], abs=0.001)
    assert keys(BOOK, "b") == pytest.approx([14.155776, 4.718592])
    assert keys(BOOK, "c") == pytest.approx([133.214, 40.446], abs=0.001)
    assert (choice(BOOK, "d1"), keys(BOOK, "d2")) == (A, pytest.approx([11.876], abs=0.001))
    assert keys(BOOK, "e") == pytest.approx([0.4597], abs=0.0001)
    other = [28.311552, 9.437184, 111.980, 33.368, 11.876, 0.4577]
    assert (keys(BOOK, "f1"), choice(BOOK, "f2")) == (pytest.approx(other, abs=0.001), STAYS)
    assert keys(BOOK, "g") == [SHARE_OF_EQUAL]
    assert keys(BOOK, "h1") == [SHARE_OF_HITS] * 3 + [0, 0]
    assert keys(BOOK, "h2") == [16304, 3120, 16064, 3072]
    assert [choice(BOOK, name) for name in ("i1", "i2", "i3")] == [ALL, NONE, NO_ROOM]


def test_the_efficiency_of_the_text_is_right_as_well() -> None:
    assert BOOK.efficiency == 0.62 and EFFICIENCY == 0.622
    exact = replace(BOOK, efficiency=EFFICIENCY)
    for name in ("a", "b", "c", "d2", "e", "f1"):
        assert part(name).judge(BOOK, keys(exact, name)).kind is Kind.RIGHT
    for name in ("d1", "f2"):
        assert choice(exact, name) == choice(BOOK, name)
    a, b = prefix_of(exact.a_tokens), prefix_of(exact.b_tokens)
    assert keys(exact, "a") == pytest.approx([1000 * a.recompute_s, 1000 * b.recompute_s])
    assert keys(exact, "c") == pytest.approx([1000 * a.value_s(0.5), 1000 * b.value_s(0.5)])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_inputs_of_a_model_give_its_matrix_flops(model: Any) -> None:
    head_weights = (model.vocabulary or 0) * model.hidden
    drawn = next(i for i in DRAWN if i.head_weights == head_weights)
    assert drawn.kv_bytes_per_token == kv_bytes_per_token(model)
    for tokens in (1, 512, 6144):
        rate = drawn.peak_flop_s * drawn.efficiency
        assert part("a").key(drawn, tokens) == pytest.approx(1000 * matrix_flops(model, tokens, 0) / rate)


@pytest.mark.parametrize("i", [BOOK, *DRAWN[:20]], ids=lambda i: f"{i.a_tokens} {i.a_probability}")
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    lengths, chances, m = (i.a_tokens, i.b_tokens), (i.a_probability, i.b_probability), i.b_count
    flops = [2 * (L * i.layer_weights + i.head_weights) + i.flop_per_pair * L * (L + 1) // 2 for L in lengths]
    recompute = [1000 * flop / i.efficiency / i.peak_flop_s for flop in flops]
    assert keys(i, "a") == pytest.approx(recompute)
    orders = []
    for link in (i.link_bytes_s, i.other_link_bytes_s):
        fetch = [1000 * L * i.kv_bytes_per_token / link for L in lengths]
        saved = [p * (r - f) - f for p, r, f in zip(chances, recompute, fetch, strict=True)]
        turns = (m * saved[1] + fetch[0]) / (recompute[0] - fetch[0])
        lead = saved[0] - m * saved[1]
        orders.append(A if lead > 0 else B)
        assert (lead > 0) == (chances[0] > turns)
        if link == i.link_bytes_s:
            for name, wanted in (("b", fetch), ("c", saved), ("d2", [abs(lead)]), ("e", [turns])):
                assert keys(i, name) == pytest.approx(wanted)
        else:
            assert keys(i, "f1") == pytest.approx([*fetch, *saved, abs(lead), turns])
    assert (choice(i, "d1"), choice(i, "f2")) == (orders[0], STAYS if len(set(orders)) == 1 else CHANGES)


@pytest.mark.parametrize("count", range(2, 13))
def test_the_keys_of_the_recorded_task_by_the_record(count: int) -> None:
    i = replace(BOOK, rounds=count)
    rows = record("agent_rounds").rows[:count]
    same, every = ([row[name] for row in rows] for name in ("same_as_previous_round_prefix_tokens", "input_tokens"))
    assert keys(i, "g") == [sum(same) / sum(every)]
    replayed = record("cache_replay").rows
    hits = [sum(row["hit_tokens"] for row in replayed if row["run"] == run and row["round"] <= count) for run in RUNS]
    assert keys(i, "h1") == [hit / sum(every) for hit in hits]
    assert keys(i, "h2")[0] == hits[0] == hits[1] == hits[2]
    assert keys(i, "h2")[2] == sum(math.floor(min(s, n - 1) / 64) * 64 for s, n in zip(same, every, strict=True))
    assert keys(i, "h2")[1] == math.floor((every[-1] - 1) / 16) * 16


def test_the_recorded_runs_are_named_in_their_order() -> None:
    pools = {row["run"]: row for row in record("cache_replay_summary").rows}
    assert tuple(pools) == RUNS
    with_others = [run for run in RUNS if pools[run]["interfering_requests_per_gap"]]
    assert BOOK.pool_tokens == tuple(pools[run]["pool_capacity_tokens"] for run in with_others)
    assert [pools[run]["interfering_requests_per_gap"] for run in with_others] == [BOOK.gap_requests] * 2
    assert [pools[run]["interfering_request_tokens"] for run in with_others] == [BOOK.gap_request_tokens] * 2


@pytest.mark.parametrize("i", [BOOK, *DRAWN[:20]], ids=lambda i: f"{i.gap_requests} {i.gap_request_tokens}")
def test_what_survives_by_blocks_and_by_a_replay(i: Inputs) -> None:
    size, most = i.block_sizes[0], sum(found_if_all_lives())
    between = i.gap_requests * math.ceil(i.gap_request_tokens / size)
    chain = math.ceil(2918 / size)
    for name, tokens in zip(("i1", "i2"), i.pool_tokens, strict=True):
        blocks = tokens // size
        found = sum(replay(Setup(blocks, size, i.gap_requests, i.gap_request_tokens)))
        by_blocks = NONE if between >= blocks else ALL if between + chain <= blocks else PART
        by_replay = NONE if not found else ALL if found == most else PART
        assert choice(i, name) == by_blocks == by_replay


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("a", [344.5, 99.0], "time to recompute at tokens 6,144: this comes out if each token looks at the whole pre"),
        ("a", [273.2, 91.1], "time to recompute at tokens 6,144: this comes out if attention is left out"),
        ("a", [333.4, 103.2], "time to recompute at tokens 6,144: this comes out if the output head is computed for"),
        ("a", [191.5, 58.9], "time to recompute at tokens 6,144: this comes out if the card is taken at its peak"),
        ("a", [172.3, 49.5], "time to recompute at tokens 6,144: this comes out if a weight is counted as one FLOP"),
        ("a", [269.6, 94.8], "time to recompute at tokens 6,144: this comes out if the fit of section 8.2.2 is tak"),
        ("b", [7.08, 2.36], "time to fetch at tokens 6,144: this comes out if the bandwidth is doubled"),
        ("b", [13.5, 4.5], "time to fetch at tokens 6,144: this comes out if MiB are taken for MB"),
        ("b", [13.18, 4.39], "time to fetch at tokens 6,144: this comes out if GiB are taken for GB"),
        ("c", [147.4, 45.2], "net saving at tokens 6,144: this comes out if the write-out is forgotten"),
        ("c", [140.3, 42.8], "net saving at tokens 6,144: this comes out if the write-out is paid only at a hit"),
        ("c", [126.1, 38.1], "net saving at tokens 6,144: this comes out if the fetch is always paid"),
        ("d2", 92.8, "net saving, the difference: this comes out if A is compared with one B"),
        ("e", 0.185, "probability of A: this comes out if A is compared with one B"),
        ("e", 0.048, "probability of A: this comes out if A is compared with keeping nothing"),
        ("e", 0.455, "probability of A: this comes out if the probability is scaled in proportion"),
        ("g", 0.725, "share of equal tokens: this comes out if the mean of the rounds' shares is taken"),
        ("g", 0.8337, "share of equal tokens: this comes out if hits are counted"),
        ("h1", [0.718] * 3 + [0, 0], "share of hits at run pool6gib: this comes out if the mean of the rounds' sha"),
        ("h1", [0.9956] * 3 + [0, 0], "share of hits at run pool6gib: this comes out if hits are divided by the eq"),
        ("h2", [16368, 3120, 16320, 3072], "hits of the rounds at block_tokens 16: this comes out if the sum is ro"),
        ("h2", [16304, 3136, 16064, 3136], "hits of the last input, sent again at block_tokens 16: this comes out "),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: Any, said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.sentence.startswith(said)


def test_a_share_in_per_cent_is_right_but_for_the_unit() -> None:
    said = "right but for the unit, a share of 1 is asked for: shares and per cent were mixed up."
    for name, answer in (("e", 46.0), ("g", 83.7), ("h1", [83.37] * 3 + [0, 0])):
        verdict = part(name).judge(BOOK, answer)
        assert verdict.kind is Kind.UNIT
        assert verdict.sentence.endswith(said)


def test_three_digits_of_a_share_are_enough() -> None:
    for name, answer in (("e", 0.46), ("g", 0.837), ("h1", [0.834] * 3 + [0, 0])):
        assert part(name).judge(BOOK, answer).kind is Kind.RIGHT


def test_hidden_in_the_books_numbers() -> None:
    """What is paid for each byte falls out of the difference while both are as likely."""
    for words in ("paid only at a hit", "the fetch is always paid"):
        formula = mistaken("d2", words)
        assert numbers(part("d2"), BOOK, formula) == pytest.approx(keys(BOOK, "d2"))
        check = Checker(EXERCISE, BOOK)
        assert not check.earned("d2", formula) and not check.earned("d2", formula, draw="marks")


def test_reasons_that_the_runs_refute_get_their_sentence() -> None:
    reason = EXERCISE.part("i3")
    assert "compare the runs that waited" in reason.judge(BOOK, TOO_OLD).sentence
    assert "the same in all runs" in reason.judge(BOOK, NOTHING_EQUAL).sentence


def test_others_counted_too_few_or_too_many_get_their_sentence() -> None:
    first, second = (EXERCISE.part(name) for name in ("i1", "i2"))
    assert "the others of all gaps are added up" in first.judge(BOOK, NONE).sentence
    too_few = second.judge(BOOK, ALL).sentence
    assert "only the task's own blocks" in too_few and "one of the others is counted" in too_few


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        assert 512 <= i.b_tokens <= 4096 and 2 <= i.b_count <= 6 and i.a_tokens == i.b_count * i.b_tokens
        assert 0.35 <= i.efficiency <= 0.7
        assert 0.2 <= i.a_probability <= 0.8 and 0.2 <= i.b_probability <= 0.8
        assert all(16e9 <= link <= 450e9 for link in (i.link_bytes_s, i.other_link_bytes_s))
        order = [abs(turns - i.a_probability) for turns in (keys(i, "e")[0], keys(i, "f1")[-1])]
        assert min(order) >= (0.02 if choice(i, "f2") == STAYS else 0.01)
        assert min(keys(i, "c")[1], keys(i, "f1")[3]) > 0
        assert choice(i, "i1") != choice(i, "i2")


def test_all_classes_are_drawn() -> None:
    assert {choice(i, "d1") for i in DRAWN} == {A, B}
    assert {choice(i, "f2") for i in DRAWN} == {STAYS, CHANGES}
    assert {(choice(i, "i1"), choice(i, "i2")) for i in DRAWN} == {(ALL, PART), (ALL, NONE), (PART, NONE)}
    assert {i.kv_bytes_per_token for i in DRAWN} == {kv_bytes_per_token(model) for model in MODELS}
    assert {i.block_sizes[1] for i in DRAWN} == {4, 8, 32, 64}
    differing = sum(i.a_probability != i.b_probability for i in DRAWN)
    assert len(DRAWN) / 3 < differing < len(DRAWN)
    assert all(choice(i, "d1") == A for i in DRAWN if i.a_probability == i.b_probability)


def test_an_unclear_draw_is_refused() -> None:
    assert EXERCISE.suits(BOOK)
    assert not EXERCISE.suits(replace(BOOK, a_probability=0.47))
    assert not EXERCISE.suits(replace(BOOK, a_probability=0.4587))  # between the two, too near to both
    assert not EXERCISE.suits(replace(BOOK, pool_tokens=BOOK.pool_tokens[:1] * 2))


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_the_pools_of_ones_own_find_what_is_said(seed: int | None) -> None:
    inputs = BOOK if seed is None else EXERCISE.variant(seed)
    _, scope = solved(EXERCISE, inputs)
    others, chain = scope["others"], scope["largest_hit"]
    most = sum(found_if_all_lives(inputs.block_sizes[0]))
    assert scope["found"](others) == 0 < scope["found"](others + 1)
    assert scope["found"](others + chain) == most > scope["found"](others + chain - 1)


def test_the_replay_of_the_pools_waits_for_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    sources, scope = solved(EXERCISE, BOOK)
    (cell,) = [source for source in sources if "def found" in source]
    capsys.readouterr()
    for answers in ({"i1": None}, {"i2": None}):
        exec(cell, scope | answers)
        assert capsys.readouterr().out == "Answer i1 and i2, then run this cell again.\n"
    exec(cell, scope)
    assert capsys.readouterr().out.splitlines() == [
        "2,730 blocks: you say all, found 16,304 tokens",
        "455 blocks: you say none, found 0 tokens",
    ]


def test_the_border_of_the_book() -> None:
    _, scope = solved(EXERCISE, BOOK)
    assert [scope["found"](blocks) for blocks in (750, 751, 931, 932)] == [0, 176, 16288, 16304]
