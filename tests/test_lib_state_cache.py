"""Snapshots of a recurrent state: bytes as recorded, and where a request can go on, against a plain search."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.model_shape import LatentAttention
from lib.records import record
from lib.state_cache import CARDS, KIMI_K3, CachedText, RecurrentState, cached_text, mean_between_snapshots
from lib.units import MIB

lengths, spacings, counts = st.integers(0, 3000), st.integers(1, 700), st.integers(1, 6)
texts = st.integers(0, 200).flatmap(
    lambda tokens: st.sets(st.integers(1, max(1, tokens)), max_size=min(8, tokens)).map(
        lambda places: CachedText(tokens, tuple(sorted(places)))
    )
)


def recorded(item: str) -> tuple[int, int]:
    row = record("hybrid_state").one(item=item)
    return row["bytes_all_devices"], row["bytes_per_device_tp8"]


def test_the_shape_gives_the_recorded_bytes() -> None:
    both = KIMI_K3, KIMI_K3.on_each_of(CARDS)
    assert tuple(state.matrix_bytes for state in both) == recorded("kda_recurrent_matrices_fp32")
    assert tuple(state.conv_bytes for state in both) == recorded("kda_short_convolution_bf16")
    assert tuple(state.snapshot_bytes for state in both) == recorded("one_kda_snapshot")
    assert both[1].snapshot_bytes == 56_171_520
    assert record("hybrid_state").one(item="one_kda_snapshot")["layers"] == KIMI_K3.layers


@pytest.mark.parametrize(
    ("spacing", "item"),
    [
        (4096, "two_snapshots_every_4096_tokens_of_8k"),
        (1024, "eight_snapshots_every_1024_tokens_of_8k"),
        (256, "thirty_two_snapshots_every_256_tokens_of_8k"),
    ],
)
def test_the_recorded_spacings_give_the_recorded_bytes(spacing: int, item: str) -> None:
    text = cached_text(8192, spacing)
    of_all, of_each = (state.snapshot_bytes for state in (KIMI_K3, KIMI_K3.on_each_of(CARDS)))
    assert (text.stored_bytes(of_all), text.stored_bytes(of_each)) == recorded(item)


def test_the_latent_cache_beside_it_grows_with_the_text_and_is_not_split() -> None:
    row = record("hybrid_state").one(item="mla_history_8192_tokens_bf16")
    latent = LatentAttention(heads=96, latent=512, rotary_dim=64, key_dim=128, value_dim=128, query_rank=None)
    assert row["bytes_per_device_tp8"] == 8192 * row["layers"] * latent.kv_elements_per_token * 2
    assert row["bytes_all_devices"] == CARDS * row["bytes_per_device_tp8"]


def test_the_worked_example() -> None:
    text = cached_text(10_752, 4096)
    assert text == CachedText(10_752, (4096, 8192))
    assert (text.resume_at(10_752), text.recomputed(10_752)) == (8192, 2560)
    of_each = KIMI_K3.on_each_of(CARDS).snapshot_bytes
    assert text.stored_bytes(of_each) / MIB == pytest.approx(107.14, abs=0.005)
    assert cached_text(8192, 256).stored_bytes(of_each) / MIB == pytest.approx(1714.22, abs=0.005)


def test_half_the_spacing_helps_one_match_more_than_another() -> None:
    for matched, wide, narrow in ((10_752, 2560, 512), (9000, 808, 808), (8191, 4095, 2047)):
        assert cached_text(16_384, 4096).recomputed(matched) == wide
        assert cached_text(16_384, 2048).recomputed(matched) == narrow
    assert (mean_between_snapshots(4096), mean_between_snapshots(2048)) == (2047.5, 1023.5)


def test_the_last_snapshots_help_only_who_goes_on_near_the_end() -> None:
    text = cached_text(18_944, 4096, last=2)
    assert text.snapshots == (12_288, 16_384)
    assert text.recomputed(18_944) == 2560
    assert text.recomputed(10_752) == 10_752


def test_a_text_without_snapshots_starts_anew() -> None:
    assert CachedText(100, ()).recomputed(100) == 100
    assert cached_text(100, 101).snapshots == ()
    assert cached_text(0, 1) == CachedText(0, ())
    assert CachedText(0, ()).mean_recomputed == 0


@given(texts)
def test_resume_is_the_latest_snapshot_not_beyond_the_match(text: CachedText) -> None:
    recomputed = []
    for matched in range(text.tokens + 1):
        start = text.resume_at(matched)
        assert start == max([0, *(place for place in text.snapshots if place <= matched)])
        assert start <= matched == start + text.recomputed(matched)
        recomputed.append(text.recomputed(matched))
    assert text.mean_recomputed == pytest.approx(sum(recomputed) / len(recomputed))


@given(lengths, spacings)
def test_with_all_kept_less_than_a_spacing_is_recomputed(tokens: int, spacing: int) -> None:
    text = cached_text(tokens, spacing)
    assert len(text.snapshots) == tokens // spacing
    assert all(text.recomputed(matched) == matched % spacing < spacing for matched in range(0, tokens + 1, 17))


@given(st.integers(1, 40), spacings)
def test_the_mean_between_snapshots_is_that_of_a_long_text(stretches: int, spacing: int) -> None:
    text = cached_text(stretches * spacing - 1, spacing)
    assert text.mean_recomputed == pytest.approx(mean_between_snapshots(spacing))


@given(texts, st.data())
def test_one_more_snapshot_never_costs_a_match_anything(text: CachedText, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, max(1, text.tokens)))
    more = CachedText(max(1, text.tokens), tuple(sorted({*text.snapshots, place})))
    for matched in range(text.tokens + 1):
        assert more.recomputed(matched) <= text.recomputed(matched)


@given(lengths, spacings, counts)
def test_the_last_so_many_are_the_end_of_all(tokens: int, spacing: int, last: int) -> None:
    every, kept = cached_text(tokens, spacing), cached_text(tokens, spacing, last)
    assert kept.snapshots == every.snapshots[-last:]
    assert kept.recomputed(tokens) == every.recomputed(tokens), "who goes on at the end misses none of the others"
    assert kept.mean_recomputed >= every.mean_recomputed


@given(texts, st.integers(0, 2**40), st.integers(0, 2**40))
def test_bytes_are_linear_in_their_number_and_size(text: CachedText, one: int, other: int) -> None:
    assert text.stored_bytes(one) + text.stored_bytes(other) == text.stored_bytes(one + other)
    assert text.stored_bytes(one) == one * len(text.snapshots)


@given(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96]))
def test_cards_share_the_bytes_evenly(cards: int) -> None:
    assert cards * KIMI_K3.on_each_of(cards).snapshot_bytes == KIMI_K3.snapshot_bytes


@pytest.mark.parametrize("snapshots", [(2, 1), (1, 1), (0, 5), (11,), (-1,), (2.5,), [1, 2], 3, None], ids=repr)
def test_snapshots_that_make_no_sense_are_refused(snapshots: Any) -> None:
    with pytest.raises(InputError, match=r"^snapshots is "):
        CachedText(10, snapshots)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: cached_text(10, 0), "spacing is 0"),
        (lambda: cached_text(10, 5, last=0), "last is 0"),
        (lambda: CachedText(10, (5,)).recomputed(11), "matched is 11; allowed: a whole number from 0 to 10"),
        (lambda: CachedText(10, (5,)).resume_at(-1), "matched is -1"),
        (lambda: CachedText(10, (5,)).stored_bytes(2.5), "snapshot_bytes is 2.5"),  # type: ignore[arg-type]
        (lambda: KIMI_K3.on_each_of(7), "cards is 7; allowed: a number that divides 96 heads evenly"),
        (lambda: KIMI_K3.on_each_of(0), "cards is 0"),
        (lambda: RecurrentState(0, 1, 1, 1, 1), "layers is 0"),
        (lambda: RecurrentState(1, 1, 1, 1, 1, matrix_element_bytes=0), "matrix_element_bytes is 0"),
    ],
)
def test_what_makes_no_sense_is_named(call: Any, named: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value).startswith(named)


def test_tokens_of_a_small_dtype_are_counted_as_any_others() -> None:
    recomputed = CachedText(200, (100,)).recomputed(np.uint8(150))  # type: ignore[arg-type]
    assert type(recomputed) is int and recomputed * 1000 == 50_000
