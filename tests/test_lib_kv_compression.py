"""What KV in fewer bits saves."""

import math
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from lib.checks import InputError
from lib.design_problem import LONG_CONTEXT
from lib.kv_compression import (
    H100_FITS,
    POOL,
    READ_BYTES_S,
    RECORDED_POOL,
    RECORDED_REQUEST,
    Compression,
    LinearTime,
    TwoPartState,
    compression,
    compression_of_fits,
    deepseek_state,
    element_bytes,
    net_saving,
    stored_in,
)
from lib.model import PRESETS, QWEN3_8B, Transformer, kv_elements, preset
from lib.quantization import BF16, FP8, Q2_K, Q4_0, Q8_0, GroupFormat
from lib.records import record
from lib.units import MIB
from lib.window_state import recorded_shrink

FORMATS = {"bf16_kv": BF16, "fp8_kv_default": FP8}


def test_bf16_changes_nothing() -> None:
    assert stored_in(POOL, BF16) == POOL


@pytest.mark.parametrize("model", PRESETS.values(), ids=lambda model: model.name)
def test_a_pool_in_a_format_holds_what_the_groups_of_all_its_values_take(model: Transformer) -> None:
    pool = replace(POOL, model=model)
    for kv_format in (FP8, Q8_0, Q4_0):
        assert stored_in(pool, kv_format).bytes_of(32) == kv_format.bytes_of(kv_elements(model, 32))


def test_a_format_whose_groups_do_not_fill_a_row_is_refused() -> None:
    model = preset("DeepSeek-V3")  # rows of 512 + 64 values
    assert element_bytes(model, Q8_0) == Fraction(34, 32)
    with pytest.raises(
        InputError, match=r"^kv_format is 'Q2_K'; allowed: a format whose groups fill rows of 576 values$"
    ):
        element_bytes(model, Q2_K)
    # The values of key and value together would fill this group, the key alone does not.
    with pytest.raises(InputError, match=r"rows of 1024 values$"):
        stored_in(POOL, GroupFormat("too wide", 2048, 4, 2))


def test_a_request_of_the_chapter_and_how_many_fit() -> None:
    eight = stored_in(POOL, Q8_0)
    assert eight.private_bytes(LONG_CONTEXT.shape_alone) == 631.125 * MIB
    fitting = eight.requests_that_fit(LONG_CONTEXT.shape_alone)
    assert eight.held_bytes(LONG_CONTEXT.shape_alone, fitting) <= eight.pool_bytes
    assert eight.held_bytes(LONG_CONTEXT.shape_alone, fitting + 1) > eight.pool_bytes


def test_preemptions_are_recorded_where_the_pool_is_counted_to_be_full() -> None:
    for kv_format, stored_as in FORMATS.items():
        fitting = stored_in(RECORDED_POOL, stored_as).requests_that_fit(RECORDED_REQUEST)
        rows = record("kv_format_concurrency").where(kv_format=kv_format)
        assert {row["requests"] <= fitting for row in rows} == {True, False}
        for row in rows:
            assert (row["preemptions"] > 0) == (row["requests"] > fitting)
            assert (row["preemptions_64_outputs"] > 0) == (row["requests"] > fitting)


def test_the_counted_kv_of_a_layer_is_what_the_kernel_read() -> None:
    for row in record("decode_attention_traffic").rows:
        layer = kv_elements(QWEN3_8B, row["context_tokens"]) // QWEN3_8B.layer_count
        counted = FORMATS[row["kv_format"]].bytes_of(layer)
        assert 1 <= row["dram_read_bytes"] / counted < 1.002


def test_saving_is_reading_less_converting() -> None:
    assert net_saving(2 * 10**9, 1e9, 0.5) == 1.5
    assert net_saving(0, 1e9, 0.5) == -0.5


@pytest.mark.parametrize("bandwidth", [0, -1, math.nan, math.inf, 1e19, "1e9", True, None], ids=repr)
def test_a_bandwidth_that_is_none_is_refused(bandwidth: object) -> None:
    with pytest.raises(InputError, match=r"^bandwidth_bytes_s is .*; allowed: bytes per second above 0"):
        Compression(1, bandwidth, LinearTime(0))  # type: ignore[arg-type]


