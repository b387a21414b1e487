import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { integer } from '../config-fields.ts';
import type { DecoderStackConfig } from '../layers/decoder-stack.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** More than any model has, and what the kernel that sorts them has workgroup memory for; a file that says so is damaged. */
const MOST_EXPERTS = 1024;

/** Reads config.json: Qwen3's fields and the experts'. Throws EngineError naming the field that is missing or beyond what the forward pass does. */
export function parseQwen3MoeConfig(json: Json): DecoderStackConfig {
  const config = parseLlamaConfig(json);
  return { ...config, experts: expertsOf(json, config.layers) };
}

function expertsOf(json: Json, layers: number): ExpertsConfig {
  // transformers 5 writes the second name.
  const count = integer(json, 'num_experts', integer(json, 'num_local_experts', 128));
  if (count > MOST_EXPERTS) throw new EngineError('invalid_model', `config.json: ${count} experts, expected at most ${MOST_EXPERTS}`);
  const perRow = integer(json, 'num_experts_per_tok', 8);
  if (perRow > count) throw new EngineError('invalid_model', `config.json: num_experts_per_tok is ${perRow} of ${count} experts`);
  const intermediate = integer(json, 'moe_intermediate_size', 768);
  if (intermediate % 4 !== 0)
    throw new EngineError('unsupported', `config.json: moe_intermediate_size is ${intermediate}, expected a multiple of 4`);
  const step = integer(json, 'decoder_sparse_step', 1);
  const dense = layerNumbers(json, 'mlp_only_layers');
  return {
    count,
    perRow,
    intermediate,
    normalised: json['norm_topk_prob'] === true,
    layers: Array.from({ length: layers }, (_, layer) => (layer + 1) % step === 0 && !dense.includes(layer)),
  };
}

/** A list of layers, empty where the file has none. */
function layerNumbers(json: Json, field: string): readonly unknown[] {
  const value = json[field] ?? [];
  if (Array.isArray(value) && value.every((layer) => Number.isInteger(layer))) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a list of layer numbers`);
}
