"""The keys of exercise 8-3 by plain arithmetic and by the allocator itself; what its draws hold and its words say."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lib.checks import InputError
from lib.exercise_8_3 import BOOK, BOTH, EXERCISE, NEITHER, SHARED_ONLY, Inputs
from lib.exercises import Checker, Kind
from lib.paging import Findable, Pool
from tests.test_exercises import SEEDS, Asked, copied, flat, numbers, solved

DRAWN = [EXERCISE.variant(seed) for seed in SEEDS]
ASKED = Asked(EXERCISE)
part, mistaken = ASKED.part, ASKED.mistaken
PLACES = ("e1", "e2", "e3")


def keys(inputs: Inputs, name: str) -> list[Any]:
    return numbers(part(name), inputs)


def choices(inputs: Inputs) -> list[Any]:
    return [EXERCISE.part(name).key(inputs) for name in PLACES]


def test_the_books_answers() -> None:
    assert keys(BOOK, "a") == [1, 1, 1, 1, 3, 3, 3, 1, 7, 3, 3, 1]
    assert keys(BOOK, "b") == [(4, 23), (10, 13), (14, 7)]
    assert keys(BOOK, "c") == [9504, 19008, 38016]
    assert keys(BOOK, "d") == [3456, 6048, 11232]
    assert choices(BOOK) == [BOTH, SHARED_ONLY, SHARED_ONLY]
    assert keys(BOOK, "f") == [7, 15, 31]


@pytest.mark.parametrize("i", DRAWN[:20], ids=lambda i: str(i.lengths))
def test_the_keys_by_plain_arithmetic(i: Inputs) -> None:
    assert keys(i, "a") == [math.ceil(n / p) * p - n for p in i.block_sizes for n in i.lengths]
    blocks = {p: [math.ceil(n / p) for n in i.lengths] for p in i.block_sizes}
    assert keys(i, "b") == [(p * sum(blocks[p]) - sum(i.lengths), sum(blocks[p])) for p in i.block_sizes]
    L, S, G, p, M = i.input_tokens, i.shared_prefix_tokens, i.output_tokens, i.block_tokens, i.pool_bytes / 2**20
    block, s = p * i.kv_bytes_per_token / 2**20, S // p
    alone = [b * block * math.ceil((L + G - 1) / p) for b in i.batches]
    shared = [(s + b * math.ceil((L - s * p + G - 1) / p)) * block for b in i.batches]
    assert (keys(i, "c"), keys(i, "d")) == (alone, shared)
    fits = [BOTH if c <= M else SHARED_ONLY if d <= M else NEITHER for c, d in zip(alone, shared, strict=True)]
    assert choices(i) == fits
    assert keys(i, "f") == [b - 1 for b in i.batches]


def finished(pool: Pool, inputs: Inputs, common: int) -> Iterator[int]:
    """Admit requests with so many common tokens and let each give all its outputs; blocks held after each."""
    number = 0
    while True:
        number += 1
        prompt = np.full(inputs.input_tokens, number)
        prompt[:common] = 0
        sequence = pool.admit(prompt)
        pool.extend(sequence, np.full(inputs.output_tokens - 1, number))  # the last output is never fed back
        yield pool.held


@pytest.mark.parametrize("i", [BOOK, *DRAWN[:6]], ids=lambda i: str(i.batches))
def test_the_keys_of_c_and_d_by_the_allocator(i: Inputs) -> None:
    small = replace(i, batches=(2, 3, 4))
    for name, common, findable in (
        ("c", i.shared_prefix_tokens, Findable.NEVER),
        ("c", 0, Findable.ON_ADMISSION),
        ("d", i.shared_prefix_tokens, Findable.ON_ADMISSION),
    ):
        pool = Pool(blocks=4 * (i.input_tokens + i.output_tokens), block_tokens=i.block_tokens, findable=findable)
        held = [blocks for blocks, _ in zip(finished(pool, i, common), range(4), strict=False)]
        block_mib = i.block_tokens * i.kv_bytes_per_token / 2**20
        assert keys(small, name) == [held[requests - 1] * block_mib for requests in small.batches]


@pytest.mark.parametrize(("common", "requests"), [(0, 10), (BOOK.shared_prefix_tokens, 35)])
def test_the_pool_of_the_book_holds_ten_and_sharing_thirty_five(common: int, requests: int) -> None:
    pool = Pool(BOOK.pool_bytes // (BOOK.block_tokens * BOOK.kv_bytes_per_token), BOOK.block_tokens)
    batch = finished(pool, BOOK, common)
    for _ in range(requests):
        next(batch)
    with pytest.raises(ValueError, match="free blocks are needed"):
        next(batch)


def test_hidden_in_the_books_numbers() -> None:
    """The mistakes that only a draw tells from the key."""
    hidden = [
        ("a", "a full last block is taken for an empty one"),
        ("b", "is given one more"),
        ("c", "the last output is stored too"),
        ("d", "the last output is stored too"),
        ("d", "fills in part is shared too"),
        ("d", "held once to its last token"),
        ("d", "subtracted to its last token"),
        ("d", "the common tokens behind the last full block are forgotten"),
    ]
    for name, words in hidden:
        formula = mistaken(name, words)
        assert numbers(part(name), BOOK, formula) == keys(BOOK, name)
        check = Checker(EXERCISE, BOOK)
        assert not check.earned(name, formula) and not check.earned(name, formula, draw="marks")
    first = replace(BOOK, block_sizes=BOOK.block_sizes[:1])
    for words in ("taken for an empty one", "the used slots", "the bound is taken"):
        assert numbers(part("a"), first, mistaken("a", words)) == keys(first, "a")


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        (
            "a",
            [1, 1, 1, 1, 3, 3, 3, 3, 7, 7, 7, 7],
            "unused slots at block_tokens 4, length 15: this comes out if the bo",
        ),
        ("b", [(4, 23), (2, 11), (6, 6)], "unused slots at block_tokens 4: this comes out if the lengths are added up"),
        (
            "b",
            [(4, 42), (10, 42), (14, 42)],
            "table entries at block_tokens 2: this comes out if each token is given an",
        ),
        (
            "c",
            [9216, 18432, 36864],
            "KV of the batch at requests 8: this comes out if only the KV after prefill is cou",
        ),
        ("d", [8640, 18144, 37152], "KV of the batch at requests 8: this comes out if the prefix is subtracted once"),
        ("d", [2592, 5184, 10368], "KV of the batch at requests 8: this comes out if the prefix is not counted"),
        ("d", [9504, 19008, 38016], "KV of the batch at requests 8: this comes out if the prefix is counted once per"),
        (
            "a",
            [7, 3, 11, 1] * 3,
            "unused slots at block_tokens 2, length 9: this comes out if the maximum of the example in section 8.3.1",
        ),
        ("b", [(46, 23), (52, 13), (56, 7)], "unused slots at block_tokens 2: this comes out if all slots of the blo"),
        (
            "d",
            [3132, 5724, 10908],
            "KV of the batch at requests 8: this comes out if one request is counted with the prefix alone",
        ),
        (
            "d",
            [3780, 6372, 11556],
            "KV of the batch at requests 8: this comes out if the first request is counted twice",
        ),
        ("f", [15.75, 33.75, 69.75], "blocks saved at requests 8: this comes out if the saved memory is given in MiB"),
        ("f", [8, 16, 32], "blocks saved at requests 8: this comes out if the common block is taken for free"),
        ("f", [1, 1, 1], "blocks saved at requests 8: this comes out if only one copy goes"),
    ],
)
def test_a_mistake_gets_its_sentence(name: str, answer: list[Any], said: str) -> None:
    verdict = part(name).judge(BOOK, answer)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.sentence.startswith(said)


def shared_without_rest_of_prefix(
    requests: int,
    input_tokens: int,
    output_tokens: int,
    shared_prefix_tokens: int,
    block_tokens: int,
    kv_bytes_per_token: int,
) -> float:
    """What a student wrote."""
    own = math.ceil((input_tokens - shared_prefix_tokens + output_tokens - 1) / block_tokens)
    blocks = shared_prefix_tokens // block_tokens + requests * own
    return blocks * block_tokens * kv_bytes_per_token / 2**20


def test_common_tokens_behind_the_last_full_block_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    check = Checker(EXERCISE, BOOK)
    check("d", keys(BOOK, "d"), shared_without_rest_of_prefix)
    numbers_line, function_line, call_line = capsys.readouterr().out.splitlines()
    assert numbers_line == "d: right."
    assert function_line.endswith(
        "this comes out if the common tokens behind the last full block are forgotten: they are in each request's own "
        "blocks too."
    )
    case = copied(call_line, "d")
    assert shared_without_rest_of_prefix(**case) != part("d").key(**case)
    for name, asked in case.items():
        assert f"{name}={asked}" in call_line
    for _ in range(2):
        check("d", [1, 2, 3], shared_without_rest_of_prefix)
    assert "all its tokens behind the shared blocks (not behind the prefix)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "units"),
    [([3.375, 5.90625, 10.96875], "KiB, MiB, GiB"), ([3.62, 6.34, 11.78], "MiB and GB"), ([3624, 6342, 11778], "MB")],
)
def test_a_unit_is_named_before_a_mistake(answer: list[float], units: str) -> None:
    verdict = part("d").judge(BOOK, answer)
    assert verdict.kind is Kind.UNIT
    assert "MiB is asked for" in verdict.sentence and units in verdict.sentence


def test_what_every_draw_holds() -> None:
    for i in DRAWN:
        smallest, middle, largest = i.block_sizes
        assert (middle, largest) == (2 * smallest, 4 * smallest)
        assert 4 <= len(i.lengths) <= 6 and min(i.lengths) >= 3 and max(i.lengths) <= 40
        assert any(n % largest == 0 for n in i.lengths) and any(n % largest == middle for n in i.lengths)
        assert 4096 <= i.input_tokens <= 16384
        assert 0.3 <= i.shared_prefix_tokens / i.input_tokens <= 0.9
        assert i.batches[0] > 1
        assert choices(i) == [BOTH, SHARED_ONLY, NEITHER]


def test_all_classes_are_drawn() -> None:
    assert {i.shared_prefix_tokens % i.block_tokens > 0 for i in DRAWN} == {True, False}
    assert {(i.input_tokens + i.output_tokens - 1) % i.block_tokens > 0 for i in DRAWN} == {True, False}
    assert {len(i.lengths) for i in DRAWN} == {4, 5, 6}
    assert {i.block_tokens * i.kv_bytes_per_token == 2**20 for i in DRAWN} == {True, False}
    for name in PLACES[1:]:
        asked = EXERCISE.part(name)
        assert {mistake.formula(i) == asked.key(i) for i in DRAWN for mistake in asked.mistakes} == {True, False}


def test_a_draw_is_refused_in_which_a_mistake_looks_like_the_key_in_another_order_or_unit() -> None:
    assert EXERCISE.suits(BOOK)
    assert not EXERCISE.suits(replace(BOOK, lengths=(8, 1, 3), block_sizes=(4,)))
    assert EXERCISE.suits(replace(BOOK, lengths=(8, 1, 1), block_sizes=(4,)))
    grown = BOOK.input_tokens * (2**20 / 10**6 - 1)  # prefill only is then what MiB for MB would be
    assert not EXERCISE.suits(replace(BOOK, output_tokens=round(grown)))


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_the_allocator_in_the_notebook_counts_what_the_keys_say(seed: int | None) -> None:
    inputs = BOOK if seed is None else EXERCISE.variant(seed)
    _, scope = solved(EXERCISE, inputs)
    assert [scope["counted"](**case)[0] for case in part("b").cases(inputs)] == keys(inputs, "b")
    assert [scope["held"](b, 2) - scope["held"](b, 3) for b in inputs.batches] == flat(keys(inputs, "f"))


@pytest.mark.parametrize(
    ("answer", "sizes"),
    [
        ([(4, 23), (10, 13), (14, 7)], [8]),
        ([4, 23, 10, 13, 14, 7], [8]),
        (np.array([4.0, 23, 10, 13, 14, 7]), [8]),
        ([(4, 23), (10, 14), (14, 7)], [4]),
        ([(4, 23), (14, 12), (6, 6)], [4, 8]),
        ([(23, 4), (13, 10), (7, 14)], [2, 4, 8]),
        ([(4, 23), None, (14, 7)], [4, 8]),
        ([4, 23], [4, 8]),
        ("4 and 23", [2, 4, 8]),
        (None, []),
    ],
    ids=str,
)
def test_block_tables_are_shown_for_the_sizes_in_which_a_student_and_the_pool_differ(
    answer: Any, sizes: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    sources, scope = solved(EXERCISE, BOOK)
    (cell,) = [source for source in sources if "its block tables" in source]
    capsys.readouterr()
    exec(cell, scope | {"b": answer})
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[-1]) for line in lines if line.startswith("its block tables")] == sizes
    assert sum(" tokens: [" in line for line in lines) == len(sizes) * len(BOOK.lengths)


def test_held_refuses_more_common_blocks_than_a_request_has() -> None:
    _, scope = solved(EXERCISE, BOOK)
    assert [scope["held"](4, common) for common in (0, 2, 3, 5)] == [24, 18, 15, 9]
    for common in (7, -1, 2.5):
        with pytest.raises(InputError, match=f"^common_blocks is {common}; allowed: a whole number from 0 to 6"):
            scope["held"](4, common_blocks=common)
    assert scope["held"](4, 7, blocks_each=8) == 11
