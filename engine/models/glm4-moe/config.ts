import type { Json } from '../../util/json.ts';
import { integer } from '../config-fields.ts';
import { sigmoidExperts, withSharedExpert } from '../experts-config.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { parseRope } from '../rope-config.ts';

/** Defaults of Glm4MoeConfig (transformers, configuration_glm4_moe.py). */
export const DEFAULTS = {
  vocab_size: 151_552,
  hidden_size: 4096,
  intermediate_size: 10_944,
  num_hidden_layers: 46,
  num_attention_heads: 96,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-5,
  partial_rotary_factor: 0.5,
};
const EXPERTS = { count: 128, perRow: 8, intermediate: 1408 };

/** Reads config.json of GLM with experts. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseGlm4MoeConfig(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  // Rotary embeddings are read below, not as Llama's.
  const unread = { partial_rotary_factor: undefined, rope_parameters: undefined, rope_scaling: undefined, rope_theta: undefined };
  const config = parseLlamaConfig({ ...settings, ...unread, model_type: 'llama' });
  const rope = parseRope(settings, config.headDim, { partial: true });
  const experts = sigmoidExperts(settings, config.layers, EXPERTS);
  const shared = experts.intermediate * integer(settings, 'n_shared_experts', 1);
  return withSharedExpert({ ...config, rope, outputBias: false, qkNorm: json['use_qk_norm'] === true }, experts, shared);
}
