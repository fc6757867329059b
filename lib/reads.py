"""What a decode step reads from memory, per step and per output, and where one kind of reading overtakes another.

Weights are read once per step for all its requests; the KV of a request is read for that request alone. Bytes in,
bytes out; `context` are tokens already in KV, the token being decoded is not among them; nothing is rounded to pages.
"""

from collections.abc import Sequence
from fractions import Fraction

from lib.checks import InputError, whole
from lib.step_time import Device, step_plan

# The example of section 8.2.1: low-rank adapters beside separate contexts.
ADAPTER_RANK, ADAPTERS, CONTEXTS = 16, 100, 100
# The example of section 8.2.3: a chunk cut into pieces.
SPLIT_CHUNK, PIECES = 256, 2

MOST_TOKENS = 2**40
MOST_BYTES = 2**60


def weight_intensity(batch: int, bytes_per_weight: int = 2) -> float:
    """FLOP per byte of weights read, 2 b / s_w: each row multiplies and adds once with each weight. Section 8.2.1."""
    rows = whole("batch", batch, at_least=1, at_most=MOST_TOKENS)
    return 2 * rows / whole("bytes_per_weight", bytes_per_weight, at_least=1, at_most=MOST_BYTES)


def step_reads(weight_bytes: int, batch: int, context: int, kv_bytes_per_token: int) -> int:
    """Bytes that one step reads, D_w + b L k. Source: section 8.2.1."""
    weights = whole("weight_bytes", weight_bytes, at_most=MOST_BYTES)
    return weights + whole("batch", batch, at_least=1) * _kv_read(context, kv_bytes_per_token)


def reads_per_output(weight_bytes: int, batch: int, context: int, kv_bytes_per_token: int) -> Fraction:
    """Bytes read for each output, D_w / b + L k, exact. Source: section 8.2.1, figures 8-3 and 8-4.

    With weights from a store of their own, `weight_bytes=0` of them come from memory.
    """
    return Fraction(step_reads(weight_bytes, batch, context, kv_bytes_per_token), batch)


def kv_crossover(weight_bytes: int, context: int, kv_bytes_per_token: int) -> int:
    """The smallest batch whose KV read reaches or exceeds the weight read, ceil(D_w / (L k)). Source: section 8.2.1."""
    each = _kv_read(whole("context", context, at_least=1), kv_bytes_per_token)
    return max(1, -(-whole("weight_bytes", weight_bytes, at_most=MOST_BYTES) // each))


def resident_bytes(all_weight_bytes: int, batch: int, stored_tokens: int, kv_bytes_per_token: int) -> int:
    """Bytes in memory beside each other: all weights, embeddings too, and the KV of every request. Section 8.2.1."""
    weights = whole("all_weight_bytes", all_weight_bytes, at_most=MOST_BYTES)
    stored = whole("stored_tokens", stored_tokens, at_most=MOST_TOKENS)
    return weights + whole("batch", batch) * stored * whole("kv_bytes_per_token", kv_bytes_per_token, at_least=1)


def _kv_read(context: int, kv_bytes_per_token: int) -> int:
    tokens = whole("context", context, at_most=MOST_TOKENS)
    return tokens * whole("kv_bytes_per_token", kv_bytes_per_token, at_least=1, at_most=MOST_BYTES)


def compute_crossover(device: Device, context: int) -> int | None:
    """The smallest batch at which computing takes as long as reading, or None if reading is longer at every batch.

    b (F / P - L k / beta) = D_w / beta; with weights from a store of their own there is no such batch, only a context.
    Source: section 8.2.1.
    """
    context = whole("context", context, at_most=MOST_TOKENS)
    one = step_plan((1, context))
    compute_s = Fraction(device.flop(one), device.flop_s)
    kv_s = Fraction(context * device.kv_bytes_per_token, device.bytes_s)
    if compute_s <= kv_s:
        return None
    weights_s = Fraction(device.weight_bytes, device.bytes_s)
    return max(1, -(-weights_s // (compute_s - kv_s)))


def compute_kv_context(device: Device) -> int | None:
    """The smallest context at which reading a request's KV takes as long as computing its token; None if none does.

    Both grow with the batch alike, so the batch does not move it. Source: section 8.2.1.
    """
    flop_growth = Fraction(device.flop_per_pair, device.flop_s)
    kv_growth = Fraction(device.kv_bytes_per_token, device.bytes_s)
    if kv_growth <= flop_growth:
        return None
    first_token_s = Fraction(device.flop(step_plan((1, 0))), device.flop_s)
    return -(-first_token_s // (kv_growth - flop_growth))


def reads_in_pieces(weight_bytes: int, pieces: int) -> int:
    """Bytes of the same weights read by a chunk that is computed in so many pieces. Source: section 8.2.3."""
    return whole("weight_bytes", weight_bytes, at_most=MOST_BYTES) * whole("pieces", pieces, at_least=1)


def rows_per_adapter(adapters: Sequence[str]) -> dict[str, int]:
    """Rows that each low-rank adapter has in a batch, from the adapter that each request uses. Source: section 8.2.1.

    The base weights are read for all rows together, each adapter only for its own.
    """
    if not adapters:
        raise InputError("adapters", adapters, "the adapter of at least one request")
    return {name: list(adapters).count(name) for name in sorted(set(adapters))}
