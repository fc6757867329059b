"""The problem of the whole chapter: one card, one model, two kinds of request, a deadline. Source: section 8.0."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lib import hardware, latency, model, records, step_time
from lib.checks import one_of
from lib.clocks import Clock, Reading
from lib.latency import InsertedAs
from lib.memory import RequestShape
from lib.units import GIB


@dataclass(frozen=True)
class Instance:
    """A model on a share of a card; bytes are binary, as the chapter gives them in GiB."""

    card: hardware.Card
    cards: int
    model: model.Transformer
    bytes_per_element: int
    share_bytes: int
    kv_pool_bytes: int


INSTANCE = Instance(
    card=hardware.RTX_PRO_6000,
    cards=1,
    model=model.QWEN3_8B,
    bytes_per_element=2,
    share_bytes=32 * GIB,
    kv_pool_bytes=12 * GIB,
)


# The longest wait between two outputs that section 8.2.4 allows.
ALLOWED_INTERVAL_S = 0.05


@dataclass(frozen=True)
class RequestKind:
    """What requests of a kind have in common: tokens in and out, shared prefix, seconds allowed from arrival."""

    name: str
    input_tokens: int
    output_tokens: int
    shared_prefix_tokens: int
    deadline_s: int

    @property
    def shape_alone(self) -> RequestShape:
        """What decides its KV when nothing is shared."""
        return RequestShape(self.input_tokens, self.output_tokens)

    @property
    def shape(self) -> RequestShape:
        """What decides its KV when the prefix is shared."""
        return RequestShape(self.input_tokens, self.output_tokens, self.shared_prefix_tokens)


SHORT_CHAT = RequestKind("short chat", input_tokens=2048, output_tokens=256, shared_prefix_tokens=0, deadline_s=7)
LONG_CONTEXT = RequestKind(
    "long context", input_tokens=8192, output_tokens=256, shared_prefix_tokens=6144, deadline_s=7
)
LONG_REQUESTS_AT_ONCE = 16
ASSUMED_QUEUE_S = 0.1


class Prompt(StrEnum):
    """The prompts whose prefill time is known: two were measured, one comes from the fit."""

    SHORT = "2K"
    LONG_CACHED = "8K, 6K of it cached"
    LONG = "8K, nothing cached"


def prefill_alone(prompt: Prompt) -> Reading:
    """Time from start to first output of one request alone, in whole ms as the chapter rounds it, with its clock.

    Raises InputError for any other prompt. Source: record batch_sweep (client); section 8.2.2 for the fit.
    """
    match one_of("prompt", prompt, Prompt):
        case Prompt.LONG:
            milliseconds = step_time.FIT(step_time.step_plan((LONG_CONTEXT.input_tokens, 0))) / 1e6
            return Reading(round(milliseconds) / 1e3, Clock.FIT, "prefill of 8192 tokens as one step")
        case Prompt.LONG_CACHED:
            row = _alone("8k_prefix6k_cached")
            return Reading(
                round(row["ttft_median_ms"]) / 1e3, Clock.CLIENT, "prefill of the 2048 tokens behind a cached prefix"
            )
        case _:
            row = _alone("2k_independent")
            return Reading(round(row["ttft_median_ms"]) / 1e3, Clock.CLIENT, "prefill of 2048 tokens")


def interval_alone() -> Reading:
    """Mean time between outputs of one short request alone, to a tenth of a ms as in the chapter (clock: client)."""
    row = _alone("2k_independent")
    return Reading(round(row["mean_output_interval_median_ms"], 1) / 1e3, Clock.CLIENT, "between two outputs")


def _alone(input_kind: str) -> Mapping[str, Any]:
    return records.record("batch_sweep").one(input_kind=input_kind, batch_requests=1)


def foreign_delay(inserted_as: InsertedAs) -> float:
    """Seconds that the prefill of one foreign short request adds to an interval of a running one."""
    return latency.delay_of_inserted_prefill(SHORT_CHAT.input_tokens, prefill_alone(Prompt.SHORT).seconds, inserted_as)


def timed_request(
    queue: float = ASSUMED_QUEUE_S,
    interval: float = interval_alone().seconds,
    outputs: int = SHORT_CHAT.output_tokens,
    inserted: int = 0,
    inserted_as: InsertedAs = InsertedAs.OWN_PASS,
    prompt: Prompt = Prompt.SHORT,
    deadline: float = SHORT_CHAT.deadline_s,
) -> latency.TimedRequest:
    """One request on the clock, times in seconds; by default the short request of section 8.1.1, alone on the card.

    Raises InputError for values that make no sense. Source: section 8.1.1, figure 8-2.
    """
    return latency.evenly_timed_request(
        queue=queue,
        prefill=prefill_alone(prompt).seconds,
        interval=interval,
        outputs=outputs,
        deadline=deadline,
        inserted=inserted,
        delay=foreign_delay(inserted_as),
    )
