import type { Json } from '../../util/json.ts';
import { integer, layerCount } from '../config-fields.ts';
import { columnsOf, expertSizes, sparseLayers, withSharedExpert } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of Qwen2MoeConfig (transformers, configuration_qwen2_moe.py); of windows and lengths they are Qwen2's. */
const DEFAULTS = {
  vocab_size: 151_936,
  hidden_size: 2048,
  intermediate_size: 5632,
  num_hidden_layers: 24,
  num_attention_heads: 16,
  num_key_value_heads: 16,
};
const EXPERTS = { count: 60, perRow: 4, intermediate: 1408 };
/** Columns of the shared expert. */
const SHARED = 5632;
/** Default of `max_window_layers`. */
const WINDOWS = 28;

/**
 * Reads config.json of Qwen1.5 and Qwen2 with experts: Qwen2's fields and the experts'. Throws EngineError naming the field that is wrong
 * or beyond what the forward pass does.
 */
function parseQwen2MoeConfig(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  const layers = layerCount(settings);
  const types = json['layer_types'] ?? windows(settings, layers);
  const config = parseLlamaConfig({ ...settings, model_type: 'qwen2', layer_types: types });
  const experts = {
    ...expertSizes(settings, EXPERTS),
    shares: { normalised: json['norm_topk_prob'] === true },
    hasShared: true,
    layers: sparseLayers(settings, layers),
  };
  const own = { ...config, qkvBias: json['qkv_bias'] !== false };
  return withSharedExpert(own, experts, columnsOf(settings, 'shared_expert_intermediate_size', SHARED));
}

/** Where windows are asked for, every other one of the first `max_window_layers` layers has one: unlike Qwen2's, where the last ones do. */
function windows(json: Json, layers: number): readonly string[] {
  const last = integer(json, 'max_window_layers', WINDOWS);
  return Array.from({ length: layers }, (_, layer) => (layer % 2 === 0 && layer < last ? 'sliding_attention' : 'full_attention'));
}

/** Qwen1.5 and Qwen2 with experts: Qwen2 with experts beside a shared one in every layer. Shapes and names: MODEL.md. */
export const QWEN2_MOE = decoderStack({ parseConfig: parseQwen2MoeConfig, mlp: expertMlp('silu') });
