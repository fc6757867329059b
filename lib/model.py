"""A transformer's shape: how many parameters it has and how many bytes they take."""

from dataclasses import dataclass

from lib.checks import whole


@dataclass(frozen=True)
class Transformer:
    """A dense decoder with grouped-query attention, a gated FFN, and normalised queries and keys (the Qwen3 layout)."""

    name: str
    layers: int
    hidden: int
    ffn: int
    query_heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied_embeddings: bool

    def __post_init__(self) -> None:
        for size in ("layers", "hidden", "ffn", "query_heads", "kv_heads", "head_dim", "vocabulary"):
            whole(size, getattr(self, size), at_least=1)


# Source: the model's public config file; 36 layers, 8 KV heads and head dimension 128 are printed in section 8.1.2.
QWEN3_8B = Transformer(
    name="Qwen3-8B",
    layers=36,
    hidden=4096,
    ffn=12288,
    query_heads=32,
    kv_heads=8,
    head_dim=128,
    vocabulary=151936,
    tied_embeddings=False,
)


def layer_matrix_parameters(model: Transformer) -> int:
    """Parameters in the matrices of one layer: query and output, key and value, and the three of the FFN."""
    query_and_output = 2 * model.hidden * model.query_heads * model.head_dim
    key_and_value = 2 * model.hidden * model.kv_heads * model.head_dim
    gate_up_and_down = 3 * model.hidden * model.ffn
    return query_and_output + key_and_value + gate_up_and_down


def layer_norm_parameters(model: Transformer) -> int:
    """Parameters in the norm vectors of one layer: before attention, before the FFN, and on each query and key head."""
    return 2 * model.hidden + 2 * model.head_dim


def parameters(model: Transformer) -> int:
    """All parameters: layers, last norm, embedding and (if untied) output matrix. Source: footnote 1."""
    layers = model.layers * (layer_matrix_parameters(model) + layer_norm_parameters(model))
    embeddings = (1 if model.tied_embeddings else 2) * model.vocabulary * model.hidden
    return layers + model.hidden + embeddings


def weight_bytes(model: Transformer, bytes_per_element: int = 2) -> int:
    """Bytes of all weights, resident; BF16 has 2 bytes an element. Source: section 8.0, footnote 1."""
    return parameters(model) * whole("bytes_per_element", bytes_per_element, at_least=1)
