"""The byte formats of KV at work, into room that is there, beside the plain versions of their tests."""

from functools import partial

import numpy as np

from lib.block_codecs import decode_q4_0, decode_q8_0, encode_q4_0, encode_q8_0
from tests import plain_blocks
from tests.bench.frame import Result, median_seconds

# The KV of 512 tokens in one layer of the chapter's model: keys and values of 8 heads and 128 dimensions.
VALUES, FEW = 2 * 512 * 8 * 128, 32 * 64
GB_S = 10**9
# Of each format: the encoder's bar and what to reach for, and the decoder's, in GB/s of float32.
FORMATS = (
    ("q8_0", encode_q8_0, decode_q8_0, plain_blocks.encode_q8_0, plain_blocks.decode_q8_0, (1.4, 1.6), (5.5, 7)),
    ("q4_0", encode_q4_0, decode_q4_0, plain_blocks.encode_q4_0, plain_blocks.decode_q4_0, (1.5, 1.9), (2.0, 3)),
)


def kv_formats() -> list[Result]:
    """q8_0 and q4_0, encode and decode, one thread, beside the plain versions."""
    values = np.random.default_rng(8).normal(size=VALUES).astype(np.float32)
    read = np.empty_like(values)
    few = values[:FEW].tolist()
    results = []
    for name, encode, decode, encode_plainly, decode_plainly, encode_bar, decode_bar in FORMATS:
        blocks = encode(values)
        plain = encode_plainly(few)
        seconds = median_seconds(
            partial(encode, values, out=blocks),
            partial(decode, blocks, out=read),
            partial(encode_plainly, few),
            partial(decode_plainly, plain),
            times=25,
        )
        encoded, decoded, encoded_plainly, decoded_plainly = seconds
        results += [
            _result(f"{name} encode", encoded, encoded_plainly, encode_bar),
            _result(f"{name} decode", decoded, decoded_plainly, decode_bar),
        ]
    return results


def _result(what: str, fast_s: float, plain_s: float, bars_gb_s: tuple[float, float]) -> Result:
    """Milliseconds for all values, so that less is better as everywhere; the bars are those of throughput."""
    plain_ms = plain_s / FEW * VALUES * 1e3
    at_most, reach_for = (VALUES * 4 / (bar * GB_S) * 1e3 for bar in bars_gb_s)
    return Result(f"{what}, 4 MiB of float32", fast_s * 1e3, "ms", "plain, by share", plain_ms, at_most, reach_for)
