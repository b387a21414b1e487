import type { Json } from '../../util/json.ts';
import { expectValue, integer, number } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { parseErnieConfig } from '../ernie4-5/ernie4-5.ts';
import { expertSizes, withSharedExpert } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { withTensors, withUsualNames } from '../text-part.ts';

/** Defaults of Ernie4_5_MoeConfig that ERNIE without experts has no others for (transformers, configuration_ernie4_5_moe.py). */
const DEFAULTS = {
  vocab_size: 103_424,
  hidden_size: 2560,
  intermediate_size: 12_288,
  num_hidden_layers: 28,
  num_attention_heads: 20,
  num_key_value_heads: 4,
  head_dim: undefined,
};
const EXPERTS = { count: 64, perRow: 6, intermediate: 1536 };
/** Shared experts. */
const SHARED = 2;

/** Reads config.json of ERNIE 4.5 with experts. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseErnieMoeConfig(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  // The head would have a bias too.
  expectValue(settings, 'use_bias', false);
  const config = parseErnieConfig({ ...settings, model_type: 'ernie4_5' });
  const experts = expertsOf(settings, config.layers);
  const shared = number(settings, 'moe_num_shared_experts', SHARED);
  if (shared > 0) return withSharedExpert(config, { ...experts, hasShared: 'ungated' }, shared * experts.intermediate);
  return { ...config, experts };
}

/** Experts chosen by a softmax and a bias. */
function expertsOf(json: Json, layers: number): ExpertsConfig {
  expectValue(json, 'moe_gate_act', 'softmax');
  const [num_experts, num_experts_per_tok] = [
    eitherOf(json, 'moe_num_experts', 'num_experts', EXPERTS.count),
    eitherOf(json, 'moe_k', 'num_experts_per_tok', EXPERTS.perRow),
  ];
  const sizes = expertSizes({ ...json, num_experts, num_experts_per_tok }, EXPERTS);
  const [first, last, step] = [
    number(json, 'moe_layer_start_index', 1),
    number(json, 'moe_layer_end_index', -1),
    integer(json, 'moe_layer_interval', 1),
  ];
  const end = last === -1 ? layers - 1 : last;
  return {
    ...sizes,
    routing: { sigmoid: false, hasBias: true },
    shares: { normalised: true, least: number(json, 'moe_norm_min', 1e-12) },
    layers: Array.from({ length: layers }, (_, layer) => (layer + 1) % step === 0 && layer >= first && layer <= end),
  };
}

/** Reads a number that has two names; throws EngineError('unsupported') where a file has both and they differ. */
function eitherOf(json: Json, own: string, usual: string, fallback: number): number {
  const found = integer(json, own, integer(json, usual, fallback));
  expectValue(json, usual, found);
  return found;
}

const STACK = decoderStack({ parseConfig: parseErnieMoeConfig, mlp: expertMlp('silu') });

/** ERNIE's tensor names, those of files and those that transformers 5 has in memory, mapped to those of other families. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.mlp\.shared_experts\./, '.mlp.shared_expert.'],
  [/\.mlp\.(gate\.)?moe_statics\.e_score_correction_bias$/, '.mlp.expert_bias'],
];

/** Whether a tensor is not of the head that guesses. */
function takes(name: string): boolean {
  return !name.startsWith('model.mtp_');
}

/** ERNIE 4.5 with experts beside shared ones, pairs of adjacent channels. Shapes and names: MODEL.md. */
export const ERNIE4_5_MOE: DecoderDefinition = {
  ...STACK,
  takes,
  load: (loader, ...rest) => {
    const names = loader.checkpoint.names().filter(takes);
    return STACK.load(withUsualNames(withTensors(loader, names), NAMES), ...rest);
  },
};
