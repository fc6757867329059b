"""What follows from a transformer's shape: parameters, bytes of weights and of KV, matrix FLOPs.

A shape comes from a model's public config (`from_config`), from the models at hand (`preset`), or from sizes of one's
own (`Transformer`). Bytes of an element are the caller's to say: 2 is BF16, a `Fraction` such as 34/32 a block format.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from lib.attention import causal_pairs
from lib.checks import InputError, one_of, whole
from lib.model_config import PRESETS, from_config, preset
from lib.model_shape import (
    Experts,
    Ffn,
    HeadAttention,
    LatentAttention,
    LatentForm,
    LayerKind,
    Layers,
    Recurrent,
    Transformer,
    layer_tensors,
    tensors,
)
from lib.model_types import SUPPORTED

__all__ = [
    "PRESETS",
    "QWEN3_8B",
    "SUPPORTED",
    "ElementSize",
    "Experts",
    "Ffn",
    "HeadAttention",
    "LatentAttention",
    "LatentForm",
    "LayerKind",
    "Layers",
    "Recurrent",
    "StreamedWeights",
    "Transformer",
    "ffn_bytes_per_layer",
    "from_config",
    "kv_bytes",
    "kv_bytes_by_kind",
    "kv_bytes_per_further_token",
    "kv_bytes_per_token",
    "kv_elements",
    "matrix_flops",
    "paged_kv_bytes",
    "parameters",
    "preset",
    "streamed_weight_bounds",
    "streamed_weight_bytes",
    "tensors",
    "tokens_that_fit",
    "weight_bytes",
    "weight_bytes_per_layer",
]

ElementSize = int | Fraction

# Source: the model's public config file; 36 layers, 8 KV heads and head dimension 128 are printed in section 8.1.2.
QWEN3_8B = Transformer(
    name="Qwen3-8B",
    layers=(Layers(36, HeadAttention(query_heads=32, kv_heads=8, head_dim=128, head_norms=True), Ffn(width=12288)),),
    hidden=4096,
    vocabulary=151936,
    tied_embeddings=False,
)


def kv_elements(model: Transformer, tokens: int) -> int:
    """Values that a request of so many tokens keeps as KV; a windowed layer keeps those of its window only.

    The state of a recurrent layer does not grow and is not counted. Source: section 8.1.2.
    """
    length = whole("tokens", tokens, at_least=1)
    return sum(_kept_elements(group, length) for group in model.layers)


def _kept_elements(group: Layers, length: int) -> int:
    window = group.attention.window
    kept = length if window is None else min(length, window)
    return group.count * kept * group.attention.kv_elements_per_token


def kv_bytes(model: Transformer, tokens: int, bytes_per_element: ElementSize = 2) -> int:
    """Bytes of the KV of a request of so many tokens, exact; pages are not rounded up. Source: section 8.1.2."""
    return _bytes(kv_elements(model, tokens), bytes_per_element)


def kv_bytes_by_kind(model: Transformer, tokens: int, bytes_per_element: ElementSize = 2) -> dict[LayerKind, int]:
    """The bytes of `kv_bytes` by kind of layer; recurrent layers keep 0 per token."""
    length = whole("tokens", tokens, at_least=1)
    kinds = dict.fromkeys((group.attention.kind for group in model.layers), 0)
    for group in model.layers:
        kinds[group.attention.kind] += _bytes(_kept_elements(group, length), bytes_per_element)
    return kinds


def kv_bytes_per_token(model: Transformer, bytes_per_element: ElementSize = 2) -> int:
    """Bytes that one more token adds while no window is full yet: every layer counts. Source: section 8.1.2."""
    return kv_bytes(model, 1, bytes_per_element)


def kv_bytes_per_further_token(model: Transformer, bytes_per_element: ElementSize = 2) -> int:
    """Bytes that one more token adds once every window is full: windowed layers no longer grow."""
    return _bytes(_growth(model), bytes_per_element)


def _growth(model: Transformer) -> int:
    return sum(
        group.count * group.attention.kv_elements_per_token for group in model.layers if not group.attention.window
    )


def paged_kv_bytes(model: Transformer, tokens: int, page_tokens: int, bytes_per_element: ElementSize = 2) -> int:
    """Bytes that an engine with pages of one size reserves for a request: whole pages, and in every layer.

    Such an engine keeps the full length for windowed layers too, which need less (`kv_bytes`). Source: section 8.3.1.
    """
    page = whole("page_tokens", page_tokens, at_least=1)
    pages = -(-whole("tokens", tokens, at_least=1) // page)
    return pages * page * kv_bytes_per_token(model, bytes_per_element)


def tokens_that_fit(model: Transformer, available_bytes: int, bytes_per_element: ElementSize = 2) -> int | None:
    """The longest request whose KV takes at most so many bytes; 0 if not even one token fits.

    None means no limit: all layers that keep KV are windowed, and their full windows fit.
    """
    affordable = whole("available_bytes", available_bytes) // _element_size(bytes_per_element)
    growth = _growth(model)
    longest_window = max(group.attention.window or 0 for group in model.layers)
    if not growth and (not longest_window or kv_elements(model, longest_window) <= affordable):
        return None
    fitting, too_long = 0, (affordable // growth if growth else longest_window) + 1
    while too_long - fitting > 1:
        middle = (fitting + too_long) // 2
        if kv_elements(model, middle) <= affordable:
            fitting = middle
        else:
            too_long = middle
    return fitting


def parameters(model: Transformer) -> int:
    """All parameters; raises InputError, which says what is missing, where the config does not tell them all."""
    return sum(tensor.layers * tensor.each * tensor.elements for tensor in tensors(model))


def weight_bytes(model: Transformer, bytes_per_element: ElementSize = 2) -> int:
    """Bytes of all weights, resident. Source: section 8.0, footnote 1. Raises InputError as `parameters` does."""
    return _bytes(parameters(model), bytes_per_element)


def streamed_weight_bytes(model: Transformer, bytes_per_element: ElementSize = 2) -> int:
    """Bytes of weights read once per decode step: all but embeddings of which only rows are looked up.

    A tied embedding is read in full, as output head. Raises InputError for a model with experts, where it depends
    on the batch: see `streamed_weight_bounds`. Source: section 8.2.1.
    """
    if model.has_experts:
        allowed = "a model without experts; for one with experts, streamed_weight_bounds gives the least and the most"
        raise InputError("model", model.name, allowed)
    return streamed_weight_bounds(model, 1, bytes_per_element).most


def ffn_bytes_per_layer(model: Transformer, bytes_per_element: ElementSize = 2) -> int:
    """Bytes of the FFN weights of one layer. Source: sections 8.2.3 and 8.4.3.

    Raises InputError for a model whose layers differ in them or whose FFN is not known.
    """
    each = {
        None if group.ffn is None else sum(t.each * t.elements for t in group.ffn.tensors(model.hidden))
        for group in model.layers
    }
    elements = each.pop()
    if each or elements is None:
        raise InputError("model", model.name, "a model whose layers all have the same, known FFN")
    return _bytes(elements, bytes_per_element)


def weight_bytes_per_layer(model: Transformer, bytes_per_element: ElementSize = 2) -> int:
    """Bytes of all weights of one layer, its norms too. Source: section 8.4.3.

    Raises InputError for a model whose layers differ, and as `parameters` does.
    """
    if len(model.layers) != 1:
        raise InputError("model", model.name, "a model whose layers are all the same")
    return _bytes(sum(t.each * t.elements for t in layer_tensors(model)), bytes_per_element)


@dataclass(frozen=True)
class StreamedWeights:
    """Bytes of weights that one step reads at least (all tokens pick the same experts) and at most (different ones)."""

    least: int
    most: int


def streamed_weight_bounds(
    model: Transformer, batch_tokens: int, bytes_per_element: ElementSize = 2
) -> StreamedWeights:
    """The least and the most bytes of weights that a step of so many tokens reads; equal without experts.

    In each layer with experts it touches at least those of one token and at most those of all tokens, or all experts.
    Raises InputError as `parameters` does. Source: section 8.2.1.
    """
    batch = whole("batch_tokens", batch_tokens, at_least=1)
    every = tensors(model)
    least = sum(tensor.layers * tensor.used * tensor.elements for tensor in every)
    most = sum(tensor.layers * min(tensor.each, batch * tensor.used) * tensor.elements for tensor in every)
    return StreamedWeights(_bytes(least, bytes_per_element), _bytes(most, bytes_per_element))


def matrix_flops(
    model: Transformer,
    new_tokens: int,
    cached_tokens: int,
    logit_positions: int = 1,
    latent_form: LatentForm | None = None,
) -> int:
    """FLOPs of the matrix products for new tokens of one request behind cached ones; a multiply-add counts 2.

    Counted: the layers' matrices for each new token (of experts only those it uses, and the router), scores and
    weighted sums of the pairs that causality and window let through, the output head on `logit_positions`.
    Not counted: norms, softmax, rotary positions, activations, look-ups, masked pairs. Latent attention has two forms
    that cost differently, so `latent_form` must name one: ABSORBED attends to the latents themselves; EXPANDED first
    makes keys and values of every latent, the cached ones too. Raises InputError as `parameters` does.
    Source: section 8.3.4.
    """
    n, h = whole("new_tokens", new_tokens, at_least=1), whole("cached_tokens", cached_tokens)
    logits = whole("logit_positions", logit_positions, at_most=n)
    projections = 2 * n * _matrix_elements_used(model)
    attention = sum(group.count * _attention_flops(group, n, h, latent_form) for group in model.layers)
    head = 2 * logits * (model.vocabulary or 0) * model.hidden
    return projections + attention + head


@cache
def _matrix_elements_used(model: Transformer) -> int:
    matrices = (tensor for tensor in layer_tensors(model) if len(tensor.shape) == 2)
    return sum(tensor.layers * tensor.used * tensor.elements for tensor in matrices)


def _attention_flops(group: Layers, new: int, cached: int, form: LatentForm | None) -> int:
    attention = group.attention
    # The weights of a model with such layers are never known, so it is refused before.
    assert not isinstance(attention, Recurrent)
    pairs = causal_pairs(new, cached, attention.window)
    if isinstance(attention, HeadAttention):
        return attention.flops_per_pair * pairs
    form = one_of("latent_form", form, LatentForm)
    rows, columns = attention.expansion
    expanding_cached = 2 * cached * rows * columns if form is LatentForm.EXPANDED else 0
    return attention.flops_per_pair(form) * pairs + expanding_cached


def _element_size(bytes_per_element: ElementSize) -> ElementSize:
    if isinstance(bytes_per_element, Fraction) and bytes_per_element > 0:
        return bytes_per_element
    try:
        return whole("bytes_per_element", bytes_per_element, at_least=1)
    except InputError:
        allowed = "a whole number of at least 1, or a Fraction above 0"
        raise InputError("bytes_per_element", bytes_per_element, allowed) from None


def _bytes(elements: int, bytes_per_element: ElementSize) -> int:
    size = elements * _element_size(bytes_per_element)
    if size.denominator != 1:
        raise InputError(
            "bytes_per_element", bytes_per_element, f"a size of which {elements} elements fill whole bytes"
        )
    return int(size)
