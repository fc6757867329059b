"""Two short float formats: BF16, the upper half of a float32, and FP8 E4M3 with one scale for all values.

E4M3 is the kind without infinities: a sign, four bits of exponent, three of mantissa, at most 448 in magnitude; 0x7F
and 0xFF are not a number. Values are float32 of any shape. Source: sections 8.4.2 and 8.4.4.
"""

from typing import Any

import numpy as np

from lib.checks import InputError, finite

Array = np.ndarray[Any, np.dtype[Any]]

E4M3_LARGEST, E4M3_NAN, E4M3_SIGN = np.float32(448), np.uint8(0x7F), np.uint8(0x80)
# The exponent of 1 is 7 in E4M3 and 127 in float32.
_FIRST_EXPONENT, _LEAST_NORMAL, _STEP = 127 - 7, np.float32(2**-6), np.float32(2**-9)
# A scale of this range, times any code, is a number of full precision in float32.
LEAST_SCALE, LARGEST_SCALE = 2.0**-60, 2.0**60


def encode_bf16(values: Array) -> Array:
    """The nearest BF16 as uint16, of two that are equally near the even one; what is beyond the largest is infinite.

    Raises InputError for what is no array of float32. Source: section 8.4.2.
    """
    bits = _float32(values).view(np.uint32)
    # Rounding could carry a NaN up to a zero: it keeps its upper half, and a bit that says that it is none.
    return np.where(np.isnan(values), bits >> 16 | 0x40, _rounded_off(bits, 16)).astype(np.uint16)


def decode_bf16(codes: Array) -> Array:
    """The float32 of each BF16. Raises InputError for what is no array of uint16. Source: section 8.4.2."""
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint16:
        raise InputError("codes", codes, "an array of uint16")
    return np.asarray(codes.astype(np.uint32) << 16).view(np.float32)


def encode_e4m3(values: Array, scale: float = 1) -> Array:
    """The E4M3 nearest to each value / scale as uint8, of two that are equally near the even one.

    What is beyond 448, and infinity too, becomes 448. Raises InputError for what is no array of float32 and for a scale
    that makes no sense. Source: section 8.4.4.
    """
    with np.errstate(over="ignore"):
        quotients = _float32(values) / _scale(scale)
    magnitudes = np.fmin(np.abs(quotients), E4M3_LARGEST)
    # Exponent and mantissa of a float32, down to three bits, are the code but for where the exponent begins; below the
    # least normal number codes are steps of the same size.
    normal = _rounded_off(magnitudes.view(np.uint32), 20) - np.uint32(_FIRST_EXPONENT << 3)
    codes = np.where(magnitudes < _LEAST_NORMAL, np.rint(magnitudes / _STEP), normal).astype(np.uint8)
    signs = np.where(np.signbit(quotients), E4M3_SIGN, np.uint8(0))
    return np.asarray(np.where(np.isnan(quotients), E4M3_NAN, codes) | signs)


def decode_e4m3(codes: Array, scale: float = 1) -> Array:
    """Code x scale as float32. Raises InputError for what is no array of uint8 and for a scale that makes no sense.

    Source: section 8.4.4.
    """
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8:
        raise InputError("codes", codes, "an array of uint8")
    return np.asarray(_E4M3[codes] * _scale(scale))


def _rounded_off(bits: Array, count: int) -> Array:
    """The bits without the last `count`, which are rounded to the nearest, of two that are equally near to the even."""
    return np.asarray((bits + (bits >> count & 1) + np.uint32((1 << count - 1) - 1)) >> count)


def _float32(values: Array) -> Array:
    if not isinstance(values, np.ndarray) or values.dtype != np.float32:
        raise InputError("values", values, "an array of float32")
    return values


def _scale(scale: float) -> np.float32:
    allowed = f"a number from {LEAST_SCALE:.0e} to {LARGEST_SCALE:.0e}"
    if finite("scale", scale, LEAST_SCALE, allowed) > LARGEST_SCALE:
        raise InputError("scale", scale, allowed)
    return np.float32(scale)


def _all_e4m3() -> Array:
    """What each of the 256 codes stands for."""
    exponents, mantissas = np.divmod(np.arange(E4M3_NAN), 8)
    # Where the exponent is 0 there is no leading 1, and the exponent counts as 1.
    magnitudes = np.where(exponents, 8 + mantissas, mantissas) * _STEP * 2.0 ** (np.maximum(exponents, 1) - 1)
    return np.concatenate([magnitudes, [np.nan], -magnitudes, [np.nan]]).astype(np.float32)


_E4M3 = _all_e4m3()
