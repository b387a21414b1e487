import type { Json } from '../../util/json.ts';
import { integer, layerCount, number, tiedByDefault } from '../config-fields.ts';
import { parseLatentStack } from '../deepseek/config.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';

/** Defaults of MiniCPM3Config (transformers, configuration_minicpm3.py). */
const DEFAULTS = {
  vocab_size: 73_448,
  hidden_size: 2560,
  intermediate_size: 6400,
  num_hidden_layers: 62,
  num_attention_heads: 40,
  num_key_value_heads: 40,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-5,
  kv_lora_rank: 256,
  q_lora_rank: 768,
  qk_nope_head_dim: 64,
  qk_rope_head_dim: 32,
  scale_emb: 12,
  scale_depth: 1.4,
  dim_model_base: 256,
};

/** Reads config.json of MiniCPM3. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseMiniCpm3Config(given: Json): DecoderStackConfig {
  const json: Json = { ...DEFAULTS, ...given, rope_interleave: false };
  const hidden = integer(json, 'hidden_size');
  const root = Math.sqrt(layerCount(json));
  // A field that is null multiplies with 1.
  const multipliers = {
    embedding_multiplier: number(json, 'scale_emb'),
    residual_multiplier: number(json, 'scale_depth', root) / root,
    logits_scaling: hidden / number(json, 'dim_model_base', hidden),
  };
  const valueDim = integer(json, 'v_head_dim', Math.floor(hidden / integer(json, 'num_attention_heads')));
  const config = parseLatentStack({ ...json, ...multipliers, v_head_dim: valueDim }, 'granite');
  return { ...config, tied: tiedByDefault(json) };
}
