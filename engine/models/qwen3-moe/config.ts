import type { Json } from '../../util/json.ts';
import { expertSizes, sparseLayers } from '../experts-config.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/**
 * Reads config.json: Qwen3's fields and the experts'. Throws EngineError naming the field that is missing or beyond what the forward pass
 * does.
 */
export function parseQwen3MoeConfig(json: Json): DecoderStackConfig {
  const config = parseLlamaConfig(json);
  return { ...config, experts: expertsOf(json, config.layers) };
}

function expertsOf(json: Json, layers: number): ExpertsConfig {
  return {
    ...expertSizes(json, { count: 128, perRow: 8, intermediate: 768 }),
    shares: { normalised: json['norm_topk_prob'] === true },
    layers: sparseLayers(json, layers),
  };
}
