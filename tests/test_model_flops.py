"""FLOPs of matrix products, against every matrix and every pair counted one by one."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.attention import causal_pairs
from lib.checks import InputError
from lib.model import (
    PRESETS,
    QWEN3_8B,
    Experts,
    HeadAttention,
    LatentAttention,
    LatentForm,
    Recurrent,
    Transformer,
    from_config,
    matrix_flops,
    preset,
)
from tests.public_models import MODELS as PUBLIC
from tests.test_lib_model import MODELS, shapes_of_attention, shapes_of_ffn

NEW, CACHED = st.integers(1, 12), st.integers(0, 12)


def pairs_one_by_one(new: int, cached: int, window: int | None) -> int:
    positions = itertools.product(range(cached, cached + new), range(cached + new))
    return sum(1 for query, key in positions if key <= query and (window is None or query - key < window))


def product(shape: tuple[int, ...], rows: int = 1) -> int:
    """Multiply-adds counted twice of rows with a matrix; a vector is added or scaled, which does not count."""
    return 2 * rows * math.prod(shape) if len(shape) == 2 else 0


def flops_of_pair(attention: HeadAttention | LatentAttention, form: LatentForm) -> int:
    """A query and a key give a score, the score weighs a value: per head one product of vectors each."""
    if isinstance(attention, HeadAttention):
        return attention.query_heads * (product((1, attention.head_dim)) + product((1, attention.head_dim)))
    key, value = attention.key_dim + attention.rotary_dim, attention.value_dim
    if form is LatentForm.ABSORBED:
        key, value = attention.latent + attention.rotary_dim, attention.latent
    return attention.heads * (product((1, key)) + product((1, value)))


def one_by_one(model: Transformer, new: int, cached: int, logits: int, form: LatentForm) -> int:
    flops = product((model.vocabulary or 0, model.hidden), rows=logits)
    for group in model.layers:
        attention, ffn = group.attention, group.ffn
        assert ffn is not None and not isinstance(attention, Recurrent)
        chosen = ffn.per_token if isinstance(ffn, Experts) else None
        for _ in range(group.count):
            for shape in (*shapes_of_attention(attention, model.hidden), *shapes_of_ffn(ffn, model.hidden, chosen)):
                flops += product(shape, rows=new)
            flops += pairs_one_by_one(new, cached, attention.window) * flops_of_pair(attention, form)
            if isinstance(attention, LatentAttention) and form is LatentForm.EXPANDED:
                flops += cached * attention.heads * product((attention.latent, attention.key_dim + attention.value_dim))
    return flops


@pytest.mark.parametrize(
    ("flops", "unit", "printed"),
    [
        (matrix_flops(QWEN3_8B, 6144, 0, 1), 1e12, 96.485202),
        (matrix_flops(QWEN3_8B, 2048, 0, 1), 1e12, 29.688663),
        (16 * matrix_flops(QWEN3_8B, 8192, 0, 1), 1e12, 2137.509174),
        (matrix_flops(QWEN3_8B, 5, 2048, 5) - matrix_flops(QWEN3_8B, 1, 2048, 1), 1e9, 65.384874),
        (16 * matrix_flops(QWEN3_8B, 8, 8192, 8), 1e12, 2.556248),
        (16 * matrix_flops(QWEN3_8B, 2048, 6144, 1), 1e12, 593.765857),
    ],
)
def test_amounts_of_the_chapter(flops: int, unit: float, printed: float) -> None:
    assert flops / unit == pytest.approx(printed, abs=5e-7)
    assert type(flops) is int


def test_logits_are_asked_at_one_position_unless_said() -> None:
    assert matrix_flops(QWEN3_8B, 2048, 0) == matrix_flops(QWEN3_8B, 2048, 0, 1) == 29_688_662_589_440
    assert matrix_flops(QWEN3_8B, 2048, 0, 1) - matrix_flops(QWEN3_8B, 2048, 0, 0) == 2 * 151936 * 4096


@given(MODELS, NEW, CACHED, st.sampled_from(LatentForm), st.data())
def test_flops_are_what_counting_gives(
    model: Transformer, new: int, cached: int, form: LatentForm, data: st.DataObject
) -> None:
    logits = data.draw(st.integers(0, new))
    assert matrix_flops(model, new, cached, logits, form) == one_by_one(model, new, cached, logits, form)


@given(NEW, CACHED, st.none() | st.integers(1, 15))
def test_pairs_are_what_counting_gives(new: int, cached: int, window: int | None) -> None:
    assert causal_pairs(new, cached, window) == pairs_one_by_one(new, cached, window)
    assert causal_pairs(new, cached) == causal_pairs(new, cached, window=new + cached)


@given(MODELS, NEW, CACHED, st.data())
def test_a_prompt_in_two_parts_costs_what_it_costs_in_one(
    model: Transformer, new: int, cached: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, new - 1))
    together = matrix_flops(model, new, cached, 1, LatentForm.ABSORBED)
    parts = matrix_flops(model, new - first, cached + first, 1, LatentForm.ABSORBED)
    if first:
        parts += matrix_flops(model, first, cached, 0, LatentForm.ABSORBED)
    assert parts == together


def test_a_window_bounds_the_pairs() -> None:
    mistral = preset("Mistral-7B-v0.1")
    attention = mistral.layers[0].attention
    assert isinstance(attention, HeadAttention)
    full = replace(mistral, layers=(replace(mistral.layers[0], attention=replace(attention, window=None)),))
    assert matrix_flops(mistral, 4096, 0) == matrix_flops(full, 4096, 0)
    assert matrix_flops(mistral, 1, 4096) == matrix_flops(mistral, 1, 10**6) < matrix_flops(full, 1, 4096)


def test_only_the_experts_of_a_token_count() -> None:
    active = matrix_flops(preset("Qwen3-235B-A22B"), 1, 0, 1) / 2
    assert 21e9 < active < 22e9
    assert 36e9 < matrix_flops(from_config(PUBLIC["DeepSeek-V3"].config), 1, 0, 1, LatentForm.ABSORBED) / 2 < 38e9


def test_the_form_of_latent_attention_must_be_named() -> None:
    model = from_config(PUBLIC["DeepSeek-V2-Lite"].config)
    with pytest.raises(InputError, match=r"^latent_form is None; allowed: one of 'expanded', 'absorbed'$"):
        matrix_flops(model, 1, 8192)
    absorbed, expanded = (matrix_flops(model, 1, 8192, 1, form) for form in (LatentForm.ABSORBED, LatentForm.EXPANDED))
    assert absorbed < expanded
    absorbed, expanded = (matrix_flops(model, 8192, 0, 1, form) for form in (LatentForm.ABSORBED, LatentForm.EXPANDED))
    assert absorbed > expanded


@pytest.mark.parametrize("name", ["Jamba-v0.1", "Qwen3-Next-80B-A3B", "Kimi-Linear-48B-A3B"])
def test_recurrent_layers_are_not_counted_halfway(name: str) -> None:
    with pytest.raises(InputError, match=r"^model_type is '.*'; allowed: a type without recurrent layers"):
        matrix_flops(from_config(PUBLIC[name].config), 1, 0, 1, LatentForm.ABSORBED)


@pytest.mark.parametrize("name", ["gpt-oss-20b", "DeepSeek-V3"])
def test_a_config_without_all_sizes_says_which_is_missing(name: str) -> None:
    assert name in PRESETS
    with pytest.raises(InputError, match=r" is None; allowed: .*without it weights cannot be counted"):
        matrix_flops(preset(name), 1, 0, 1, LatentForm.ABSORBED)


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("new_tokens", (0, -1, 1.5, math.nan, "8", True, None)),
        ("cached_tokens", (-1, 1.5, math.nan, "8", True, None)),
        ("logit_positions", (-1, 5, 1.5, math.nan, "8", True, None)),
    ],
)
def test_what_makes_no_sense_is_refused(parameter: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(InputError) as refusal:
            matrix_flops(QWEN3_8B, **{"new_tokens": 4, "cached_tokens": 8, "logit_positions": 1} | {parameter: value})
        assert refusal.value.parameter == parameter


def test_a_window_of_nothing_is_refused() -> None:
    for window in (0, -1, 1.5, True):
        with pytest.raises(InputError, match=r"^window is "):
            causal_pairs(4, 8, window)  # type: ignore[arg-type]


def test_huge_counts_are_exact() -> None:
    one_more = matrix_flops(QWEN3_8B, 1, 2**70 + 1) - matrix_flops(QWEN3_8B, 1, 2**70)
    assert one_more == 4 * 36 * 32 * 128
