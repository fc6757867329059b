"""Numbers read again from a group format of any size: for the sizes of q8_0 and q4_0 they are those of its blocks."""

import math
from typing import Any

import numpy as np
import pytest

from lib.block_codecs import decode_q4_0, decode_q8_0, encode_q4_0, encode_q8_0
from lib.checks import InputError
from lib.float_formats import decode_e4m3, encode_e4m3
from lib.group_rounding import Array, as_read_in
from lib.quantization import Q2_K, Q4_0, Q8_0, GroupFormat
from tests.test_lib_block_codecs import adversarial

VALUES = np.random.default_rng(8).normal(size=(6, 256)).astype(np.float32)


def layout(group: int = 32, bits: int = 4, scale_bytes: int = 2) -> GroupFormat:
    return GroupFormat("some", group, bits, scale_bytes)


@pytest.mark.parametrize("name", adversarial())
def test_for_their_sizes_it_is_q8_0_and_q4_0(name: str) -> None:
    values = adversarial()[name].astype(np.float32)
    assert np.array_equal(
        as_read_in(Q8_0, values), decode_q8_0(encode_q8_0(values.reshape(-1, 32))).reshape(values.shape)
    )
    assert np.array_equal(
        as_read_in(Q4_0, values), decode_q4_0(encode_q4_0(values.reshape(-1, 32))).reshape(values.shape)
    )


def by_hand(group: Array, bits: int, scale_bytes: int) -> list[float]:
    """One group, value by value, where no float32 is near the middle of two codes."""
    largest = max(group.tolist(), key=abs)
    scale = np.float32(abs(largest) / 127) if bits == 8 else np.float32(largest / -(2 ** (bits - 1)))
    stored = {1: decode_e4m3(encode_e4m3(np.array([scale])))[0], 2: np.float16(scale), 4: scale}[scale_bytes]
    most = 127 if bits == 8 else 2 ** (bits - 1) - 1
    return [float(np.float32(min(most, math.floor(value / scale + 0.5)) * float(stored))) for value in group.tolist()]


@pytest.mark.parametrize("scale_bytes", [1, 2, 4])
@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("group", [16, 32, 64, 128, 256])
def test_any_size_is_read_as_by_hand(group: int, bits: int, scale_bytes: int) -> None:
    read = as_read_in(layout(group, bits, scale_bytes), VALUES)
    assert read.dtype == np.float32 and read.shape == VALUES.shape
    expected = [by_hand(each, bits, scale_bytes) for each in VALUES.reshape(-1, group)]
    np.testing.assert_allclose(read.reshape(-1, group), expected, rtol=1e-6)
    assert all(len(np.unique(each)) <= 2**bits for each in read.reshape(-1, group))


def error_of(group: int, bits: int, scale_bytes: int = 2) -> float:
    return float(np.square(as_read_in(layout(group, bits, scale_bytes), VALUES) - VALUES).mean())


@pytest.mark.parametrize("bits", range(2, 9))
def test_a_larger_group_is_worse_and_more_bits_are_better(bits: int) -> None:
    errors = [error_of(group, bits) for group in (16, 32, 64, 128, 256)]
    assert errors == sorted(errors) and errors[0] < errors[-1]
    if bits > 2:
        assert all(
            error < error_of(group, bits - 1) for group, error in zip((16, 32, 64, 128, 256), errors, strict=True)
        )
    assert error_of(32, bits, 1) > error_of(32, bits, 2) > 0


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        (layout(32, 9), "code_bits"),
        (layout(32, 1), "code_bits"),
        (layout(32, 4, 0), "metadata_bytes"),
        (layout(32, 4, 3), "metadata_bytes"),
        (Q2_K, "metadata_bytes"),
        (layout(96), "values"),
    ],
)
def test_other_sizes_are_refused(wrong: GroupFormat, parameter: str) -> None:
    with pytest.raises(InputError) as refusal:
        as_read_in(wrong, VALUES)
    assert refusal.value.parameter == parameter


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 3e38])
def test_values_without_a_scale_are_refused(wrong: float) -> None:
    values = VALUES.copy()
    values[3, 70] = wrong
    for bits in (4, 8):
        with pytest.raises(InputError, match=r"values is .*whose scale 2 bytes can hold"):
            as_read_in(layout(bits=bits), values)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e6, -1e6])
def test_a_scale_beyond_e4m3_is_refused_and_not_cut(wrong: float) -> None:
    values = VALUES.copy()
    values[3, 70] = wrong
    for bits in (4, 8):
        with pytest.raises(InputError, match=r"values is .*whose scale 1 bytes can hold"):
            as_read_in(layout(bits=bits, scale_bytes=1), values)


def test_the_largest_scale_of_one_byte_is_that_of_e4m3() -> None:
    values = np.zeros(32, np.float32)
    values[0] = -8 * 448
    assert as_read_in(layout(scale_bytes=1), values)[0] == values[0]


@pytest.mark.parametrize("wrong", [VALUES.astype(float), VALUES.tolist(), VALUES[:, 1:], None])
def test_other_values_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="values is "):
        as_read_in(Q4_0, wrong)
