"""Bytes of KV, against a count token by token and layer by layer, and the mistakes that are commonly made."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.model import (
    PRESETS,
    QWEN3_8B,
    HeadAttention,
    LatentAttention,
    LayerKind,
    Layers,
    Recurrent,
    Transformer,
    kv_bytes,
    kv_bytes_by_kind,
    kv_bytes_per_further_token,
    kv_bytes_per_token,
    kv_elements,
    paged_kv_bytes,
    preset,
    tokens_that_fit,
)
from lib.model_shape import Unknown
from lib.units import GB, GIB, MIB

SMALL = st.integers(1, 5)
LATENT = st.builds(LatentAttention, SMALL, SMALL, SMALL, SMALL, SMALL, st.none())
WINDOWED = st.builds(HeadAttention, st.just(4), st.sampled_from([1, 2, 4]), SMALL, st.integers(1, 40))
FULL = st.builds(HeadAttention, st.just(4), st.sampled_from([1, 2, 4]), SMALL)
WITHOUT_WEIGHTS = Unknown("ffn", None, "not asked here")


def models(attention: st.SearchStrategy[Any]) -> st.SearchStrategy[Transformer]:
    groups = st.lists(st.builds(Layers, SMALL, attention, st.none()), min_size=1, max_size=4).map(tuple)
    return groups.map(lambda layers: Transformer("any", layers, 1, None, False, unknown=WITHOUT_WEIGHTS))


MODELS = models(FULL | WINDOWED | LATENT | st.just(Recurrent()))
GROWING = models(FULL | LATENT)
TOKENS = st.integers(1, 200)


def counted_one_by_one(model: Transformer, tokens: int) -> int:
    """Values kept, looking at each token in each layer."""
    values = 0
    for group in model.layers:
        for _ in range(group.count):
            for token in range(tokens):
                attention = group.attention
                if isinstance(attention, LatentAttention):
                    values += attention.latent + attention.rotary_dim
                elif isinstance(attention, HeadAttention):
                    still_seen = attention.window is None or tokens - token <= attention.window
                    for _head in range(attention.kv_heads if still_seen else 0):
                        values += attention.head_dim  # its key
                        values += attention.head_dim  # its value
    return values


PUBLISHED = {
    "Qwen3-8B": (147_456, 147_456, 1_207_959_552),
    "Qwen3-32B": (262_144, 262_144, 2_147_483_648),
    "Llama-3.1-8B": (131_072, 131_072, 1_073_741_824),
    "Mistral-7B-v0.1": (131_072, 0, 536_870_912),
    "Qwen3-235B-A22B": (192_512, 192_512, 1_577_058_304),
    "Gemma-3-4B": (139_264, 20_480, 289_406_976),
    "gpt-oss-20b": (49_152, 24_576, 204_472_320),
    "DeepSeek-V3": (70_272, 70_272, 575_668_224),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_kv_of_public_models(name: str) -> None:
    model, (per_token, per_further_token, context) = preset(name), PUBLISHED[name]
    assert kv_bytes_per_token(model) == per_token
    assert kv_bytes_per_further_token(model) == per_further_token
    assert kv_bytes(model, 8192) == context


def test_these_are_all_presets() -> None:
    assert tuple(PUBLISHED) == tuple(PRESETS)


def test_contexts_of_the_chapter() -> None:
    assert [kv_bytes(QWEN3_8B, tokens) / MIB for tokens in (2048, 6144, 8192, 2304, 8448)] == [
        288,
        864,
        1152,
        324,
        1188,
    ]
    assert kv_bytes(preset("DeepSeek-V3"), 8192) / MIB == 549


# The mistakes that are commonly made, each with the number it would give.


def test_it_is_not_query_heads_that_count() -> None:
    wrong = 2 * 36 * 32 * 128 * 2
    assert wrong == 4 * kv_bytes_per_token(QWEN3_8B) == 589_824


def test_head_dim_is_not_hidden_over_heads_where_it_is_given() -> None:
    model = preset("Qwen3-32B")
    assert model.hidden // 64 == 80
    assert kv_bytes_per_token(model) == 2 * 64 * 8 * 128 * 2 != 2 * 64 * 8 * 80 * 2


def test_windowed_layers_are_neither_dropped_nor_full() -> None:
    model = preset("Gemma-3-4B")
    full_layers_only, all_layers_full = 8192 * 5 * 4096, 8192 * 34 * 4096
    assert full_layers_only < kv_bytes(model, 8192) < all_layers_full
    assert kv_bytes(model, 8192) == 8192 * 5 * 4096 + 1024 * 29 * 4096
    assert kv_bytes(model, 1024) == 1024 * 34 * 4096


def test_a_latent_is_not_counted_per_head_nor_twice() -> None:
    model = preset("DeepSeek-V3")
    assert kv_bytes_per_token(model) == 61 * (512 + 64) * 2
    assert kv_bytes_per_token(model) not in (2 * 61 * 576 * 2, 61 * 128 * 576 * 2, 2 * 61 * 128 * 128 * 2)


def test_a_pool_in_gib_is_not_one_in_gb() -> None:
    assert tokens_that_fit(QWEN3_8B, 12 * GIB) == 87_381
    assert tokens_that_fit(QWEN3_8B, 12 * GB) == 81_380


@given(MODELS, TOKENS)
def test_kv_is_what_counting_gives(model: Transformer, tokens: int) -> None:
    assert kv_elements(model, tokens) == counted_one_by_one(model, tokens)
    assert kv_bytes(model, tokens, 3) == 3 * counted_one_by_one(model, tokens)


@given(MODELS, TOKENS)
def test_kinds_of_layers_add_up(model: Transformer, tokens: int) -> None:
    by_kind = kv_bytes_by_kind(model, tokens)
    assert sum(by_kind.values()) == kv_bytes(model, tokens)
    assert by_kind.keys() == {group.attention.kind for group in model.layers}
    assert by_kind.get(LayerKind.RECURRENT, 0) == 0


@given(MODELS, TOKENS)
def test_kv_never_shrinks_and_grows_by_the_two_amounts(model: Transformer, tokens: int) -> None:
    growth = kv_bytes(model, tokens + 1) - kv_bytes(model, tokens)
    assert 0 <= kv_bytes_per_further_token(model) <= growth <= kv_bytes_per_token(model)
    assert kv_bytes(model, 42) - kv_bytes(model, 41) == kv_bytes_per_further_token(model)


@given(MODELS, st.integers(0, 100_000), st.sampled_from([1, 2, 4, Fraction(17, 16)]))
def test_what_fits_is_the_inverse_of_what_is_kept(model: Transformer, available: int, size: Any) -> None:
    fitting = tokens_that_fit(model, available, size)
    if fitting is None:
        assert kv_elements(model, 10**9) * size <= available
        assert kv_elements(model, 10**9) == kv_elements(model, 40)
    else:
        assert fitting == 0 or kv_elements(model, fitting) * size <= available
        assert kv_elements(model, fitting + 1) * size > available


@given(GROWING, TOKENS)
def test_exactly_what_is_kept_fits(model: Transformer, tokens: int) -> None:
    assert tokens_that_fit(model, kv_bytes(model, tokens)) == tokens
    assert tokens_that_fit(model, kv_bytes(model, tokens) - 1) == tokens - 1


def test_full_windows_fit_any_number_of_tokens() -> None:
    model = preset("Mistral-7B-v0.1")
    windows = kv_bytes(model, 4096)
    assert windows == kv_bytes(model, 2**70) == 512 * MIB
    assert tokens_that_fit(model, windows) is None
    assert tokens_that_fit(model, windows - 1) == 4095
    assert tokens_that_fit(model, 0) == 0


def test_without_kv_there_is_no_limit() -> None:
    model = replace(QWEN3_8B, layers=(Layers(4, Recurrent(), None),), unknown=WITHOUT_WEIGHTS)
    assert tokens_that_fit(model, 0) is None
    assert kv_bytes_by_kind(model, 100) == {LayerKind.RECURRENT: 0}


@pytest.mark.parametrize("name", PRESETS)
def test_huge_amounts_are_exact_and_come_without_counting_up(name: str) -> None:
    model = preset(name)
    assert kv_bytes(model, 2**70 + 1) - kv_bytes(model, 2**70) == kv_bytes_per_further_token(model)
    fitting = tokens_that_fit(model, 2**70)
    assert fitting is None or kv_bytes(model, fitting) <= 2**70 < kv_bytes(model, fitting + 1)


@given(MODELS, TOKENS, st.integers(1, 50))
def test_pages_of_one_size_hold_the_full_length_in_every_layer(model: Transformer, tokens: int, page: int) -> None:
    reserved, per_token = paged_kv_bytes(model, tokens, page), kv_bytes_per_token(model)
    assert reserved >= kv_bytes(model, tokens)
    assert tokens * per_token <= reserved < (tokens + page) * per_token or per_token == 0
    assert reserved % (page * per_token or 1) == 0


def test_pages_and_windows() -> None:
    assert paged_kv_bytes(QWEN3_8B, 8447, 16) == kv_bytes(QWEN3_8B, 8448) == 1188 * MIB
    gemma = preset("Gemma-3-4B")
    assert paged_kv_bytes(gemma, 8192, 16) == 8192 * 139_264 > 3 * kv_bytes(gemma, 8192)


def test_block_formats_are_fractions_of_a_byte_count() -> None:
    q8_0, q4_0 = Fraction(34, 32), Fraction(18, 32)
    assert [kv_bytes(QWEN3_8B, 8192, size) / MIB for size in (q8_0, q4_0)] == [612, 324]
    assert kv_bytes(QWEN3_8B, 8448, q8_0) / MIB == 631.125
    assert tokens_that_fit(QWEN3_8B, 612 * MIB, q8_0) == 8192
    assert type(kv_bytes(QWEN3_8B, 1, q8_0)) is int


def test_part_of_a_byte_is_refused() -> None:
    with pytest.raises(InputError, match=r"^bytes_per_element is Fraction\(1, 5\); allowed: a size of which 73728 "):
        kv_bytes(QWEN3_8B, 1, Fraction(1, 5))


ASKED: dict[Any, dict[str, Any]] = {
    kv_bytes: {"tokens": 4},
    kv_bytes_by_kind: {"tokens": 4},
    kv_bytes_per_token: {},
    kv_bytes_per_further_token: {},
    paged_kv_bytes: {"tokens": 4, "page_tokens": 16},
    tokens_that_fit: {"available_bytes": 10**6},
}
NO_SIZES = (0, -1, 2.5, 2.0, math.nan, math.inf, "2", True, None, Fraction(0), Fraction(-1, 2), [2])


@pytest.mark.parametrize("value", NO_SIZES, ids=repr)
@pytest.mark.parametrize("function", ASKED, ids=lambda function: function.__name__)
def test_a_size_of_elements_that_makes_no_sense_is_refused(function: Any, value: Any) -> None:
    with pytest.raises(InputError) as refusal:
        function(QWEN3_8B, **ASKED[function], bytes_per_element=value)
    assert refusal.value.parameter == "bytes_per_element"
    assert refusal.value.allowed == "a whole number of at least 1, or a Fraction above 0"


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, math.nan, "8", True, None], ids=repr)
@pytest.mark.parametrize(
    ("function", "parameter"),
    [(kv_bytes, "tokens"), (kv_bytes_by_kind, "tokens"), (paged_kv_bytes, "tokens"), (paged_kv_bytes, "page_tokens")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_length_that_makes_no_sense_is_refused(function: Any, parameter: str, value: Any) -> None:
    with pytest.raises(InputError) as refusal:
        function(QWEN3_8B, **ASKED[function] | {parameter: value})
    assert (refusal.value.parameter, refusal.value.value) == (parameter, value) or value != value
    assert refusal.value.allowed == "a whole number of at least 1"
