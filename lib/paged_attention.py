"""Attention that follows a block table: KV in scattered blocks gives what the same KV in one piece gives.

Queries are [new, heads, head_dim], keys and values [tokens, kv_heads, head_dim]; the new tokens are the last of the
sequence, and each sees itself and all before it. Head h reads KV head h // (heads / kv_heads).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib.blocks import MOST_BLOCKS
from lib.checks import InputError, whole
from lib.paging import MOST_BLOCK_TOKENS, Copy

Array = np.ndarray[Any, np.dtype[Any]]
Format = Callable[[Array], Array]
MOST_ELEMENTS = 2**26


def exact(values: Array) -> Array:
    """The format that loses nothing."""
    return values


@dataclass(frozen=True)
class Formats:
    """What storage does to queries, keys and values: each takes an array and gives it back as it can be read again."""

    query: Format = exact
    key: Format = exact
    value: Format = exact


EXACT = Formats()


class KvBlocks:
    """The KV of one layer in the blocks of a pool: [blocks, block_tokens, kv_heads, head_dim], keys and values.

    The pool says where: `pool.slots_to_write` which slots to fill, a `Copy` which block to copy.
    """

    def __init__(self, blocks: int, block_tokens: int, kv_heads: int, head_dim: int) -> None:
        shape = (
            whole("blocks", blocks, at_least=1, at_most=MOST_BLOCKS),
            whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS),
            whole("kv_heads", kv_heads, at_least=1, at_most=MOST_ELEMENTS),
            whole("head_dim", head_dim, at_least=1, at_most=MOST_ELEMENTS),
        )
        whole("elements", int(np.prod(shape, dtype=object)), at_most=MOST_ELEMENTS)
        # Never written means not a number: reading a wrong slot shows.
        self.keys, self.values = np.full(shape, np.nan), np.full(shape, np.nan)

    def write(self, slots: Iterable[int], keys: Array, values: Array) -> None:
        """Put the KV of one token into each slot, block x block_tokens + offset."""
        blocks, block_tokens, *rest = self.keys.shape
        at = np.array([whole("slots", slot, at_most=blocks * block_tokens - 1) for slot in slots], np.int64)
        for name, given in (("keys", keys), ("values", values)):
            if np.shape(given) != (len(at), *rest):
                raise InputError(name, np.shape(given), f"the shape {(len(at), *rest)}")
            if np.asarray(given).dtype.kind not in "iuf":
                raise InputError(name, given, "real numbers")
        self.keys[at // block_tokens, at % block_tokens] = keys
        self.values[at // block_tokens, at % block_tokens] = values

    def copy(self, copy: Copy) -> None:
        """Do the copy that a pool asks for before a shared block is written."""
        source, target = (whole("copy", block, at_most=len(self.keys) - 1) for block in copy)
        self.keys[target] = self.keys[source]
        self.values[target] = self.values[source]


def attend(queries: Array, keys: Array, values: Array, formats: Formats = EXACT) -> Array:
    """Causal attention over KV in one piece, [new, heads, head_dim]: softmax(q k / sqrt(head_dim)) v.

    Raises InputError for shapes that do not fit. Source: section 8.3.1.
    """
    _check_shapes(queries, keys.shape)
    if keys.shape != values.shape:
        raise InputError("values", values.shape, f"the shape of the keys, {keys.shape}")
    scores = _scores(formats.query(queries), len(keys), formats.key(keys), first=0)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.einsum("nkgt,tkd->nkgd", weights, formats.value(values))).reshape(queries.shape)


def paged_attend(queries: Array, kv: KvBlocks, table: Sequence[int], length: int, formats: Formats = EXACT) -> Array:
    """Causal attention over the first `length` tokens of a block table, block after block, [new, heads, head_dim].

    Each block adds its share to a running sum; when a larger score comes, what was summed is scaled down. No copy of
    the sequence in one piece is ever made. Raises InputError for shapes, blocks and lengths that do not fit.
    Source: section 8.3.1, figure 8-10.
    """
    blocks, block_tokens, *rest = kv.keys.shape
    length = whole("length", length, at_least=1, at_most=len(table) * block_tokens)
    _check_shapes(queries, (length, *rest))
    for block in table:
        whole("table", block, at_most=blocks - 1)
    queries_read = formats.query(queries)
    largest, total, summed = np.array(-np.inf), np.array(0.0), np.array(0.0)
    for first, block in zip(range(0, length, block_tokens), table, strict=False):
        filled = min(block_tokens, length - first)
        scores = _scores(queries_read, length, formats.key(kv.keys[block, :filled]), first)
        before, largest = largest, np.maximum(largest, scores.max(axis=-1, keepdims=True))
        weights, shrunk = np.exp(scores - largest), np.exp(before - largest)
        total = total * shrunk + weights.sum(axis=-1, keepdims=True)
        share = np.einsum("nkgt,tkd->nkgd", weights, formats.value(kv.values[block, :filled]))
        summed = summed * shrunk + share
    return np.asarray(summed / total).reshape(queries.shape)


def _scores(queries: Array, length: int, keys: Array, first: int) -> Array:
    """Scores [new, kv_heads, heads of each, keys] of keys that begin at a position; minus infinity where none looks."""
    new, heads, head_dim = queries.shape
    grouped = queries.reshape(new, keys.shape[1], heads // keys.shape[1], head_dim)
    scores = np.einsum("nkgd,tkd->nkgt", grouped, keys) / np.sqrt(head_dim)
    own_position = np.arange(length - new, length)[:, None, None, None]
    return np.where(first + np.arange(len(keys)) > own_position, -np.inf, scores)


def _check_shapes(queries: Array, kv_shape: tuple[int, ...]) -> None:
    if len(kv_shape) != 3 or 0 in kv_shape:
        raise InputError("keys", kv_shape, "a shape [tokens, kv_heads, head_dim] without a zero")
    tokens, kv_heads, head_dim = kv_shape
    is_right = queries.ndim == 3 and 0 < queries.shape[0] <= tokens and queries.shape[1] > 0
    if not is_right or queries.shape[1] % kv_heads or queries.shape[2] != head_dim:
        allowed = f"[1 to {tokens} new tokens, a multiple of {kv_heads} heads, {head_dim}]"
        raise InputError("queries", queries.shape, allowed)
