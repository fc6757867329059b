"""The public block formats q8_0 and q4_0, byte for byte: 32 values share one FP16 scale.

Values are float32 [..., a multiple of 32], blocks uint8 [..., as many times 34 or 18 bytes]. All arithmetic is float32,
each operation rounded for itself. Codes are made with the scale as it is before it is stored as FP16.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lib.checks import InputError
from lib.quantization import Q4_0, Q8_0, GroupFormat

Array = np.ndarray[Any, np.dtype[Any]]

# FP16 rounds to infinity from here on.
SCALE_BEYOND_FP16 = 65_520
# So many groups, and all that is made of them, stay in a core's second cache.
_PIECE = 2048
# A nameless item of bytes moves in one go, and with it all codes of a group.
_Q8_0 = np.dtype([("scale", "<f2"), ("codes", "V32")])
_Q4_0 = np.dtype([("scale", "<f2"), ("codes", "V16")])
_SIGN = np.uint32(1 << 31)
# The float32 below a half: it brings a half to 1, and leaves what is less than a half below 1.
_HALF = np.float32(0.5 - 2**-25).view(np.uint32)
_LOW_NIBBLES = np.uint64(0x0F0F_0F0F_0F0F_0F0F)


def encode_q8_0(values: Array, out: Array | None = None) -> Array:
    """Blocks of values: d = max |x| / 127, codes x (1 / d) rounded to the nearest, halves away from zero.

    Raises InputError for other shapes and types, and for values that are not finite or whose scale FP16 cannot hold;
    `out` is then as it was. Source: section 8.4.2; the public format.
    """
    groups = _groups_of_values(values, Q8_0)
    blocks = _room(out, (*values.shape[:-1], Q8_0.bytes_of(values.shape[-1])), np.uint8, values)
    stored, largest = blocks.reshape(-1).view(_Q8_0), np.empty(len(groups), np.float32)
    scratch, codes = np.empty((_PIECE, 32), np.uint32), np.empty((_PIECE, 32), np.int8)
    for piece in _pieces(groups):
        magnitudes = np.bitwise_and(groups[piece].view(np.uint32), ~_SIGN, out=scratch[: _length(piece)])
        largest[piece] = _largest_bits(magnitudes).view(np.float32)
    inverse, stored_codes = _store_scales(largest / np.float32(127), stored, groups), stored["codes"]
    for piece in _pieces(groups):
        some, half = codes[: _length(piece)], scratch[: _length(piece)]
        quotients = _for_each(inverse[piece])
        np.multiply(groups[piece], quotients, out=quotients)
        np.bitwise_and(quotients.view(np.uint32), _SIGN, out=half)
        np.bitwise_or(half, _HALF, out=half)
        np.add(quotients, half.view(np.float32), out=quotients)
        np.copyto(some, quotients, casting="unsafe")
        stored_codes[piece] = some.view("V32")[:, 0]
    return blocks


@np.errstate(invalid="ignore")  # a scale may be infinite, a code zero
def decode_q8_0(blocks: Array, out: Array | None = None) -> Array:
    """Values of blocks, code x d. Raises InputError for other shapes and types. Source: section 8.4.2."""
    stored, values = _stored(blocks, Q8_0, _Q8_0), _room(out, _shape_of_values(blocks, Q8_0), np.float32, blocks)
    groups, codes = values.reshape(-1, 32), np.empty((_PIECE, 32), np.int8)
    scales, stored_codes = stored["scale"].astype(np.float32), stored["codes"]
    for piece in _pieces(groups):
        some, read = codes[: _length(piece)], groups[piece]
        some.view("V32")[:, 0] = stored_codes[piece]
        np.copyto(read, some)
        np.multiply(read, _for_each(scales[piece]), out=read)
    return values


def encode_q4_0(values: Array, out: Array | None = None) -> Array:
    """Blocks of values: d = m / -8 and codes min(15, trunc(x (1 / d) + 8.5)), m the value of the largest magnitude.

    Of equal magnitudes the first counts. The low nibble of byte i has value i, the high one value i + 16.
    Raises InputError for other shapes and types, and for values that are not finite or whose scale FP16 cannot hold;
    `out` is then as it was. Source: section 8.4.2; the public format.
    """
    groups = _groups_of_values(values, Q4_0)
    blocks = _room(out, (*values.shape[:-1], Q4_0.bytes_of(values.shape[-1])), np.uint8, values)
    stored = blocks.reshape(-1).view(_Q4_0)
    scales = _first_of_largest(groups) / np.float32(-8)
    inverse = _store_scales(scales, stored, groups)
    # Two arrays of one shape have a fast minimum, an array and a number have not.
    codes, most = np.empty((_PIECE, 32), np.uint8), np.full((_PIECE, 32), 15, np.uint8)
    nibbles, stored_codes = np.empty((2, _PIECE, 16), np.uint8), stored["codes"]
    for piece in _pieces(groups):
        some, halves = codes[: _length(piece)], nibbles[:, : _length(piece)]
        quotients = _for_each(inverse[piece])
        np.multiply(groups[piece], quotients, out=quotients)
        np.add(quotients, np.float32(8.5), out=quotients)
        np.copyto(some, quotients, casting="unsafe")
        np.minimum(some, most[: _length(piece)], out=some)
        halves.view("V16")[:, :, 0] = some.view("V16").T
        low, high = halves.view(np.uint64)
        np.left_shift(high, 4, out=high)
        np.bitwise_or(low, high, out=low)
        stored_codes[piece] = low.view("V16")[:, 0]
    stored_codes[(inverse == 0) & (scales != 0)] = np.void(bytes(16))
    return blocks


@np.errstate(invalid="ignore")  # a scale may be infinite, a code zero
def decode_q4_0(blocks: Array, out: Array | None = None) -> Array:
    """Values of blocks, (code - 8) x d. Raises InputError for other shapes and types. Source: section 8.4.2."""
    stored, values = _stored(blocks, Q4_0, _Q4_0), _room(out, _shape_of_values(blocks, Q4_0), np.float32, blocks)
    groups, codes, nibbles = (
        values.reshape(-1, 32),
        np.empty((_PIECE, 32), np.int8),
        np.empty((2, _PIECE, 16), np.uint8),
    )
    scales, stored_codes = stored["scale"].astype(np.float32), stored["codes"]
    for piece in _pieces(groups):
        some, halves, read = codes[: _length(piece)], nibbles[:, : _length(piece)], groups[piece]
        low, high = words = halves.view(np.uint64)
        low.view("V16")[:, 0] = stored_codes[piece]
        np.right_shift(low, 4, out=high)
        np.bitwise_and(words, _LOW_NIBBLES, out=words)
        some.view("V16")[...] = halves.view("V16")[:, :, 0].T
        np.subtract(some, 8, out=some)
        np.copyto(read, some)
        np.multiply(read, _for_each(scales[piece]), out=read)
    return values


def _groups_of_values(values: Array, layout: GroupFormat) -> Array:
    is_right = isinstance(values, np.ndarray) and values.dtype == np.float32 and values.ndim
    if not is_right or values.shape[-1] % layout.group_values:
        raise InputError("values", values, f"float32 numbers [..., a multiple of {layout.group_values}]")
    return np.ascontiguousarray(values).reshape(-1, layout.group_values)


def _stored(blocks: Array, layout: GroupFormat, item: np.dtype[Any]) -> Array:
    is_right = isinstance(blocks, np.ndarray) and blocks.dtype == np.uint8 and blocks.ndim
    if not is_right or blocks.shape[-1] % layout.group_bytes:
        raise InputError("blocks", blocks, f"bytes, uint8 [..., a multiple of {layout.group_bytes}]")
    return np.ascontiguousarray(blocks).reshape(-1).view(item)


def _shape_of_values(blocks: Array, layout: GroupFormat) -> tuple[int, ...]:
    return *blocks.shape[:-1], blocks.shape[-1] // layout.group_bytes * layout.group_values


def _room(out: Array | None, shape: tuple[int, ...], dtype: type[np.generic], read: Array) -> Array:
    if out is None:
        return np.empty(shape, dtype)
    is_right = isinstance(out, np.ndarray) and out.dtype == dtype and out.shape == shape
    if not is_right or not out.flags.c_contiguous or not out.flags.writeable:
        raise InputError("out", out, f"{dtype.__name__} {shape} in one piece that may be written")
    if np.may_share_memory(out, read):  # what is still to be read would be written over
        raise InputError("out", out, "room that shares no memory with what is read")
    return out


def _pieces(groups: Array) -> Iterator[slice]:
    return (slice(first, min(first + _PIECE, len(groups))) for first in range(0, len(groups), _PIECE))


def _length(piece: slice) -> int:
    return int(piece.stop - piece.start)


def _largest_bits(groups: Array) -> Array:
    """The largest of each group as integers: many times as fast as that of floats, and the same without a sign."""
    return np.maximum.reduceat(groups.reshape(-1), np.arange(0, groups.size, groups.shape[1]))


def _first_of_largest(groups: Array) -> Array:
    """The value of the largest magnitude in each group, with its sign; the first where a negative one is as large."""
    positive, negative = _largest_bits(groups.view(np.int32)), _largest_bits(groups.view(np.uint32))
    # Without the sign; a group without negative values gets less than any magnitude.
    beside = (negative ^ _SIGN).view(np.int32)
    signed = np.where(positive > beside, positive, negative.view(np.int32)).view(np.float32)
    (alike,) = np.nonzero(positive == beside)
    signed[alike] = groups[alike, np.abs(groups[alike]).argmax(axis=1)]
    return signed


def _store_scales(scales: Array, stored: Array, groups: Array) -> Array:
    """Store the scales of all groups and give what to multiply by, one for each; refuse if any cannot be stored.

    Below 3e-39 the inverse of a scale is infinite. What the public code does then C does not define; on usual machines
    all codes of the group are 0, and as the scale is stored as zero too, it reads as zeros. Zero is what is given here.
    """
    is_right = np.abs(scales) < SCALE_BEYOND_FP16
    if not is_right.all():
        wrong = groups[is_right.argmin()]
        most = f"finite numbers whose scale FP16 can hold, below {SCALE_BEYOND_FP16:,}"
        raise InputError("values", float(wrong[np.abs(wrong).argmax()]), most)
    stored["scale"] = scales
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / scales
    inverse[np.isinf(inverse)] = 0
    return inverse


def _for_each(scales: Array) -> Array:
    """A scale for each value: to repeat it and to multiply equal shapes is faster than to broadcast."""
    return np.repeat(scales, 32).reshape(-1, 32)
