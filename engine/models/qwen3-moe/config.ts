import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { integer } from '../config-fields.ts';
import { expertSizes } from '../experts-config.ts';
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
  const step = integer(json, 'decoder_sparse_step', 1);
  const dense = layerNumbers(json, 'mlp_only_layers');
  return {
    ...expertSizes(json, { count: 128, perRow: 8, intermediate: 768 }),
    shares: { normalised: json['norm_topk_prob'] === true },
    layers: Array.from({ length: layers }, (_, layer) => (layer + 1) % step === 0 && !dense.includes(layer)),
  };
}

/** Reads a list of layer indices; empty where the field is absent. */
function layerNumbers(json: Json, field: string): readonly unknown[] {
  const value = json[field] ?? [];
  if (Array.isArray(value) && value.every((layer) => Number.isInteger(layer))) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a list of layer numbers`);
}
