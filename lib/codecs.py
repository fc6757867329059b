"""How numbers are stored: a format turns them into bytes, and bytes into the numbers that can be read again.

Numbers are real, [..., a multiple of the format's group], bytes uint8 [..., bytes of so many numbers]. All formats but
float64 see them as float32. Bytes that are all 0xFF are read as not a number. Source: section 8.4.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import quantization
from lib.block_codecs import decode_q4_0, decode_q8_0, encode_q4_0, encode_q8_0
from lib.checks import InputError
from lib.float_formats import decode_bf16, decode_e4m3, encode_bf16, encode_e4m3
from lib.quantization import GroupFormat

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Codec:
    """A format of numbers: what it stores of a group, and the way there and back.

    `to_codes` takes numbers of the type `takes` and gives what is stored, an array of the type `codes`; `to_numbers`
    takes that and gives numbers.
    """

    layout: GroupFormat
    takes: type[np.floating[Any]]
    codes: str
    to_codes: Callable[[Array], Array]
    to_numbers: Callable[[Array], Array]

    @property
    def name(self) -> str:
        return self.layout.name

    def bytes_of(self, values: int) -> int:
        """Bytes of so many numbers; raises InputError for a count that does not fill whole groups."""
        return self.layout.bytes_of(values)

    def encode(self, values: Array) -> Array:
        """The bytes of numbers.

        Raises InputError for what is no array of finite real numbers in whole groups, or what the format cannot store:
        what is not a number marks a place that was never written.
        """
        group = self.layout.group_values
        is_right = isinstance(values, np.ndarray) and values.dtype.kind in "iuf" and values.ndim
        if not is_right or values.shape[-1] % group:
            raise InputError("values", values, f"real numbers [..., a multiple of {group}]")
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
            numbers = values.astype(self.takes)
        if not np.isfinite(numbers).all():
            wrong = values[~np.isfinite(numbers)].flat[0]
            raise InputError("values", float(wrong), f"finite numbers that {np.dtype(self.takes).name} can hold")
        return np.ascontiguousarray(self.to_codes(numbers)).view(np.uint8)

    def decode(self, stored: Array) -> Array:
        """The numbers of bytes, float64. Raises InputError for what is no array of bytes in whole groups."""
        group = self.layout.group_bytes
        is_right = isinstance(stored, np.ndarray) and stored.dtype == np.uint8 and stored.ndim
        if not is_right or stored.shape[-1] % group:
            raise InputError("stored", stored, f"bytes, uint8 [..., a multiple of {group}]")
        return self.to_numbers(np.ascontiguousarray(stored).view(self.codes)).astype(np.float64)

    def as_read(self, values: Array) -> Array:
        """Numbers as they are read again once they were stored."""
        return self.decode(self.encode(values))


def _as_it_is(values: Array) -> Array:
    return values


def fp8(scale: float = 1) -> Codec:
    """FP8 E4M3 with one scale for all numbers. Raises InputError for a scale that makes no sense."""
    decode_e4m3(np.zeros(1, np.uint8), scale)
    return Codec(
        quantization.FP8,
        np.float32,
        "u1",
        lambda values: encode_e4m3(values, scale),
        lambda codes: decode_e4m3(codes, scale),
    )


FLOAT64 = Codec(GroupFormat("float64", 1, 64, 0), np.float64, "<f8", _as_it_is, _as_it_is)
BF16 = Codec(quantization.BF16, np.float32, "<u2", encode_bf16, decode_bf16)
Q8_0 = Codec(quantization.Q8_0, np.float32, "u1", encode_q8_0, decode_q8_0)
Q4_0 = Codec(quantization.Q4_0, np.float32, "u1", encode_q4_0, decode_q4_0)
