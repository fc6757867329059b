"""Numbers of section 8.1."""

from lib import clocks
from lib.clocks import Clock
from lib.design_problem import (
    ASSUMED_QUEUE_S,
    INSTANCE,
    LONG_CONTEXT,
    LONG_REQUESTS_AT_ONCE,
    SHORT_CHAT,
    Prompt,
    RequestKind,
    foreign_delay,
    interval_alone,
    prefill_alone,
    timed_request,
)
from lib.latency import InsertedAs, throughput
from lib.memory import KvPool, adapter_bytes, pages_for, tokens_stored
from lib.model import HeadAttention, Layers, kv_bytes, kv_bytes_per_token, streamed_weight_bytes, weight_bytes
from lib.records import record
from lib.units import GIB, KIB, MIB
from tests.claims.claim import Claim


def alone() -> dict[str, float]:
    return record("batch_sweep").one(input_kind="2k_independent", batch_requests=1)


POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)


def layers() -> Layers:
    (group,) = INSTANCE.model.layers
    return group


def heads() -> HeadAttention:
    attention = layers().attention
    assert isinstance(attention, HeadAttention)
    return attention


def tensors_kept() -> float:
    return heads().kv_elements_per_token / (heads().kv_heads * heads().head_dim)


def kv_per_token() -> int:
    return kv_bytes_per_token(INSTANCE.model, POOL.bytes_per_element)


def after(tokens: int) -> float:
    return kv_bytes(INSTANCE.model, tokens) / MIB


def inputs_of_all() -> int:
    return LONG_REQUESTS_AT_ONCE * kv_bytes(INSTANCE.model, LONG_CONTEXT.input_tokens)


def weights() -> int:
    return weight_bytes(INSTANCE.model, INSTANCE.bytes_per_element)


def stored(kind: RequestKind) -> int:
    return tokens_stored(kind.input_tokens, kind.output_tokens)


def room(kind: RequestKind) -> int:
    return pages_for(stored(kind), POOL.page_tokens) * POOL.page_tokens


def final(kind: RequestKind) -> float:
    return POOL.private_bytes(kind.shape_alone) / MIB


def fit(kind: RequestKind, finished: bool = True) -> int:
    return POOL.requests_that_fit(kind.shape_alone, finished)


def over_admitted() -> float:
    return POOL.held_bytes(SHORT_CHAT.shape_alone, fit(SHORT_CHAT, finished=False)) / MIB


def step(batch: int) -> dict[str, float]:
    return record("step_efficiency").one(input_kind="2k_independent", batch_requests=batch)


def step_s(batch: int) -> float:
    return step(batch)["decode_step_median_ms"] / 1e3


def one_inserted() -> float:
    return timed_request(inserted=1).longest_interval_s * 1e3


def engine_step_ms() -> float:
    return next(reading.seconds for reading in clocks.one_decode_step() if reading.clock == Clock.ENGINE) * 1e3


def batch_of_the_measurement() -> float:
    return record("batch_sweep").one(mean_output_interval_median_ms=26.53)["batch_requests"]


