"""Attention through a block table gives what attention over KV in one piece gives, wherever the blocks lie."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import quantization
from lib.checks import InputError
from lib.codecs import BF16, FLOAT64, Q4_0, Q8_0, Codec, fp8
from lib.paged_attention import Array, KvBlocks, attend, paged_attend
from lib.paging import Copy, Pool, Sequence

HEAD_DIM = 8


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def by_hand(queries: Array, keys: Array, values: Array) -> Array:
    """One query, one head, one key at a time."""
    out = np.zeros(queries.shape)
    group = queries.shape[1] // keys.shape[1]
    for new, head in np.ndindex(queries.shape[:2]):
        seen = len(keys) - len(queries) + new + 1
        scores = [math.exp(queries[new, head] @ keys[t, head // group] / math.sqrt(HEAD_DIM)) for t in range(seen)]
        for weight, value in zip(scores, values[:seen, head // group], strict=True):
            out[new, head] += weight / sum(scores) * value
    return out


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99))
def test_attention_in_one_piece_is_what_it_says(new: int, context: int, kv_heads: int, group: int, seed: int) -> None:
    queries = drawn(seed, new, kv_heads * group, HEAD_DIM)
    keys, values = drawn(seed + 1, 2, new + context, kv_heads, HEAD_DIM)
    np.testing.assert_allclose(attend(queries, keys, values), by_hand(queries, keys, values), rtol=0, atol=1e-12)


@given(st.integers(1, 40), st.integers(1, 17), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99), st.data())
def test_scattered_blocks_give_the_same(
    length: int, block_tokens: int, kv_heads: int, group: int, seed: int, data: st.DataObject
) -> None:
    new = data.draw(st.integers(1, length))
    queries = drawn(seed, new, kv_heads * group, HEAD_DIM) * 9
    keys, values = drawn(seed + 1, 2, length, kv_heads, HEAD_DIM)
    blocks = -(-length // block_tokens)
    table = data.draw(st.permutations(range(blocks + 2)))[:blocks]
    kv = KvBlocks(blocks + 2, block_tokens, kv_heads, HEAD_DIM)
    kv.write([table[t // block_tokens] * block_tokens + t % block_tokens for t in range(length)], keys, values)
    expected = attend(queries, keys, values)
    np.testing.assert_allclose(paged_attend(queries, kv, table, length), expected, rtol=0, atol=1e-12)


def kv_of(token: int, position: int) -> Array:
    """Keys and values of a token at a position: other tokens, other KV."""
    return drawn(1000 * token + position, 2, 2, HEAD_DIM)


def compute(pool: Pool, kv: KvBlocks, sequence: Sequence) -> None:
    """What the next step of a sequence does: the KV of all that is not computed yet."""
    first, length = sequence.computed, len(sequence.tokens)
    fresh = np.array([kv_of(sequence.tokens[at], at) for at in range(first, length)]).swapaxes(0, 1)
    kv.write(pool.slots_to_write(sequence, first, length), *fresh)
    pool.complete(pool.submit([sequence]))


def assert_reads_its_own(kv: KvBlocks, sequence: Sequence) -> None:
    keys, values = np.array([kv_of(token, at) for at, token in enumerate(sequence.tokens)]).swapaxes(0, 1)
    queries = drawn(7, 1, 4, HEAD_DIM)
    read = paged_attend(queries, kv, sequence.table, len(sequence.tokens))
    np.testing.assert_allclose(read, attend(queries, keys, values), rtol=0, atol=1e-12)


@pytest.mark.parametrize("block_tokens", [1, 2, 3, 4, 16])
def test_hits_forks_and_copies_keep_each_sequence_its_own(block_tokens: int) -> None:
    pool = Pool(64, block_tokens)
    kv = KvBlocks(64, block_tokens, 2, HEAD_DIM)
    first = pool.admit([1, 2, 3, 4, 5, 6, 7])
    compute(pool, kv, first)
    again = pool.admit([1, 2, 3, 4, 5, 6, 9])
    compute(pool, kv, again)
    assert again.cached == 6 // block_tokens * block_tokens
    forks = [first, *(pool.fork(first) for _ in range(3))]
    copies = 0
    for turn in range(5):
        for place, sequence in enumerate(forks):
            copy = pool.append(sequence, 10 * place + turn)
            if copy is not None:
                kv.copy(copy)
                copies += 1
            compute(pool, kv, sequence)
    assert copies == (0 if 7 % block_tokens == 0 else 3), "the last holder writes in place"
    for sequence in (*forks, again):
        assert_reads_its_own(kv, sequence)
    for sequence in forks:
        pool.release(sequence)
    other = pool.admit([8] * 40)
    compute(pool, kv, other)
    for sequence in (again, other):
        assert_reads_its_own(kv, sequence)


def test_without_the_copy_a_branch_reads_what_is_not_its_own() -> None:
    pool, kv = Pool(8, 4), KvBlocks(8, 4, 2, HEAD_DIM)
    first = pool.admit([1, 2, 3])
    compute(pool, kv, first)
    fork = pool.fork(first)
    assert pool.append(fork, 4) is not None
    compute(pool, kv, fork)
    with pytest.raises(AssertionError):
        assert_reads_its_own(kv, fork)


def test_large_scores_do_not_overflow() -> None:
    queries, (keys, values) = drawn(1, 1, 2, HEAD_DIM) * 1e3, drawn(2, 2, 9, 1, HEAD_DIM)
    kv = KvBlocks(3, 4, 1, HEAD_DIM)
    kv.write(range(9), keys, values)
    out = paged_attend(queries, kv, [0, 1, 2], 9)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out, attend(queries, keys, values), rtol=0, atol=1e-12)


FORMATS = (FLOAT64, BF16, fp8(), fp8(0.02), Q8_0, Q4_0)
some_format = pytest.mark.parametrize("key", FORMATS, ids=lambda codec: codec.name)
other_format = pytest.mark.parametrize("value", FORMATS, ids=lambda codec: codec.name)


@some_format
@other_format
def test_scattered_blocks_give_the_same_in_every_format(key: Codec, value: Codec) -> None:
    queries, (keys, values) = drawn(1, 2, 4, 64), drawn(2, 2, 9, 2, 64)
    kv = KvBlocks(4, 4, 2, 64, key, value)
    kv.write([13, 14, 15, 12, *range(4, 9)], keys, values)
    table, order = [3, 1, 2], [3, 0, 1, 2, *range(4, 9)]
    read = key.as_read(keys[order]), value.as_read(values[order])
    np.testing.assert_array_equal(kv.keys[3], read[0][:4])
    np.testing.assert_array_equal(kv.values[table[1:]].reshape(-1, 2, 64)[:5], read[1][4:])
    paged = paged_attend(queries, kv, table, 9)
    np.testing.assert_allclose(paged, attend(queries, *read), rtol=0, atol=1e-12)
    is_exact = key is value is FLOAT64
    assert (np.abs(paged - attend(queries, keys[order], values[order])).max() < 1e-12) == is_exact


@some_format
@other_format
def test_capacity_copies_and_reads_come_from_the_same_bytes(key: Codec, value: Codec) -> None:
    kv = KvBlocks(3, 4, 2, 64, key, value)
    assert kv.block_bytes == 4 * 2 * (key.bytes_of(64) + value.bytes_of(64))
    assert kv.keys.bytes.nbytes + kv.values.bytes.nbytes == 3 * kv.block_bytes
    keys, values = drawn(2, 2, 4, 2, 64)
    kv.write(range(4), keys, values)
    kv.copy(Copy(0, 2))
    for stored in (kv.keys, kv.values):
        assert np.array_equal(stored.bytes[2], stored.bytes[0])
        assert np.isnan(stored[1]).all(), "never written"
        stored.bytes[0] = 0xFF
    np.testing.assert_array_equal(kv.keys[2], key.as_read(keys))
    np.testing.assert_array_equal(kv.values[2], value.as_read(values))


def test_a_slot_that_was_never_written_shows_in_every_format() -> None:
    for codec in FORMATS:
        kv = KvBlocks(2, 4, 1, 32, codec, codec)
        kv.write([0, 1, 3], *drawn(3, 2, 3, 1, 32))
        assert np.isnan(paged_attend(drawn(4, 1, 2, 32), kv, [0], 4)).all()
        assert np.isfinite(paged_attend(drawn(4, 1, 2, 32), kv, [0], 2)).all()


def test_what_is_read_is_no_part_of_the_memory() -> None:
    kv = KvBlocks(1, 2, 1, HEAD_DIM)
    keys, values = drawn(2, 2, 2, 1, HEAD_DIM)
    kv.write([0, 1], keys, values)
    kv.keys[0][:] = 7
    np.testing.assert_array_equal(kv.keys[0], keys)


@pytest.mark.parametrize(
    ("formats", "wrong"),
    [*(((Q8_0, Q4_0), wrong) for wrong in (math.nan, math.inf, 1e39, 1e8)), ((FLOAT64, BF16), math.nan)],
)
def test_numbers_that_a_format_cannot_store_leave_the_blocks_as_they_were(
    formats: tuple[Codec, Codec], wrong: float
) -> None:
    kv = KvBlocks(1, 2, 1, 32, *formats)
    right, bad = np.ones((1, 1, 32)), np.ones((1, 1, 32))
    bad[0, 0, 7] = wrong
    for name, keys, values in (("keys", bad, right), ("values", right, bad)):
        with pytest.raises(InputError, match=f"{name} is "):
            kv.write([0], keys, values)
        assert (kv.keys.bytes == 0xFF).all() and (kv.values.bytes == 0xFF).all()


def test_what_does_not_fit_is_refused_by_name() -> None:
    queries, (keys, values) = drawn(1, 2, 4, HEAD_DIM), drawn(2, 2, 9, 2, HEAD_DIM)
    kv = KvBlocks(3, 4, 2, HEAD_DIM)
    wrong: tuple[tuple[str, Any], ...] = (
        ("queries", lambda: attend(drawn(1, 10, 4, HEAD_DIM), keys, values)),
        ("queries", lambda: attend(drawn(1, 2, 3, HEAD_DIM), keys, values)),
        ("queries", lambda: attend(drawn(1, 2, 4, HEAD_DIM + 1), keys, values)),
        ("queries", lambda: attend(drawn(1, 0, 4, HEAD_DIM), keys, values)),
        ("queries", lambda: attend(drawn(1, 4, HEAD_DIM), keys, values)),
        ("keys", lambda: attend(queries, keys[:0], values)),
        ("keys", lambda: attend(queries, keys[0], values)),
        ("values", lambda: attend(queries, keys, values[1:])),
        ("length", lambda: paged_attend(queries, kv, [0, 1], 9)),
        ("length", lambda: paged_attend(queries, kv, [0, 1], 0)),
        ("table", lambda: paged_attend(queries, kv, [0, 3], 8)),
        ("table", lambda: paged_attend(queries, kv, [0, -1], 8)),
        ("queries", lambda: paged_attend(queries, kv, [0], 1)),
        ("slots", lambda: kv.write([12], keys[:1], values[:1])),
        ("slots", lambda: kv.write([-1], keys[:1], values[:1])),
        ("keys", lambda: kv.write([0, 1], keys[:1], values[:2])),
        ("values", lambda: kv.write([0], keys[:1], values[:2])),
        ("blocks", lambda: KvBlocks(0, 4, 2, 8)),
        ("block_tokens", lambda: KvBlocks(3, 0, 2, 8)),
        ("kv_heads", lambda: KvBlocks(3, 4, 0, 8)),
        ("head_dim", lambda: KvBlocks(3, 4, 2, 0)),
        ("elements", lambda: KvBlocks(2**20, 2**16, 2, 8)),
        ("head_dim", lambda: KvBlocks(3, 4, 2, 48, Q8_0)),
        ("head_dim", lambda: KvBlocks(3, 4, 2, 48, FLOAT64, Q4_0)),
        ("key", lambda: KvBlocks(3, 4, 2, 32, "q8_0")),  # type: ignore[arg-type]
        ("value", lambda: KvBlocks(3, 4, 2, 32, value=quantization.Q8_0)),  # type: ignore[arg-type]
    )
    for parameter, call in wrong:
        with pytest.raises(InputError) as refusal:
            call()
        assert refusal.value.parameter == parameter
    assert np.isnan(kv.keys[:]).all() and np.isnan(kv.values[:]).all()


def test_a_copy_moves_keys_and_values() -> None:
    kv = KvBlocks(3, 2, 1, HEAD_DIM)
    keys, values = drawn(2, 2, 2, 1, HEAD_DIM)
    kv.write([2, 3], keys, values)
    kv.copy(Copy(1, 0))
    np.testing.assert_array_equal(kv.keys[0], keys)
    np.testing.assert_array_equal(kv.values[0], values)
    assert np.isnan(kv.keys[2]).all()
