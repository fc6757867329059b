"""Shares of the peaks and GPU time, against plain arithmetic on the record."""

import csv
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lib.checks import InputError
from lib.efficiency import (
    Condition,
    batches,
    decode_table,
    estimated_prefill,
    estimated_round,
    further_bytes_s,
    gpu_time,
    measured,
    peak_flop_s,
    peaks,
    prefill_flop,
    printed_mfu,
    read_bound,
    read_plan,
    share_of_peak,
)
from lib.hardware import CARDS, RTX_PRO_6000
from lib.step_time import MEASURED_DECODE, decode_plan

RECORD = Path(__file__).parents[1] / "lib" / "records" / "step_efficiency.csv"
WEIGHTS, KV = 15_136_811_008, 147_456
EVERY = [(condition, batch) for condition in Condition for batch in batches(condition)]


def rows() -> list[dict[str, str]]:
    with RECORD.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['input_kind']}-{row['batch_requests']}")
def test_each_row_of_the_record_says_what_is_computed_of_it(row: dict[str, str]) -> None:
    here = measured(Condition(row["input_kind"]), int(row["batch_requests"]))
    assert here.read_bytes == int(row["nominal_read_bytes_per_step"])
    assert here.prefill_flop == int(row["prefill_matrix_flop"])
    assert here.new_tokens == int(row["prefill_new_tokens"])
    assert here.mbu == pytest.approx(float(row["decode_bandwidth_efficiency_fraction"]), abs=6e-4)
    assert here.mfu == pytest.approx(float(row["prefill_compute_efficiency_fraction"]), abs=6e-4)
    assert here.prefill_rate == pytest.approx(float(row["prefill_rate_new_tok_per_s"]), rel=4e-4)
    assert here.read_bound_s * 1e3 == pytest.approx(float(row["read_time_at_peak_bandwidth_ms"]), abs=6e-3)
    assert printed_mfu(here.condition, here.batch) == float(row["prefill_compute_efficiency_fraction"])


@pytest.mark.parametrize(("condition", "batch"), EVERY)
def test_a_share_turns_an_estimate_into_the_measured_time(condition: Condition, batch: int) -> None:
    here = measured(condition, batch)
    assert estimated_prefill(here.prefill_flop, here.mfu) == pytest.approx(here.prefill_s)
    if here.mbu <= 1:
        assert estimated_round(here.read_bytes, here.mbu) == pytest.approx(here.round_s)
    assert read_bound(here.read_bytes) + here.excess_s == pytest.approx(here.round_s)


def test_efficiency_rises_with_the_batch_as_the_time_hardly_does() -> None:
    own = [measured(Condition.OWN, batch) for batch in batches(Condition.OWN)]
    assert [here.mbu for here in own] == sorted(here.mbu for here in own)
    assert own[-1].read_bytes / own[0].read_bytes > 2.2 and own[-1].round_s / own[0].round_s < 1.13
    assert further_bytes_s(own[0], own[-1]) > 3 * RTX_PRO_6000.bandwidth_bytes_s
    assert further_bytes_s(own[-1], own[-1]) == math.inf


def test_gpu_time_of_the_whole_batch_is_the_time_of_the_batch() -> None:
    for condition, batch in EVERY:
        here = measured(condition, batch)
        each = gpu_time(here.context - here.cached, 256, here.prefill_rate, here.decode_rate)
        assert batch * each == pytest.approx(here.prefill_s + 255 * here.round_s)


@pytest.mark.parametrize("seed", range(20))
def test_gpu_time_by_hand(seed: int) -> None:
    draw = Random(seed)
    new, outputs, prefill, decode = (
        draw.randint(1, 9999),
        draw.randint(1, 999),
        draw.uniform(1, 1e5),
        draw.uniform(1, 999),
    )
    assert gpu_time(new, outputs, prefill, decode) == pytest.approx(new / prefill + (outputs - 1) / decode)


@pytest.mark.parametrize("seed", range(20))
def test_reads_by_hand(seed: int) -> None:
    draw = Random(seed)
    requests, context = draw.randint(1, 99), draw.randint(0, 9999)
    once = draw.randint(0, context)
    read = peaks().read_bytes(read_plan(requests, context, once))
    assert read == WEIGHTS + KV * (once + requests * (context - once))
    assert read_plan(requests, context) == decode_plan(requests, context)


def test_flop_by_hand() -> None:
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 12288
    pairs = 2048 * 6144 + 2048 * 2049 // 2
    each = 2 * 2048 * 36 * layer + 4 * 36 * 32 * 128 * pairs + 2 * 151936 * 4096
    assert prefill_flop(16, 2048, 6144) == 16 * each


def test_the_table_of_separate_contexts_is_that_of_the_step_times() -> None:
    assert decode_table(Condition.OWN) == MEASURED_DECODE


@pytest.mark.parametrize(("condition", "batch"), EVERY)
def test_a_table_gives_what_was_measured(condition: Condition, batch: int) -> None:
    here = measured(condition, batch)
    plan = read_plan(batch, here.context, here.cached)
    assert decode_table(condition)(plan) == round(here.round_s * 1e9)
    assert decode_table(condition).is_recorded(plan)


def test_between_batches_it_makes_no_difference_how_the_shared_prefix_is_counted() -> None:
    low, high = measured(Condition.SHARED, 16), measured(Condition.SHARED, 64)
    for batch in range(16, 65):
        nominal = (peaks().read_bytes(read_plan(batch, 8192)) - low.read_bytes) / (high.read_bytes - low.read_bytes)
        expected = low.round_s + nominal * (high.round_s - low.round_s)
        assert decode_table(Condition.SHARED)(read_plan(batch, 8192, 6144)) == pytest.approx(expected * 1e9, abs=1)


def test_what_makes_no_sense_is_refused() -> None:
    wrong: list[Any] = [
        lambda: measured(Condition.OWN, 2),
        lambda: measured("other", 1),  # type: ignore[arg-type]
        lambda: estimated_prefill(10**12, 1.01),
        lambda: estimated_round(10**9, -0.1),
        lambda: read_plan(4, 100, 101),
        lambda: share_of_peak(10, 1, math.inf),
        lambda: peak_flop_s(CARDS["Apple M2 Max (38-core GPU)"]),
        lambda: estimated_prefill(10**12, 0.5, CARDS["Apple M2 Max (38-core GPU)"]),
    ]
    for call in wrong:
        with pytest.raises(InputError, match="allowed: "):
            call()


@pytest.mark.parametrize("wrong", [None, [], "RTX PRO 6000"], ids=repr)
def test_what_is_no_card_is_refused(wrong: Any) -> None:
    for call in (
        lambda: peak_flop_s(wrong),
        lambda: read_bound(10**9, wrong),
        lambda: estimated_prefill(10**12, 0.5, wrong),
        lambda: estimated_round(10**9, 0.5, wrong),
    ):
        with pytest.raises(InputError, match=r"^card is .*a Card"):
            call()
