"""Writes test/fixtures/llama-tiny-random: tiny random decoders and what PyTorch computes with them.

    python test/tools/dump_llama.py [NAME...]  all tiny models, or some
    python test/tools/dump_llama.py FOLDER     golden tokens of a converted folder (test/tools/convert-llama2c.ts) to stdout

Needs torch, transformers and safetensors. Weights are random in f16 (so are the files), arithmetic is f32.
"""
import hashlib
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "llama-tiny-random"
VOCABULARY = 160
PROMPT = 37
GENERATED = 64

COMMON = dict(
    vocab_size=VOCABULARY, num_hidden_layers=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)


def longrope(pairs, **more):
    """Rotary parameters with factors that differ for short and long texts."""
    short, long = [[round(1 + step * i, 2) for i in range(pairs)] for step in (0.04, 0.7)]
    return dict(rope_type="longrope", rope_theta=10000.0, short_factor=short, long_factor=long, **more)


MODELS = {
    # Heads share keys in pairs, tied head, Llama 3.1's position scaling with an original context the prompt exceeds.
    "llama": dict(
        COMMON, model_type="llama", hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, intermediate_size=100,
        tie_word_embeddings=True, rms_norm_eps=1e-5,
        rope_parameters=dict(
            rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32,
        ),
    ),
    # Three key/value heads, a head dim that is not hidden / heads, a head of its own, biases, linear scaling.
    "llama-odd": dict(
        COMMON, model_type="llama", hidden_size=60, num_attention_heads=6, num_key_value_heads=3, head_dim=24, intermediate_size=84,
        tie_word_embeddings=False, attention_bias=True, rope_parameters=dict(rope_type="linear", rope_theta=5000.0, factor=2.0),
    ),
    "qwen2": dict(
        COMMON, model_type="qwen2", hidden_size=56, num_attention_heads=7, num_key_value_heads=1, intermediate_size=64,
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
    "qwen3": dict(
        COMMON, model_type="qwen3", hidden_size=48, num_attention_heads=4, num_key_value_heads=4, head_dim=16, intermediate_size=64,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
    # Squared ReLU without a gate; a head dim of 48, five query heads on one of keys.
    "arcee": dict(
        COMMON, model_type="arcee", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=48, intermediate_size=96,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Every layer sees 16 positions only; five query heads on one of keys.
    "mistral": dict(
        COMMON, model_type="mistral", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=64,
        tie_word_embeddings=False, sliding_window=16, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The last layer sees 20 positions only.
    "qwen2-window": dict(
        COMMON, model_type="qwen2", hidden_size=32, num_attention_heads=2, num_key_value_heads=2, head_dim=16, intermediate_size=48,
        tie_word_embeddings=True, use_sliding_window=True, sliding_window=20, max_window_layers=1,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Caps that are felt, a divisor of scores that is not the head dim, two key/value heads, every other layer sees 12 positions.
    "gemma2": dict(
        COMMON, model_type="gemma2", hidden_size=44, num_attention_heads=4, num_key_value_heads=2, head_dim=24, intermediate_size=60,
        sliding_window=12, query_pre_attn_scalar=40, attn_logit_softcapping=4.0, final_logit_softcapping=2.0,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Two rotary embeddings, one of them scaled; norms of queries and keys; the second of three layers sees everything.
    "gemma3": dict(
        COMMON, model_type="gemma3_text", hidden_size=36, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
        intermediate_size=56, sliding_window=14, query_pre_attn_scalar=20, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
            sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        ),
    ),
    # YaRN beyond an original context that the prompt exceeds, biases.
    "qwen2-yarn": dict(
        COMMON, model_type="qwen2", hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=32, intermediate_size=48,
        tie_word_embeddings=False, rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=24, beta_fast=8.0,
        ),
    ),
    # The second layer rotates nothing.
    "smollm3": dict(
        COMMON, model_type="smollm3", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64,
        tie_word_embeddings=True, no_rope_layer_interval=2, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    "granite": dict(
        COMMON, model_type="granite", hidden_size=40, num_attention_heads=5, num_key_value_heads=5, intermediate_size=64,
        tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.22, attention_multiplier=0.1, logits_scaling=2.0,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Fused projections; 10 of a head's 16 channels are rotated, as short texts are; four query heads on one of keys.
    "phi3": dict(
        COMMON, model_type="phi3", hidden_size=64, num_attention_heads=4, num_key_value_heads=1, intermediate_size=52, tie_word_embeddings=True,
        original_max_position_embeddings=512, rope_parameters=longrope(5, factor=4.0, partial_rotary_factor=0.625),
    ),
    # The prompt is a long text; every layer sees 24 positions only.
    "phi3-long": dict(
        COMMON, model_type="phi3", hidden_size=48, num_attention_heads=2, num_key_value_heads=2, intermediate_size=60, tie_word_embeddings=False,
        sliding_window=24, original_max_position_embeddings=32, rope_parameters=longrope(12),
    ),
    # Norms over all heads, of which keys have fewer, and behind the halves only.
    "olmo2": dict(
        COMMON, model_type="olmo2", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=500000.0),
    ),
    # Two layers of three see 11 positions; the third is scaled by YaRN beyond a context that the prompt exceeds.
    "olmo3": dict(
        COMMON, model_type="olmo3", hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5, intermediate_size=52,
        tie_word_embeddings=False, sliding_window=11, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=24, beta_fast=8.0),
            sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        ),
    ),
    # Five experts, two a row, weights that sum to one; the second of three layers has an MLP without experts.
    "qwen3_moe": dict(
        COMMON, model_type="qwen3_moe", hidden_size=36, num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1, head_dim=8,
        intermediate_size=44, moe_intermediate_size=32, num_experts=5, num_experts_per_tok=2, norm_topk_prob=True, mlp_only_layers=[1],
        tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Seven experts, three a row, weights as the router gives them; experts in every other layer.
    "qwen3_moe-step": dict(
        COMMON, model_type="qwen3_moe", hidden_size=36, num_attention_heads=4, num_key_value_heads=2, head_dim=24,
        intermediate_size=44, moe_intermediate_size=20, num_experts=7, num_experts_per_tok=3, norm_topk_prob=False, decoder_sparse_step=2,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
    # Three layers with a recurrent state, one with attention: heads of 256, a quarter rotated; three value heads on one of keys.
    "qwen3_5": dict(
        COMMON, model_type="qwen3_5_text", hidden_size=36, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, head_dim=256,
        intermediate_size=52, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=24, linear_value_head_dim=20,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25, mrope_section=[11, 11, 10], mrope_interleaved=True),
    ),
    # Attention first and a recurrent layer last, filters of three, an odd number of value heads, seven query heads on one of keys.
    "qwen3_5-last": dict(
        COMMON, model_type="qwen3_5_text", hidden_size=36, num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1, head_dim=48,
        intermediate_size=44, linear_num_key_heads=1, linear_num_value_heads=5, linear_key_head_dim=16, linear_value_head_dim=12,
        linear_conv_kernel_dim=3, tie_word_embeddings=False, layer_types=["full_attention", "linear_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # Short convolutions around two layers of attention, an MLP of two thirds rounded up, five query heads on one of keys.
    "lfm2": dict(
        COMMON, model_type="lfm2", hidden_size=40, num_hidden_layers=5, num_attention_heads=5, num_key_value_heads=1, intermediate_size=82,
        block_multiple_of=16, full_attn_idxs=[1, 3], tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Queries grow at every tenth position, YaRN beyond a context that the prompt exceeds, three query heads on one of keys.
    "ministral3": dict(
        COMMON, model_type="ministral3", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        tie_word_embeddings=False, rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=10, beta_fast=4.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
            llama_4_scaling_beta=0.3,
        ),
    ),
    # Five experts, two a row, beside one of all rows; two layers with a recurrent state around one with attention, seven query heads on one of keys.
    "qwen3_5_moe": dict(
        COMMON, model_type="qwen3_5_moe_text", hidden_size=36, num_hidden_layers=3, num_attention_heads=7, num_key_value_heads=1, head_dim=48,
        moe_intermediate_size=20, shared_expert_intermediate_size=28, num_experts=5, num_experts_per_tok=2,
        linear_num_key_heads=1, linear_num_value_heads=3, linear_key_head_dim=16, linear_value_head_dim=12, tie_word_embeddings=False,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25, mrope_section=[3, 2, 1], mrope_interleaved=True),
    ),
    # Seven experts behind the first layer, three a row, chosen by sigmoids and a bias; five query heads on one of keys.
    "lfm2_moe": dict(
        COMMON, model_type="lfm2_moe", hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, intermediate_size=52,
        moe_intermediate_size=20, num_experts=7, num_experts_per_tok=3, num_dense_layers=1, routed_scaling_factor=1.5, tie_word_embeddings=True,
        layer_types=["conv", "full_attention", "conv"], rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Sinks, a window of 10 by turns, YaRN that cuts no ramp, gates that are often cut; five query heads on one of keys.
    "gpt_oss": dict(
        COMMON, model_type="gpt_oss", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=20,
        num_local_experts=5, num_experts_per_tok=2, sliding_window=10, swiglu_limit=3.0, rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=24, beta_fast=8.0, beta_slow=1.0, truncate=False,
        ),
    ),
    # The same with experts in MXFP4, as they are published.
    "gpt_oss-mxfp4": dict(
        COMMON, model_type="gpt_oss", hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=24, intermediate_size=32,
        num_local_experts=4, num_experts_per_tok=3, sliding_window=12, mxfp4=True, rope_parameters=dict(
            rope_type="yarn", rope_theta=150000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, truncate=False,
        ),
    ),
    # The shape of E2B: inputs for every layer; the last two read the keys of the second and third and have wider MLPs; five query heads on one of keys,
    # of 24 channels with a window of 10 and of 80, a quarter of which are rotated, without.
    "gemma4": dict(
        COMMON, model_type="gemma4_text", hidden_size=32, num_hidden_layers=5, num_attention_heads=5, num_key_value_heads=1, head_dim=24,
        global_head_dim=80, intermediate_size=44, sliding_window=10, hidden_size_per_layer_input=32, vocab_size_per_layer_input=VOCABULARY,
        num_kv_shared_layers=2, use_double_wide_mlp=True, final_logit_softcapping=3.0,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    ),
    # The shape of 31B: keys are values in the layers that see everything, which have fewer heads of keys; another scale of the frequencies.
    "gemma4-dense": dict(
        COMMON, model_type="gemma4_text", hidden_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, head_dim=16,
        global_head_dim=32, num_global_key_value_heads=2, attention_k_eq_v=True, intermediate_size=52, sliding_window=14, hidden_size_per_layer_input=0,
        layer_types=["sliding_attention", "full_attention", "full_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="proportional", rope_theta=1000000.0, partial_rotary_factor=0.5, factor=2.0),
            sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        ),
    ),
    # The shape of 26B-A4B: five experts, two a row, beside an MLP; seven query heads on one of keys.
    "gemma4-experts": dict(
        COMMON, model_type="gemma4_text", hidden_size=36, num_attention_heads=7, num_key_value_heads=1, head_dim=16, global_head_dim=24,
        attention_k_eq_v=True, intermediate_size=28, sliding_window=12, hidden_size_per_layer_input=0, layer_types=["sliding_attention", "full_attention"],
        enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=32,
    ),
    # Four streams, an added branch of rank 12, gates of which some layers keep a tenth or two fifths; the last two layers read the keys of the second and third; five
    # query heads on one of keys; tokens behind the table of inputs for layers, which the prompt has.
    "gemma3n": dict(
        COMMON, model_type="gemma3n_text", hidden_size=40, num_hidden_layers=5, num_attention_heads=5, num_key_value_heads=1, head_dim=24,
        intermediate_size=[52] * 5, sliding_window=10, hidden_size_per_layer_input=32, vocab_size_per_layer_input=150, num_kv_shared_layers=2,
        laurel_rank=12, activation_sparsity_pattern=[0.9, 0.0, 0.6, 0.0, 0.6], final_logit_softcapping=3.0,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    ),
    # Layer norms, halves in parallel, pairs of adjacent channels, biases.
    "cohere": dict(
        COMMON, model_type="cohere", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64, tie_word_embeddings=True,
        attention_bias=True, logit_scale=0.25, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The same without biases; two layers of three rotate, with a window of 11.
    "cohere2": dict(
        COMMON, model_type="cohere2", hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, intermediate_size=64,
        tie_word_embeddings=True, logit_scale=0.5, sliding_window=11, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Layer norms and products with biases, an MLP without a gate, a window of 16 in every layer.
    "starcoder2": dict(
        COMMON, model_type="starcoder2", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=64, tie_word_embeddings=True,
        sliding_window=16, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The shape of StableLM 2 1.6B: biases of queries, keys and values; a quarter of a head's 16 channels is rotated.
    "stablelm": dict(
        COMMON, model_type="stablelm", hidden_size=64, num_attention_heads=4, num_key_value_heads=4, intermediate_size=64, tie_word_embeddings=False,
        use_qkv_bias=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25),
    ),
    # The shape of StableLM 2 12B without norms of queries: halves in parallel behind one norm.
    "stablelm-parallel": dict(
        COMMON, model_type="stablelm", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=64, tie_word_embeddings=False,
        use_parallel_residual=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # Norms whose weights lie around zero, squared ReLU, half of a head's channels rotated.
    "nemotron": dict(
        COMMON, model_type="nemotron", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # Embeddings that are scaled, norms around 1, GELU.
    "gemma": dict(
        COMMON, model_type="gemma", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Experts in every layer, of as many columns as the MLP would have; seven query heads on one of keys.
    "mixtral": dict(
        COMMON, model_type="mixtral", hidden_size=36, num_attention_heads=7, num_key_value_heads=1, head_dim=8, intermediate_size=32,
        num_local_experts=5, num_experts_per_tok=2, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Norms over all heads before the rotation, and shares as the router gives them.
    "olmoe": dict(
        COMMON, model_type="olmoe", hidden_size=40, num_attention_heads=5, num_key_value_heads=5, intermediate_size=32,
        num_experts=5, num_experts_per_tok=2, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Attention in every layer, rotated; gate and up in one tensor.
    "granitemoehybrid": dict(
        COMMON, model_type="granitemoehybrid", hidden_size=40, num_attention_heads=5, num_key_value_heads=5, intermediate_size=64,
        shared_intermediate_size=64, num_local_experts=0, num_experts_per_tok=0, layer_types=["attention", "attention"], position_embedding_type="rope",
        tie_word_embeddings=False, embedding_multiplier=3.0, residual_multiplier=0.22, attention_multiplier=0.1, logits_scaling=2.0, mamba_n_heads=5,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Mamba layers around one of attention, which rotates nothing; two groups of four heads; rows of whole blocks.
    "granitemoehybrid-mamba": dict(
        COMMON, model_type="granitemoehybrid", hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, intermediate_size=64,
        shared_intermediate_size=64, num_local_experts=0, num_experts_per_tok=0, layer_types=["mamba", "attention", "mamba"], position_embedding_type="nope",
        tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.22, attention_multiplier=0.2, logits_scaling=2.0,
        mamba_n_heads=8, mamba_d_head=8, mamba_d_state=24, mamba_n_groups=2, mamba_chunk_size=16,
    ),
    # Seven experts, three a row, and an MLP that is added as it is; attention first, filters of three without a bias; five query heads on one of keys.
    "granitemoehybrid-experts": dict(
        COMMON, model_type="granitemoehybrid", hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1,
        intermediate_size=20, shared_intermediate_size=52, num_local_experts=7, num_experts_per_tok=3, layer_types=["attention", "mamba", "mamba"],
        tie_word_embeddings=True, embedding_multiplier=4.0, residual_multiplier=0.3, attention_multiplier=0.1, logits_scaling=1.5,
        mamba_n_heads=5, mamba_d_head=16, mamba_d_state=16, mamba_d_conv=3, mamba_conv_bias=False,
    ),
    # Granite's multipliers; seven experts, three a row, gates and ups of an expert in one tensor.
    "granitemoe": dict(
        COMMON, model_type="granitemoe", hidden_size=40, num_attention_heads=5, num_key_value_heads=5, intermediate_size=32,
        num_local_experts=7, num_experts_per_tok=3, tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.22,
        attention_multiplier=0.1, logits_scaling=2.0, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Biases of queries, keys and values; seven experts, three a row, shares as the router gives them, beside one of all rows.
    "qwen2_moe": dict(
        COMMON, model_type="qwen2_moe", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=52,
        moe_intermediate_size=20, shared_expert_intermediate_size=32, num_experts=7, num_experts_per_tok=3, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Eight experts behind the first layer, three a row, chosen by sigmoids and a bias, beside one of all rows; half of a head rotated; norms and biases.
    "glm4_moe": dict(
        COMMON, model_type="glm4_moe", seed=3, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, head_dim=16,
        intermediate_size=64, moe_intermediate_size=20, n_routed_experts=8, num_experts_per_tok=3, routed_scaling_factor=1.5, use_qk_norm=True,
        attention_bias=True, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # Eight experts in four groups, of which a row has the best two; two experts of all rows; shares that do not sum to the factor.
    "glm4_moe-groups": dict(
        COMMON, model_type="glm4_moe", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16,
        intermediate_size=52, moe_intermediate_size=20, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, n_shared_experts=2,
        norm_topk_prob=False, routed_scaling_factor=0.7, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # Pairs of adjacent channels, biases in every product, three query heads on one of keys.
    "ernie4_5": dict(
        COMMON, model_type="ernie4_5", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        tie_word_embeddings=True, use_bias=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Norms of queries and keys behind the rotation, whose base is stretched; three query heads on one of keys.
    "hunyuan_v1_dense": dict(
        COMMON, model_type="hunyuan_v1_dense", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        tie_word_embeddings=True, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=1.0, alpha=50.0),
    ),
    # Biases of queries, keys and values, none behind attention; five query heads on one of keys.
    "seed_oss": dict(
        COMMON, model_type="seed_oss", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=64,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Half of a head's channels rotated, in pairs of adjacent ones; biases of queries, keys and values; gate and up in one tensor.
    "glm": dict(
        COMMON, model_type="glm", hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=64,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # The same with four norms and without biases; three query heads on one of keys.
    "glm4": dict(
        COMMON, model_type="glm4", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        attention_bias=False, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # Norms behind the halves only, and of queries and keys; two layers of three see 11 positions and rotate, the third does neither.
    "exaone4": dict(
        COMMON, model_type="exaone4", hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=64,
        tie_word_embeddings=False, sliding_window=11, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(
            rope_type="llama3", rope_theta=10000.0, factor=16.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32,
        ),
    ),
    # The shape of EXAONE 4.0 1.2B: every layer sees everything and rotates.
    "exaone4-full": dict(
        COMMON, model_type="exaone4", hidden_size=48, num_attention_heads=6, num_key_value_heads=2, head_dim=24, intermediate_size=64,
        tie_word_embeddings=True, sliding_window=None, layer_types=["full_attention", "full_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Layers of one half each, an odd number, of which a Mamba layer is the last; two groups of four heads; rows of whole blocks. transformers raises the time
    # steps of prompts to time_step_min, which the published code does not.
    "nemotron_h": dict(
        COMMON, model_type="nemotron_h", seed=10, hidden_size=32, num_attention_heads=4, num_key_value_heads=4, head_dim=8, intermediate_size=64,
        hybrid_override_pattern="M-*-M", mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=24, n_groups=2, chunk_size=16, time_step_min=1e-30,
    ),
    # Eight experts in four groups, of which a row has the best two, and a shared one; the last layer has experts, another an MLP; five query heads on one of
    # keys, filters of three without a bias.
    "nemotron_h-experts": dict(
        COMMON, model_type="nemotron_h", seed=6, hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=52,
        hybrid_override_pattern="ME*-E", mamba_num_heads=5, mamba_head_dim=16, ssm_state_size=16, n_groups=1, chunk_size=16, conv_kernel=3, use_conv_bias=False,
        n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, routed_scaling_factor=1.5, moe_intermediate_size=32,
        moe_shared_expert_intermediate_size=28, time_step_min=1e-30,
    ),
    # Attention and Mamba side by side, a gate without a norm, a multiplier beside every product; two groups of four heads; rows of whole blocks.
    "falcon_h1": dict(
        COMMON, model_type="falcon_h1", seed=11, hidden_size=32, num_attention_heads=4, num_key_value_heads=4, intermediate_size=64, tie_word_embeddings=False,
        mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=24, mamba_n_groups=2, mamba_chunk_size=16, embedding_multiplier=3.0, lm_head_multiplier=0.5,
        mlp_multipliers=[0.8, 0.6], key_multiplier=0.4, attention_in_multiplier=1.2, attention_out_multiplier=0.9, ssm_in_multiplier=1.25, ssm_out_multiplier=0.5,
        ssm_multipliers=[0.35, 0.25, 0.3, 0.5, 0.7], rope_parameters=dict(rope_type="default", rope_theta=100000.0),
    ),
    # The gate before a norm; tied, two thirds of the width in Mamba, filters of three without a bias, five query heads on one of keys.
    "falcon_h1-norm": dict(
        COMMON, model_type="falcon_h1", seed=17, hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=52, tie_word_embeddings=True,
        mamba_d_ssm=80, mamba_n_heads=5, mamba_d_head=16, mamba_d_state=16, mamba_d_conv=3, mamba_conv_bias=False, mamba_chunk_size=16, mamba_rms_norm=True,
        mamba_norm_before_gate=False, ssm_out_multiplier=0.7, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Projections of delta-nets by key head, each with three value heads; five experts, two a row, beside a shared one.
    "qwen3_next": dict(
        COMMON, model_type="qwen3_next", seed=18, hidden_size=32, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, head_dim=48,
        intermediate_size=44, moe_intermediate_size=20, shared_expert_intermediate_size=28, num_experts=5, num_experts_per_tok=2,
        linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16, linear_value_head_dim=12, tie_word_embeddings=False,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25),
    ),
    # The shape of DeepSeek-V2-Lite: latent attention, queries of one product; eight experts behind the first layer, three a row by a softmax, two of all rows.
    "deepseek_v2": dict(
        COMMON, model_type="deepseek_v2", seed=23, hidden_size=40, num_attention_heads=5, num_key_value_heads=5, intermediate_size=52,
        kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16, moe_intermediate_size=20, n_routed_experts=8,
        n_shared_experts=2, num_experts_per_tok=3, first_k_dense_replace=1, routed_scaling_factor=1.5, tie_word_embeddings=False,
        rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=0.707, mscale_all_dim=0.707,
        ),
    ),
    # Queries of two products, with biases; experts of the best two of four groups, in every layer; two query heads of more value channels than keys have.
    "deepseek_v2-groups": dict(
        COMMON, model_type="deepseek_v2", seed=32, hidden_size=40, num_attention_heads=2, num_key_value_heads=2, intermediate_size=52, attention_bias=True,
        kv_lora_rank=16, q_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=36, moe_intermediate_size=20, n_routed_experts=8,
        n_shared_experts=1, num_experts_per_tok=3, topk_method="group_limited_greedy", n_group=4, topk_group=2, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The shape of DeepSeek-V3: experts by sigmoids and a bias, of the best two of four groups; YaRN, which scales scores too; rows of whole blocks.
    "deepseek_v3": dict(
        COMMON, model_type="deepseek_v3", seed=27, hidden_size=32, num_attention_heads=4, num_key_value_heads=4, intermediate_size=64,
        kv_lora_rank=32, q_lora_rank=32, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, moe_intermediate_size=32, n_routed_experts=8,
        n_shared_experts=1, num_experts_per_tok=3, first_k_dense_replace=1, n_group=4, topk_group=2, routed_scaling_factor=2.5, tie_word_embeddings=False,
        rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=40.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
        ),
    ),
    # The shape of Moonlight: queries of one product, one group; a norm's eps that those of latents do not have; channels of a pair apart.
    "deepseek_v3-apart": dict(
        COMMON, model_type="deepseek_v3", seed=24, hidden_size=40, num_attention_heads=5, num_key_value_heads=5, intermediate_size=52, rms_norm_eps=1e-3,
        kv_lora_rank=24, q_lora_rank=None, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=20, moe_intermediate_size=20, n_routed_experts=8,
        n_shared_experts=2, num_experts_per_tok=3, first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=2.446, rope_interleave=False,
        norm_topk_prob=False, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=50000.0),
    ),
    # The shape of GLM-4.7-Flash: values larger than keys; the second layer is dense too.
    "glm4_moe_lite": dict(
        COMMON, model_type="glm4_moe_lite", seed=25, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5, intermediate_size=52,
        kv_lora_rank=32, q_lora_rank=24, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=20, moe_intermediate_size=20, n_routed_experts=8,
        n_shared_experts=1, num_experts_per_tok=3, mlp_layer_types=["dense", "dense", "sparse"], routed_scaling_factor=1.8, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
    ),
    # Latent attention without experts, channels of a pair apart, MiniCPM3-4B's multipliers; rows of whole blocks.
    "minicpm3": dict(
        COMMON, model_type="minicpm3", seed=27, hidden_size=32, num_attention_heads=4, num_key_value_heads=4, intermediate_size=64, kv_lora_rank=32,
        q_lora_rank=32, qk_nope_head_dim=12, qk_rope_head_dim=8, scale_emb=12, scale_depth=1.4, dim_model_base=256, tie_word_embeddings=True,
        rope_parameters=longrope(4, original_max_position_embeddings=512),
    ),
    # The shape of Pythia: halves in parallel, each behind a norm of its own; a quarter of each head is rotated; rows of whole blocks.
    "gpt_neox": dict(
        COMMON, model_type="gpt_neox", seed=3, hidden_size=32, num_attention_heads=2, intermediate_size=128, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25),
    ),
    # Halves one after the other, attention without biases, five heads.
    "gpt_neox-serial": dict(
        COMMON, model_type="gpt_neox", seed=4, hidden_size=40, num_attention_heads=5, intermediate_size=52, tie_word_embeddings=True,
        use_parallel_residual=False, attention_bias=False,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0, partial_rotary_factor=0.5),
    ),
    # The shape of Phi-2: halves in parallel behind one norm, a head with biases; 0.4 of each head, which is no whole number of channels, is rotated; rows of whole blocks.
    "phi": dict(
        COMMON, model_type="phi", seed=5, hidden_size=32, num_attention_heads=2, intermediate_size=96, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.4),
    ),
    # Learned positions, weights of products the other way round, an MLP of its own size; rows of whole blocks.
    "gpt2": dict(
        vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=0, model_type="gpt2", seed=6, n_embd=32, n_layer=2, n_head=2, n_positions=512, n_inner=96, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    ),
    # Learned positions from the third row on, ReLU, a head of its own; rows of whole blocks.
    "opt": dict(
        COMMON, model_type="opt", seed=7, hidden_size=32, num_attention_heads=4, ffn_dim=96, word_embed_proj_dim=32, dropout=0.0, tie_word_embeddings=False,
    ),
    # The shape of ERNIE-4.5-21B-A3B: seven experts in every layer but the first, three a row by a softmax and a bias, beside two of all rows; pairs of adjacent
    # channels, five query heads on one of keys.
    "ernie4_5_moe": dict(
        COMMON, model_type="ernie4_5_moe", seed=33, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, intermediate_size=64,
        moe_intermediate_size=20, moe_num_experts=7, moe_k=3, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Experts in one layer of three, no shared ones, sums of shares that are less than what they are divided by; three query heads on one of keys.
    "ernie4_5_moe-apart": dict(
        COMMON, model_type="ernie4_5_moe", seed=37, hidden_size=48, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64,
        moe_intermediate_size=20, moe_num_experts=5, moe_k=2, moe_num_shared_experts=0, moe_layer_start_index=0, moe_layer_end_index=1, moe_layer_interval=2,
        moe_norm_min=0.95, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The shape of MiniMax-M2: norms over all heads before the rotation of half of a head; eight experts in every layer, three a row by sigmoids and a bias; five
    # query heads on one of keys.
    "minimax_m2": dict(
        COMMON, model_type="minimax_m2", seed=45, hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=32,
        num_local_experts=8, num_experts_per_tok=3, tie_word_embeddings=False,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
    ),
    # The shape of dots.llm1: norms of heads, eight experts behind the first layer, three a row by sigmoids and a bias, beside two of all rows.
    "dots1": dict(
        COMMON, model_type="dots1", seed=37, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5, intermediate_size=64,
        moe_intermediate_size=20, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3, first_k_dense_replace=1, norm_topk_prob=True,
        routed_scaling_factor=2.5, sliding_window=None, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # Experts of the best two of four groups, shares that are not normalised, biases in attention, a window of 11 in the last layer; three query heads on one of keys.
    "dots1-groups": dict(
        COMMON, model_type="dots1", seed=38, hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=44, attention_bias=True,
        moe_intermediate_size=20, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3, n_group=4, topk_group=2, norm_topk_prob=False,
        routed_scaling_factor=0.7, sliding_window=11, max_window_layers=1, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The shape of Hunyuan-A13B: norms of queries and keys behind the rotation, whose base is stretched; seven experts, three a row, beside an MLP, all of as many
    # columns; five query heads on one of keys.
    "hunyuan_v1_moe": dict(
        COMMON, model_type="hunyuan_v1_moe", seed=41, hidden_size=40, num_attention_heads=5, num_key_value_heads=1, head_dim=16, intermediate_size=32,
        num_experts=7, moe_topk=[3, 3], tie_word_embeddings=True, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=1.0, alpha=50.0),
    ),
    # Norms behind the halves, and over all heads; five experts, two a row, shares as the router gives them; three query heads on one of keys.
    "flex_olmo": dict(
        COMMON, model_type="flex_olmo", seed=51, hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=32,
        num_experts=5, num_experts_per_tok=2, tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0),
    ),
    # The shape of Apertus: norms of heads, an MLP without a gate whose activation has numbers of its own in each layer, Llama 3.1's position scaling with an
    # original context the prompt exceeds; three query heads on one of keys; rows of whole blocks.
    "apertus": dict(
        COMMON, model_type="apertus", seed=71, hidden_size=32, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=16, intermediate_size=96,
        tie_word_embeddings=False, rope_parameters=dict(
            rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32,
        ),
    ),
    # The shape of Phi-3.5-MoE: layer norms, biases of attention and head, six experts in every layer, of which a few have logits near the best ones, two a row by
    # SparseMixer; positions scaled as those of short texts; rows of whole blocks.
    "phimoe": dict(
        COMMON, model_type="phimoe", seed=224, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32, num_local_experts=6,
        attention_bias=True, lm_head_bias=True, sliding_window=24, tie_word_embeddings=False,
        rope_parameters=longrope(4, original_max_position_embeddings=512, short_mscale=1.25, long_mscale=1.25),
    ),
}


def residual_multiplier(config):
    """What the halves of a layer are multiplied with before they are added."""
    if config.model_type == "minicpm3":
        return config.scale_depth / config.num_hidden_layers**0.5
    return getattr(config, "residual_multiplier", 1.0)


def layers_of(model):
    base = model.base_model
    return getattr(base, "decoder", base).layers if hasattr(base, "layers") or hasattr(base, "decoder") else base.h


def active(hidden):
    """Of Gemma 3n's streams [4, B, T, C] the one that goes through attention and MLP."""
    return hidden[0] if hidden.ndim == 4 else hidden


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = torch.randn(parameter.shape, generator=generator)
            # Large enough that next tokens differ and the two best are apart.
            scale = 0.3 if parameter.ndim == 1 else 2.5 / parameter.shape[-1] ** 0.5
            # A tied table that is scaled on the way in would have every token predict itself.
            if "embed" in name and model.config.model_type.startswith(("gemma", "granite", "falcon_h1", "minicpm3")):
                scale *= 0.15
            # Nemotron adds one to the weights of norms itself.
            centre = 0 if name.endswith("bias") or model.config.model_type == "nemotron" else 1
            parameter.copy_((centre + 0.3 * value if "norm" in name or ".ln_" in name else scale * value).half().float())
            # Gemma 4's router reads what is normed and divided by the root of its channels; experts have scales.
            if name.endswith(("router.scale", "router.per_expert_scale")):
                parameter.copy_(((6 if name.endswith("router.scale") else 1) * (1 + 0.3 * value)).half().float())
            # Beside probabilities: ERNIE's is a parameter.
            if name.endswith("e_score_correction_bias"):
                parameter.copy_((0.1 * value).half().float())
            # Of a head's scores.
            if name.endswith("sinks"):
                parameter.copy_((2 * value).half().float())
            # Gemma 3n's streams: a scale beside 1, and routers that are felt, but do not make much of every rounding.
            if name.endswith("correct_output_scale"):
                parameter.copy_((1 + 0.3 * value).half().float())
            if name.endswith("modality_router.weight"):
                parameter.copy_((3 * scale * value).half().float())
            # What a state forgets: little in some heads, much in others.
            if name.endswith("A_log"):
                parameter.copy_((2 * value - 2).half().float())
        # What LFM2 adds where experts are chosen is no parameter, nor is what Gemma 4 multiplies a layer's result with.
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.copy_((1 + 0.3 * torch.randn(buffer.shape, generator=generator)).half().float())
            # Of xIELU, whose learned numbers are parameters.
            if name.endswith(("act_fn.beta", "act_fn.eps")):
                buffer.copy_(((0.5 if name.endswith("beta") else -0.2) * (1 + 0.3 * torch.randn(buffer.shape, generator=generator))).half().float())
            if name.endswith(("expert_bias", "e_score_correction_bias")):
                buffer.copy_((0.3 * torch.randn(buffer.shape, generator=generator)).half().float())


def randomise_mxfp4(model, seed):
    """Gives gpt-oss's experts the values of random blocks; returns these by the names that files have."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    generator = torch.Generator().manual_seed(seed)
    stored = {}
    for name, parameter in model.named_parameters():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, columns, rows = parameter.shape
            blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), generator=generator, dtype=torch.uint8)
            scales = torch.randint(122, 126, (experts, rows, columns // 32), generator=generator, dtype=torch.uint8)
            with torch.no_grad():
                parameter.copy_(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32))
            stored[name] = {f"{name}_blocks": blocks, f"{name}_scales": scales}
    return stored


def store_mxfp4(folder, stored):
    """Puts blocks in the place of the experts' values in a folder that transformers wrote."""
    tensors = load_file(folder / "model.safetensors")
    for name, blocks in stored.items():
        del tensors[name]
        tensors.update(blocks)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def greedy(model, prompt, count):
    """Greedy tokens, and how far the second best logit was at the closest step."""
    tokens, margin = [], float("inf")
    with torch.no_grad():
        for _ in range(count):
            logits = model(torch.tensor([prompt + tokens])).logits[0, -1]
            best = logits.topk(2).values
            margin = min(margin, float(best[0] - best[1]))
            tokens.append(int(logits.argmax()))
    return tokens, margin


def dump(name, settings, seed):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    is_mxfp4 = settings.get("mxfp4", False)
    config = AutoConfig.for_model(**{key: value for key, value in settings.items() if key not in ("mxfp4", "seed")})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomise(model, seed)
    blocks = randomise_mxfp4(model, seed + 2) if is_mxfp4 else {}
    stages = {}
    # Some models scale their embeddings on the way to the first layer.
    layers = layers_of(model)
    hooks = [layers[0].register_forward_pre_hook(lambda m, i: stages.update({"embedding": active(i[0]).reshape(PROMPT, -1)}))]
    for index, layer in enumerate(layers):
        hook = lambda m, i, o, index=index: stages.update({f"layer {index}": active(o if torch.is_tensor(o) else o[0]).reshape(PROMPT, -1)})
        hooks.append(layer.register_forward_hook(hook))
    prompt = torch.randint(3, VOCABULARY, (PROMPT,), generator=torch.Generator().manual_seed(seed + 1)).tolist()
    with torch.no_grad():
        stages["logits"] = model(torch.tensor([prompt])).logits[0]
    for hook in hooks:
        hook.remove()
    # Parley keeps the residual stream divided by what Granite and MiniCPM3 multiply the halves of a layer with.
    for stage in stages.keys() - {"logits"}:
        stages[stage] = stages[stage] / residual_multiplier(config)
    tokens, margin = greedy(model, prompt, GENERATED)
    save_file({key: value.contiguous().clone() for key, value in stages.items()}, folder / "golden.safetensors")
    about = dict(prompt=prompt, greedy=tokens, margin=margin, transformers=transformers.__version__, torch=torch.__version__, script=script_hash())
    (folder / "golden.json").write_text(json.dumps(about) + "\n")
    model.half().save_pretrained(folder)
    if blocks:
        store_mxfp4(folder, blocks)
    (folder / "generation_config.json").unlink(missing_ok=True)
    print(name, "margin", margin, "tokens", tokens[:12])


def script_hash():
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def dump_folder(folder, prompt, count):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokens, margin = greedy(model, prompt, count)
    print(json.dumps(dict(prompt=prompt, greedy=tokens, margin=margin, transformers=transformers.__version__, script=script_hash())))


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(MODELS)
    if not set(chosen) <= set(MODELS):
        dump_folder(sys.argv[1], [int(id) for id in sys.argv[2].split(",")], 96)
    else:
        for number, (name, settings) in enumerate(MODELS.items()):
            if name in chosen:
                dump(name, settings, settings.get("seed", 100 * number + 7))
