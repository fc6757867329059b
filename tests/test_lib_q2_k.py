"""Q2_K: blocks are read as by the public code; an encoder of our own is judged by its error."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lib.block_codecs import decode_q4_0, encode_q4_0
from lib.checks import InputError
from lib.q2_k import Array, decode_q2_k, encode_q2_k
from lib.quantization import Q2_K

GOLDEN = tomllib.loads(Path(__file__).with_name("golden_blocks.toml").read_text(encoding="utf-8"))["q2_k"]


def drawn(seed: int, blocks: int = 4) -> Array:
    return np.random.default_rng(seed).normal(size=256 * blocks).astype(np.float32)


def by_hand(block: bytes) -> list[float]:
    """One block, value by value."""
    (d, dmin), values = np.frombuffer(block[80:], "<f2").astype(float), []
    for at in range(256):
        half, run, place = at // 128, at % 128 // 32, at % 32
        scale = block[8 * half + 2 * run + place // 16]
        code = block[16 + 32 * half + place] >> 2 * run & 3
        values.append(float(np.float32(d * (scale & 15) * code - dmin * (scale >> 4))))
    return values


def relative_error(values: Array, read: Array) -> float:
    return float(np.sqrt(np.square(read - values).sum() / np.square(values).sum()))


def test_known_blocks_are_read_to_the_bit() -> None:
    assert len(GOLDEN) == 2
    for known in GOLDEN:
        block = np.frombuffer(bytes.fromhex(known["block"]), np.uint8)
        assert decode_q2_k(block).tobytes() == bytes.fromhex(known["read"]), known["what"]


def test_any_bytes_are_read_as_by_hand() -> None:
    blocks = np.random.default_rng(5).integers(0, 256, (3, 5, 2 * 84)).astype(np.uint8)
    blocks[..., 81::84] &= 0x3F  # no d that is infinite
    blocks[..., 83::84] &= 0x3F
    read = decode_q2_k(blocks)
    assert read.shape == (3, 5, 512)
    assert read.reshape(-1, 256).tolist() == [by_hand(block.tobytes()) for block in blocks.reshape(-1, 84)]
    assert np.isnan(decode_q2_k(np.full(84, 0xFF, np.uint8))).all()


def test_the_error_is_that_of_two_bits_and_a_half() -> None:
    values = drawn(1, 16).reshape(4, 4 * 256)
    blocks = encode_q2_k(values)
    assert blocks.shape == (4, 4 * 84) and blocks.nbytes == Q2_K.bytes_of(values.size)
    error = relative_error(values, decode_q2_k(blocks))
    assert relative_error(values, decode_q4_0(encode_q4_0(values))) < 0.1 < error < 0.31


def test_what_fits_exactly_is_read_exactly() -> None:
    codes = np.random.default_rng(2).integers(0, 4, (16, 16))
    codes[:, :2] = 0, 3
    scales, minima = np.arange(16)[:, None], np.arange(15, -1, -1)[:, None]
    values = (0.5 * scales * codes - 0.25 * minima).astype(np.float32)
    values[15, 1] = 0.5 * 15 * 3
    assert np.array_equal(decode_q2_k(encode_q2_k(values.reshape(-1))).reshape(16, 16), values)


@pytest.mark.parametrize("seed", [3, 4])
def test_no_other_pair_of_scale_and_minimum_is_better(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = (drawn(seed, 1) * draw.choice([0.1, 1, 3], 256) + draw.normal()).astype(np.float32)
    block = encode_q2_k(values)
    least = np.square(decode_q2_k(block) - values).reshape(16, 16).sum(axis=1)
    for _ in range(300):
        other = block.copy()
        other[:16] = draw.integers(0, 256, 16)
        other[16:80] = draw.integers(0, 256, 64)
        other[16:80] = draw.choice([0, 1], 64) * other[16:80] + draw.choice([0, 1], 64) * block[16:80]
        error = np.square(decode_q2_k(other) - values).reshape(16, 16).sum(axis=1)
        assert (error >= least * (1 - 1e-6)).all()


def test_zeros_and_tiny_values_and_values_of_one_sign() -> None:
    assert not decode_q2_k(encode_q2_k(np.zeros(256, np.float32))).any()
    assert not decode_q2_k(encode_q2_k(np.full(256, 1e-12, np.float32))).any()
    for sign in (1, -1):
        values = sign * (np.abs(drawn(6)) + 1).astype(np.float32)
        assert relative_error(values, decode_q2_k(encode_q2_k(values))) < 0.15
    assert encode_q2_k(np.empty((2, 0), np.float32)).shape == decode_q2_k(np.empty((2, 0), np.uint8)).shape == (2, 0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_values_without_a_scale_are_refused(wrong: float) -> None:
    values = drawn(7)
    values[300] = wrong
    with pytest.raises(InputError, match=r"values is .*whose d FP16 can hold"):
        encode_q2_k(values)


def test_a_range_beyond_float32_is_refused_without_a_warning() -> None:
    with np.errstate(all="raise"), pytest.raises(InputError, match=r"values is .*whose d FP16 can hold"):
        encode_q2_k(np.tile(np.array([3e38, -3e38], np.float32), 128))


def test_other_shapes_and_types_are_refused() -> None:
    values, blocks = drawn(8), encode_q2_k(drawn(8))
    for work, name, right in ((encode_q2_k, "values", values), (decode_q2_k, "blocks", blocks)):
        wrong: list[Any] = [right[1:], right.astype(np.float64), right.astype(np.int8), right.tolist(), right[0], None]
        for each in wrong:
            with pytest.raises(InputError, match=f"{name} is "):
                work(each)
