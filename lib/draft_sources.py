"""Where drafts come from, and what they cost: passes of a draft network, one for each token or one for all.

A pass reads the weights of the network, so its time is their bytes over the bandwidth that is reached. Source: section
8.5.3.
"""

from dataclasses import dataclass
from enum import StrEnum

from lib.checks import one_of, seconds, whole
from lib.memory import MOST_BYTES
from lib.speculation import BASELINE, PLAIN_S
from lib.speculation_setup import MOST_DRAFT

# What plain decode of one request reaches: the bytes that a step nominally reads, over its time.
REACHED_BYTES_S = round(BASELINE["nominal_read_bytes_per_step"] / PLAIN_S)
# The example of section 8.5.3: a draft, what a round outputs on average, and what it outputs if fewer are accepted.
DRAFT_TOKENS, OUTPUTS, FEWER_OUTPUTS = 4, 3, 2


class Stage(StrEnum):
    """What a round consists of; each source of drafts is compared stage by stage."""

    DRAFT = "generate the draft"
    PREPARE = "prepare the rows that verify it"
    VERIFY = "let the target compute them"
    COMMIT = "settle the outputs, set states back"


class Order(StrEnum):
    """How the tokens of a draft come about."""

    LOOKED_UP = "looked up"
    SERIAL = "one pass a token"
    PARALLEL = "one pass for all"


@dataclass(frozen=True)
class DraftSource:
    """A kind of draft: what it reads, what it has to keep in memory or prepare, and how its tokens come about."""

    name: str
    reads: str
    needs: str
    order: Order


SOURCES = {
    source.name: source
    for source in (
        DraftSource("look-up", "the prompt and the outputs so far", "an index of them, on the host", Order.LOOKED_UP),
        DraftSource("small model", "the same tokens as the target", "weights and KV of its own", Order.SERIAL),
        DraftSource(
            "EAGLE", "the target's features of the tokens so far",
            "a small network trained on them, with KV of its own", Order.SERIAL,
        ),
        DraftSource(
            "DFlash", "the target's features of the tokens so far",
            "a small network trained on them, with KV of its own", Order.PARALLEL,
        ),
        DraftSource(
            "MTP heads", "the target's last features",
            "layers trained with the model, with KV of their own", Order.SERIAL,
        ),
    )
}  # fmt: skip


def passes(order: Order, draft_tokens: int) -> int:
    """Passes of a network that a draft takes: none, one for each of its tokens, or one. Source: section 8.5.3."""
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    return {Order.LOOKED_UP: 0, Order.SERIAL: length, Order.PARALLEL: 1}[one_of("order", order, Order)]


def pass_time(weight_bytes: int, bytes_s: int = REACHED_BYTES_S) -> float:
    """Seconds of one pass of a draft network: its weights over the bandwidth reached. Source: section 8.5.3."""
    size = whole("weight_bytes", weight_bytes, at_least=1, at_most=MOST_BYTES)
    return seconds("time of a pass", size / whole("bytes_s", bytes_s, at_least=1, at_most=MOST_BYTES))


def drafting_time(order: Order, draft_tokens: int, weight_bytes: int, bytes_s: int = REACHED_BYTES_S) -> float:
    """Seconds that a network takes to draft. Source: section 8.5.3."""
    return passes(order, draft_tokens) * pass_time(weight_bytes, bytes_s)
