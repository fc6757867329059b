"""Numbers of the chapter's opening."""

from lib import memory, model
from lib.design_problem import INSTANCE, LONG_CONTEXT, LONG_REQUESTS_AT_ONCE, SHORT_CHAT, timed_request
from lib.units import GB, GIB
from tests.claims.claim import Claim


def weights() -> int:
    return model.weight_bytes(INSTANCE.model, INSTANCE.bytes_per_element)


def left_gib() -> float:
    return memory.left_for_activations(INSTANCE.share_bytes, weights(), INSTANCE.kv_pool_bytes) / GIB


CLAIMS = (
    Claim(("8.0-01",), "cards of the instance", "input", ("1",), "card", 0, lambda: INSTANCE.cards),
    Claim(("8.0-02",), "memory of the card", "input", ("96",), "GB", 0, lambda: INSTANCE.card.memory_bytes / GB),
    Claim(
        ("8.0-03",),
        "bandwidth of the card",
        "input",
        ("1792",),
        "GB/s",
        0,
        lambda: INSTANCE.card.bandwidth_bytes_s / GB,
    ),
    Claim(
        ("8.0-04",),
        "dense BF16 peak",
        "input",
        ("503.8",),
        "TFLOP/s",
        0,
        lambda: (INSTANCE.card.bf16_dense_flop_s or 0) / 1e12,
    ),
    Claim(("8.0-05",), "power limit", "input", ("600",), "W", 0, lambda: INSTANCE.card.power_limit_w or 0),
    Claim(("8.0-06",), "bytes of a BF16 weight", "input", ("2",), "bytes", 0, lambda: INSTANCE.bytes_per_element),
    Claim(("8.0-07",), "resident weights", "computed", ("15.3",), "GiB", 0.05, lambda: weights() / GIB),
    Claim(("8.0-08",), "share of the instance", "input", ("32",), "GiB", 0, lambda: INSTANCE.share_bytes / GIB),
    Claim(("8.0-09",), "reserved for KV", "input", ("12",), "GiB", 0, lambda: INSTANCE.kv_pool_bytes / GIB),
    Claim(("8.0-10",), "left beside weights and KV", "computed", ("4.7",), "GiB", 0.05, left_gib),
    Claim(
        ("8.0-11", "8.0-18"),
        "input of a short request",
        "input",
        ("2048",),
        "token",
        0,
        lambda: SHORT_CHAT.input_tokens,
    ),
    Claim(
        ("8.0-12", "8.0-19"),
        "input of a long request",
        "input",
        ("8192",),
        "token",
        0,
        lambda: LONG_CONTEXT.input_tokens,
    ),
    Claim(("8.0-13", "8.0-20"), "output, short", "input", ("256",), "token", 0, lambda: SHORT_CHAT.output_tokens),
    Claim(("8.0-21",), "output, long", "input", ("256",), "token", 0, lambda: LONG_CONTEXT.output_tokens),
    Claim(
        ("8.0-22",), "prefix of short requests", "input", ("0",), "token", 0, lambda: SHORT_CHAT.shared_prefix_tokens
    ),
    Claim(
        ("8.0-14", "8.0-23"),
        "prefix of long requests",
        "input",
        ("6144",),
        "token",
        0,
        lambda: LONG_CONTEXT.shared_prefix_tokens,
    ),
    Claim(("8.0-15", "8.0-24"), "deadline, short", "input", ("7",), "s", 0, lambda: SHORT_CHAT.deadline_s),
    Claim(("8.0-25",), "deadline, long", "input", ("7",), "s", 0, lambda: LONG_CONTEXT.deadline_s),
    # The chapter says "running alone", yet its 6.95 s and 0.05 s include the assumed queue of 8.1.1.
    Claim(("8.0-16",), "time of a short request", "computed", ("6.95",), "s", 0.005, lambda: timed_request().total_s),
    Claim(("8.0-17",), "slack of a short request", "computed", ("0.05",), "s", 0.005, lambda: timed_request().slack_s),
    Claim(("8.0-26",), "long requests at once", "input", ("16",), "requests", 0, lambda: LONG_REQUESTS_AT_ONCE),
    Claim(("fn01-01",), "resident weights, exact", "computed", ("16,381,470,720",), "bytes", 0, weights),
)
