"""The problem that runs through the chapter."""

import pytest

from lib import hardware, model
from lib.clocks import Clock
from lib.design_problem import (
    INSTANCE,
    LONG_CONTEXT,
    LONG_REQUESTS_AT_ONCE,
    SHORT_CHAT,
    Prompt,
    foreign_delay,
    interval_alone,
    prefill_alone,
    timed_request,
)
from lib.latency import InsertedAs
from lib.units import GIB


def test_the_instance() -> None:
    assert (INSTANCE.card, INSTANCE.cards, INSTANCE.model) == (hardware.RTX_PRO_6000, 1, model.QWEN3_8B)
    assert (INSTANCE.share_bytes, INSTANCE.kv_pool_bytes) == (32 * GIB, 12 * GIB)


def test_the_two_kinds_of_request() -> None:
    assert (SHORT_CHAT.input_tokens, SHORT_CHAT.output_tokens, SHORT_CHAT.shared_prefix_tokens) == (2048, 256, 0)
    assert (LONG_CONTEXT.input_tokens, LONG_CONTEXT.output_tokens, LONG_CONTEXT.shared_prefix_tokens) == (
        8192,
        256,
        6144,
    )
    assert SHORT_CHAT.deadline_s == LONG_CONTEXT.deadline_s == 7
    assert LONG_REQUESTS_AT_ONCE == 16


@pytest.mark.parametrize(
    ("prompt", "seconds", "clock"),
    [(Prompt.SHORT, 0.096, Clock.CLIENT), (Prompt.LONG_CACHED, 0.133, Clock.CLIENT), (Prompt.LONG, 0.376, Clock.FIT)],
)
def test_each_prefill_comes_with_its_clock(prompt: Prompt, seconds: float, clock: Clock) -> None:
    reading = prefill_alone(prompt)
    assert (reading.seconds, reading.clock) == (seconds, clock)
    assert reading.covers


def test_a_prompt_may_be_named_by_its_text() -> None:
    assert prefill_alone("8K, nothing cached") == prefill_alone(Prompt.LONG)  # type: ignore[arg-type]


def test_the_interval_is_what_the_client_sees() -> None:
    assert (interval_alone().seconds, interval_alone().clock) == (0.0265, Clock.CLIENT)


def test_the_short_request_alone_is_just_in_time() -> None:
    request = timed_request()
    assert len(request.output_times_s) == 256
    assert round(request.ttft_s, 3) == 0.196
    assert round(request.total_s, 2) == 6.95
    assert round(request.slack_s, 2) == 0.05


def test_one_foreign_prefill_makes_it_late() -> None:
    assert foreign_delay(InsertedAs.OWN_PASS) == prefill_alone(Prompt.SHORT).seconds
    assert round(timed_request(inserted=1).total_s, 2) == 7.05
    assert round(timed_request(inserted=1, inserted_as=InsertedAs.INSIDE_STEP).total_s, 2) == 7.02


def test_a_prompt_of_its_own_delays_the_first_token_only() -> None:
    short, long = timed_request(), timed_request(prompt=Prompt.LONG)
    assert round(long.ttft_s - short.ttft_s, 3) == 0.28
    assert long.intervals_s == short.intervals_s
