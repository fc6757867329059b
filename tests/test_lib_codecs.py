"""Formats of numbers: what is stored has the bytes of its layout, and is read as by the functions of the format."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lib import quantization
from lib.block_codecs import decode_q4_0, decode_q8_0, encode_q4_0, encode_q8_0
from lib.checks import InputError
from lib.codecs import BF16, FLOAT64, Q4_0, Q8_0, Codec, fp8
from lib.float_formats import decode_bf16, decode_e4m3, encode_bf16, encode_e4m3

VALUES = np.random.default_rng(8).normal(size=(3, 5, 64))
SINGLE = VALUES.astype(np.float32)
FORMATS: dict[Codec, tuple[float, Any]] = {
    FLOAT64: (8, VALUES),
    BF16: (2, decode_bf16(encode_bf16(SINGLE))),
    fp8(): (1, decode_e4m3(encode_e4m3(SINGLE))),
    fp8(0.01): (1, decode_e4m3(encode_e4m3(SINGLE, 0.01), 0.01)),
    Q8_0: (34 / 32, decode_q8_0(encode_q8_0(SINGLE))),
    Q4_0: (18 / 32, decode_q4_0(encode_q4_0(SINGLE))),
}
each_format = pytest.mark.parametrize("codec", FORMATS, ids=lambda codec: codec.name)


@each_format
def test_numbers_take_the_bytes_that_the_layout_says_and_are_read_again(codec: Codec) -> None:
    bytes_a_value, expected = FORMATS[codec]
    stored = codec.encode(VALUES)
    assert stored.dtype == np.uint8 and stored.shape == (3, 5, codec.bytes_of(64))
    assert codec.bytes_of(64) == bytes_a_value * 64 == codec.layout.bytes_of(64)
    read = codec.decode(stored)
    assert read.dtype == np.float64 and np.array_equal(read, expected)
    assert np.array_equal(codec.as_read(VALUES), expected)
    assert np.array_equal(codec.encode(read), stored) or codec in (Q8_0, Q4_0)


@each_format
def test_a_part_is_read_as_it_is_in_the_whole(codec: Codec) -> None:
    stored = codec.encode(VALUES)
    assert np.array_equal(codec.decode(stored[1:, ::2]), codec.decode(stored)[1:, ::2])
    assert np.array_equal(codec.encode(VALUES[1:, ::2]), stored[1:, ::2])
    assert np.array_equal(codec.encode(np.ones((2, 64), np.int64)), codec.encode(np.ones((2, 64))))
    assert codec.decode(codec.encode(VALUES[:0])).shape == (0, 5, 64)


@each_format
def test_bytes_of_ones_are_not_a_number(codec: Codec) -> None:
    assert np.isnan(codec.decode(np.full((2, codec.bytes_of(32)), 0xFF, np.uint8))).all()


def test_the_error_grows_as_the_bits_shrink() -> None:
    errors = {codec.name: np.abs(codec.as_read(VALUES) - VALUES).max() for codec in FORMATS}
    assert 0 == errors["float64"] < errors["q8_0"] < errors["q4_0"] < 1
    assert errors["float64"] < errors["BF16"] < errors["FP8"]


@each_format
def test_what_is_no_number_or_fills_no_group_is_refused(codec: Codec) -> None:
    for wrong in (VALUES.astype(str), VALUES * 1j, VALUES.tolist(), np.ones(()), 1.0, None):
        with pytest.raises(InputError, match="values is "):
            codec.encode(wrong)  # type: ignore[arg-type]
    for wrong in (VALUES, [1, 2], np.ones((), np.uint8), None):
        with pytest.raises(InputError, match="stored is "):
            codec.decode(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", [Q8_0, Q4_0], ids=lambda codec: codec.name)
def test_whole_groups_are_asked_for(codec: Codec) -> None:
    calls: tuple[Callable[[], Any], ...] = (
        lambda: codec.encode(VALUES[..., :48]),
        lambda: codec.decode(np.zeros(codec.bytes_of(64) - 1, np.uint8)),
        lambda: codec.bytes_of(48),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"a multiple of"):
            call()


@each_format
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(codec: Codec, wrong: float) -> None:
    values = VALUES.copy()
    values.flat[3] = wrong
    with pytest.raises(InputError, match=f"values is {wrong}; allowed: finite numbers"):
        codec.encode(values)


def test_beyond_float32_only_float64_stores() -> None:
    far = np.full(32, -1e300)
    assert FLOAT64.as_read(far)[0] == -1e300
    for codec in (BF16, fp8(0.5), Q8_0, Q4_0):
        with pytest.raises(InputError, match=r"values is -1e\+300; allowed: finite numbers that float32 can hold"):
            codec.encode(far)


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, True, "1", None])
def test_a_scale_is_asked_at_once(scale: float) -> None:
    with pytest.raises(InputError, match="scale is "):
        fp8(scale)


def test_layouts_are_those_of_the_sizes() -> None:
    layouts = [codec.layout for codec in (BF16, fp8(), Q8_0, Q4_0)]
    assert layouts == [quantization.BF16, quantization.FP8, quantization.Q8_0, quantization.Q4_0]
    assert FLOAT64.layout.bits_per_value == 64
