import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, layerCount } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { NAMES as DENSE, parseHunyuanConfig } from '../hunyuan/hunyuan.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of HunYuanMoEV1Config that Hunyuan without experts has no others for (transformers, configuration_hunyuan_v1_moe.py). */
const DEFAULTS = { vocab_size: 290_943, hidden_size: 4096, intermediate_size: 11_008, num_hidden_layers: 32, num_attention_heads: 32 };
const EXPERTS = { count: 1, perRow: 1 };

/** Settings of published files that transformers does not read, because all of them have these values. */
const PUBLISHED = { use_qk_norm: true, use_cla: false, use_mla: false, use_mixed_mlp_moe: true, norm_topk_prob: true, moe_layer_num_skipped: 0, routed_scaling_factor: 1, group_limited_greedy: false }; // prettier-ignore

/** Reads config.json of Hunyuan with experts. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseHunyuanMoeConfig(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  for (const [field, value] of Object.entries(PUBLISHED)) expectValue(settings, field, value);
  const config = parseHunyuanConfig({ ...settings, model_type: 'hunyuan_v1_dense' });
  const num_experts = alike(settings, 'num_experts');
  const num_experts_per_tok = alike(settings, 'moe_topk') ?? settings['num_experts_per_tok'];
  // An expert and the MLP beside the experts have as many columns.
  expectValue({ moe_intermediate_size: alike(settings, 'moe_intermediate_size') }, 'moe_intermediate_size', config.intermediate);
  expectValue({ num_shared_expert: alike(settings, 'num_shared_expert') }, 'num_shared_expert', 1);
  expectValue(settings, 'attention_head_dim', config.headDim);
  const { experts, ...stack } = withExpertsOnly(config, { ...settings, num_experts, num_experts_per_tok }, EXPERTS, true);
  return { ...stack, experts: experts && { ...experts, hasShared: 'ungated' } };
}

/** The value of a field that may have one for each layer; throws EngineError('unsupported') where layers differ. */
function alike(json: Json, field: string): unknown {
  const value = json[field];
  if (!Array.isArray(value)) return value;
  const layers = layerCount(json);
  const [first, ...others] = value.slice(0, layers) as unknown[];
  if (value.length >= layers && others.every((other) => other === first)) return first;
  throw new EngineError(
    'unsupported',
    `config.json: ${field} is ${describe(value)}, expected the same number for each of ${layers} layers`,
  );
}

const STACK = decoderStack({ parseConfig: parseHunyuanMoeConfig, mlp: expertMlp('silu') });

const NAMES = [...DENSE, [/\.mlp\.gate\.wg\./, '.mlp.gate.'] as const, [/\.mlp\.shared_mlp\./, '.mlp.shared_expert.'] as const];

/** Hunyuan with experts beside an MLP in every layer. Shapes and names: MODEL.md. */
export const HUNYUAN_MOE: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
