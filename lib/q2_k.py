"""Q2_K: 256 values with codes of 2 bits, in 16 groups that each have a scale and a minimum of 4 bits.

A block is 84 bytes: 16 of scales, low nibble, and minima, high nibble; 64 of codes; d and dmin, FP16. A value is
d x scale x code - dmin x minimum. Of each half of a block, 32 bytes of codes hold four runs of 32 values, the first
in the lowest two bits. The bytes of an encoder are its own choice: this one's are those of no other, and its error is
what counts. Source: section 8.4.1; the public format.
"""

from itertools import product
from typing import Any

import numpy as np

from lib.checks import InputError
from lib.quantization import Q2_K

Array = np.ndarray[Any, np.dtype[Any]]

GROUPS, GROUP_VALUES = 16, 16
MOST_CODE, MOST_SCALE = 3, 15
_BLOCK = np.dtype([("scales", "u1", GROUPS), ("codes", "u1", (2, 32)), ("d", "<f2"), ("dmin", "<f2")])
_LARGEST_FP16 = np.finfo(np.float16).max
# Where in a byte the code of each run stands; [blocks, 2, 4, 32] is the order of the values.
_SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)[:, None]


def decode_q2_k(blocks: Array) -> Array:
    """Values of blocks, uint8 [..., a multiple of 84], as float32 [..., as many times 256].

    Raises InputError for other shapes and types. Source: section 8.4.1.
    """
    is_right = isinstance(blocks, np.ndarray) and blocks.dtype == np.uint8 and blocks.ndim
    if not is_right or blocks.shape[-1] % Q2_K.group_bytes:
        raise InputError("blocks", blocks, f"bytes, uint8 [..., a multiple of {Q2_K.group_bytes}]")
    stored = np.ascontiguousarray(blocks).reshape(-1).view(_BLOCK)
    codes = stored["codes"][:, :, None] >> _SHIFTS & MOST_CODE
    with np.errstate(invalid="ignore"):  # d may be infinite where nobody encoded
        steps, offsets = _d(stored) * (stored["scales"] & 15), _dmin(stored) * (stored["scales"] >> 4)
        values = _read(codes.reshape(-1, GROUPS, GROUP_VALUES), steps, offsets)
    return values.reshape(*blocks.shape[:-1], blocks.shape[-1] // Q2_K.group_bytes * Q2_K.group_values)


def encode_q2_k(values: Array) -> Array:
    """Blocks of values, float32 [..., a multiple of 256].

    d and dmin just fit the widest group of a block and the lowest. Each group then takes the one of all 256 pairs of a
    scale and a minimum that has the least squared error. Raises InputError for other shapes and types, and for values
    that are not finite or whose d FP16 cannot hold. Source: section 8.4.1.
    """
    is_right = isinstance(values, np.ndarray) and values.dtype == np.float32 and values.ndim
    if not is_right or values.shape[-1] % Q2_K.group_values:
        raise InputError("values", values, f"float32 numbers [..., a multiple of {Q2_K.group_values}]")
    groups = values.reshape(-1, GROUPS, GROUP_VALUES)
    lowest = np.maximum(-groups.min(axis=2), 0).max(axis=1)
    with np.errstate(over="ignore"):  # a range beyond float32 is infinite, and refused below
        widest = (np.maximum(groups.max(axis=2), 0) - np.minimum(groups.min(axis=2), 0)).max(axis=1)
    d, dmin = widest / np.float32(MOST_CODE * MOST_SCALE), lowest / np.float32(MOST_SCALE)
    if not (np.maximum(d, dmin) <= _LARGEST_FP16).all():
        raise InputError("values", float(values.flat[np.abs(values).argmax()]), "finite numbers whose d FP16 can hold")
    stored = np.empty(len(groups), _BLOCK)
    stored["d"], stored["dmin"] = d, dmin
    scales, minima, codes = _best_fit(groups, _d(stored), _dmin(stored))
    stored["scales"] = scales | minima << 4
    stored["codes"] = np.bitwise_or.reduce(codes.reshape(-1, 2, 4, 32) << _SHIFTS, axis=2)
    return stored.view(np.uint8).reshape(*values.shape[:-1], Q2_K.bytes_of(values.shape[-1]))


def _d(stored: Array) -> Array:
    return stored["d"].astype(np.float32)[:, None]


def _dmin(stored: Array) -> Array:
    return stored["dmin"].astype(np.float32)[:, None]


def _read(codes: Array, steps: Array, offsets: Array) -> Array:
    """Step x code - offset: codes [blocks, groups, values], steps and offsets [blocks, groups or 1]."""
    return np.asarray(steps[..., None] * codes - offsets[..., None], np.float32)


def _best_fit(groups: Array, d: Array, dmin: Array) -> tuple[Array, Array, Array]:
    """Scale and minimum of each group, and the codes of its values, with the least squared error, all uint8."""
    least = np.full(groups.shape[:2], np.inf)
    scales, minima = np.zeros((2, *groups.shape[:2]), np.uint8)
    best_codes = np.zeros(groups.shape, np.uint8)
    for scale, minimum in product(range(MOST_SCALE + 1), repeat=2):
        steps, offsets = d * np.float32(scale), dmin * np.float32(minimum)
        # Without a step all codes read the same.
        codes = np.rint((groups + offsets[..., None]) / np.where(steps, steps, 1)[..., None]).clip(0, MOST_CODE)
        error = np.square(groups - _read(codes, steps, offsets)).sum(axis=2)
        better = error < least
        least[better], scales[better], minima[better] = error[better], scale, minimum
        best_codes[better] = codes[better]
    return scales, minima, best_codes
