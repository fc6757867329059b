"""What KV in a smaller format saves: room for more requests, and time where reading less outweighs converting.

A format changes the bits of a value; another kind of attention changes how many values a token keeps, and a window how
many tokens keep them. Bytes are exact. Source: section 8.4.2.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from lib.checks import InputError, finite, keep_whole, one_of, seconds, whole
from lib.design_problem import INSTANCE, LONG_CONTEXT
from lib.memory import MOST_BYTES, MOST_TOKENS, KvPool, RequestShape
from lib.model import ElementSize, HeadAttention, Transformer, kv_bytes_per_token, preset
from lib.quantization import BF16, FP8, GroupFormat
from lib.records import record
from lib.units import GIB

MOST_BYTES_S = 1e18


def element_bytes(model: Transformer, kv_format: GroupFormat) -> Fraction:
    """Bytes of one value of a model's KV in a format, as the functions of `lib.model` and `KvPool` take them.

    The values that a layer keeps of one token, its key or its value or its latent, fill whole groups, so that tokens
    can be written one by one. Raises InputError for a format in which they do not. Source: section 8.4.2.
    """
    for group in model.layers:
        rows = 2 if isinstance(group.attention, HeadAttention) else 1
        row = group.attention.kv_elements_per_token // rows
        if row % kv_format.group_values:
            raise InputError("kv_format", kv_format.name, f"a format whose groups fill rows of {row} values")
    return kv_format.bytes_per_value


def stored_in(pool: KvPool, kv_format: GroupFormat) -> KvPool:
    """A pool of the same bytes that keeps KV in another format; raises InputError as `element_bytes` does."""
    return replace(pool, bytes_per_element=element_bytes(pool.model, kv_format))


# The pool of section 8.0, with KV in BF16.
POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)
# What was submitted together, and to which pool. Source: record kv_format_concurrency.
RECORDED_REQUEST, RECORDED_POOL = RequestShape(7239, 46), KvPool(INSTANCE.model, 8 * GIB)

_READS = record("step_efficiency").one(input_kind="2k_independent", batch_requests=64)
# Bytes that a step of 64 requests reads, over its time (clock: engine): the most of what was measured without sharing.
# The chapter prints 1.16 TB/s and calculates with what stands here: 1.16 would give 0.488 ms where it has 0.487 ms.
READ_BYTES_S = _READS["nominal_read_bytes_per_step"] / (_READS["decode_step_median_ms"] / 1e3)
# The two times of converting that section 8.4.2 puts beside the reading saved (clock: assumed), and the context.
CONVERSIONS_S, CONTEXT = (0.0002, 0.0008), LONG_CONTEXT.input_tokens


def read_time(read_bytes: int, bandwidth_bytes_s: float) -> float:
    """D / beta: seconds to read so many bytes. Source: section 8.4.2.

    Raises InputError for a bandwidth that is not above 0 (up to 1e18) and for what takes longer than any time.
    """
    allowed = "bytes per second above 0 and at most 1e18"
    rate = finite("bandwidth_bytes_s", bandwidth_bytes_s, 0, allowed)
    if not 0 < rate <= MOST_BYTES_S:
        raise InputError("bandwidth_bytes_s", bandwidth_bytes_s, allowed)
    return seconds("time to read", whole("read_bytes", read_bytes, at_most=MOST_BYTES) / rate)


def net_saving(saved_bytes: int, bandwidth_bytes_s: float, conversion_s: float) -> float:
    """dT = dD / beta - T_c: seconds saved by reading so many bytes less; below 0 where converting takes longer.

    T_c is what converting adds to the step, not what is hidden behind other work. Raises InputError as `read_time`
    does. Source: section 8.4.2.
    """
    saved = whole("saved_bytes", saved_bytes, at_most=MOST_BYTES)
    return read_time(saved, bandwidth_bytes_s) - seconds("conversion_s", conversion_s)


@dataclass(frozen=True)
class LinearTime:
    """A time that grows with the tokens read, in seconds: a fixed part and a part per token. Times are checked."""

    fixed_s: float
    per_token_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("fixed_s", "per_token_s"):
            object.__setattr__(self, name, seconds(name, getattr(self, name)))

    def at(self, tokens: int) -> float:
        """Its seconds at so many tokens; raises InputError for more than 2^40 of them."""
        return self.fixed_s + self.per_token_s * whole("tokens", tokens, at_most=MOST_TOKENS)


@dataclass(frozen=True)
class Compression:
    """KV that takes fewer bytes per token, read at a bandwidth (bytes/s), and what converting it costs a step.

    Tokens are those of all requests of the step together. Raises InputError as `net_saving` does.
    """

    saved_bytes_per_token: int
    bandwidth_bytes_s: float
    conversion: LinearTime

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BYTES, saved_bytes_per_token=0)
        read_time(self.saved_bytes_per_token, self.bandwidth_bytes_s)

    def net_saving(self, tokens: int) -> float:
        """dT at so many tokens, in seconds."""
        read = whole("tokens", tokens, at_most=MOST_TOKENS)
        return net_saving(read * self.saved_bytes_per_token, self.bandwidth_bytes_s, self.conversion.at(read))

    @property
    def break_even_tokens(self) -> float | None:
        """From how many tokens on it saves time; None where each token costs no less than it saves."""
        gained = read_time(self.saved_bytes_per_token, self.bandwidth_bytes_s) - self.conversion.per_token_s
        return self.conversion.fixed_s / gained if gained > 0 else None


def compression(
    kv_format: GroupFormat,
    conversion: LinearTime,
    model: Transformer = INSTANCE.model,
    bandwidth_bytes_s: float = READ_BYTES_S,
) -> Compression:
    """KV of a model in a format instead of BF16. Raises InputError as `element_bytes` and `Compression` do."""
    saved = kv_bytes_per_token(model) - kv_bytes_per_token(model, element_bytes(model, kv_format))
    return Compression(saved, bandwidth_bytes_s, conversion)


# Intervals between outputs by length of context, fitted elsewhere: one request at a time on an H100 (clock: fit).
H100_FITS = {
    row["kv_format"]: LinearTime(row["fixed_ms"] / 1e3, row["slope_ms_per_context_token"] / 1e3)
    for row in record("kv_format_h100").rows
}
H100_MODEL, H100_CONTEXTS = preset("Llama-3.1-8B"), (2048, 16384)


def compression_of_fits() -> Compression:
    """The two fits of the H100 as reading and converting: what FP8 saves at each length is their difference.

    All that grows with the context under BF16 is taken for the reading of its KV, which gives the bandwidth. Half the
    bytes would grow half as fast; FP8 grows a little faster, and that, with its larger fixed part, is the conversion.
    Source: section 8.4.2, record kv_format_h100.
    """
    bf16, fp8 = H100_FITS["bf16"], H100_FITS["fp8"]
    conversion = LinearTime(fp8.fixed_s - bf16.fixed_s, fp8.per_token_s - bf16.per_token_s * float(FP8.ratio_to(BF16)))
    return compression(FP8, conversion, H100_MODEL, kv_bytes_per_token(H100_MODEL) / bf16.per_token_s)


@dataclass(frozen=True)
class TwoPartState:
    """What a request keeps of its whole text, in bytes per token on average, and of its windows, whatever its length.

    Sizes are checked: raises InputError. Source: section 8.4.2.
    """

    global_bytes_per_token: ElementSize
    window_bytes: int

    def __post_init__(self) -> None:
        size = self.global_bytes_per_token
        if not (isinstance(size, Fraction) and size >= 0):
            whole("global_bytes_per_token", size)
        keep_whole(self, MOST_BYTES, window_bytes=0)

    def global_bytes(self, tokens: int) -> Fraction:
        """Bytes of the whole text."""
        return Fraction(self.global_bytes_per_token * whole("tokens", tokens, at_most=MOST_TOKENS))

    def bytes_at(self, tokens: int) -> Fraction:
        """Bytes of both parts."""
        return self.global_bytes(tokens) + self.window_bytes


def deepseek_state(model: str) -> TwoPartState:
    """The state of "deepseek_v4" or "deepseek_v4.1", by their counted bytes at 8K. Source: record deepseek_state."""
    table = record("deepseek_state")
    row = table.one(context_tokens=CONTEXT, model=one_of("model", model, (row["model"] for row in table.rows)))
    return TwoPartState(Fraction(row["global_history_bytes"], CONTEXT), row["local_window_bytes"])
