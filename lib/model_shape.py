"""What a transformer is made of: groups of equal layers, their attention and FFN, and every weight tensor in them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from lib.checks import InputError, keep_whole


class LayerKind(StrEnum):
    """What a layer keeps of the tokens it has seen: all, the last few, a latent of each, or one state for all."""

    FULL = "full attention"
    WINDOWED = "windowed attention"
    LATENT = "latent attention"
    RECURRENT = "recurrent"


class LatentForm(StrEnum):
    """The two ways to compute latent attention: expand latents to keys and values, or attend to the latents."""

    EXPANDED = "expanded"
    ABSORBED = "absorbed"


@dataclass(frozen=True)
class Tensor:
    """Weight tensors of one name and shape: in how many layers, how many in each, how many of these a token uses.

    A token uses them all, but for experts, of which it uses a few, and for embeddings, of which it looks up a row.
    """

    name: str
    shape: tuple[int, ...]
    layers: int = 1
    each: int = 1
    used: int = 1

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def _matrix(name: str, rows: int, columns: int, bias: bool = False, each: int = 1, used: int = 1) -> Iterator[Tensor]:
    yield Tensor(name, (rows, columns), each=each, used=used)
    if bias:
        yield Tensor(f"{name} bias", (rows,), each=each, used=used)


@dataclass(frozen=True)
class HeadAttention:
    """Attention that keeps a key and a value of each KV head: MHA, GQA or, with a single KV head, MQA.

    `window` bounds how many tokens a layer keeps and sees (None: all). Sizes are checked: raises InputError.
    """

    query_heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    input_bias: bool = False
    output_bias: bool = False
    head_norms: bool = False
    sinks: bool = False

    def __post_init__(self) -> None:
        keep_whole(self, query_heads=1, kv_heads=1, head_dim=1)
        if self.window is not None:
            keep_whole(self, window=1)
        if self.query_heads % self.kv_heads:
            raise InputError("kv_heads", self.kv_heads, f"a number that divides the {self.query_heads} query heads")

    @property
    def kind(self) -> LayerKind:
        return LayerKind.FULL if self.window is None else LayerKind.WINDOWED

    @property
    def kv_elements_per_token(self) -> int:
        return 2 * self.kv_heads * self.head_dim

    @property
    def flops_per_pair(self) -> int:
        """FLOPs of one query-key pair over all query heads: QK^T and PV, a multiply-add counting 2."""
        return 2 * self.query_heads * (self.head_dim + self.head_dim)

    def tensors(self, hidden: int) -> Iterator[Tensor]:
        """The weights of one layer's attention."""
        queries, keys = self.query_heads * self.head_dim, self.kv_heads * self.head_dim
        yield from _matrix("query", queries, hidden, self.input_bias)
        yield from _matrix("key", keys, hidden, self.input_bias)
        yield from _matrix("value", keys, hidden, self.input_bias)
        yield from _matrix("attention output", hidden, queries, self.output_bias)
        if self.head_norms:
            yield Tensor("head norm", (self.head_dim,), each=2, used=2)
        if self.sinks:
            yield Tensor("sinks", (self.query_heads,))


@dataclass(frozen=True)
class LatentAttention:
    """Attention that keeps one latent and one rotary key a token for all heads together (MLA).

    `query_rank` is None where queries are not compressed. Sizes are checked: raises InputError.
    """

    heads: int
    latent: int
    rotary_dim: int
    key_dim: int
    value_dim: int
    query_rank: int | None
    bias: bool = False

    def __post_init__(self) -> None:
        keep_whole(self, heads=1, latent=1, rotary_dim=1, key_dim=1, value_dim=1)
        if self.query_rank is not None:
            keep_whole(self, query_rank=1)

    @property
    def window(self) -> None:
        return None

    @property
    def kind(self) -> LayerKind:
        return LayerKind.LATENT

    @property
    def kv_elements_per_token(self) -> int:
        return self.latent + self.rotary_dim

    def flops_per_pair(self, form: LatentForm) -> int:
        """FLOPs of one query-key pair over all heads, scores and weighted sum, in one of the two forms."""
        if form is LatentForm.ABSORBED:
            return 2 * self.heads * (self.latent + self.rotary_dim + self.latent)
        return 2 * self.heads * (self.key_dim + self.rotary_dim + self.value_dim)

    @property
    def expansion(self) -> tuple[int, int]:
        """Rows and columns of the matrix that makes keys and values of a latent."""
        return self.heads * (self.key_dim + self.value_dim), self.latent

    def tensors(self, hidden: int) -> Iterator[Tensor]:
        """The weights of one layer's attention."""
        queries = self.heads * (self.key_dim + self.rotary_dim)
        if self.query_rank is None:
            yield from _matrix("query", queries, hidden)
        else:
            yield from _matrix("query compression", self.query_rank, hidden, self.bias)
            yield Tensor("query norm", (self.query_rank,))
            yield from _matrix("query", queries, self.query_rank)
        yield from _matrix("latent", self.latent + self.rotary_dim, hidden, self.bias)
        yield Tensor("latent norm", (self.latent,))
        yield from _matrix("latent expansion", *self.expansion)
        yield from _matrix("attention output", hidden, self.heads * self.value_dim, self.bias)


@dataclass(frozen=True)
class Recurrent:
    """A layer of linear attention or of a state space: one state, whatever the length. Its size is not counted here."""

    kind = LayerKind.RECURRENT
    window = None
    kv_elements_per_token = 0


