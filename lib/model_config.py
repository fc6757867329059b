"""Reading a transformer's shape from the `config.json` of a public model, in the format of Hugging Face.

Nothing is guessed: a model type that is not in SUPPORTED, a missing size, or a field that may bear on sizes and is not
understood is an error. Where only fields are missing that weights depend on, the shape is read and KV can be counted;
counting weights or FLOPs then names the field.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from lib.checks import InputError, one_of
from lib.model_fields import Fields, as_object, read_object
from lib.model_shape import HeadAttention, LatentAttention, LayerKind, Layers, Recurrent, Transformer, Unknown
from lib.model_types import LAYOUTS, Layout
from lib.records import FOLDER

# More layers than any model has; rules are read layer by layer.
MOST_LAYERS = 10_000


def from_config(config: str | PathLike[str] | Mapping[str, Any], name: str | None = None) -> Transformer:
    """The shape of the model that a config.json describes, given as its path or as its content.

    Of a multimodal config the text part is read. `quantization_config` is not looked at: bytes per element are said
    where they are used, and packing and scales of a quantised file are not counted. Raises InputError for a file that
    cannot be read (with line and column where it is no JSON) and for whatever is missing, wrong or not understood.
    """
    if isinstance(config, (str, PathLike)):
        path = Path(config)
        content, origin = read_object(path), path.parent.name if path.name == "config.json" else path.stem
    else:
        content = as_object("config", config, ", or the path of a config.json")
        origin = str(content.get("_name_or_path") or "").rpartition("/")[2]
    text = content if content.get("text_config") is None else as_object("text_config", content["text_config"])
    layout = LAYOUTS[one_of("model_type", text.get("model_type"), LAYOUTS)]
    fields = Fields(text, layout.aliases, layout.defaults)
    shape = _shape(fields, layout, name or origin or text["model_type"], content.get("tie_word_embeddings"))
    fields.refuse_what_is_left(layout.understood)
    return shape


def _shape(fields: Fields, layout: Layout, name: str, tied_beside: object) -> Transformer:
    count = fields.size("num_hidden_layers", at_most=MOST_LAYERS)
    hidden = fields.size("hidden_size")
    kinds = layout.kinds(fields, count)
    attention = _latent_attention(fields, layout) if layout.latent else _head_attention(fields, layout)
    ffns = layout.ffn(fields, count)
    parts = Counter((_of_kind(kind, attention, fields), ffn) for kind, ffn in zip(kinds, ffns, strict=True))
    vocabulary = fields.weight_size("vocab_size")
    positions = fields.weight_size("max_position_embeddings") if layout.learned_positions else 0
    tied = _tied(fields, layout, tied_beside)
    return Transformer(
        name=name,
        layers=tuple(Layers(number, of_kind, ffn) for (of_kind, ffn), number in parts.items()),
        hidden=hidden,
        vocabulary=vocabulary,
        tied_embeddings=tied,
        norms_per_layer=layout.norms(fields),
        norm_bias=layout.norm_bias,
        learned_positions=positions or 0,
        unknown=fields.lacking[0] if fields.lacking else None,
    )


def _of_kind(
    kind: LayerKind, attention: HeadAttention | LatentAttention, fields: Fields
) -> HeadAttention | LatentAttention | Recurrent:
    if kind is LayerKind.RECURRENT:
        return Recurrent()
    if kind is LayerKind.WINDOWED and isinstance(attention, HeadAttention):
        return replace(attention, window=fields.size("sliding_window"))
    return attention


def _head_attention(fields: Fields, layout: Layout) -> HeadAttention:
    queries = fields.size("num_attention_heads")
    keys = layout.kv_heads(fields, queries)
    if queries % keys:
        raise InputError("num_key_value_heads", keys, f"a number that divides the {queries} query heads")
    input_bias, output_bias = layout.biases(fields)
    return HeadAttention(
        query_heads=queries,
        kv_heads=keys,
        head_dim=_head_dim(fields, layout, queries),
        input_bias=input_bias,
        output_bias=output_bias,
        head_norms=layout.head_norms,
        sinks=layout.sinks,
    )


def _head_dim(fields: Fields, layout: Layout, heads: int) -> int:
    if fields.get("head_dim") is not None:
        return fields.size("head_dim")
    hidden = fields.size("hidden_size")
    if hidden % heads:
        raise InputError(fields.said("hidden_size"), hidden, f"a multiple of the {heads} heads, as head_dim is missing")
    if layout.head_dim not in (None, hidden // heads):
        allowed = (
            f"a whole number: {layout.head_dim} by the code of this type, {hidden // heads} as hidden size over heads?"
        )
        raise InputError("head_dim", None, allowed)
    return hidden // heads


def _latent_attention(fields: Fields, layout: Layout) -> LatentAttention:
    return LatentAttention(
        heads=fields.size("num_attention_heads"),
        latent=fields.size("kv_lora_rank"),
        rotary_dim=fields.size("qk_rope_head_dim"),
        key_dim=fields.size("qk_nope_head_dim"),
        value_dim=fields.size("v_head_dim"),
        query_rank=None if fields.is_null("q_lora_rank") else fields.weight_size("q_lora_rank"),
        bias=layout.biases(fields)[0],
    )


def _tied(fields: Fields, layout: Layout, beside: object) -> bool:
    """Whether embeddings are tied; a multimodal config may say so beside its text part."""
    inside = fields.get("tie_word_embeddings")
    if inside is not None and beside is not None and inside != beside:
        allowed = f"{beside!r}, as beside text_config; while the two differ, weights cannot be counted"
        fields.lacking.append(Unknown("tie_word_embeddings", inside, allowed))
    return fields.flag("tie_word_embeddings", otherwise=layout.tied if beside is None else beside)


def _presets() -> dict[str, Transformer]:
    models = read_object(FOLDER / "model_configs.json")["models"]
    return {model["name"]: from_config(model["config"], model["name"]) for model in models}


PRESETS: Mapping[str, Transformer] = _presets()


def preset(name: str) -> Transformer:
    """The model of this name among PRESETS; raises InputError, which lists them, for another. Source: its record."""
    return PRESETS[one_of("name", name, PRESETS)]
