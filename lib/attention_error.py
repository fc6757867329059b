"""How far the output of attention is off when queries, keys or values are stored in a format that loses something.

Test data are drawn by chance, the same in every run. Many models have a few channels in which the keys of all tokens
are large. A softmax does not see what all keys have in common, so here the exact output is the same with such channels
and without, and what differs is the error of storage alone. Source: sections 8.4.2 and 8.4.4.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lib.checks import one_of
from lib.paged_attention import attend

Array = np.ndarray[Any, np.dtype[Any]]
# Takes the numbers of each token, [tokens, all heads x head_dim] float32, and gives what is read again.
Format = Callable[[Array], Array]

TOKENS, ASKING, HEADS, HEAD_DIM, SEED = 256, 16, 2, 128, 8
# In these channels of each head the keys of all tokens are around this size, in all others around 0; all spread by 1.
LARGE_CHANNELS, LARGE = (5, 37), 16


class Data(StrEnum):
    """How the keys are drawn."""

    NORMAL = "normal"
    LARGE_KEY_CHANNELS = "with large key channels"


class _Drawn(NamedTuple):
    """Queries [asking, heads, head_dim], keys and values [tokens, heads, head_dim], and what attention gives."""

    queries: Array
    keys: Array
    values: Array
    output: Array


def exact(numbers: Array) -> Array:
    """The format that loses nothing."""
    return numbers


def attention_error(data: Data, query: Format = exact, key: Format = exact, value: Format = exact) -> float:
    """The error of the output relative to the output, both as root mean squares, if each part is read from a format.

    Raises InputError for unknown data. Source: sections 8.4.2 and 8.4.4.
    """
    drawn = _drawn(one_of("data", data, Data))
    read = [_as_read(part, numbers) for part, numbers in zip((query, key, value), drawn, strict=False)]
    return float(np.linalg.norm(attend(*read) - drawn.output) / np.linalg.norm(drawn.output))


@cache
def _drawn(data: Data) -> _Drawn:
    draw = np.random.default_rng(SEED)
    queries = draw.normal(size=(ASKING, HEADS, HEAD_DIM)).astype(np.float32)
    keys, values = draw.normal(size=(2, TOKENS, HEADS, HEAD_DIM)).astype(np.float32)
    if data is Data.LARGE_KEY_CHANNELS:
        keys[..., LARGE_CHANNELS] += np.float32(LARGE)
    return _Drawn(queries, keys, values, attend(*(part.astype(np.float64) for part in (queries, keys, values))))


def _as_read(part: Format, numbers: Array) -> Array:
    return part(numbers.reshape(len(numbers), -1)).astype(np.float64).reshape(numbers.shape)
