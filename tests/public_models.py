"""Configs of public models as their makers published them (fields without bearing on sizes left out), and their sizes.

Parameters: what the Hugging Face library builds of each config, embeddings that are tied counted once. KV: bytes a
token in BF16 while no window is full, and once all are.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Published:
    """A config and what it comes to; parameters are None where recurrent layers are not counted."""

    config: dict[str, Any]
    parameters: int | None
    kv_bytes_per_token: int
    kv_bytes_per_further_token: int | None = None

    @property
    def further(self) -> int:
        given = self.kv_bytes_per_further_token
        return self.kv_bytes_per_token if given is None else given


def model(
    parameters: int | None, kv_bytes: int, config: dict[str, Any], further: int | None = None, **more: Any
) -> Published:
    return Published(config | more, parameters, kv_bytes, further)


def sizes(
    layers: int, hidden: int, ffn: int, heads: int, kv_heads: int, vocabulary: int, tied: bool | None
) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }


# What files carry beside sizes, and what must not disturb.
COMMON = {
    "architectures": ["SomethingForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "use_cache": True,
}
ALTERNATING = {24: ["sliding_attention", "full_attention"] * 12, 36: ["sliding_attention", "full_attention"] * 18}
KIMI_FULL = [4, 8, 12, 16, 20, 24, 27]

MODELS: dict[str, Published] = {
    "Llama-2-7B": model(
        6_738_415_616, 524_288, COMMON | sizes(32, 4096, 11008, 32, 32, 32000, False), model_type="llama",
        pretraining_tp=1,
    ),
    "Llama-3.1-70B": model(
        70_553_706_496, 327_680, COMMON | sizes(80, 8192, 28672, 64, 8, 128256, False), model_type="llama",
        attention_bias=False, mlp_bias=False, rope_scaling={"factor": 8.0, "rope_type": "llama3"},
    ),
    "Llama-3.2-1B": model(
        1_235_814_400, 32_768, COMMON | sizes(16, 2048, 8192, 32, 8, 128256, True), model_type="llama", head_dim=64,
    ),
    "Mistral-7B-v0.3": model(
        7_248_023_552, 131_072, COMMON | sizes(32, 4096, 14336, 32, 8, 32768, False), model_type="mistral",
        sliding_window=None,
    ),
    "Mistral-Nemo-2407": model(
        12_247_782_400, 163_840, COMMON | sizes(40, 5120, 14336, 32, 8, 131072, False), model_type="mistral",
        head_dim=128, sliding_window=None,
    ),
    "Mixtral-8x7B": model(
        46_702_792_704, 131_072, COMMON | sizes(32, 4096, 14336, 32, 8, 32000, False), model_type="mixtral",
        num_local_experts=8, num_experts_per_tok=2, output_router_logits=False, router_aux_loss_coef=0.02,
        sliding_window=None,
    ),
    "Qwen2.5-0.5B": model(
        494_032_768, 12_288, COMMON | sizes(24, 896, 4864, 14, 2, 151936, True), model_type="qwen2",
        max_window_layers=24, sliding_window=32768, use_sliding_window=False, use_mrope=False,
    ),
    "Qwen2.5-7B": model(
        7_615_616_512, 57_344, COMMON | sizes(28, 3584, 18944, 28, 4, 152064, False), model_type="qwen2",
        max_window_layers=28, sliding_window=131072, use_sliding_window=False,
    ),
    "Qwen1.5-MoE-A2.7B": model(
        14_315_784_192, 196_608, COMMON | sizes(24, 2048, 5632, 16, 16, 151936, False), model_type="qwen2_moe",
        decoder_sparse_step=1, max_window_layers=21, moe_intermediate_size=1408, norm_topk_prob=False, num_experts=60,
        num_experts_per_tok=4, output_router_logits=False, router_aux_loss_coef=0.001,
        shared_expert_intermediate_size=5632, sliding_window=32768, use_sliding_window=False,
    ),
    "Qwen3-0.6B": model(
        596_049_920, 114_688, COMMON | sizes(28, 1024, 3072, 16, 8, 151936, True), model_type="qwen3",
        attention_bias=False, head_dim=128, max_window_layers=28, sliding_window=None, use_sliding_window=False,
    ),
    "Qwen3-30B-A3B": model(
        30_532_122_624, 98_304, COMMON | sizes(48, 2048, 6144, 32, 4, 151936, False), model_type="qwen3_moe",
        attention_bias=False, decoder_sparse_step=1, head_dim=128, max_window_layers=48, mlp_only_layers=[],
        moe_intermediate_size=768, norm_topk_prob=True, num_experts=128, num_experts_per_tok=8, sliding_window=None,
        use_sliding_window=False,
    ),
    "Qwen3-Next-80B-A3B": model(
        None, 24_576, COMMON | sizes(48, 2048, 5120, 16, 2, 151936, False), model_type="qwen3_next",
        attention_bias=False, decoder_sparse_step=1, full_attention_interval=4, head_dim=256, linear_conv_kernel_dim=4,
        linear_key_head_dim=128, linear_num_key_heads=16, linear_num_value_heads=32, linear_value_head_dim=128,
        mlp_only_layers=[], moe_intermediate_size=512, num_experts=512, num_experts_per_tok=10,
        partial_rotary_factor=0.25, shared_expert_intermediate_size=512,
    ),
    "Gemma-2B": model(
        2_506_172_416, 18_432, COMMON | sizes(18, 2048, 16384, 8, 1, 256000, True), model_type="gemma", head_dim=256,
        attention_bias=False,
    ),
    "Gemma-2-9B": model(
        9_241_705_984, 344_064, COMMON | sizes(42, 3584, 14336, 16, 8, 256000, None), further=172_032,
        model_type="gemma2", attn_logit_softcapping=50.0, cache_implementation="hybrid", final_logit_softcapping=30.0,
        head_dim=256, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256, sliding_window=4096,
    ),
    "Gemma-3-1B": model(
        999_885_952, 26_624, COMMON | sizes(26, 1152, 6912, 4, 1, 262144, True), further=4_096,
        model_type="gemma3_text", head_dim=256, sliding_window=512, sliding_window_pattern=6,
        rope_local_base_freq=10000, cache_implementation="hybrid", query_pre_attn_scalar=256,
    ),
    # Its makers left out heads, head_dim, vocabulary and pattern: they are the defaults of the type.
    "Gemma-3-4B": model(
        3_880_263_168, 139_264,
        {
            "architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "model_type": "gemma3",
            "mm_tokens_per_image": 256, "image_token_index": 262144, "initializer_range": 0.02,
            "text_config": {
                "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024,
            },
            "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model", "num_hidden_layers": 27},
        },
        further=20_480,
    ),
    "Phi-3-mini-4k": model(
        3_821_079_552, 393_216, COMMON | sizes(32, 3072, 8192, 32, 32, 32064, False), further=0, model_type="phi3",
        attention_bias=False, embd_pdrop=0.0, original_max_position_embeddings=4096, resid_pdrop=0.0,
        sliding_window=2047,
    ),
    "SmolLM3-3B": model(
        3_075_098_624, 73_728, COMMON | sizes(36, 2048, 11008, 16, 4, 128256, True), model_type="smollm3",
        attention_bias=False, layer_types=["full_attention"] * 36, max_window_layers=28, mlp_bias=False,
        no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0] * 9, sliding_window=None, use_sliding_window=False,
    ),
    "gpt-oss-20b": model(
        20_914_757_184, 49_152, COMMON | sizes(24, 2880, 2880, 64, 8, 201088, False), further=24_576,
        model_type="gpt_oss", attention_bias=True, experts_per_token=4, head_dim=64, initial_context_length=4096,
        layer_types=ALTERNATING[24], num_experts_per_tok=4, num_local_experts=32, sliding_window=128, swiglu_limit=7.0,
        quantization_config={"quant_method": "mxfp4"}, router_aux_loss_coef=0.9, output_router_logits=False,
    ),
    "gpt-oss-120b": model(
        116_829_156_672, 73_728, COMMON | sizes(36, 2880, 2880, 64, 8, 201088, False), further=36_864,
        model_type="gpt_oss", attention_bias=True, experts_per_token=4, head_dim=64, layer_types=ALTERNATING[36],
        num_experts_per_tok=4, num_local_experts=128, sliding_window=128,
    ),
    "DeepSeek-V2-Lite": model(
        15_706_484_224, 31_104, COMMON | sizes(27, 2048, 10944, 16, 16, 102400, False), model_type="deepseek_v2",
        attention_bias=False, aux_loss_alpha=0.001, first_k_dense_replace=1, kv_lora_rank=512,
        moe_intermediate_size=1408, moe_layer_freq=1, n_group=1, n_routed_experts=64, n_shared_experts=2,
        norm_topk_prob=False, num_experts_per_tok=6, q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64,
        routed_scaling_factor=1.0, scoring_func="softmax", seq_aux=True, topk_group=1, topk_method="greedy",
        v_head_dim=128,
    ),
    "DeepSeek-V3": model(
        671_026_419_200, 70_272, COMMON | sizes(61, 7168, 18432, 128, 128, 129280, False), model_type="deepseek_v3",
        attention_bias=False, ep_size=1, first_k_dense_replace=3, kv_lora_rank=512, moe_intermediate_size=2048,
        moe_layer_freq=1, n_group=8, n_routed_experts=256, n_shared_experts=1, norm_topk_prob=True,
        num_experts_per_tok=8, num_nextn_predict_layers=1, q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64,
        quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]}, routed_scaling_factor=2.5,
        scoring_func="sigmoid", topk_group=4, topk_method="noaux_tc", v_head_dim=128,
    ),
    "Kimi-K2": model(
        1_026_408_232_448, 70_272, COMMON | sizes(61, 7168, 18432, 64, 64, 163840, False), model_type="kimi_k2",
        attention_bias=False, first_k_dense_replace=1, kv_lora_rank=512, moe_intermediate_size=2048, moe_layer_freq=1,
        n_group=1, n_routed_experts=384, n_shared_experts=1, num_experts_per_tok=8, num_nextn_predict_layers=0,
        q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64, topk_group=1, v_head_dim=128,
    ),
    "Kimi-Linear-48B-A3B": model(
        None, 8_064, COMMON | sizes(27, 2304, 9216, 32, 32, 163840, False), model_type="kimi_linear", head_dim=72,
        first_k_dense_replace=1, kv_lora_rank=512, mla_use_nope=True, moe_intermediate_size=1024, moe_layer_freq=1,
        linear_attn_config={
            "full_attn_layers": KIMI_FULL, "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
            "kda_layers": [layer for layer in range(1, 28) if layer not in KIMI_FULL],
        },
        num_experts=256, num_experts_per_token=8, num_shared_experts=1, q_lora_rank=None, qk_nope_head_dim=128,
        qk_rope_head_dim=64, v_head_dim=128,
    ),
    "Jamba-v0.1": model(
        None, 16_384, COMMON | sizes(32, 4096, 14336, 32, 8, 65536, False), model_type="jamba", attn_layer_offset=4,
        attn_layer_period=8, expert_layer_offset=1, expert_layer_period=2, mamba_conv_bias=True, mamba_d_conv=4,
        mamba_d_state=16, mamba_dt_rank=256, mamba_expand=2, mamba_proj_bias=False, num_experts=16,
        num_experts_per_tok=2, num_logits_to_keep=1, sliding_window=None, use_mamba_kernels=True,
    ),
    "GPT-2": model(
        124_439_808, 36_864,
        {
            "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
            "embd_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
            "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_use_proj": True,
            "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 50257,
        },
    ),
    "StarCoder": model(
        15_517_456_384, 20_480,
        {
            "attention_softmax_in_fp32": True, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "inference_runner": 0,
            "max_batch_size": None, "model_type": "gpt_bigcode", "multi_query": True, "n_embd": 6144, "n_head": 48,
            "n_inner": 24576, "n_layer": 40, "n_positions": 8192, "pad_key_length": True,
            "pre_allocate_kv_cache": False, "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True,
            "vocab_size": 49152,
        },
    ),
    # 71 KV heads stand in the file, and the code does not look at them.
    "Falcon-7B": model(
        6_921_720_704, 8_192,
        {
            "alibi": False, "apply_residual_connection_post_layernorm": False, "bias": False, "hidden_dropout": 0.0,
            "hidden_size": 4544, "layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": True,
            "new_decoder_architecture": False, "num_attention_heads": 71, "num_hidden_layers": 32, "num_kv_heads": 71,
            "parallel_attn": True, "vocab_size": 65024,
        },
    ),
    "Falcon-40B": model(
        41_303_293_952, 122_880,
        {
            "alibi": False, "bias": False, "hidden_size": 8192, "model_type": "falcon", "multi_query": True,
            "new_decoder_architecture": True, "num_attention_heads": 128, "num_hidden_layers": 60, "num_kv_heads": 8,
            "parallel_attn": True, "vocab_size": 65024,
        },
    ),
}  # fmt: skip
