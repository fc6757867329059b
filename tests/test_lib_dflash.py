"""Sources of drafts and their cost; the recorded draft network, its size and its rounds."""

import pytest

from lib import dflash
from lib.acceptance import Verified
from lib.checks import InputError
from lib.dflash import K7, K15, TASKS
from lib.draft_sources import REACHED_BYTES_S, SOURCES, Order, drafting_time, pass_time, passes
from lib.model import QWEN3_8B, kv_bytes_per_token
from lib.records import record


def test_the_network_is_five_layers_a_projection_and_two_norms() -> None:
    head = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 12288 + 2 * 4096 + 2 * 128
    assert dflash.weight_bytes() == 2 * (5 * head + 5 * 4096 * 4096 + 2 * 4096)
    assert dflash.kv_bytes_of_both() == kv_bytes_per_token(QWEN3_8B) * 41 // 36


def test_passes_by_how_the_tokens_come_about() -> None:
    assert [passes(order, 4) for order in (Order.LOOKED_UP, Order.SERIAL, Order.PARALLEL)] == [0, 4, 1]
    assert {source.order for source in SOURCES.values()} == set(Order)
    assert drafting_time(Order.SERIAL, 4, 10**9, 10**12) == pytest.approx(0.004)
    assert drafting_time(Order.LOOKED_UP, 4, 10**9) == 0
    assert pass_time(REACHED_BYTES_S) == 1


@pytest.mark.parametrize("draft_tokens", [K7, K15])
@pytest.mark.parametrize("task", TASKS)
def test_the_recorded_rounds_deliver_the_answer(draft_tokens: int, task: str) -> None:
    rounds, outputs = dflash.recorded_rounds(draft_tokens, task), dflash.delivered(draft_tokens, task)
    assert len(rounds) == len(outputs)
    assert all(0 <= each.accepted <= each.drafted == draft_tokens for each in rounds)
    if rounds:
        assert 1 + sum(outputs) == record("dflash_tasks").one(task=task)["output_tokens"]
    assert list(outputs[:-1]) == [each.outputs for each in rounds[:-1]]


def test_what_is_accepted_behind_the_end_is_not_delivered() -> None:
    assert dflash.recorded_rounds(K15, "short_lookup") == (Verified(15, 5),)
    assert dflash.delivered(K15, "short_lookup") == (4,)


@pytest.mark.parametrize("draft_tokens", [K7, K15])
def test_the_traced_run_accepts_at_the_rate_of_the_main_run(draft_tokens: int) -> None:
    traced, main = dflash.traced_rounds(draft_tokens), record("dflash_runs").one(draft_tokens=draft_tokens)
    assert sum(each.accepted for each in traced) * main["draft_rounds"] == len(traced) * main["accepted_draft_tokens"]


def test_all_requests_are_rows_of_the_record() -> None:
    right = {row["task"] for row in record("dflash_tasks").where(is_correct=1)}
    assert right == {"short_lookup", "long_lookup"}
    for row in record("dflash_runs").rows:
        tried = record("dflash").where(draft_tokens=row["draft_tokens"])
        assert row["requests"] == 2 * len(tried)
        assert {each["task"] for each in tried} == set(TASKS)


def test_what_was_not_tried_is_refused() -> None:
    with pytest.raises(InputError, match=r"^draft_tokens is 8; allowed: one of '7', '15'$"):
        dflash.recorded_rounds(8, TASKS[0])
    with pytest.raises(InputError, match=r"^task is 'chess'"):
        dflash.delivered(K7, "chess")
    with pytest.raises(InputError, match=r"^draft_tokens is 0"):
        dflash.traced_rounds(0)


def test_each_draft_that_is_computed_keeps_kv() -> None:
    for source in SOURCES.values():
        assert ("KV" in source.needs) == (source.order is not Order.LOOKED_UP), source.name
