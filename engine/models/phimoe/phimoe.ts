import { EngineError } from '../../errors.ts';
import { describe, isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, number } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { NAMES } from '../mixtral/mixtral.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of PhimoeConfig (transformers, configuration_phimoe.py). */
const DEFAULTS = {
  vocab_size: 32_064,
  hidden_size: 4096,
  intermediate_size: 6400,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-5,
  eos_token_id: 2,
};
/** Experts of a row. SparseMixer is defined for two. */
const PER_ROW = 2;

/** Reads config.json of Phi-3.5-MoE and Phi-mini-MoE. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parsePhimoeConfig(json: Json): DecoderStackConfig {
  expectValue(json, 'num_experts_per_tok', PER_ROW);
  const settings: Json = { ...DEFAULTS, ...json };
  const scaling = ['rope_parameters', 'rope_scaling'].map((field) => [field, withFactor(json[field])]);
  const config = parseLlamaConfig({ ...settings, ...Object.fromEntries(scaling) });
  const { experts, ...others } = withExpertsOnly(config, settings, { count: 16, perRow: PER_ROW }, false);
  // At inference the noise of training is the distance at which experts still count.
  const cutoff = 2 * number(json, 'router_jitter_noise', 0.01);
  return {
    ...others,
    layerNorm: { hasBias: true },
    headBias: json['lm_head_bias'] === true,
    experts: { ...experts!, routing: { sigmoid: false, hasBias: false, cutoff } },
  };
}

/** The file's rotary parameters with LongRoPE's factor of queries and keys where other families have it. */
function withFactor(rope: unknown): unknown {
  if (!isObject(rope)) return rope;
  const { short_mscale: short, long_mscale: long, rope_type: type = rope['type'] ?? 'default' } = rope;
  if (type === 'default') return rope;
  // GGUF files have the factor itself.
  const attention_factor = short ?? rope['attention_factor'];
  if ((type !== 'longrope' && type !== 'su') || long !== short || attention_factor === undefined) {
    const found = `rope type ${describe(type)} with short_mscale ${describe(short)} and long_mscale ${describe(long)}`;
    throw new EngineError('unsupported', `config.json: ${found}, expected "longrope" with the same number in both`);
  }
  return { ...rope, rope_type: 'longrope', attention_factor };
}

const STACK = decoderStack({ parseConfig: parsePhimoeConfig, mlp: expertMlp('silu') });

/** Phi-3.5-MoE and Phi-mini-MoE: layer norms, and two experts a row by SparseMixer in every layer. Shapes and names: MODEL.md. */
export const PHIMOE: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
