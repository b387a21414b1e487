import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, integer } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { NAMES as MIXTRAL } from '../mixtral/mixtral.ts';
import { parseRope } from '../rope-config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of MiniMaxM2Config (transformers, configuration_minimax_m2.py). */
const DEFAULTS = {
  vocab_size: 200_064,
  hidden_size: 3072,
  intermediate_size: 1536,
  num_hidden_layers: 62,
  num_attention_heads: 48,
  num_key_value_heads: 8,
  head_dim: 128,
  max_position_embeddings: 196_608,
  rms_norm_eps: 1e-6,
  eos_token_id: 200_020,
};
const EXPERTS = { count: 256, perRow: 8 };
const THETA = 5_000_000;

/** Settings of published files that transformers does not read, because all of them have these values. */
const PUBLISHED = {
  use_qk_norm: true,
  qk_norm_type: 'per_layer',
  scoring_func: 'sigmoid',
  use_routing_bias: true,
  shared_intermediate_size: 0,
};

/** Reads config.json of MiniMax-M2. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseMiniMaxConfig(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  for (const [field, value] of Object.entries(PUBLISHED)) expectValue(settings, field, value);
  expectAttention(settings['attn_type_list'] ?? []);
  // Rotary embeddings are read below, not as Llama's.
  const unread = { partial_rotary_factor: undefined, rope_parameters: undefined, rope_scaling: undefined, rope_theta: undefined };
  const config = parseLlamaConfig({ ...settings, ...unread, attention_bias: false, model_type: 'llama' });
  const partial_rotary_factor = settings['partial_rotary_factor'] ?? rotatedShare(settings, config.headDim);
  const rope = parseRope({ ...settings, partial_rotary_factor }, config.headDim, { partial: true, theta: THETA });
  const { experts, ...stack } = withExpertsOnly({ ...config, rope, qkNorm: 'full' }, settings, EXPERTS, true);
  return { ...stack, experts: experts && { ...experts, routing: { sigmoid: true, hasBias: true } } };
}

/** The part of a head's channels that are rotated, as published files say it. */
function rotatedShare(json: Json, headDim: number): number | undefined {
  return (json['rotary_dim'] ?? undefined) === undefined ? undefined : integer(json, 'rotary_dim') / headDim;
}

/** By layer, whether it has attention (1), or linear attention as MiniMax-01 (0), which no layer of M2 has. */
function expectAttention(types: unknown): void {
  if (Array.isArray(types) && types.every((type) => type === 1)) return;
  throw new EngineError('unsupported', `config.json: attn_type_list is ${describe(types)}, expected 1 for every layer`);
}

const STACK = decoderStack({ parseConfig: parseMiniMaxConfig, mlp: expertMlp('silu') });

const NAMES = [...MIXTRAL, [/\.mlp\.e_score_correction_bias$/, '.mlp.expert_bias'] as const];

/** MiniMax-M2: norms over all heads of queries and keys, partial rotary embeddings, experts in every layer. Shapes and names: MODEL.md. */
export const MINIMAX_M2: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