def test_what_never_ends_being_read_is_refused() -> None:
    with pytest.raises(InputError, match=r"^time to read is "):
        net_saving(2**60, 1e-3, 0.0)


@pytest.mark.parametrize("wrong", [-1e-9, math.nan, math.inf, "1", True, None, 10**400], ids=repr)
def test_times_that_are_none_are_refused(wrong: object) -> None:
    for name in ("fixed_s", "per_token_s"):
        with pytest.raises(InputError) as refusal:
            LinearTime(**{"fixed_s": 0.1, "per_token_s": 0.0, name: wrong})  # type: ignore[arg-type]
        assert refusal.value.parameter == name


def test_it_breaks_even_where_the_saving_changes_its_sign() -> None:
    random = Random(84)
    for _ in range(100):
        one = Compression(
            random.randint(1, 10**6),
            10 ** random.uniform(10, 13),
            LinearTime(random.uniform(0, 1e-3), random.choice([0, 1e-9])),
        )
        if (at := one.break_even_tokens) is None:
            assert all(one.net_saving(tokens) <= 0 for tokens in (0, 1, 10**6))
        else:
            assert one.net_saving(math.ceil(at) + 1) > 0
            assert at < 1 or one.net_saving(math.floor(at) - (at == int(at))) <= 1e-15


def test_converting_that_costs_each_token_what_it_saves_never_pays() -> None:
    assert Compression(1000, 1e9, LinearTime(0.0, 1e-6)).break_even_tokens is None
    assert Compression(1000, 1e9, LinearTime(0.0)).break_even_tokens == 0


def test_the_two_fits_are_reading_and_converting() -> None:
    both = compression_of_fits()
    for tokens in (0, 1, 2048, 7000, 16384, 131072):
        difference = H100_FITS["bf16"].at(tokens) - H100_FITS["fp8"].at(tokens)
        assert both.net_saving(tokens) == pytest.approx(difference, abs=1e-12)
    assert both.break_even_tokens == pytest.approx(7000)
    # Half of what grows under BF16 would be saved if converting took no time per token.
    assert both.saved_bytes_per_token / both.bandwidth_bytes_s == pytest.approx(H100_FITS["bf16"].per_token_s / 2)


def test_the_saving_of_the_chapter_is_the_same_formula() -> None:
    one = compression(Q8_0, LinearTime(0.0002))
    assert one.net_saving(8192) == net_saving(540 * MIB, READ_BYTES_S, 0.0002)
    assert one.break_even_tokens is not None
    assert one.net_saving(math.ceil(one.break_even_tokens)) >= 0 > one.net_saving(math.floor(one.break_even_tokens))


@pytest.mark.parametrize("model", ["deepseek_v4", "deepseek_v4.1"])
def test_two_parts_explain_every_recorded_length(model: str) -> None:
    state = deepseek_state(model)
    for row in record("deepseek_state").where(model=model):
        assert state.global_bytes(row["context_tokens"]) == row["global_history_bytes"]
        assert state.bytes_at(row["context_tokens"]) == row["total_bytes"]


def test_totals_draw_near_the_ratio_of_what_grows_and_never_reach_it() -> None:
    before, after = deepseek_state("deepseek_v4"), deepseek_state("deepseek_v4.1")
    ratios = [float(before.bytes_at(tokens) / after.bytes_at(tokens)) for tokens in (0, 1000, 8192, 10**5, 10**6)]
    assert ratios == sorted(ratios)
    assert ratios[-1] < recorded_shrink(8192) < 1.01 * ratios[-1]


@pytest.mark.parametrize("size", [-1, 2.5, math.nan, "2", True, None, Fraction(-1, 2)], ids=repr)
def test_a_part_that_makes_no_sense_is_refused(size: object) -> None:
    with pytest.raises(InputError, match=r"^global_bytes_per_token is "):
        TwoPartState(size, 0)  # type: ignore[arg-type]


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"^model is 'deepseek_v5'; allowed: one of 'deepseek_v4', 'deepseek_v4.1'$"):
        deepseek_state("deepseek_v5")
