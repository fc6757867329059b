"""A transformer's parameters, counted a second time tensor by tensor."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.model import QWEN3_8B, Transformer, layer_matrix_parameters, layer_norm_parameters, parameters, weight_bytes

SIZES = st.integers(1, 300)
MODELS = st.builds(
    Transformer,
    name=st.just("any"),
    layers=SIZES,
    hidden=SIZES,
    ffn=SIZES,
    query_heads=SIZES,
    kv_heads=SIZES,
    head_dim=SIZES,
    vocabulary=SIZES,
    tied_embeddings=st.booleans(),
)


def tensors_of_a_layer(model: Transformer) -> Iterator[tuple[int, ...]]:
    queries, keys = model.query_heads * model.head_dim, model.kv_heads * model.head_dim
    yield from [(queries, model.hidden), (keys, model.hidden), (keys, model.hidden), (model.hidden, queries)]
    yield from [(model.ffn, model.hidden), (model.ffn, model.hidden), (model.hidden, model.ffn)]
    yield from [(model.hidden,), (model.hidden,), (model.head_dim,), (model.head_dim,)]


def tensors(model: Transformer) -> Iterator[tuple[int, ...]]:
    yield model.vocabulary, model.hidden
    for _ in range(model.layers):
        yield from tensors_of_a_layer(model)
    yield (model.hidden,)
    if not model.tied_embeddings:
        yield model.vocabulary, model.hidden


def test_qwen3_8b_is_as_large_as_its_published_files() -> None:
    assert parameters(QWEN3_8B) == 8_190_735_360
    assert weight_bytes(QWEN3_8B) == 16_381_470_720


@given(MODELS)
def test_parameters_are_those_of_all_tensors(model: Transformer) -> None:
    assert parameters(model) == sum(map(math.prod, tensors(model)))


@given(MODELS)
def test_a_layer_is_its_matrices_and_its_norms(model: Transformer) -> None:
    shapes = list(tensors_of_a_layer(model))
    assert layer_matrix_parameters(model) == sum(math.prod(shape) for shape in shapes if len(shape) == 2)
    assert layer_norm_parameters(model) == sum(math.prod(shape) for shape in shapes if len(shape) == 1)


@given(MODELS)
def test_tied_embeddings_save_the_output_matrix(model: Transformer) -> None:
    untied, tied = replace(model, tied_embeddings=False), replace(model, tied_embeddings=True)
    assert parameters(untied) - parameters(tied) == model.vocabulary * model.hidden


@given(MODELS, st.integers(1, 8))
def test_every_parameter_takes_the_same_bytes(model: Transformer, size: int) -> None:
    assert weight_bytes(model, size) == size * parameters(model)
    assert type(weight_bytes(model, size)) is int


@pytest.mark.parametrize("size", ["layers", "hidden", "ffn", "query_heads", "kv_heads", "head_dim", "vocabulary"])
def test_a_size_that_makes_no_sense_is_refused_by_name(size: str) -> None:
    for value in (0, -1, 1.5, math.nan, "8", True, None):
        with pytest.raises(ValueError, match=rf"^{size} is .*; allowed: a whole number of at least 1"):
            replace(QWEN3_8B, **{size: value})  # type: ignore[arg-type]
