"""BF16 and FP8 E4M3: each code means what the format says, and each number gets the nearest."""

import math
import struct
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from lib.checks import InputError
from lib.float_formats import Array, decode_bf16, decode_e4m3, encode_bf16, encode_e4m3

ALL_CODES = np.arange(256).astype(np.uint8)


def meaning(code: int) -> float:
    """One E4M3 code by hand: sign, exponent with bias 7, mantissa; the least exponent has no leading 1."""
    sign, exponent, mantissa = -1 if code & 0x80 else 1, code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    return sign * ((8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0**-9)


def nearest(number: float) -> int:
    """The code of the nearest by trying all of its sign; the even one of two."""
    if math.isnan(number):
        return 0x7F
    sign = 0x80 if math.copysign(1, number) < 0 else 0
    if math.isinf(number):
        return sign | 0x7E
    distance = {code: abs(Fraction(meaning(sign | code)) - Fraction(number)) for code in range(127)}
    return sign | min(distance, key=lambda code: (distance[code], code % 2))


def hard_numbers() -> list[float]:
    """Each code's number, the middle between two, and their neighbours in float32; then some of all sizes."""
    numbers = [meaning(code) for code in range(127)]
    numbers += [(one + other) / 2 for one, other in pairwise(numbers)] + [464, 480, 1e4, 3e38, 1e-45, 1e-30]
    near = np.array(numbers, np.float32)
    beside = [np.nextafter(near, np.float32(end)) for end in (-1, np.inf)]
    draw = np.random.default_rng(8)
    drawn = draw.normal(size=300).astype(np.float32) * np.float32(2) ** draw.integers(-12, 12, 300)
    every = np.concatenate([near, *beside, drawn.astype(np.float32)])
    return [*every.tolist(), *(-every).tolist()]


def test_each_of_the_256_codes_means_what_the_format_says() -> None:
    read = decode_e4m3(ALL_CODES)
    assert read.dtype == np.float32
    assert read.tobytes() == np.array([meaning(code) for code in range(256)], np.float32).tobytes()
    assert np.nanmax(read) == 448 and np.isnan(read).sum() == 2


def test_each_number_gets_the_nearest_of_all_codes() -> None:
    numbers = [*hard_numbers(), math.nan, math.inf, -math.inf, 0.0, -0.0]
    codes = encode_e4m3(np.array(numbers, np.float32))
    assert codes.tolist() == [nearest(number) for number in numbers]


def test_what_was_read_is_stored_as_the_same_code() -> None:
    numbers = ALL_CODES[~np.isnan(decode_e4m3(ALL_CODES))]
    for scale in (1.0, 2.0**-20, 2.0**20):
        assert np.array_equal(encode_e4m3(decode_e4m3(numbers, scale), scale), numbers)


def test_a_scale_divides_and_multiplies() -> None:
    values = np.random.default_rng(3).normal(size=(4, 5, 6)).astype(np.float32) * 100
    codes = encode_e4m3(values, 0.3)
    assert codes.shape == values.shape
    assert np.array_equal(codes, encode_e4m3(values / np.float32(0.3)))
    assert np.array_equal(decode_e4m3(codes, 0.3), decode_e4m3(codes) * np.float32(0.3))
    assert encode_e4m3(np.array([1e38], np.float32), 2.0**-60) == 0x7E


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, 1e-30, 1e30, True, "1", None])
def test_a_scale_that_makes_no_sense_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match="scale is "):
        encode_e4m3(np.ones(2, np.float32), scale)
    with pytest.raises(InputError, match="scale is "):
        decode_e4m3(ALL_CODES, scale)


def bf16_by_hand(number: float) -> int:
    """The upper half of the float32, one more if the lower half is more than a half, or a half behind an odd one."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    upper, lower = divmod(bits, 1 << 16)
    return int(upper + (lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1)))


def test_bf16_is_the_nearest_upper_half() -> None:
    draw = np.random.default_rng(9)
    bits = draw.integers(0, 1 << 32, 20_000).astype(np.uint32)
    bits[:10_000] = bits[:10_000] & 0xFFFF_0000 | draw.choice([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], 10_000)
    values = bits.view(np.float32)
    finite = np.isfinite(values)
    codes = encode_bf16(values)
    assert codes.dtype == np.uint16
    assert codes[finite].tolist() == [bf16_by_hand(number) for number in values[finite].tolist()]
    assert np.isnan(decode_bf16(codes[np.isnan(values)])).all() and np.isnan(values).any()
    ends = np.array([np.inf, -np.inf, 0.0, -0.0, np.finfo(np.float32).max], np.float32)
    assert decode_bf16(encode_bf16(ends)).tolist() == [math.inf, -math.inf, 0.0, -0.0, math.inf]


def test_every_bf16_is_read_and_stored_as_itself() -> None:
    codes = np.arange(1 << 16).astype(np.uint16)
    read = decode_bf16(codes)
    by_hand = np.frombuffer(b"".join(struct.pack("<HH", 0, code) for code in range(1 << 16)), "<f4")
    assert read.tobytes() == by_hand.tobytes()
    stays = ~np.isnan(read)
    assert np.array_equal(encode_bf16(read)[stays], codes[stays])
    assert np.isnan(decode_bf16(encode_bf16(read[~stays]))).all()


def test_a_single_number_stays_an_array() -> None:
    one = np.array(1.5, np.float32)
    for there, back in ((encode_bf16, decode_bf16), (encode_e4m3, decode_e4m3)):
        stored = there(one)
        assert isinstance(stored, np.ndarray) and stored.shape == ()
        read = back(stored)
        assert isinstance(read, np.ndarray) and read.shape == () and read == one


def wrong_arrays(right: Array) -> list[object]:
    return [right.astype(np.int8), right.astype(np.float64), right.tolist(), 1.0, None, "x"]


def test_other_types_are_refused() -> None:
    for work in (encode_bf16, encode_e4m3, decode_bf16, decode_e4m3):
        for wrong in wrong_arrays(np.ones(2, np.float32)):
            with pytest.raises(InputError):
                work(wrong)  # type: ignore[arg-type]
