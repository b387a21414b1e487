import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, layerCount, layerTypes, number } from '../config-fields.ts';
import { columnsOf, expertGroups, expertSizes, withSharedExpert } from '../experts-config.ts';
import { mamba2 } from '../layers/mamba2.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import type { DecoderStackConfig, LayerKind } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { expectNoTimeStepLimit, mamba2Sizes } from '../mamba2-config.ts';

/** Defaults of NemotronHConfig (transformers, configuration_nemotron_h.py). */
const DEFAULTS = {
  vocab_size: 131_072,
  hidden_size: 4096,
  intermediate_size: 21_504,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
  max_position_embeddings: 4096,
  layer_norm_epsilon: 1e-5,
  eos_token_id: 2,
};
const EXPERTS = { count: 8, perRow: 2, intermediate: 7688 };
/** Added to the sum of a row's shares before dividing by it (transformers, NemotronHTopkRouter). */
const SHARES_FLOOR = 1e-20;
const MAMBA = {
  heads: ['mamba_num_heads', 128],
  headDim: ['mamba_head_dim', 64],
  groups: ['n_groups', 8],
  stateDim: ['ssm_state_size', 128],
  taps: ['conv_kernel', 4],
} as const;
/** Other names of fields, which go before those above. */
const OTHER_NAMES = {
  mamba_n_groups: 'n_groups',
  mamba_d_conv: 'conv_kernel',
  mamba_conv_bias: 'use_conv_bias',
  mamba_dt_limit: 'time_step_limit',
} as const;

/** What a layer is, by its letter in `hybrid_override_pattern`; the other names are those of `layers_block_type`, early and late. */
const LETTERS: Readonly<Record<string, Mixer>> = { M: 'mamba', '*': 'attention', '-': 'mlp', E: 'moe' };
const LATE: Readonly<Record<string, Mixer>> = { linear_attention: 'mamba', full_attention: 'attention' };
const KNOWN = ['mamba', 'attention', 'mlp', 'moe', 'linear_attention', 'full_attention'] as const;
type Mixer = 'mamba' | 'attention' | 'mlp' | 'moe';

/** Settings that transformers, the published code or llama.cpp read, with the one value that is known here. */
const EXPECTED = {
  mlp_hidden_act: 'relu2',
  mamba_hidden_act: 'silu',
  use_bias: false,
  mamba_proj_bias: false,
  attention_bias: false,
  moe_latent_size: null,
  n_shared_experts: 1,
  // Nothing is rotated.
  rope_parameters: null,
  rope_scaling: null,
};

/** Reads config.json of Nemotron-H. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseNemotronHConfig(given: Json): DecoderStackConfig {
  const renamed = Object.entries(OTHER_NAMES).flatMap(([other, name]) =>
    given[other] === undefined ? [] : [[name, given[other]] as const],
  );
  const json: Json = { ...DEFAULTS, ...given, ...Object.fromEntries(renamed), head_dim: given['head_dim'] ?? given['attention_head_dim'] ?? DEFAULTS.head_dim }; // prettier-ignore
  for (const [field, value] of Object.entries(EXPECTED)) expectValue(json, field, value);
  expectNoTimeStepLimit(json);
  const mixers = mixersOf(json);
  if (!mixers.includes('attention')) throw new EngineError('unsupported', 'config.json: no layer has attention, expected at least one');
  const eps = number(json, 'layer_norm_epsilon');
  // A file may have a rotary base all the same.
  const unread = { layer_types: undefined, partial_rotary_factor: undefined, rope_theta: undefined };
  const config = parseLlamaConfig({ ...json, ...unread, model_type: 'llama', num_hidden_layers: mixers.length, rms_norm_eps: eps });
  const rope = { ...config.rope, scaling: { kind: 'none' as const } };
  const kinds = mixers.map((mixer): LayerKind => ({
    rope,
    isRecurrent: mixer === 'mamba',
    only: mixer === 'mlp' || mixer === 'moe' ? 'mlp' : 'attention',
  }));
  const sizes = mamba2Sizes(json, MAMBA);
  const recurrent = mamba2({ hidden: config.hidden, ...sizes, hasConvBias: json['use_conv_bias'] !== false, eps });
  const stack = { ...config, rope, kinds, ...(mixers.includes('mamba') && { recurrent }) };
  if (!mixers.includes('moe')) return stack;
  return withSharedExpert(stack, expertsOf(json, mixers), columnsOf(json, 'moe_shared_expert_intermediate_size', EXPERTS.intermediate));
}

/** What each layer is. The number of layers is that of the list or the letters. */
function mixersOf(json: Json): readonly Mixer[] {
  const listed = json['layer_types'] ?? json['layers_block_type'] ?? undefined;
  const pattern = json['hybrid_override_pattern'] ?? undefined;
  const types = listed ?? (typeof pattern === 'string' ? Array.from(pattern, (letter) => LETTERS[letter] ?? letter) : pattern);
  if (!Array.isArray(types) || types.length === 0) {
    throw new EngineError('invalid_model', `config.json: hybrid_override_pattern is ${describe(pattern)} and layers_block_type ${describe(listed)}, expected a letter or a type for each layer`); // prettier-ignore
  }
  const layers = layerCount({ num_hidden_layers: types.length });
  return layerTypes({ layer_types: types }, layers, KNOWN)!.map((type) => LATE[type] ?? (type as Mixer));
}

/** Experts without gates, chosen by sigmoids and a bias, beside a shared one. */
function expertsOf(json: Json, mixers: readonly Mixer[]): ExpertsConfig {
  const sizes = expertSizes({ ...json, num_experts: json['n_routed_experts'] }, EXPERTS);
  return {
    ...sizes,
    isPlain: true,
    routing: { sigmoid: true, hasBias: true, groups: expertGroups(json, sizes) },
    shares: { normalised: json['norm_topk_prob'] !== false, floor: SHARES_FLOOR, scale: number(json, 'routed_scaling_factor', 1) },
    hasShared: 'ungated',
    layers: mixers.map((mixer) => mixer === 'moe'),
  };
}