@dataclass(frozen=True)
class Ffn:
    """A feed-forward network of this inner width, gated (three matrices) or not (two)."""

    width: int
    gated: bool = True
    bias: bool = False

    def __post_init__(self) -> None:
        keep_whole(self, width=1)

    def tensors(self, hidden: int, name: str = "", each: int = 1, used: int = 1) -> Iterator[Tensor]:
        """The weights of one network, or of `each` equal ones of which a token uses some."""
        for part in ("gate", "up") if self.gated else ("up",):
            yield from _matrix(f"{name}{part}", self.width, hidden, self.bias, each, used)
        yield from _matrix(f"{name}down", hidden, self.width, self.bias, each, used)


@dataclass(frozen=True)
class Experts:
    """A mixture of experts: so many gated networks of one width, of which a router picks some for each token.

    All tokens also pass through the shared expert, if there is one, and through its gate, if it has one.
    Sizes are checked: raises InputError.
    """

    count: int
    per_token: int
    width: int
    bias: bool = False
    router_bias: bool = False
    shared_width: int = 0
    shared_gate: bool = False

    def __post_init__(self) -> None:
        keep_whole(self, count=1, per_token=1, width=1, shared_width=0)
        if self.per_token > self.count:
            raise InputError("per_token", self.per_token, f"at most the {self.count} experts")

    def tensors(self, hidden: int) -> Iterator[Tensor]:
        """The weights of one layer's experts."""
        yield from _matrix("router", self.count, hidden, self.router_bias)
        yield from Ffn(self.width, bias=self.bias).tensors(hidden, "expert ", self.count, self.per_token)
        if self.shared_width:
            yield from Ffn(self.shared_width).tensors(hidden, "shared expert ")
        if self.shared_gate:
            yield from _matrix("shared expert's own gate", 1, hidden)


@dataclass(frozen=True)
class Layers:
    """Equal layers: how many there are, their attention and their FFN (None: not known)."""

    count: int
    attention: HeadAttention | LatentAttention | Recurrent
    ffn: Ffn | Experts | None

    def __post_init__(self) -> None:
        keep_whole(self, count=1)


@dataclass(frozen=True)
class Unknown:
    """Why the weights of a model cannot be counted: a field of its config, the value there, what is allowed."""

    parameter: str
    value: object
    allowed: str


@dataclass(frozen=True)
class Transformer:
    """A decoder by its sizes: layers in groups of equal ones, residual width, vocabulary, norms, positions learned.

    `unknown` says why weights cannot be counted, where vocabulary or an FFN is None. Raises InputError for sizes
    that make no sense.
    """

    name: str
    layers: tuple[Layers, ...]
    hidden: int
    vocabulary: int | None
    tied_embeddings: bool
    norms_per_layer: int = 2
    norm_bias: bool = False
    learned_positions: int = 0
    unknown: Unknown | None = None

    def __post_init__(self) -> None:
        keep_whole(self, hidden=1, norms_per_layer=0, learned_positions=0)
        if not self.layers:
            raise InputError("layers", self.layers, "at least one layer")
        if self.unknown is None or self.vocabulary is not None:
            keep_whole(self, vocabulary=1)
        uncounted = any(group.ffn is None or isinstance(group.attention, Recurrent) for group in self.layers)
        if uncounted and self.unknown is None:
            raise InputError("unknown", None, "a reason, as not all weights of these layers can be counted")

    @property
    def layer_count(self) -> int:
        return sum(group.count for group in self.layers)

    @property
    def has_experts(self) -> bool:
        return any(isinstance(group.ffn, Experts) for group in self.layers)


def layer_tensors(model: Transformer) -> Iterator[Tensor]:
    """Every weight tensor in the layers of a model; raises InputError, which says why, where they are not known."""
    if model.unknown is not None:
        raise InputError(model.unknown.parameter, model.unknown.value, model.unknown.allowed)
    for group in model.layers:
        # Or else `unknown` would be set.
        assert group.ffn is not None and not isinstance(group.attention, Recurrent)
        for tensor in (*group.attention.tensors(model.hidden), *group.ffn.tensors(model.hidden)):
            yield replace(tensor, layers=group.count)
    yield from _norms(model, "norm", model.layer_count, model.norms_per_layer)


def tensors(model: Transformer) -> tuple[Tensor, ...]:
    """Every weight tensor of a model; raises InputError, which says why, where they are not known.

    Embeddings are looked up, not multiplied with, so a token uses none; a tied one is used as the output head.
    Extra prediction layers for drafts are not counted, nor are a file's packing and scales.
    """
    inside = tuple(layer_tensors(model))
    table = (model.vocabulary or 0, model.hidden)
    outside = [Tensor("embedding and output head", table)]
    if not model.tied_embeddings:
        outside = [Tensor("embedding", table, used=0), Tensor("output head", table)]
    if model.learned_positions:
        outside.append(Tensor("positions", (model.learned_positions, model.hidden), used=0))
    return (*outside, *inside, *_norms(model, "last norm", 1, 1))


def _norms(model: Transformer, name: str, layers: int, each: int) -> Iterator[Tensor]:
    for part in (name, f"{name} bias") if model.norm_bias else (name,):
        yield Tensor(part, (model.hidden,), layers, each, each)
