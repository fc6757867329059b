"""Reading configs: public models as published, each rule of each type, and everything that is refused."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.model import (
    PRESETS,
    QWEN3_8B,
    SUPPORTED,
    Experts,
    Ffn,
    HeadAttention,
    LatentAttention,
    LayerKind,
    Transformer,
    from_config,
    kv_bytes,
    kv_bytes_per_further_token,
    kv_bytes_per_token,
    parameters,
    preset,
)
from lib.records import FOLDER
from tests.public_models import COMMON, MODELS, sizes

Config = dict[str, Any]

# A small config of each way to lay out a model, from which one field at a time is taken or made wrong.
SMALL = sizes(4, 64, 96, 8, 2, 100, False)
LLAMA: Config = SMALL | {"model_type": "llama"}
QWEN2: Config = SMALL | {"model_type": "qwen2"}
MISTRAL: Config = SMALL | {"model_type": "mistral", "sliding_window": 32}
GEMMA3: Config = SMALL | {
    "model_type": "gemma3_text",
    "sliding_window": 32,
    "head_dim": 16,
    "sliding_window_pattern": 2,
}
GPT_OSS: Config = SMALL | {
    "model_type": "gpt_oss",
    "head_dim": 16,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "num_experts_per_tok": 2,
    "num_local_experts": 6,
    "sliding_window": 32,
}
QWEN3_MOE: Config = SMALL | {
    "model_type": "qwen3_moe",
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 24,
    "num_experts": 6,
    "num_experts_per_tok": 2,
}
DEEPSEEK: Config = SMALL | {
    "model_type": "deepseek_v3",
    "first_k_dense_replace": 1,
    "kv_lora_rank": 12,
    "moe_intermediate_size": 24,
    "moe_layer_freq": 1,
    "n_routed_experts": 6,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "q_lora_rank": 10,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
}
QWEN3_NEXT: Config = SMALL | {"model_type": "qwen3_next", "full_attention_interval": 4, "head_dim": 16}
KIMI_LINEAR: Config = {name: value for name, value in DEEPSEEK.items() if name != "n_routed_experts"} | {
    "model_type": "kimi_linear",
    "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3]},
}
JAMBA: Config = SMALL | {"model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 2}
GPT2: Config = {"model_type": "gpt2", "n_embd": 64, "n_head": 8, "n_layer": 4, "n_positions": 50, "vocab_size": 100}
FALCON: Config = {
    "model_type": "falcon",
    "hidden_size": 64,
    "multi_query": True,
    "num_attention_heads": 8,
    "num_hidden_layers": 4,
    "vocab_size": 100,
}
SMALL_CONFIGS = (
    LLAMA,
    QWEN2,
    MISTRAL,
    GEMMA3,
    GPT_OSS,
    QWEN3_MOE,
    DEEPSEEK,
    QWEN3_NEXT,
    KIMI_LINEAR,
    JAMBA,
    GPT2,
    FALCON,
)


def without(config: Config, *names: str) -> Config:
    return {name: value for name, value in config.items() if name not in names}


def kinds(model: Transformer) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for group in model.layers:
        counted[group.attention.kind.name] += group.count
    return dict(counted)


def heads(config: Config) -> HeadAttention:
    attention = from_config(config).layers[0].attention
    assert isinstance(attention, HeadAttention)
    return attention


def refusal(config: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        from_config(config)
    return caught.value


# ---- public models ----


@pytest.mark.parametrize("name", MODELS)
def test_a_published_config_comes_to_its_size(name: str) -> None:
    published, model = MODELS[name], from_config(MODELS[name].config, name)
    assert model.name == name
    assert kv_bytes_per_token(model) == published.kv_bytes_per_token
    assert kv_bytes_per_further_token(model) == published.further
    if published.parameters is not None:
        assert parameters(model) == published.parameters


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Qwen3-8B", 8_190_735_360),
        ("Qwen3-32B", 32_762_123_264),
        ("Llama-3.1-8B", 8_030_261_248),
        ("Mistral-7B-v0.1", 7_241_732_096),
        ("Qwen3-235B-A22B", 235_093_634_560),
    ],
)
def test_parameters_of_presets(name: str, count: int) -> None:
    assert parameters(preset(name)) == count


def test_the_everyday_model_is_the_preset() -> None:
    assert preset("Qwen3-8B") == QWEN3_8B
    assert PRESETS["Qwen3-8B"] == QWEN3_8B


@pytest.mark.parametrize(
    ("name", "field"), [("gpt-oss-20b", "num_local_experts"), ("DeepSeek-V3", "first_k_dense_repl")]
)
def test_a_preset_without_all_fields_of_its_config_says_which_is_missing(name: str, field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}.* is None; allowed: .*; without it weights cannot be counted"):
        parameters(preset(name))
    assert kv_bytes(preset(name), 8192) > 0


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^name is 'Qwen3-9B'; allowed: one of 'Qwen3-8B', .*'DeepSeek-V3'$"):
        preset("Qwen3-9B")


def test_the_record_says_where_it_comes_from() -> None:
    record = json.loads((FOLDER / "model_configs.json").read_text(encoding="utf-8"))
    assert record["kind"] == "published"
    assert record["source"]
    assert [model["name"] for model in record["models"]] == list(PRESETS)


def test_each_supported_type_is_met_in_these_tests() -> None:
    configs = [published.config for published in MODELS.values()]
    met = {config.get("text_config", config)["model_type"] for config in configs}
    by_alias = {"granite", "ministral3", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_vl_text"}
    assert met | by_alias == set(SUPPORTED)
    assert not met & by_alias


@pytest.mark.parametrize(
    ("alias", "config"),
    [
        ("granite", LLAMA | {"attention_multiplier": 0.5, "embedding_multiplier": 12, "residual_multiplier": 0.2}),
        ("ministral3", MISTRAL),
        ("qwen3_5_text", QWEN3_NEXT),
        ("qwen3_5_moe_text", QWEN3_NEXT),
        ("qwen3_vl_text", SMALL | {"head_dim": 128, "model_type": "qwen3"}),
        ("kimi_k2", DEEPSEEK),
    ],
)
def test_types_with_the_layout_of_another(alias: str, config: Config) -> None:
    model, same = from_config(config, "one"), from_config(config | {"model_type": alias}, "one")
    assert same.layers == model.layers
    assert replace(same, unknown=None) == model if same.unknown is None else kinds(same) == kinds(model)


# ---- heads ----


def test_kv_heads_from_one_to_all() -> None:
    for kv_heads in (1, 2, 8):
        config = LLAMA | {"num_key_value_heads": kv_heads}
        assert heads(config) == HeadAttention(query_heads=8, kv_heads=kv_heads, head_dim=8)
        assert kv_bytes_per_token(from_config(config)) == 2 * 4 * kv_heads * 8 * 2


@pytest.mark.parametrize("config", [LLAMA, LLAMA | {"model_type": "phi3"}], ids=["llama", "phi3"])
def test_where_the_code_takes_a_kv_head_for_every_query_head_none_need_be_named(config: Config) -> None:
    assert heads(without(config, "num_key_value_heads")).kv_heads == 8
    assert heads(config | {"num_key_value_heads": None}).kv_heads == 8


@pytest.mark.parametrize("config", [QWEN2, MISTRAL, GPT_OSS, QWEN3_MOE, JAMBA], ids=lambda config: config["model_type"])
def test_elsewhere_a_missing_number_of_kv_heads_is_not_guessed(config: Config) -> None:
    error = refusal(without(config, "num_key_value_heads"))
    assert (error.parameter, error.value) == ("num_key_value_heads", None)


def test_multi_query() -> None:
    assert heads(GPT2 | {"model_type": "gpt_bigcode", "multi_query": True}).kv_heads == 1
    assert heads(GPT2 | {"model_type": "gpt_bigcode", "multi_query": False}).kv_heads == 8
    assert heads(GPT2).kv_heads == 8
    for config in (GPT2 | {"model_type": "gpt_bigcode"}, without(FALCON, "multi_query")):
        assert refusal(config).parameter == "multi_query"
    repeated = GPT2 | {"model_type": "gpt_bigcode", "multi_query": True, "num_key_value_heads": 1}
    assert heads(repeated).kv_heads == 1
    assert refusal(repeated | {"num_key_value_heads": 8}).allowed == "1, by multi_query"


def test_falcon_looks_at_its_kv_heads_in_the_newer_architecture_only() -> None:
    assert heads(FALCON | {"num_kv_heads": 4}).kv_heads == 1
    assert heads(FALCON | {"num_kv_heads": 4, "new_decoder_architecture": True}).kv_heads == 4
    assert heads(FALCON | {"multi_query": False}).kv_heads == 8
    assert refusal(FALCON | {"new_decoder_architecture": True}).parameter == "num_kv_heads"


def test_head_dim_is_taken_as_given_or_else_as_hidden_size_over_heads() -> None:
    assert heads(LLAMA | {"head_dim": 128}).head_dim == 128
    assert heads(LLAMA | {"head_dim": None}).head_dim == heads(LLAMA).head_dim == 8


def test_a_missing_head_dim_is_not_guessed_where_the_code_takes_another() -> None:
    qwen3 = without(MODELS["Qwen3-0.6B"].config, "head_dim")
    assert refusal(qwen3).parameter == "head_dim"
    assert "128 by the code of this type, 64 as hidden size over heads" in refusal(qwen3).allowed
    assert heads(qwen3 | {"hidden_size": 2048}).head_dim == 128


@pytest.mark.parametrize(
    ("model_type", "by_code"),
    [
        ("qwen3", 128), ("qwen3_vl_text", 128), ("gemma", 256), ("gemma2", 256), ("gpt_oss", 64), ("qwen3_next", 256),
        ("llama", None), ("mistral", None), ("qwen2", None), ("qwen3_moe", None), ("phi3", None), ("jamba", None),
    ],
)  # fmt: skip
def test_what_stands_for_a_missing_head_dim_by_type(model_type: str, by_code: int | None) -> None:
    same = [config for config in SMALL_CONFIGS if config["model_type"] == model_type]
    config = without(same[0] if same else SMALL, "head_dim") | {"model_type": model_type, "num_attention_heads": 4}
    config |= {"sliding_window": 32} if model_type in ("gemma2", "mistral") else {}
    for head_dim in (64, 128, 256):
        changed = config | {"hidden_size": 4 * head_dim}
        if by_code in (None, head_dim):
            attentions = [group.attention for group in from_config(changed).layers]
            assert all(a.head_dim == head_dim for a in attentions if isinstance(a, HeadAttention))
        else:
            assert refusal(changed).parameter == "head_dim"


@pytest.mark.parametrize(
    ("config", "parameter", "value", "allowed"),
    [
        (LLAMA | {"num_key_value_heads": 3}, "num_key_value_heads", 3, "a number that divides the 8 query heads"),
        (LLAMA | {"num_key_value_heads": 16}, "num_key_value_heads", 16, "a number that divides the 8 query heads"),
        (LLAMA | {"hidden_size": 60}, "hidden_size", 60, "a multiple of the 8 heads, as head_dim is missing"),
        (GPT2 | {"n_embd": 60}, "n_embd", 60, "a multiple of the 8 heads, as head_dim is missing"),
    ],
)
def test_heads_that_do_not_divide(config: Config, parameter: str, value: int, allowed: str) -> None:
    error = refusal(config)
    assert (error.parameter, error.value, error.allowed) == (parameter, value, allowed)


# ---- windows and states ----


def test_every_layer_windowed() -> None:
    assert kinds(from_config(MISTRAL)) == {"WINDOWED": 4}
    assert heads(MISTRAL).window == 32
    assert kinds(from_config(MISTRAL | {"sliding_window": None})) == {"FULL": 4}
    assert refusal(without(MISTRAL, "sliding_window")).parameter == "sliding_window"
    for model_type in ("phi3", "mixtral"):
        config = MISTRAL | {"model_type": model_type, "num_local_experts": 4, "num_experts_per_tok": 2}
        config = without(config, "num_local_experts", "num_experts_per_tok") if model_type == "phi3" else config
        assert kinds(from_config(config)) == {"WINDOWED": 4}
        assert kinds(from_config(without(config, "sliding_window"))) == {"FULL": 4}


def test_windows_that_are_not_in_use_are_none() -> None:
    unused = {"use_sliding_window": False, "sliding_window": 32, "max_window_layers": 2}
    assert kinds(from_config(QWEN2 | unused)) == {"FULL": 4}
    assert kinds(from_config(QWEN2 | unused | {"layer_types": ["full_attention"] * 4})) == {"FULL": 4}
    assert kinds(from_config(QWEN2 | {"sliding_window": None})) == {"FULL": 4}
    assert kinds(from_config(QWEN2 | {"use_sliding_window": True, "sliding_window": None})) == {"FULL": 4}
    assert kinds(from_config(QWEN2)) == {"FULL": 4}


@pytest.mark.parametrize("first", range(6))
def test_the_first_layers_of_qwen_are_full(first: int) -> None:
    used = {"use_sliding_window": True, "sliding_window": 32, "max_window_layers": first}
    model = from_config(QWEN2 | used)
    expected = {"FULL": min(first, 4), "WINDOWED": max(4 - first, 0)}
    assert kinds(model) == {kind: number for kind, number in expected.items() if number}


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"sliding_window": 32}, "use_sliding_window"),
        ({"sliding_window": 32, "use_sliding_window": True}, "max_window_layers"),
        ({"sliding_window": 32, "use_sliding_window": True, "max_window_layers": -1}, "max_window_layers"),
        ({"sliding_window": 0, "use_sliding_window": True, "max_window_layers": 1}, "sliding_window"),
        ({"use_sliding_window": "yes"}, "use_sliding_window"),
        ({"use_sliding_window": False, "layer_types": ["sliding_attention"] * 4, "sliding_window": 32}, "layer_types"),
    ],
)
def test_windows_of_qwen_that_are_not_clear(fields: Config, parameter: str) -> None:
    assert refusal(QWEN2 | fields).parameter == parameter


def test_qwen_with_experts_has_no_windows() -> None:
    config = QWEN3_MOE | {"sliding_window": 32, "max_window_layers": 2}
    assert kinds(from_config(config | {"use_sliding_window": False})) == {"FULL": 4}
    error = refusal(config | {"use_sliding_window": True})
    assert (error.parameter, error.value) == ("use_sliding_window", True)


@pytest.mark.parametrize(("layers", "period", "full"), [(34, 6, 5), (4, 2, 2), (4, 5, 0), (4, 1, 4)])
def test_every_nth_layer_full(layers: int, period: int, full: int) -> None:
    model = from_config(GEMMA3 | {"num_hidden_layers": layers, "sliding_window_pattern": period})
    assert kinds(model).get("FULL", 0) == full
    assert kinds(model).get("WINDOWED", 0) == layers - full


def test_a_list_of_layers_goes_before_a_pattern() -> None:
    listed = GEMMA3 | {"layer_types": ["full_attention"] * 3 + ["sliding_attention"]}
    assert kinds(from_config(listed)) == {"FULL": 3, "WINDOWED": 1}
    assert kinds(from_config(listed | {"layer_types": ["full_attention"] * 4, "sliding_window": None})) == {"FULL": 4}


def test_gemma_2_alternates() -> None:
    config = without(GEMMA3, "sliding_window_pattern") | {"model_type": "gemma2", "num_hidden_layers": 5}
    assert kinds(from_config(config)) == {"WINDOWED": 3, "FULL": 2}


@pytest.mark.parametrize("window", [0, -1, 1.5, "32", True, math.nan])
@pytest.mark.parametrize("config", [MISTRAL, GEMMA3, GPT_OSS], ids=lambda config: config["model_type"])
def test_a_window_that_makes_no_sense(config: Config, window: Any) -> None:
    assert refusal(config | {"sliding_window": window}).parameter == "sliding_window"


def test_windowed_layers_without_a_window() -> None:
    for config in (GPT_OSS, GEMMA3):
        assert refusal(config | {"sliding_window": None}).parameter == "sliding_window"
        assert refusal(without(config, "sliding_window")).parameter == "sliding_window"


@pytest.mark.parametrize(
    ("listed", "parameter", "allowed"),
    [
        (["full_attention"] * 3, "layer_types", "a list of 4 words, one for each layer"),
        (["full_attention"] * 5, "layer_types", "a list of 4 words, one for each layer"),
        ([], "layer_types", "a list of 4 words, one for each layer"),
        ("full_attention", "layer_types", "a list of 4 words, one for each layer"),
        (
            ["full_attention"] * 3 + ["chunked_attention"],
            "layer_types[3]",
            "one of 'full_attention', 'sliding_attention'",
        ),
        (
            ["full_attention", None, "full_attention", "x"],
            "layer_types[1]",
            "one of 'full_attention', 'sliding_attention'",
        ),
        (["linear_attention"] * 4, "layer_types[0]", "one of 'full_attention', 'sliding_attention'"),
        (None, "layer_types", "a list of 4 words, one for each layer"),
    ],
)
def test_lists_of_layers_that_are_not_understood(listed: Any, parameter: str, allowed: str) -> None:
    error = refusal(GPT_OSS | {"layer_types": listed})
    assert (error.parameter, error.allowed) == (parameter, allowed)


def test_layers_with_a_state_keep_no_kv() -> None:
    states = {"RECURRENT": 3}
    assert kinds(from_config(QWEN3_NEXT)) == kinds(from_config(JAMBA)) == states | {"FULL": 1}
    assert kinds(from_config(KIMI_LINEAR)) == states | {"LATENT": 1}
    assert kv_bytes_per_token(from_config(QWEN3_NEXT)) == 2 * 2 * 16 * 2
    assert kv_bytes_per_token(from_config(JAMBA)) == 2 * 2 * 8 * 2
    assert kv_bytes_per_token(from_config(KIMI_LINEAR)) == (12 + 4) * 2


def test_layers_with_a_state_as_a_list() -> None:
    listed = {"layer_types": ["linear_attention", "full_attention"] * 2}
    for config in (without(QWEN3_NEXT, "full_attention_interval"), without(KIMI_LINEAR, "linear_attn_config")):
        assert kinds(from_config(config | listed))["RECURRENT"] == 2
        assert refusal(config | {"layer_types": ["sliding_attention"] * 4}).parameter == "layer_types[0]"


@pytest.mark.parametrize(
    ("config", "parameter"),
    [
        (without(QWEN3_NEXT, "full_attention_interval"), "full_attention_interval"),
        (QWEN3_NEXT | {"full_attention_interval": 0}, "full_attention_interval"),
        (without(JAMBA, "attn_layer_period"), "attn_layer_period"),
        (without(JAMBA, "attn_layer_offset"), "attn_layer_offset"),
        (JAMBA | {"attn_layer_offset": 4}, "attn_layer_offset"),
        (without(KIMI_LINEAR, "linear_attn_config"), "linear_attn_config"),
        (KIMI_LINEAR | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2]}}, "full_attn_layers"),
        (
            KIMI_LINEAR | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3, 4]}},
            "full_attn_layers",
        ),
        (KIMI_LINEAR | {"linear_attn_config": {"full_attn_layers": [5], "kda_layers": [1, 2, 3]}}, "full_attn_layers"),
        (KIMI_LINEAR | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [0, 1, 2]}}, "kda_layers"),
        (KIMI_LINEAR | {"linear_attn_config": {"full_attn_layers": [4, 4], "kda_layers": [1, 2]}}, "full_attn_layers"),
        (KIMI_LINEAR | {"linear_attn_config": {"full_attn_layers": 4, "kda_layers": [1, 2, 3]}}, "full_attn_layers"),
    ],
)
def test_hybrids_that_are_not_clear(config: Config, parameter: str) -> None:
    assert refusal(config).parameter == parameter


# ---- weights ----


def test_experts_of_qwen() -> None:
    def layers(**fields: Any) -> list[tuple[int, str]]:
        return [(group.count, type(group.ffn).__name__) for group in from_config(QWEN3_MOE | fields).layers]

    assert from_config(QWEN3_MOE).layers[0].ffn == Experts(count=6, per_token=2, width=24)
    assert layers() == [(4, "Experts")]
    assert layers(decoder_sparse_step=2) == [(2, "Ffn"), (2, "Experts")]
    assert layers(decoder_sparse_step=3) == [(3, "Ffn"), (1, "Experts")]
    assert layers(num_hidden_layers=7, decoder_sparse_step=3) == [(5, "Ffn"), (2, "Experts")]
    assert layers(mlp_only_layers=[0]) == [(1, "Ffn"), (3, "Experts")]
    assert layers(mlp_only_layers=[0, 1, 2, 3]) == [(4, "Ffn")]
    assert layers(mlp_only_layers=None) == [(4, "Experts")]


def test_experts_of_deepseek() -> None:
    def layers(**fields: Any) -> list[tuple[int, Any]]:
        return [(group.count, group.ffn) for group in from_config(DEEPSEEK | fields).layers]

    routed = Experts(count=6, per_token=2, width=24, router_bias=True)
    mixture = replace(routed, shared_width=48)
    assert layers() == [(1, Ffn(96)), (3, mixture)]
    assert layers(first_k_dense_replace=0) == [(4, mixture)]
    assert layers(moe_layer_freq=2) == [(3, Ffn(96)), (1, mixture)]
    assert layers(n_shared_experts=None, first_k_dense_replace=0) == [(4, routed)]
    assert layers(n_shared_experts=0, first_k_dense_replace=0) == [(4, routed)]
    assert from_config(without(DEEPSEEK, "moe_layer_freq")).layers == from_config(DEEPSEEK).layers
    assert layers(model_type="deepseek_v2")[1] == (3, replace(mixture, router_bias=False))


@pytest.mark.parametrize(
    ("fields", "norms"),
    [
        ({}, 1),
        ({"parallel_attn": False}, 2),
        ({"new_decoder_architecture": True, "num_kv_heads": 2}, 2),
        ({"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}, 1),
        ({"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": None}, 2),
    ],
)
def test_norms_of_falcon(fields: Config, norms: int) -> None:
    assert from_config(FALCON | fields).norms_per_layer == norms


def test_norms_of_others() -> None:
    assert from_config(LLAMA).norms_per_layer == 2
    assert from_config(GEMMA3).norms_per_layer == 4
    assert not from_config(LLAMA).norm_bias
    assert from_config(GPT2).norm_bias
    assert from_config(GPT2).learned_positions == 50


def test_queries_of_deepseek_compressed_or_not() -> None:
    for rank in (10, None):
        attention = from_config(DEEPSEEK | {"q_lora_rank": rank}).layers[0].attention
        assert attention == LatentAttention(heads=8, latent=12, rotary_dim=4, key_dim=6, value_dim=6, query_rank=rank)


def test_tied_embeddings_by_default_of_each_type() -> None:
    tied = {"gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "falcon", "smollm3"}
    for config in (*SMALL_CONFIGS, *(published.config for published in MODELS.values())):
        text = config.get("text_config", config)
        model = from_config(without(text, "tie_word_embeddings"))
        assert model.tied_embeddings is (text["model_type"] in tied)
        for said in (True, False):
            assert from_config(text | {"tie_word_embeddings": said}).tied_embeddings is said


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (LLAMA, "vocab_size"),
        (LLAMA, "intermediate_size"),
        (GPT_OSS, "num_local_experts"),
        (GPT_OSS, "num_experts_per_tok"),
        (QWEN3_MOE, "decoder_sparse_step"),
        (QWEN3_MOE, "moe_intermediate_size"),
        (QWEN3_MOE | {"mlp_only_layers": [1]}, "intermediate_size"),
        (DEEPSEEK, "n_routed_experts"),
        (DEEPSEEK, "n_shared_experts"),
        (DEEPSEEK, "first_k_dense_replace"),
        (DEEPSEEK, "q_lora_rank"),
        (GPT2, "n_positions"),
    ],
)
def test_a_missing_size_of_weights_only_still_lets_kv_be_counted(config: Config, field: str) -> None:
    model = from_config(without(config, field))
    assert kv_bytes(model, 100) == kv_bytes(from_config(config), 100)
    with pytest.raises(InputError, match=rf"^{field} is None; allowed: .*; without it weights cannot be counted"):
        parameters(model)


def test_a_size_that_no_layer_uses_may_be_missing() -> None:
    assert parameters(from_config(without(QWEN3_MOE, "intermediate_size"))) == parameters(from_config(QWEN3_MOE))


def test_weights_of_models_with_states_are_not_counted() -> None:
    for config in (QWEN3_NEXT, KIMI_LINEAR, JAMBA):
        with pytest.raises(InputError, match=r"^model_type is .*; allowed: a type without recurrent layers"):
            parameters(from_config(config))


@pytest.mark.parametrize("config", SMALL_CONFIGS, ids=lambda config: config["model_type"])
def test_a_quantised_file_has_the_same_shape(config: Config) -> None:
    quantised = config | {"quantization_config": {"bits": 4, "group_size": 128, "quant_method": "awq"}}
    assert from_config(quantised, "one") == from_config(config, "one")


# ---- older names, parts of larger configs ----


def test_older_names_of_fields() -> None:
    newer = {
        "model_type": "gpt2", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 4,
        "max_position_embeddings": 50, "vocab_size": 100,
    }  # fmt: skip
    assert from_config(GPT2) == from_config(newer) == from_config(GPT2 | newer)
    assert from_config(GPT2 | {"n_inner": 256}) == from_config(GPT2) != from_config(GPT2 | {"n_inner": 128})
    error = refusal(GPT2 | {"hidden_size": 32})
    assert (error.parameter, error.value, error.allowed) == ("hidden_size", 32, "the same as n_embd, which is 64")
    assert refusal(LLAMA | {"n_layer": 4}).parameter == "n_layer"
    assert refusal(without(GPT2, "n_layer")).parameter == "n_layer"


def test_the_text_part_of_a_multimodal_config() -> None:
    around = {"model_type": "some_vision_model", "vision_config": {"num_hidden_layers": 3}, "text_config": LLAMA}
    assert from_config(around, "one") == from_config(LLAMA, "one")
    assert from_config(LLAMA | {"text_config": None}, "one") == from_config(LLAMA, "one")
    assert refusal(around | {"text_config": [LLAMA]}).parameter == "text_config"
    assert refusal(around | {"text_config": without(LLAMA, "model_type")}).parameter == "model_type"


def test_tied_embeddings_said_beside_the_text_part() -> None:
    silent = without(LLAMA, "tie_word_embeddings")
    assert from_config({"text_config": silent}).tied_embeddings is False
    assert from_config({"text_config": silent, "tie_word_embeddings": True}).tied_embeddings is True
    contradicting = from_config({"text_config": LLAMA, "tie_word_embeddings": True})
    assert kv_bytes_per_token(contradicting) == kv_bytes_per_token(from_config(LLAMA))
    with pytest.raises(InputError, match=r"^tie_word_embeddings is False; allowed: True, as beside text_config"):
        parameters(contradicting)
    assert refusal({"text_config": silent, "tie_word_embeddings": "no"}).parameter == "tie_word_embeddings"


def test_the_name_of_a_model() -> None:
    assert from_config(LLAMA).name == "llama"
    assert from_config(LLAMA, "mine").name == "mine"
    assert from_config(LLAMA | {"_name_or_path": "somebody/Some-7B"}).name == "Some-7B"


# ---- what is refused ----


NO_SIZES: tuple[Any, ...] = (-1, 1.5, 64.0, math.nan, math.inf, "8", True, [8], {})
# Nothing that is counted depends on these, so they are not looked at.
NOT_ASKED = {
    "qwen3_moe": ["intermediate_size"],
    "qwen3_next": ["intermediate_size"],
    "jamba": ["intermediate_size"],
    "deepseek_v3": ["num_key_value_heads"],
    "kimi_linear": [
        "num_key_value_heads", "intermediate_size", "first_k_dense_replace", "moe_intermediate_size", "moe_layer_freq",
        "n_shared_experts", "num_experts_per_tok",
    ],
}  # fmt: skip


@pytest.mark.parametrize("config", SMALL_CONFIGS, ids=lambda config: config["model_type"])
def test_no_value_of_a_field_passes_unless_it_makes_sense(config: Config) -> None:
    for field, right in config.items():
        if type(right) is not int or field in NOT_ASKED.get(config["model_type"], []):
            continue
        for value in NO_SIZES:
            assert refusal(config | {field: value}).parameter == field
        if field not in ("first_k_dense_replace", "n_shared_experts", "attn_layer_offset"):
            assert refusal(config | {field: 0}).parameter == field


@pytest.mark.parametrize("field", ["num_hidden_layers", "num_attention_heads", "hidden_size"])
def test_what_kv_depends_on_must_be_there(field: str) -> None:
    for config in (without(LLAMA, field), LLAMA | {field: None}):
        error = refusal(config)
        assert (error.parameter, error.value) == (field, None)
        assert error.allowed == "a whole number of at least 1; the config gives none"


@pytest.mark.parametrize("field", ["kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"])
def test_what_latent_attention_depends_on_must_be_there(field: str) -> None:
    assert refusal(without(DEEPSEEK, field)).parameter == field


def test_more_layers_than_any_model_has() -> None:
    error = refusal(LLAMA | {"num_hidden_layers": 2**70})
    assert (error.parameter, error.allowed) == ("num_hidden_layers", "a whole number from 1 to 10,000")


def test_other_sizes_may_be_huge_and_stay_exact() -> None:
    model = from_config(LLAMA | {"head_dim": 2**70, "vocab_size": 2**70})
    assert kv_bytes_per_token(model) == 2 * 4 * 2 * 2**70 * 2


def test_more_experts_for_a_token_than_there_are() -> None:
    error = refusal(QWEN3_MOE | {"num_experts_per_tok": 7})
    assert (error.parameter, error.allowed) == ("num_experts_per_tok", "a whole number from 1 to 6")


def test_layers_without_experts_that_are_no_layers() -> None:
    for wrong in ([4], [-1], [0, 0], [0.0], "0", 0, True):
        assert refusal(QWEN3_MOE | {"mlp_only_layers": wrong}).parameter == "mlp_only_layers"


@pytest.mark.parametrize("value", ["qwen9", "", None, 3, ["llama"], {}, "Llama", "gemma3", "mamba", "bert"], ids=repr)
def test_an_unknown_type_is_refused_with_the_known_ones(value: Any) -> None:
    error = refusal(LLAMA | {"model_type": value})
    assert (error.parameter, error.value) == ("model_type", value)
    assert error.allowed == "one of " + ", ".join(repr(name) for name in SUPPORTED)
    assert refusal(without(LLAMA, "model_type")).parameter == "model_type"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sliding_window", 4096),
        ("layer_types", ["full_attention"] * 4),
        ("num_kv_shared_layers", 2),
        ("multi_query", True),
        ("kv_lora_rank", 512),
        ("num_experts", 8),
        ("cross_attention_layers", [1, 3]),
        ("index_head_dim", 128),
        ("hidden_size_per_layer_input", 256),
        ("num_memory_blocks", 1),
        ("hybrid_layer_pattern", "M-M*"),
    ],
)
def test_a_field_that_may_bear_on_sizes_and_is_not_understood_is_refused(field: str, value: Any) -> None:
    error = refusal(LLAMA | {field: value})
    assert (error.parameter, error.value) == (field, value)
    assert error.allowed == "no such field: what it means for sizes is not known here"
    assert from_config(LLAMA | {field: None}) == from_config(LLAMA)


@pytest.mark.parametrize(
    ("field", "value", "without_effect"),
    [
        ("is_encoder_decoder", True, False),
        ("add_cross_attention", True, False),
        ("lm_head_bias", True, False),
        ("use_qk_norm", True, False),
        ("use_sliding_window", True, False),
        ("full_attn_mod", 2, 1),
        ("pruned_heads", {"1": [0]}, {}),
    ],
)
def test_a_field_without_effect_at_one_value_is_refused_at_others(field: str, value: Any, without_effect: Any) -> None:
    assert from_config(LLAMA | {field: without_effect}) == from_config(LLAMA)
    error = refusal(LLAMA | {field: value})
    assert (error.parameter, error.value) == (field, value)
    assert error.allowed == f"{without_effect}: no other value is known here"


@pytest.mark.parametrize("config", SMALL_CONFIGS, ids=lambda config: config["model_type"])
def test_fields_that_bear_on_nothing_do_not_disturb(config: Config) -> None:
    more = without(COMMON, "max_position_embeddings") | {"my_note": "x", "unsloth_fixed": True, "temperature": 0.6}
    assert from_config(config | more, "one") == from_config(config, "one")


def test_biases_where_the_type_knows_them() -> None:
    assert (heads(LLAMA).input_bias, heads(LLAMA).output_bias) == (False, False)
    biased = heads(LLAMA | {"attention_bias": True})
    assert (biased.input_bias, biased.output_bias) == (True, True)
    assert (heads(QWEN2).input_bias, heads(QWEN2).output_bias) == (True, False)
    assert heads(GPT_OSS).output_bias and not heads(GPT_OSS | {"attention_bias": False}).output_bias
    assert refusal(MISTRAL | {"attention_bias": True}).parameter == "attention_bias"
    assert refusal(LLAMA | {"attention_bias": "yes"}).parameter == "attention_bias"
    assert from_config(LLAMA | {"mlp_bias": True}).layers[0].ffn == Ffn(96, bias=True)
    assert from_config(GPT2).layers[0].ffn == Ffn(256, gated=False, bias=True)
    for bias in (True, False):
        falcon = from_config(FALCON | {"bias": bias}).layers[0]
        assert falcon.attention == replace(heads(FALCON), input_bias=bias, output_bias=bias)
        assert falcon.ffn == Ffn(256, gated=False, bias=bias)
    assert from_config(FALCON).layers[0].ffn == Ffn(256, gated=False, bias=False)
    assert from_config(FALCON | {"ffn_hidden_size": 80}).layers[0].ffn == Ffn(80, gated=False, bias=False)


# ---- files ----


def written(folder: Path, text: str | bytes, name: str = "config.json") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "Some-7B"
    folder.mkdir()
    path = written(folder, json.dumps(LLAMA, indent=2))
    assert from_config(path) == from_config(str(path)) == from_config(LLAMA, "Some-7B")
    assert from_config(written(tmp_path, json.dumps(LLAMA), "other.json")).name == "other"


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('{\n "a": 1,\n "b": 2,,\n}', r"a file of JSON \(line 3, column 9: "),
        ("", r"a file of JSON \(line 1, column 1: "),
        ("not json", r"a file of JSON \(line 1, column 1: "),
        ('{"a": 1} {"b": 2}', r"a file of JSON \(line 1, column 10: "),
        ("[1, 2]", "a JSON object; the file holds a list"),
        ('"text"', "a JSON object; the file holds a str"),
        ("null", "a JSON object; the file holds a NoneType"),
        (b"\xff\xfe{}", r"a file of JSON in UTF-8 \("),
        ("[" * 100_000, r"a file of JSON in UTF-8 \("),
        ('{"a": ' + "1" * 10_000 + "}", r"a file of JSON in UTF-8 \("),
        (
            '{"num_hidden_layers": 4, "num_hidden_layers": 5}',
            r"a JSON object \(num_hidden_layers is \[4, 5\]; allowed: one",
        ),
    ],
    ids=range(11),
)
def test_a_file_that_is_no_config_is_refused_with_the_place(tmp_path: Path, text: str | bytes, allowed: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=allowed) as caught:
        from_config(path)
    assert (caught.value.parameter, caught.value.value) == ("config", str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "config.json", tmp_path / "no" / "config.json"):
        error = refusal(path)
        assert (error.parameter, error.value) == ("config", str(path))
        assert "a file that can be read" in error.allowed


def test_a_directory(tmp_path: Path) -> None:
    written(tmp_path, json.dumps(LLAMA))
    assert refusal(tmp_path).allowed == "a file; this is a directory, give the config.json in it"


@pytest.mark.parametrize(
    "value", [[LLAMA], None, 3, True, {1: 2}, b"config.json", "a\0b"], ids=lambda value: repr(value)[:12]
)
def test_what_is_neither_a_path_nor_a_mapping(value: Any) -> None:
    assert refusal(value).parameter == "config"


def test_a_config_is_left_as_it_was() -> None:
    for config in SMALL_CONFIGS:
        before = json.dumps(config)
        from_config(config)
        assert json.dumps(config) == before


def test_any_mapping_will_do() -> None:
    class Frozen(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            return LLAMA[name]

        def __iter__(self) -> Any:
            return iter(LLAMA)

        def __len__(self) -> int:
            return len(LLAMA)

    assert from_config(Frozen()) == from_config(LLAMA)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats()
    | st.text("ab", max_size=3)
    | st.lists(st.integers(0, 4))
)


@given(st.sampled_from(SMALL_CONFIGS), st.data())
def test_whatever_stands_in_a_field_is_read_or_refused(config: Config, data: st.DataObject) -> None:
    changed = dict(config)
    for field in data.draw(st.lists(st.sampled_from(sorted(config)), max_size=3)):
        changed[field] = data.draw(VALUES)
    try:
        model = from_config(changed)
        assert kv_bytes(model, 7) > 0 or set(kinds(model)) == {LayerKind.RECURRENT.name}
        parameters(model)
    except InputError as error:
        assert error.parameter and error.allowed
