"""What the code of each supported model type makes of the fields of a config.

A `Layout` holds what that code settles and a config leaves unsaid, as constants and as rules on the fields.
Source: the published code of these models in the Hugging Face transformers library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lib.checks import InputError
from lib.model_fields import WEIGHTS_ONLY, Fields
from lib.model_shape import Experts, Ffn, LayerKind, Unknown

FULL, WINDOWED, RECURRENT = LayerKind.FULL, LayerKind.WINDOWED, LayerKind.RECURRENT
Kinds = list[LayerKind]
Ffns = list[Ffn | Experts | None]
KindRule = Callable[[Fields, int], Kinds]
FfnRule = Callable[[Fields, int], Ffns]
BiasRule = Callable[[Fields], tuple[bool, bool]]


# ---- which layers see all, a window, or a state ----


def all_full(fields: Fields, layers: int) -> Kinds:
    """Every layer sees every token."""
    return [FULL] * layers


def windowed_if_given(fields: Fields, layers: int) -> Kinds:
    """Every layer has the window, if there is one."""
    return [FULL if fields.get("sliding_window") is None else WINDOWED] * layers


def mistral_kinds(fields: Fields, layers: int) -> Kinds:
    """As above, but the code takes a window of its own where none is named, so the config must say."""
    if not fields.has("sliding_window"):
        raise InputError("sliding_window", None, "a whole number of at least 1, or an explicit null")
    return windowed_if_given(fields, layers)


def listed_or(otherwise: KindRule, recurrent: bool = False) -> KindRule:
    """As `layer_types` says layer by layer, full beside windowed or full beside recurrent; without it, another rule."""
    others = {"linear_attention": RECURRENT} if recurrent else {"sliding_attention": WINDOWED}
    words = {"full_attention": FULL} | others

    def rule(fields: Fields, layers: int) -> Kinds:
        if not recurrent:
            fields.get("sliding_window")
        if fields.get("layer_types") is None:
            return otherwise(fields, layers)
        return [words[word] for word in fields.words("layer_types", layers, words)]

    return rule


def must_be_listed(fields: Fields, layers: int) -> Kinds:
    """There is no other rule."""
    raise InputError("layer_types", None, f"a list of {layers} words, one for each layer")


def every_nth_full(period: int | str, others: LayerKind) -> KindRule:
    """The last layer of each period is full; the period is a number or the field that gives it."""

    def rule(fields: Fields, layers: int) -> Kinds:
        length = fields.size(period) if isinstance(period, str) else period
        return [others if (layer + 1) % length else FULL for layer in range(layers)]

    return rule


def qwen_kinds(fields: Fields, layers: int) -> Kinds:
    """Windows only with `use_sliding_window`: in the listed layers, or from layer `max_window_layers` on."""
    given = fields.get("sliding_window") is not None
    windows = fields.flag("use_sliding_window", otherwise=None if given else False) and given
    fields.get("max_window_layers")
    kinds = listed_or(full_then_windowed if windows else all_full)(fields, layers)
    if WINDOWED in kinds and not windows:
        raise InputError("layer_types", "sliding_attention", "full_attention, as no sliding window is in use")
    return kinds


def full_then_windowed(fields: Fields, layers: int) -> Kinds:
    """The first `max_window_layers` layers are full."""
    first = fields.size("max_window_layers", at_least=0)
    return [FULL if layer < first else WINDOWED for layer in range(layers)]


def qwen_moe_kinds(fields: Fields, layers: int) -> Kinds:
    """No windows: the code of the two types that share these fields differs in which layers would have them."""
    kinds = qwen_kinds(fields, layers)
    if WINDOWED in kinds:
        raise InputError("use_sliding_window", True, "false: which layers would have the window is not settled")
    return kinds


def kimi_linear_kinds(fields: Fields, layers: int) -> Kinds:
    """Two lists of layers, counted from 1."""
    lists = fields.part("linear_attn_config")
    full, recurrent = lists.numbers("full_attn_layers", 1, layers), lists.numbers("kda_layers", 1, layers)
    if sorted(full + recurrent) != list(range(1, layers + 1)):
        raise InputError("full_attn_layers", full, f"with kda_layers, each layer from 1 to {layers} once")
    return [FULL if layer + 1 in full else RECURRENT for layer in range(layers)]


def jamba_kinds(fields: Fields, layers: int) -> Kinds:
    """One layer of attention in each period, the others are state spaces."""
    period = fields.size("attn_layer_period")
    offset = fields.size("attn_layer_offset", at_least=0, at_most=period - 1)
    return [FULL if layer % period == offset else RECURRENT for layer in range(layers)]


# ---- the FFN of each layer; None where a size is missing ----


def gated(fields: Fields, layers: int) -> Ffns:
    """The same gated FFN in every layer."""
    width = fields.weight_size("intermediate_size")
    return [None if width is None else Ffn(width)] * layers


def llama_ffn(fields: Fields, layers: int) -> Ffns:
    """As above, with biases if the config says so."""
    width, bias = fields.weight_size("intermediate_size"), fields.flag("mlp_bias", otherwise=False)
    return [None if width is None else Ffn(width, bias=bias)] * layers


def gpt2_ffn(fields: Fields, layers: int) -> Ffns:
    """Two matrices, four times as wide as the layer unless the config says otherwise."""
    width = fields.size_or("n_inner", 4 * fields.size("hidden_size"))
    return [Ffn(width, gated=False, bias=True)] * layers


def falcon_ffn(fields: Fields, layers: int) -> Ffns:
    """As above, with biases if the config says so."""
    width = fields.size_or("ffn_hidden_size", 4 * fields.size("hidden_size"))
    return [Ffn(width, gated=False, bias=fields.flag("bias", otherwise=False))] * layers


def experts(fields: Fields, width: str) -> Experts | None:
    """A mixture of experts of the width that this field gives."""
    count = fields.weight_size("num_experts")
    per_token, inner = fields.weight_size("num_experts_per_tok", at_most=count), fields.weight_size(width)
    return None if count is None or per_token is None or inner is None else Experts(count, per_token, inner)


def mixtral_ffn(fields: Fields, layers: int) -> Ffns:
    """Experts in every layer."""
    return [experts(fields, "intermediate_size")] * layers


def gpt_oss_ffn(fields: Fields, layers: int) -> Ffns:
    """Experts in every layer, with biases, the router too."""
    mixture = experts(fields, "intermediate_size")
    return [mixture and replace(mixture, bias=True, router_bias=True)] * layers


def qwen3_moe_ffn(fields: Fields, layers: int) -> Ffns:
    """Experts in every `decoder_sparse_step`-th layer that is not in `mlp_only_layers`."""
    step = fields.weight_size("decoder_sparse_step") or 1
    # Configs older than this field leave it out.
    gated_only = fields.numbers("mlp_only_layers", 0, layers - 1) if fields.get("mlp_only_layers") is not None else []
    sparse = [layer not in gated_only and (layer + 1) % step == 0 for layer in range(layers)]
    return some_sparse(fields, sparse, experts(fields, "moe_intermediate_size"))


def qwen2_moe_ffn(fields: Fields, layers: int) -> Ffns:
    """As above, with a shared expert behind a gate of its own."""
    shared = fields.weight_size("shared_expert_intermediate_size") or 0
    return [
        replace(ffn, shared_width=shared, shared_gate=True) if isinstance(ffn, Experts) else ffn
        for ffn in qwen3_moe_ffn(fields, layers)
    ]


def deepseek_ffn(router_bias: bool) -> FfnRule:
    """First layers gated, then experts in every `moe_layer_freq`-th; shared experts are as wide as the others."""

    def rule(fields: Fields, layers: int) -> Ffns:
        first, period = (
            fields.weight_size("first_k_dense_replace", at_least=0) or 0,
            fields.size_or("moe_layer_freq", 1),
        )
        mixture = experts(fields, "moe_intermediate_size")
        shared = 0 if fields.is_null("n_shared_experts") else fields.weight_size("n_shared_experts", at_least=0) or 0
        if mixture:
            mixture = replace(mixture, shared_width=shared * mixture.width, router_bias=router_bias)
        return some_sparse(fields, [layer >= first and layer % period == 0 for layer in range(layers)], mixture)

    return rule


def some_sparse(fields: Fields, sparse: list[bool], mixture: Experts | None) -> Ffns:
    """Experts in some layers, a gated FFN in the others; its width is not asked if there are no others."""
    fields.get("intermediate_size")
    other = None if all(sparse) else gated(fields, 1)[0]
    return [mixture if here else other for here in sparse]


def not_counted(fields: Fields, layers: int) -> Ffns:
    """The weights of recurrent layers are not known here, so neither are those of the model."""
    allowed = "a type without recurrent layers: of one with them only KV is counted, no weights and no FLOPs"
    fields.lacking.append(Unknown("model_type", fields.get("model_type"), allowed))
    return [None] * layers


# ---- KV heads, biases, norms ----


def kv_heads_named(fields: Fields, query_heads: int) -> int:
    """The config must say."""
    return fields.size("num_key_value_heads")


def kv_heads_or_all(fields: Fields, query_heads: int) -> int:
    """One to each query head, unless the config says otherwise."""
    return fields.size_or("num_key_value_heads", query_heads)


def all_heads(fields: Fields, query_heads: int) -> int:
    """One to each query head."""
    return query_heads


def multi_query(fields: Fields, query_heads: int) -> int:
    """A single one, or one to each query head."""
    return 1 if fields.flag("multi_query") else query_heads


def gpt_bigcode_kv_heads(fields: Fields, query_heads: int) -> int:
    """As above; some configs repeat the number that follows."""
    kv_heads = multi_query(fields, query_heads)
    if fields.size_or("num_key_value_heads", kv_heads) != kv_heads:
        raise InputError("num_key_value_heads", fields.get("num_key_value_heads"), f"{kv_heads}, by multi_query")
    return kv_heads


def falcon_kv_heads(fields: Fields, query_heads: int) -> int:
    """Named in the newer architecture; in the older one `num_kv_heads` is not looked at."""
    # What a cache must hold: the library's own code goes on to store a copy of it for every query head.
    fields.get("num_kv_heads", "multi_query")
    newer = fields.flag("new_decoder_architecture", otherwise=False)
    return fields.size("num_kv_heads") if newer else multi_query(fields, query_heads)


def no_biases(fields: Fields) -> tuple[bool, bool]:
    """Neither queries, keys and values nor the output of attention have biases."""
    return False, False


def all_biases(fields: Fields) -> tuple[bool, bool]:
    """All of them have."""
    return True, True


def input_biases(fields: Fields) -> tuple[bool, bool]:
    """Queries, keys and values have."""
    return True, False


def bias_field(name: str, otherwise: bool = False, output: bool = True) -> BiasRule:
    """As a field says, for queries, keys and values and perhaps for the output."""
    return lambda fields: (fields.flag(name, otherwise), output and fields.flag(name, otherwise))


def two_norms(fields: Fields) -> int:
    """One before attention, one before the FFN."""
    return 2


def four_norms(fields: Fields) -> int:
    """One before and one behind each of them."""
    return 4


def falcon_norms(fields: Fields) -> int:
    """Attention and FFN side by side may share one."""
    newer = fields.flag("new_decoder_architecture", otherwise=False)
    shared = fields.size_or("num_ln_in_parallel_attn", 2 if newer else 1)
    return shared if fields.flag("parallel_attn", otherwise=True) else 2


# ---- the types ----


@dataclass(frozen=True)
class Layout:
    """What the code of a model type settles.

    `tied` is what it takes for a missing `tie_word_embeddings`; `head_dim` what it takes for a missing one, if that
    is not hidden size over heads. `aliases` are other names of fields; `defaults` stand for sizes that published
    configs leave out; `understood` are fields that bear on nothing that is counted.
    """

    ffn: FfnRule = gated
    kinds: KindRule = all_full
    latent: bool = False
    kv_heads: Callable[[Fields, int], int] = kv_heads_named
    head_dim: int | None = None
    biases: BiasRule = no_biases
    head_norms: bool = False
    sinks: bool = False
    norms: Callable[[Fields], int] = two_norms
    norm_bias: bool = False
    learned_positions: bool = False
    tied: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)
    understood: tuple[str, ...] = ()


LOCAL_EXPERTS = {"num_local_experts": "num_experts"}
LATENT_FIELDS = ("num_key_value_heads", "head_dim", "qk_head_dim")

LLAMA = Layout(ffn=llama_ffn, kv_heads=kv_heads_or_all, biases=bias_field("attention_bias"))
QWEN2 = Layout(kinds=qwen_kinds, biases=input_biases)
QWEN3 = Layout(kinds=qwen_kinds, biases=bias_field("attention_bias"), head_dim=128, head_norms=True)
QWEN3_NEXT = Layout(
    ffn=not_counted,
    kinds=listed_or(every_nth_full("full_attention_interval", RECURRENT), recurrent=True),
    head_dim=256,
    understood=("full_attention_interval", *WEIGHTS_ONLY),
)
GEMMA = Layout(head_dim=256, biases=bias_field("attention_bias"), tied=True)
GEMMA2 = replace(GEMMA, kinds=listed_or(every_nth_full(2, WINDOWED)), norms=four_norms)
GEMMA3 = replace(
    GEMMA2,
    kinds=listed_or(every_nth_full("sliding_window_pattern", WINDOWED)),
    head_norms=True,
    aliases={"_sliding_window_pattern": "sliding_window_pattern"},
    # The published configs of this type name only what differs from these.
    defaults={
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "sliding_window_pattern": 6,
    },
    understood=("sliding_window_pattern",),
)
GPT_OSS = Layout(
    ffn=gpt_oss_ffn,
    kinds=listed_or(must_be_listed),
    head_dim=64,
    biases=bias_field("attention_bias", otherwise=True),
    sinks=True,
    aliases=LOCAL_EXPERTS,
    understood=("experts_per_token",),
)
DEEPSEEK_V3 = Layout(
    ffn=deepseek_ffn(router_bias=True),
    latent=True,
    biases=bias_field("attention_bias"),
    aliases={"n_routed_experts": "num_experts"},
    understood=LATENT_FIELDS,
)
KIMI_LINEAR = Layout(
    ffn=not_counted,
    kinds=listed_or(kimi_linear_kinds, recurrent=True),
    latent=True,
    biases=bias_field("attention_bias"),
    understood=("linear_attn_config", *LATENT_FIELDS, *WEIGHTS_ONLY),
)
GPT2 = Layout(
    ffn=gpt2_ffn,
    kv_heads=all_heads,
    biases=all_biases,
    norm_bias=True,
    learned_positions=True,
    tied=True,
    aliases={
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_positions": "max_position_embeddings",
    },
)
FALCON = Layout(
    ffn=falcon_ffn,
    kv_heads=falcon_kv_heads,
    biases=bias_field("bias"),
    norms=falcon_norms,
    norm_bias=True,
    tied=True,
)

LAYOUTS: Mapping[str, Layout] = {
    "deepseek_v2": replace(DEEPSEEK_V3, ffn=deepseek_ffn(router_bias=False)),
    "deepseek_v3": DEEPSEEK_V3,
    "falcon": FALCON,
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "gpt2": GPT2,
    "gpt_bigcode": replace(GPT2, kv_heads=gpt_bigcode_kv_heads),
    "gpt_oss": GPT_OSS,
    "granite": LLAMA,
    "jamba": Layout(ffn=not_counted, kinds=jamba_kinds, understood=WEIGHTS_ONLY),
    "kimi_k2": DEEPSEEK_V3,
    "kimi_linear": KIMI_LINEAR,
    "llama": LLAMA,
    "ministral3": Layout(kinds=windowed_if_given),
    "mistral": Layout(kinds=mistral_kinds),
    "mixtral": Layout(ffn=mixtral_ffn, kinds=windowed_if_given, aliases=LOCAL_EXPERTS),
    "phi3": Layout(kinds=windowed_if_given, kv_heads=kv_heads_or_all),
    "qwen2": QWEN2,
    "qwen2_moe": replace(
        QWEN2, ffn=qwen2_moe_ffn, kinds=qwen_moe_kinds, biases=bias_field("qkv_bias", otherwise=True, output=False)
    ),
    "qwen3": QWEN3,
    "qwen3_5_moe_text": QWEN3_NEXT,
    "qwen3_5_text": QWEN3_NEXT,
    "qwen3_moe": replace(QWEN3, ffn=qwen3_moe_ffn, kinds=qwen_moe_kinds, head_dim=None, aliases=LOCAL_EXPERTS),
    "qwen3_next": QWEN3_NEXT,
    "qwen3_vl_text": replace(QWEN3, kinds=all_full),
    "smollm3": replace(
        LLAMA,
        kinds=qwen_kinds,
        kv_heads=kv_heads_named,
        tied=True,
        understood=("no_rope_layers", "no_rope_layer_interval"),
    ),
}
SUPPORTED = tuple(LAYOUTS)
