"""Attention that follows a block table: KV in scattered blocks gives what the same KV in one piece gives.

Queries are [new, heads, head_dim], keys and values [tokens, kv_heads, head_dim]; the new tokens are the last of the
sequence, and each sees itself and all before it. Head h reads KV head h // (heads / kv_heads).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lib.blocks import MOST_BLOCKS
from lib.checks import InputError, whole
from lib.codecs import FLOAT64, Codec
from lib.paging import MOST_BLOCK_TOKENS, Copy

Array = np.ndarray[Any, np.dtype[Any]]
MOST_ELEMENTS = 2**26


class Stored:
    """Keys or values as bytes in a format: [blocks, block_tokens, kv_heads, bytes of head_dim numbers].

    `stored[block]` gives the numbers that are read there, and so does any index that leaves the last axis whole.
    """

    def __init__(self, codec: Codec, blocks: int, block_tokens: int, kv_heads: int, head_dim: int) -> None:
        self.codec = codec
        # Never written means not a number, in every format: reading a wrong slot shows.
        self.bytes = np.full((blocks, block_tokens, kv_heads, codec.bytes_of(head_dim)), 0xFF, np.uint8)

    def __getitem__(self, at: Any) -> Array:
        return self.codec.decode(self.bytes[at])


class KvBlocks:
    """The KV of one layer in the blocks of a pool, keys and values each in a format of its own.

    Each head's numbers of a token are stored for themselves. The pool says where: `pool.slots_to_write` which slots to
    fill, a `Copy` which block to copy. Raises InputError for sizes that make no sense, such as a
    `head_dim` that does not fill whole groups of a format. Source: sections 8.3.1 and 8.4.2.
    """

    def __init__(
        self,
        blocks: int,
        block_tokens: int,
        kv_heads: int,
        head_dim: int,
        key: Codec = FLOAT64,
        value: Codec = FLOAT64,
    ) -> None:
        self.shape = (
            whole("blocks", blocks, at_least=1, at_most=MOST_BLOCKS),
            whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS),
            whole("kv_heads", kv_heads, at_least=1, at_most=MOST_ELEMENTS),
            whole("head_dim", head_dim, at_least=1, at_most=MOST_ELEMENTS),
        )
        whole("elements", int(np.prod(self.shape, dtype=object)), at_most=MOST_ELEMENTS)
        for name, codec in (("key", key), ("value", value)):
            if not isinstance(codec, Codec):
                raise InputError(name, codec, "a format, such as lib.codecs.BF16")
            if self.shape[-1] % codec.layout.group_values:
                raise InputError("head_dim", head_dim, f"a multiple of {codec.layout.group_values} for {codec.name}")
        self.keys, self.values = Stored(key, *self.shape), Stored(value, *self.shape)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block, keys and values: what it takes of the memory, and what a copy moves."""
        return int(self.keys.bytes[0].nbytes + self.values.bytes[0].nbytes)

    def write(self, slots: Iterable[int], keys: Array, values: Array) -> None:
        """Put the KV of one token into each slot, block x block_tokens + offset.

        Raises InputError for slots, shapes and numbers that do not fit; nothing is written then.
        """
        blocks, block_tokens, *rest = self.shape
        at = np.array([whole("slots", slot, at_most=blocks * block_tokens - 1) for slot in slots], np.int64)
        shape = (len(at), *rest)
        encoded = [_encoded(*each, shape) for each in (("keys", self.keys, keys), ("values", self.values, values))]
        for stored, given in zip((self.keys, self.values), encoded, strict=True):
            stored.bytes[at // block_tokens, at % block_tokens] = given

    def copy(self, copy: Copy) -> None:
        """Do the copy that a pool asks for before a shared block is written."""
        source, target = (whole("copy", block, at_most=self.shape[0] - 1) for block in copy)
        for stored in (self.keys, self.values):
            stored.bytes[target] = stored.bytes[source]


def attend(queries: Array, keys: Array, values: Array) -> Array:
    """Causal attention over KV in one piece, [new, heads, head_dim]: softmax(q k / sqrt(head_dim)) v.

    Raises InputError for shapes that do not fit. Source: section 8.3.1.
    """
    _check_shapes(queries, keys.shape)
    if keys.shape != values.shape:
        raise InputError("values", values.shape, f"the shape of the keys, {keys.shape}")
    scores = _scores(queries, len(keys), keys, first=0)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.einsum("nkgt,tkd->nkgd", weights, values)).reshape(queries.shape)


def paged_attend(queries: Array, kv: KvBlocks, table: Sequence[int], length: int) -> Array:
    """Causal attention over the first `length` tokens of a block table, block after block, [new, heads, head_dim].

    Each block adds its share to a running sum; when a larger score comes, what was summed is scaled down. No copy of
    the sequence in one piece is ever made. Raises InputError for shapes, blocks and lengths that do not fit.
    Source: section 8.3.1, figure 8-10.
    """
    blocks, block_tokens, *rest = kv.shape
    length = whole("length", length, at_least=1, at_most=len(table) * block_tokens)
    _check_shapes(queries, (length, *rest))
    for block in table:
        whole("table", block, at_most=blocks - 1)
    largest, total, summed = np.array(-np.inf), np.array(0.0), np.array(0.0)
    for first, block in zip(range(0, length, block_tokens), table, strict=False):
        filled = min(block_tokens, length - first)
        scores = _scores(queries, length, kv.keys[block, :filled], first)
        before, largest = largest, np.maximum(largest, scores.max(axis=-1, keepdims=True))
        weights, shrunk = np.exp(scores - largest), np.exp(before - largest)
        total = total * shrunk + weights.sum(axis=-1, keepdims=True)
        summed = summed * shrunk + np.einsum("nkgt,tkd->nkgd", weights, kv.values[block, :filled])
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


def _encoded(name: str, stored: Stored, given: Array, shape: tuple[int, ...]) -> Array:
    if np.shape(given) != shape:
        raise InputError(name, np.shape(given), f"the shape {shape}")
    try:
        return stored.codec.encode(np.asarray(given))
    except InputError as refusal:
        raise InputError(name, refusal.value, refusal.allowed) from None
