import type { Json } from '../../util/json.ts';
import { expectValue, layerCount, number } from '../config-fields.ts';
import { expertSizes } from '../experts-config.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of GptOssConfig (transformers, configuration_gpt_oss.py). */
const DEFAULTS = {
  hidden_size: 2880,
  intermediate_size: 2880,
  num_hidden_layers: 36,
  head_dim: 64,
  num_attention_heads: 64,
  num_key_value_heads: 8,
  sliding_window: 128,
  tie_word_embeddings: false,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-5,
  attention_bias: true,
};
/** Defaults of its rotary embedding. */
const YARN = { rope_type: 'yarn', factor: 32, beta_fast: 32, beta_slow: 1, truncate: false, original_max_position_embeddings: 4096 };

/** Reads config.json of gpt-oss. Throws EngineError naming the field that is missing or beyond what the forward pass does. */
export function parseGptOssConfig(json: Json): DecoderStackConfig {
  const layers = layerCount(json, DEFAULTS.num_hidden_layers);
  const byTurns = Array.from({ length: layers }, (_, layer) => (layer % 2 === 0 ? 'sliding_attention' : 'full_attention'));
  const hasRope = (json['rope_parameters'] ?? json['rope_scaling'] ?? undefined) !== undefined;
  const settings = { ...DEFAULTS, ...json, ...(!hasRope && { rope_scaling: YARN }), layer_types: json['layer_types'] ?? byTurns };
  expectValue(settings, 'attention_bias', true);
  return { ...parseLlamaConfig(settings), hasSinks: true, experts: expertsOf(settings, layers) };
}

/** Experts in every layer. A softmax over the chosen experts equals a softmax over all, normalised over the chosen ones. */
function expertsOf(json: Json, layers: number): ExpertsConfig {
  return {
    ...expertSizes(json, { count: 128, perRow: 4, intermediate: 2880 }, 'intermediate_size'),
    shares: { normalised: true },
    hasBias: true,
    clamp: { alpha: number(json, 'swiglu_alpha', 1.702), limit: number(json, 'swiglu_limit', 7) },
    layers: new Array<boolean>(layers).fill(true),
  };
}