CLAIMS = (
    Claim(
        ("8.1.1-01",), "input of the measured request", "input", ("2K",), "token", 0, lambda: SHORT_CHAT.input_tokens
    ),
    Claim(
        ("8.1.1-02", "8.1.1-19"),
        "prefill, client",
        "measured",
        ("0.096",),
        "s",
        0.0005,
        lambda: alone()["ttft_median_ms"] / 1e3,
    ),
    Claim(
        ("8.1.1-11",),
        "delay by an inserted prefill",
        "input",
        ("0.096",),
        "s",
        0,
        lambda: foreign_delay(InsertedAs.OWN_PASS),
    ),
    Claim(
        ("8.1.1-03", "8.1.1-21"),
        "interval, client",
        "measured",
        ("26.5",),
        "ms",
        0.05,
        lambda: alone()["mean_output_interval_median_ms"],
    ),
    Claim(("8.1.1-12",), "interval as used", "input", ("26.5",), "ms", 0, lambda: interval_alone().seconds * 1e3),
    Claim(
        ("8.1.1-08",), "interval in seconds", "computed", ("0.0265",), "s", 0.00005, lambda: interval_alone().seconds
    ),
    Claim(("8.1.1-04", "8.1.1-18"), "assumed queue", "input", ("0.1",), "s", 0, lambda: ASSUMED_QUEUE_S),
    Claim(("8.1.1-05",), "time to first token", "computed", ("0.196",), "s", 0.0005, lambda: timed_request().ttft_s),
    Claim(("8.1.1-06", "8.1.1-17"), "outputs", "input", ("256",), "token", 0, lambda: SHORT_CHAT.output_tokens),
    Claim(
        ("8.1.1-07", "8.1.1-16", "8.1.1-20"),
        "intervals",
        "computed",
        ("255",),
        "intervals",
        0,
        lambda: len(timed_request().intervals_s),
    ),
    Claim(("8.1.1-09", "8.1.1-15"), "request time", "computed", ("6.95",), "s", 0.005, lambda: timed_request().total_s),
    Claim(("8.1.1-10", "8.1.1-23"), "deadline", "input", ("7",), "s", 0, lambda: timed_request().deadline_s),
    # Exactly 122.5: both roundings of the half are printed somewhere, so the tolerance takes in both.
    Claim(("8.1.1-13",), "interval with an inserted prefill", "computed", ("123", "122.5"), "ms", 0.5, one_inserted),
    Claim(
        ("8.1.1-14",),
        "request time with it",
        "computed",
        ("7.05",),
        "s",
        0.005,
        lambda: timed_request(inserted=1).total_s,
    ),
    Claim(("8.1.1-22",), "batch of the measurement", "input", ("1",), "requests", 0, batch_of_the_measurement),
    Claim((), "prefill as used", "input", ("0.096",), "s", 0, lambda: prefill_alone(Prompt.SHORT).seconds),
    Claim(
        (),
        "prefill behind a cached prefix, client",
        "measured",
        ("0.133",),
        "s",
        0.0005,
        lambda: prefill_alone(Prompt.LONG_CACHED).seconds,
    ),
    Claim(("8.1.2-01",), "layers", "input", ("36",), "layers", 0, lambda: layers().count),
    Claim(("8.1.2-02",), "KV heads", "input", ("8",), "heads", 0, lambda: heads().kv_heads),
    Claim(("8.1.2-03",), "head dimension", "input", ("128",), "elements", 0, lambda: heads().head_dim),
    Claim(("8.1.2-04",), "bytes of a KV element", "input", ("2",), "bytes", 0, lambda: POOL.bytes_per_element),
    Claim(("8.1.2-05",), "tensors kept per token", "input", ("2",), "tensors", 0, tensors_kept),
    Claim(("8.1.2-06",), "KV per token", "computed", ("147456", "147,456"), "bytes", 0, kv_per_token),
    Claim(("8.1.2-07",), "KV per token", "computed", ("144",), "KiB", 0, lambda: kv_per_token() / KIB),
    Claim(("8.1.2-08",), "short input", "input", ("2048",), "token", 0, lambda: SHORT_CHAT.input_tokens),
    Claim(
        ("8.1.2-09", "8.1.2-26", "8.1.2-41"),
        "KV after a short input",
        "computed",
        ("288",),
        "MiB",
        0,
        lambda: after(2048),
    ),
    Claim(("8.1.2-10",), "long input", "input", ("8192",), "token", 0, lambda: LONG_CONTEXT.input_tokens),
    Claim(("8.1.2-11", "8.1.2-29"), "KV after a long input", "computed", ("1152",), "MiB", 0, lambda: after(8192)),
    Claim(("8.1.2-12",), "weights shared by all", "computed", ("15.3",), "GiB", 0.05, lambda: weights() / GIB),
    Claim(("8.1.2-13",), "KV of a further long input", "computed", ("1.125",), "GiB", 0, lambda: after(8192) / 1024),
    Claim(("8.1.2-14", "8.1.2-42"), "long requests", "input", ("16",), "requests", 0, lambda: LONG_REQUESTS_AT_ONCE),
    Claim(("8.1.2-15",), "KV of their inputs", "computed", ("18",), "GiB", 0, lambda: inputs_of_all() / GIB),
    Claim(
        ("8.1.2-16", "8.1.2-25", "8.1.2-37"),
        "KV pool",
        "input",
        ("12",),
        "GiB",
        0,
        lambda: POOL.pool_bytes / GIB,
    ),
    Claim(
        ("8.1.2-17", "8.1.2-18"),
        "outputs fed back",
        "computed",
        ("255",),
        "token",
        0,
        lambda: stored(SHORT_CHAT) - 2048,
    ),
    Claim(("8.1.2-19",), "tokens of a short request", "computed", ("2303",), "token", 0, lambda: stored(SHORT_CHAT)),
    Claim(("8.1.2-20",), "tokens of a long request", "computed", ("8447",), "token", 0, lambda: stored(LONG_CONTEXT)),
    Claim(("8.1.2-21",), "page", "input", ("16",), "token", 0, lambda: POOL.page_tokens),
    Claim(("8.1.2-22",), "room of a short request", "computed", ("2304",), "token", 0, lambda: room(SHORT_CHAT)),
    Claim(("8.1.2-23",), "room of a long request", "computed", ("8448",), "token", 0, lambda: room(LONG_CONTEXT)),
    Claim(("8.1.2-24", "8.1.2-38"), "outputs", "input", ("256",), "token", 0, lambda: LONG_CONTEXT.output_tokens),
    Claim(("8.1.2-27", "8.1.2-33"), "final size, short", "computed", ("324",), "MiB", 0, lambda: final(SHORT_CHAT)),
    Claim(("8.1.2-30", "8.1.2-34"), "final size, long", "computed", ("1188",), "MiB", 0, lambda: final(LONG_CONTEXT)),
    Claim(("8.1.2-28",), "short requests that fit", "computed", ("37",), "requests", 0, lambda: fit(SHORT_CHAT)),
    Claim(("8.1.2-31",), "long requests that fit", "computed", ("10",), "requests", 0, lambda: fit(LONG_CONTEXT)),
    Claim(("8.1.2-32",), "pool", "computed", ("12288", "12,288"), "MiB", 0, lambda: POOL.pool_bytes / MIB),
    Claim(
        ("8.1.2-35",), "short ones by prefill size", "computed", ("42",), "requests", 0, lambda: fit(SHORT_CHAT, False)
    ),
    Claim(("8.1.2-36",), "what they need at their end", "computed", ("13,608",), "MiB", 0, over_admitted),
    Claim(("8.1.2-39",), "common prefix", "input", ("6144",), "token", 0, lambda: LONG_CONTEXT.shared_prefix_tokens),
    Claim(
        ("8.1.2-40",),
        "KV of the prefix",
        "computed",
        ("864",),
        "MiB",
        0,
        lambda: POOL.shared_bytes(LONG_CONTEXT.shape) / MIB,
    ),
    Claim(("8.1.3-01",), "TTFT of the example", "computed", ("0.196",), "s", 0.0005, lambda: timed_request().ttft_s),
    Claim(
        ("8.1.3-02",), "intervals of it", "computed", ("255",), "intervals", 0, lambda: len(timed_request().intervals_s)
    ),
    Claim(("8.1.3-03",), "their sum", "computed", ("6.76",), "s", 0.005, lambda: sum(timed_request().intervals_s)),
    Claim(("8.1.3-04",), "SLO on the total", "input", ("7",), "s", 0, lambda: SHORT_CHAT.deadline_s),
    Claim(("8.1.3-05", "8.1.3-08"), "batch", "input", ("16",), "requests", 0, lambda: step(16)["batch_requests"]),
    Claim(("8.1.3-06",), "input of each", "input", ("2K",), "token", 0, lambda: step(16)["context_tokens"]),
    Claim(("8.1.3-07",), "step at batch 16", "measured", ("27.44",), "ms", 0.005, lambda: step_s(16) * 1e3),
    Claim(("8.1.3-09",), "step at batch 16", "computed", ("0.02744",), "s", 0.000005, lambda: step_s(16)),
    Claim(
        ("8.1.3-10",),
        "throughput at batch 16",
        "computed",
        ("583",),
        "token/s",
        0.5,
        lambda: throughput(16, step_s(16)),
    ),
    Claim(("8.1.3-11",), "decode step, engine", "measured", ("26.26",), "ms", 0.005, engine_step_ms),
    Claim(
        ("8.1.3-12",), "throughput at batch 1", "computed", ("38",), "token/s", 0.5, lambda: throughput(1, step_s(1))
    ),
    Claim(
        ("fn01-02",),
        "weights read in a step",
        "computed",
        ("15,136,811,008",),
        "bytes",
        0,
        lambda: streamed_weight_bytes(INSTANCE.model),
    ),
    Claim(("fn01-03",), "context of the calculation", "input", ("8K",), "token", 0, lambda: LONG_CONTEXT.input_tokens),
    # Table and text of 8.3.2 say these; 8.1.2 already has what they follow from.
    Claim(
        (),
        "long requests that fit with a shared prefix",
        "computed",
        ("35",),
        "requests",
        0,
        lambda: POOL.requests_that_fit(LONG_CONTEXT.shape),
    ),
    Claim(
        (),
        "16 of them at their end",
        "computed",
        ("6048",),
        "MiB",
        0,
        lambda: POOL.held_bytes(LONG_CONTEXT.shape, 16) / MIB,
    ),
    Claim(
        (),
        "one adapter of rank 16",
        "computed",
        ("14.6",),
        "MiB",
        0.05,
        lambda: adapter_bytes(INSTANCE.model, 16) / MIB,
    ),
)
