"""DFlash, the draft network of experiment 8-5: its size, the memory of both models, and the rounds that were recorded.

Source: sections 8.5.2 to 8.5.4, footnotes 22 and 23; records dflash, dflash_runs, dflash_rounds, dflash_accept_lengths.
"""

from dataclasses import replace

from lib.acceptance import Verified
from lib.checks import one_of
from lib.model import QWEN3_8B, kv_bytes_per_token
from lib.model_shape import layer_tensors
from lib.records import record

BF16_BYTES = 2
# Five layers of the target's shape and a projection of the features of five of its layers to one: no config is printed,
# this shape is concluded from the size, 1.95 GiB or 2.10 GB. Embeddings and output head are the target's: to read that
# head again is not charged.
LAYERS = FEATURES = 5
DRAFT_NETWORK = replace(QWEN3_8B, name="DFlash draft", layers=(replace(QWEN3_8B.layers[0], count=LAYERS),))
NORMS_OUTSIDE = 2
# The drafts that were tried: none, and so many tokens.
PLAIN, K7, K15 = (row["draft_tokens"] for row in record("dflash_runs").rows)
TASKS = tuple(row["task"] for row in record("dflash_tasks").rows)


def weight_bytes() -> int:
    """Bytes of the draft network: its layers, the projection, a norm on either side of them. Source: section 8.5.3."""
    in_layers = sum(tensor.layers * tensor.each * tensor.elements for tensor in layer_tensors(DRAFT_NETWORK))
    projection = FEATURES * DRAFT_NETWORK.hidden**2
    return BF16_BYTES * (in_layers + projection + NORMS_OUTSIDE * DRAFT_NETWORK.hidden)


def kv_bytes_of_both() -> int:
    """Bytes of KV that a token takes in target and draft network together: both see the whole text."""
    return kv_bytes_per_token(QWEN3_8B) + kv_bytes_per_token(DRAFT_NETWORK)


def recorded_rounds(draft_tokens: int, task: str) -> tuple[Verified, ...]:
    """The rounds of one request alone, its prefill left out; () for a request of which none were recorded.

    Raises InputError for a length of draft and for a task that were not tried. Source: record dflash_rounds.
    """
    length, known = one_of("draft_tokens", draft_tokens, (K7, K15)), one_of("task", task, TASKS)
    rows = record("dflash_rounds").where(draft_tokens=length, task=known)
    return tuple(Verified(length, row["accepted_draft_tokens"]) for row in rows if row["round"])


def traced_rounds(draft_tokens: int) -> tuple[Verified, ...]:
    """The rounds of the traced run, all tasks. Source: record dflash_accept_lengths."""
    length = one_of("draft_tokens", draft_tokens, (K7, K15))
    rows = record("dflash_accept_lengths").where(draft_tokens=length)
    return tuple(Verified(length, row["accepted_draft_tokens"]) for row in rows)


def delivered(draft_tokens: int, task: str) -> tuple[int, ...]:
    """Tokens that each recorded round delivered: its outputs, up to the end of the answer.

    The prefill delivers one before. What the check accepts beyond the end is cut off. Raises InputError as
    `recorded_rounds` does.
    """
    left, found = record("dflash_tasks").one(task=one_of("task", task, TASKS))["output_tokens"] - 1, list[int]()
    for each in recorded_rounds(draft_tokens, task):
        found.append(min(each.outputs, left))
        left -= found[-1]
    return tuple(found)
