import type { Json } from '../../util/json.ts';
import { isObject } from '../../util/json.ts';
import { expectValue } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of Phi3Config (transformers, configuration_phi3.py). */
const DEFAULTS = { rms_norm_eps: 1e-5, max_position_embeddings: 4096, original_max_position_embeddings: 4096 };

/** Reads config.json of Phi-3, 3.5 and 4. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parsePhi3Config(json: Json): DecoderStackConfig {
  // Early files have the field, but the forward pass never had a bias.
  expectValue(json, 'attention_bias', false);
  const scaling = ['rope_parameters', 'rope_scaling'].map((field) => [field, renamed(json[field])]);
  return { ...parseLlamaConfig({ ...DEFAULTS, ...json, ...Object.fromEntries(scaling) }), qkvFused: true };
}

/** The file's rotary parameters under today's type: LongRoPE was once called "su", or "yarn" with LongRoPE's fields. */
function renamed(rope: unknown): unknown {
  if (!isObject(rope)) return rope;
  const type = rope['rope_type'] ?? rope['type'];
  return type === 'su' || type === 'yarn' ? { ...rope, rope_type: 'longrope' } : rope;
}

/** Phi-3, 3.5 and 4: Llama with fused projections, LongRoPE and partial rotary embeddings. Shapes and names: MODEL.md. */
export const PHI3 = decoderStack({ parseConfig: parsePhi3Config, mlp: gatedMlp('silu', { fused: true }) });
