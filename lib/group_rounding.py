"""What numbers become in a format that stores groups of them: codes of some bits, and one scale.

The rules are those of the public formats, for other sizes too: with 8 bits that of q8_0, with fewer that of q4_0.
Source: section 8.4.2, figure 8-23.
"""

from typing import Any

import numpy as np

from lib.checks import InputError, one_of, whole
from lib.float_formats import E4M3_LARGEST, decode_e4m3, encode_e4m3
from lib.quantization import GroupFormat

Array = np.ndarray[Any, np.dtype[Any]]

FEWEST_BITS, MOST_BITS = 2, 8
# A scale is stored as FP8 E4M3, FP16 or float32.
SCALE_BYTES = (1, 2, 4)


def as_read_in(layout: GroupFormat, values: Array) -> Array:
    """Values as they are read again from a group format with one scale: float32, [..., a multiple of the group].

    Codes are made with the scale as it is before it is rounded to what is stored. Raises InputError for other code bits
    than 2 to 8, for other scales than of 1, 2 or 4 bytes, for values that are no float32 in whole groups, and for those
    whose scale cannot be stored. Source: section 8.4.2.
    """
    bits = whole("code_bits", layout.code_bits, at_least=FEWEST_BITS, at_most=MOST_BITS)
    scale_bytes = one_of("metadata_bytes", layout.metadata_bytes, SCALE_BYTES)
    is_right = isinstance(values, np.ndarray) and values.dtype == np.float32 and values.ndim
    if not is_right or values.shape[-1] % layout.group_values:
        raise InputError("values", values, f"float32 numbers [..., a multiple of {layout.group_values}]")
    groups = values.reshape(-1, layout.group_values)
    place = np.abs(groups).argmax(axis=1)[:, None]
    scales = _scales(np.take_along_axis(groups, place, axis=1), bits)
    stored = _as_stored(scales, scale_bytes)
    if not np.isfinite(stored).all():
        wrong = values.flat[np.abs(values).argmax()]
        raise InputError("values", float(wrong), f"finite numbers whose scale {scale_bytes} bytes can hold")
    return (_codes(groups, scales, bits) * stored).reshape(values.shape)


def _scales(largest: Array, bits: int) -> Array:
    """One step between codes: with 8 bits they go from -127 to 127, with fewer the largest gets the lowest code."""
    return np.abs(largest) / np.float32(127) if bits == MOST_BITS else largest / np.float32(-(2 ** (bits - 1)))


def _codes(groups: Array, scales: Array, bits: int) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / scales
    exact = groups * np.where(np.isinf(inverse), np.float32(0), inverse)
    if bits == MOST_BITS:
        return np.asarray(np.trunc(exact + np.copysign(np.nextafter(np.float32(0.5), np.float32(0)), exact)))
    middle = 2 ** (bits - 1)
    return np.minimum(np.trunc(exact + np.float32(middle + 0.5)), np.float32(2 * middle - 1)) - np.float32(middle)


def _as_stored(scales: Array, scale_bytes: int) -> Array:
    if scale_bytes == 1:  # a scale cut to the largest would read other values
        return np.where(np.abs(scales) > E4M3_LARGEST, np.float32(np.inf), decode_e4m3(encode_e4m3(scales)))
    with np.errstate(over="ignore"):
        return scales.astype(np.float16 if scale_bytes == 2 else np.float32).astype(np.float32)
