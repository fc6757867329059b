"""q8_0 and q4_0 value by value, as the format is told: the plain version that the fast one must equal."""

import math
import struct
from collections.abc import Sequence

GROUP = 32


def float32(number: float) -> float:
    """The nearest float32; what is beyond the largest is infinite."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def inverse(scale: float) -> float:
    """1 / d in float32, zero for a scale of zero; infinite for a scale so small that all codes are 0."""
    return float32(1 / scale) if scale else 0.0


def encode_q8_0(values: Sequence[float]) -> bytes:
    """The blocks of float32 values; OverflowError where FP16 cannot hold a scale."""
    blocks = b""
    for group in groups(values):
        scale = float32(max(map(abs, group)) / 127)
        codes = []
        for value in group:
            exact = 0.0 if math.isinf(inverse(scale)) else float32(value * inverse(scale))
            whole = math.trunc(exact)
            codes.append(whole + int(math.copysign(abs(exact - whole) >= 0.5, exact)))
        blocks += struct.pack("<e32b", scale, *codes)
    return blocks


def encode_q4_0(values: Sequence[float]) -> bytes:
    """The blocks of float32 values; OverflowError where FP16 cannot hold a scale."""
    blocks = b""
    for group in groups(values):
        scale = float32(max(group, key=abs) / -8)
        codes = [0] * GROUP
        if not math.isinf(inverse(scale)):
            codes = [min(15, math.trunc(float32(float32(value * inverse(scale)) + 8.5))) for value in group]
        blocks += struct.pack("<e16B", scale, *(codes[at] + 16 * codes[at + 16] for at in range(16)))
    return blocks


def decode_q8_0(blocks: bytes) -> list[float]:
    """The values of blocks, each a float32."""
    read = []
    for scale, *codes in struct.iter_unpack("<e32b", blocks):
        read += [float32(code * scale) for code in codes]
    return read


def decode_q4_0(blocks: bytes) -> list[float]:
    """The values of blocks, each a float32."""
    read = []
    for scale, *pairs in struct.iter_unpack("<e16B", blocks):
        codes = [pair % 16 for pair in pairs] + [pair // 16 for pair in pairs]
        read += [float32((code - 8) * scale) for code in codes]
    return read


def groups(values: Sequence[float]) -> list[Sequence[float]]:
    """The values, 32 at a time."""
    return [values[first : first + GROUP] for first in range(0, len(values), GROUP)]
