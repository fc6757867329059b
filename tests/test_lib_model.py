"""A transformer's weights, counted a second time tensor by tensor."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.model import (
    QWEN3_8B,
    Experts,
    Ffn,
    HeadAttention,
    LatentAttention,
    Layers,
    Recurrent,
    Transformer,
    parameters,
    preset,
    streamed_weight_bounds,
    streamed_weight_bytes,
    tensors,
    weight_bytes,
)
from lib.model_shape import Unknown

SIZES = st.integers(1, 300)
FEW = st.integers(1, 4)


@st.composite
def head_attention(draw: Any) -> HeadAttention:
    kv_heads = draw(FEW)
    flags = {name: draw(st.booleans()) for name in ("input_bias", "output_bias", "head_norms", "sinks")}
    return HeadAttention(kv_heads * draw(FEW), kv_heads, draw(SIZES), draw(st.none() | SIZES), **flags)


@st.composite
def experts(draw: Any) -> Experts:
    count = draw(SIZES)
    flags = {name: draw(st.booleans()) for name in ("bias", "router_bias", "shared_gate")}
    return Experts(count, draw(st.integers(1, count)), draw(SIZES), shared_width=draw(st.integers(0, 300)), **flags)


LATENT = st.builds(LatentAttention, SIZES, SIZES, SIZES, SIZES, SIZES, st.none() | SIZES, bias=st.booleans())
FFN = st.builds(Ffn, SIZES, gated=st.booleans(), bias=st.booleans())
GROUPS = st.lists(st.builds(Layers, FEW, head_attention() | LATENT, FFN | experts()), min_size=1, max_size=3).map(tuple)
MODELS = st.builds(
    Transformer,
    name=st.just("any"),
    layers=GROUPS,
    hidden=SIZES,
    vocabulary=SIZES,
    tied_embeddings=st.booleans(),
    norms_per_layer=st.integers(0, 4),
    norm_bias=st.booleans(),
    learned_positions=st.integers(0, 300),
)
DENSE = MODELS.filter(lambda model: not model.has_experts)


def shapes_of_attention(attention: HeadAttention | LatentAttention, d: int) -> Iterator[tuple[int, ...]]:
    if isinstance(attention, HeadAttention):
        queries, keys = attention.query_heads * attention.head_dim, attention.kv_heads * attention.head_dim
        yield from [(d, queries), (d, keys), (d, keys), (queries, d)]
        yield from [(queries,), (keys,), (keys,)] if attention.input_bias else []
        yield from [(d,)] if attention.output_bias else []
        yield from [(attention.head_dim,), (attention.head_dim,)] if attention.head_norms else []
        yield from [(attention.query_heads,)] if attention.sinks else []
    else:
        heads, query, kept = attention.heads, attention.query_rank, attention.latent + attention.rotary_dim
        query_width = heads * (attention.key_dim + attention.rotary_dim)
        yield from [(d, query), (query,), (query, query_width)] if query else [(d, query_width)]
        yield from [(d, kept), (attention.latent,)]
        yield attention.latent, heads * (attention.key_dim + attention.value_dim)
        yield heads * attention.value_dim, d
        yield from [(kept,), (d,)] if attention.bias else []
        yield from [(query,)] if attention.bias and query else []


def shapes_of_network(width: int, d: int, gated: bool, bias: bool) -> Iterator[tuple[int, ...]]:
    yield from [(d, width), (width, d)] + [(d, width)] * gated
    yield from [(width,), (d,)] + [(width,)] * gated if bias else []


def shapes_of_ffn(ffn: Ffn | Experts, d: int, chosen: int | None = None) -> Iterator[tuple[int, ...]]:
    """Of all experts, or of so many."""
    if isinstance(ffn, Ffn):
        yield from shapes_of_network(ffn.width, d, ffn.gated, ffn.bias)
        return
    for _ in range(ffn.count if chosen is None else chosen):
        yield from shapes_of_network(ffn.width, d, True, ffn.bias)
    yield d, ffn.count
    yield from [(ffn.count,)] if ffn.router_bias else []
    yield from shapes_of_network(ffn.shared_width, d, True, False) if ffn.shared_width else []
    yield from [(d, 1)] if ffn.shared_gate else []


def shapes_in_layers(model: Transformer, batch: int | None = None) -> Iterator[tuple[int, ...]]:
    """Each tensor of each layer; with a batch, at most those that so many tokens can touch."""
    for group in model.layers:
        assert group.ffn is not None and not isinstance(group.attention, Recurrent)
        chosen = None
        if isinstance(group.ffn, Experts) and batch is not None:
            chosen = min(group.ffn.count, batch * group.ffn.per_token)
        for _ in range(group.count):
            yield from shapes_of_attention(group.attention, model.hidden)
            yield from shapes_of_ffn(group.ffn, model.hidden, chosen)
            yield from [(model.hidden,)] * model.norms_per_layer * (2 if model.norm_bias else 1)


def shapes(model: Transformer) -> Iterator[tuple[int, ...]]:
    assert model.vocabulary is not None
    yield from shapes_in_layers(model)
    yield from [(model.hidden,)] * (2 if model.norm_bias else 1)
    yield from [(model.vocabulary, model.hidden)] * (1 if model.tied_embeddings else 2)
    yield model.learned_positions, model.hidden


def looked_up(model: Transformer) -> int:
    assert model.vocabulary is not None
    return model.hidden * (model.learned_positions + (0 if model.tied_embeddings else model.vocabulary))


def total(all_shapes: Iterator[tuple[int, ...]]) -> int:
    return sum(map(math.prod, all_shapes))


def test_qwen3_8b_is_as_large_as_its_published_files() -> None:
    assert parameters(QWEN3_8B) == 8_190_735_360
    assert weight_bytes(QWEN3_8B) == 16_381_470_720
    assert streamed_weight_bytes(QWEN3_8B) == 15_136_811_008


@given(MODELS)
def test_parameters_are_those_of_all_tensors(model: Transformer) -> None:
    assert parameters(model) == total(shapes(model))


@given(MODELS)
def test_each_tensor_is_listed_once(model: Transformer) -> None:
    assert len({(t.name, t.shape, t.layers) for t in tensors(model)}) <= len(tensors(model))
    assert all(t.each >= t.used >= 0 and t.layers > 0 for t in tensors(model))


@given(MODELS)
def test_tied_embeddings_save_the_output_matrix(model: Transformer) -> None:
    untied, tied = replace(model, tied_embeddings=False), replace(model, tied_embeddings=True)
    assert parameters(untied) - parameters(tied) == (model.vocabulary or 0) * model.hidden
    assert streamed_weight_bounds(untied, 1) == streamed_weight_bounds(tied, 1)


@given(MODELS, st.integers(1, 8))
def test_every_parameter_takes_the_same_bytes(model: Transformer, size: int) -> None:
    assert weight_bytes(model, size) == size * parameters(model)
    assert type(weight_bytes(model, size)) is int


@given(DENSE, st.integers(1, 100))
def test_a_step_reads_all_but_what_is_looked_up(model: Transformer, batch: int) -> None:
    read = 2 * (total(shapes(model)) - looked_up(model))
    assert streamed_weight_bytes(model) == read
    bounds = streamed_weight_bounds(model, batch)
    assert (bounds.least, bounds.most) == (read, read)


@given(MODELS, st.integers(1, 100))
def test_a_step_touches_experts_of_one_token_at_least_and_of_every_token_at_most(
    model: Transformer, batch: int
) -> None:
    outside = total(shapes(model)) - total(shapes_in_layers(model)) - looked_up(model)
    bounds = streamed_weight_bounds(model, batch, 1)
    assert bounds.least == outside + total(shapes_in_layers(model, 1))
    assert bounds.most == outside + total(shapes_in_layers(model, batch))


def test_a_large_batch_may_read_all_experts() -> None:
    model = preset("Qwen3-235B-A22B")
    all_but_the_embedding = weight_bytes(model) - 2 * 151936 * 4096
    assert streamed_weight_bounds(model, 1).least == streamed_weight_bounds(model, 1).most < all_but_the_embedding / 10
    assert streamed_weight_bounds(model, 15).most < all_but_the_embedding
    assert streamed_weight_bounds(model, 16).most == streamed_weight_bounds(model, 2**70).most == all_but_the_embedding
    assert streamed_weight_bounds(model, 2**70).least == streamed_weight_bounds(model, 1).least


def test_what_a_step_reads_of_experts_has_no_single_answer() -> None:
    with pytest.raises(InputError, match=r"^model is 'Qwen3-235B-A22B'; allowed: a model without experts; .*bounds"):
        streamed_weight_bytes(preset("Qwen3-235B-A22B"))


ATTENTION, FFN_8B = QWEN3_8B.layers[0].attention, QWEN3_8B.layers[0].ffn
MLA = LatentAttention(heads=4, latent=8, rotary_dim=2, key_dim=4, value_dim=4, query_rank=6)
SHAPES: list[tuple[Any, list[str]]] = [
    (QWEN3_8B, ["hidden", "vocabulary"]),
    (QWEN3_8B.layers[0], ["count"]),
    (ATTENTION, ["query_heads", "kv_heads", "head_dim"]),
    (MLA, ["heads", "latent", "rotary_dim", "key_dim", "value_dim"]),
    (FFN_8B, ["width"]),
    (Experts(8, 2, 16), ["count", "per_token", "width"]),
]


@pytest.mark.parametrize(
    ("shape", "size"), [(shape, size) for shape, names in SHAPES for size in names], ids=lambda value: str(value)[:20]
)
def test_a_size_that_makes_no_sense_is_refused_by_name(shape: Any, size: str) -> None:
    for value in (0, -1, 1.5, math.nan, "8", True, None):
        with pytest.raises(InputError, match=rf"^{size} is .*; allowed: a whole number of at least 1"):
            replace(shape, **{size: value})


@pytest.mark.parametrize(("shape", "size"), [(ATTENTION, "window"), (MLA, "query_rank")], ids=["window", "query_rank"])
def test_what_may_be_missing_may_not_be_wrong(shape: Any, size: str) -> None:
    assert getattr(replace(shape, **{size: None}), size) is None
    for value in (0, -1, 1.5, math.nan, "8", True):
        with pytest.raises(InputError, match=rf"^{size} is .*; allowed: a whole number of at least 1"):
            replace(shape, **{size: value})


def test_sizes_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InputError, match=r"^kv_heads is 5; allowed: a number that divides the 32 query heads"):
        HeadAttention(query_heads=32, kv_heads=5, head_dim=128)
    with pytest.raises(InputError, match=r"^per_token is 9; allowed: at most the 8 experts"):
        Experts(count=8, per_token=9, width=16)
    with pytest.raises(InputError, match=r"^layers is \(\); allowed: at least one layer"):
        replace(QWEN3_8B, layers=())


def test_a_model_with_weights_unknown_must_say_why() -> None:
    layers = Layers(1, Recurrent(), Ffn(8)), Layers(1, ATTENTION, None)
    for group in layers:
        with pytest.raises(InputError, match=r"^unknown is None; allowed: a reason"):
            replace(QWEN3_8B, layers=(group,))
        model = replace(QWEN3_8B, layers=(group,), unknown=Unknown("ffn", None, "a size"))
        for count in (parameters, weight_bytes, tensors):
            with pytest.raises(InputError, match=r"^ffn is None; allowed: a size$"):
                count(model)


def test_sizes_out_of_arrays_become_plain_numbers_that_do_not_overflow() -> None:
    big = np.int32(2**30)
    model = Transformer("big", (Layers(np.int32(3), ATTENTION, Ffn(big)),), big, big, False)  # type: ignore[arg-type]
    assert parameters(model) > 3 * 3 * 2**60
    assert type(parameters(model)) is int
