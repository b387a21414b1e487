import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, integer, number, optionalObject } from '../config-fields.ts';
import { expertGroups, expertSizes, withSharedExpert } from '../experts-config.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import type { LatentConfig } from '../layers/latent-attention.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { parseRope } from '../rope-config.ts';

/** Sizes that the types have in common where a file does not say them. */
const COMMON = { kv_lora_rank: 512, q_lora_rank: 1536, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, rms_norm_eps: 1e-6 };

/** Defaults of each type's configuration class (transformers, configuration_*.py). */
const DEFAULTS = {
  deepseek_v2: {
    ...COMMON,
    vocab_size: 102_400,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 2048,
    moe_intermediate_size: 1407,
    n_routed_experts: 64,
    n_shared_experts: 2,
    first_k_dense_replace: 0,
    routed_scaling_factor: 1,
    topk_method: 'greedy',
    norm_topk_prob: false,
  },
  deepseek_v3: {
    ...COMMON,
    vocab_size: 129_280,
    hidden_size: 7168,
    intermediate_size: 18_432,
    num_hidden_layers: 61,
    num_attention_heads: 128,
    num_key_value_heads: 128,
    max_position_embeddings: 4096,
    moe_intermediate_size: 2048,
    n_routed_experts: 256,
    n_shared_experts: 1,
    num_experts_per_tok: 8,
    first_k_dense_replace: 3,
    routed_scaling_factor: 2.5,
    n_group: 8,
    topk_group: 4,
    topk_method: 'noaux_tc',
    norm_topk_prob: true,
  },
  glm4_moe_lite: {
    ...COMMON,
    q_lora_rank: 768,
    qk_nope_head_dim: 192,
    v_head_dim: 256,
    rms_norm_eps: 1e-5,
    vocab_size: 154_880,
    hidden_size: 2048,
    intermediate_size: 10_240,
    num_hidden_layers: 47,
    num_attention_heads: 20,
    num_key_value_heads: 20,
    max_position_embeddings: 202_752,
    moe_intermediate_size: 1536,
    n_routed_experts: 64,
    n_shared_experts: 1,
    num_experts_per_tok: 4,
    first_k_dense_replace: 1,
    routed_scaling_factor: 1.8,
    topk_method: 'noaux_tc',
    norm_topk_prob: true,
  },
} as const;
type Type = keyof typeof DEFAULTS;

/** Layers of the type that has the most where a file does not say how many. */
export const MOST_DEFAULT_LAYERS = DEFAULTS.deepseek_v3.num_hidden_layers;

/** Of the norms of latents, whatever the others have (transformers, DeepseekV3Attention). */
const LATENT_EPS = 1e-6;
/** Added to the sum of a row's shares before dividing by it (transformers, DeepseekV3TopkRouter). */
const SHARES_FLOOR = 1e-20;

/** Reads config.json of a model with latent attention. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseDeepSeekConfig(given: Json): DecoderStackConfig {
  const type = given['model_type'] as Type;
  const json: Json = { ...DEFAULTS[type], ...given };
  const stack = parseLatentStack(json, 'llama');
  const experts = expertsOf(json, type, stack.layers);
  return withSharedExpert(stack, experts, experts.intermediate * integer(json, 'n_shared_experts'));
}

/** Reads what has no experts: attention with a latent, and all else as of Llama or, with its multipliers, of Granite. */
export function parseLatentStack(json: Json, like: 'llama' | 'granite'): DecoderStackConfig {
  const latent = latentOf(json);
  expectValue(json, 'num_key_value_heads', json['num_attention_heads']);
  const { rank, rotary, still } = latent;
  const headDim = rank + rotary;
  // Rotary embeddings are read below, not as Llama's.
  const unread = { partial_rotary_factor: undefined, rope_parameters: undefined, rope_scaling: undefined, rope_theta: undefined };
  const config = parseLlamaConfig({ ...json, ...unread, model_type: like, num_key_value_heads: 1, head_dim: headDim });
  const scores = { scale: yarnScale(json) ** 2 / Math.sqrt(still + rotary) };
  return { ...config, latent, rope: parseRope(json, rotary), qkvBias: false, scores };
}

function latentOf(json: Json): LatentConfig {
  const sizes = {
    rank: integer(json, 'kv_lora_rank'),
    rotary: integer(json, 'qk_rope_head_dim'),
    queryRank: json['q_lora_rank'] === null ? undefined : integer(json, 'q_lora_rank'),
    still: integer(json, 'qk_nope_head_dim'),
    valueDim: integer(json, 'v_head_dim'),
  };
  const { rank, rotary, queryRank = 0, still, valueDim } = sizes;
  // transformers takes it for the same.
  expectValue(json, 'head_dim', rotary);
  if (rank % 8 !== 0 || rotary % 8 !== 0 || [queryRank, still, valueDim].some((size) => size % 4 !== 0)) {
    throw new EngineError('unsupported', `config.json: kv_lora_rank ${rank}, qk_rope_head_dim ${rotary} (multiples of 8), q_lora_rank ${queryRank}, qk_nope_head_dim ${still}, v_head_dim ${valueDim} (multiples of 4)`); // prettier-ignore
  }
  return { ...sizes, isInterleaved: json['rope_interleave'] !== false, hasBias: json['attention_bias'] === true, eps: LATENT_EPS };
}

/** What YaRN multiplies queries and keys with, rotated or not (DeepSeek-V2's modeling_deepseek.py, yarn_get_mscale). */
function yarnScale(json: Json): number {
  const parameters = optionalObject(json, 'rope_parameters') ?? optionalObject(json, 'rope_scaling') ?? {};
  const kind = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  const all = number(parameters, 'mscale_all_dim', 0);
  if (kind === 'default' || all === 0) return 1;
  const factor = number(parameters, 'factor');
  return factor <= 1 ? 1 : 0.1 * all * Math.log(factor) + 1;
}

/** Experts behind the first layers: of V2 chosen by a softmax, of the others by sigmoids and a bias. */
function expertsOf(json: Json, type: Type, layers: number): ExpertsConfig {
  const [count, perRow] = [integer(json, 'n_routed_experts'), integer(json, 'num_experts_per_tok')];
  expectValue(json, 'num_experts', count);
  const sizes = expertSizes({ ...json, num_experts: count }, { count, perRow, intermediate: DEFAULTS[type].moe_intermediate_size });
  const isV2 = type === 'deepseek_v2';
  expectValue(json, 'moe_layer_freq', 1);
  expectValue(json, 'scoring_func', isV2 ? 'softmax' : 'sigmoid');
  const groups = expertGroups(json, sizes);
  // Implementations differ in what they multiply normed shares of V2 with.
  if (isV2) expectValue(json, 'norm_topk_prob', false);
  return {
    ...sizes,
    routing: { sigmoid: !isV2, hasBias: !isV2, groups: hasGroups(json, isV2) ? groups : undefined },
    shares: {
      normalised: json['norm_topk_prob'] !== false,
      ...(!isV2 && { floor: SHARES_FLOOR }),
      scale: number(json, 'routed_scaling_factor'),
    },
    hasShared: 'ungated',
    layers: sparseLayers(json, type, layers),
  };
}

/** Whether a row's experts are of few groups: always, or of V2 where `topk_method` says so. */
function hasGroups(json: Json, isV2: boolean): boolean {
  const method = json['topk_method'] ?? undefined;
  const known = isV2 ? ['greedy', 'group_limited_greedy'] : ['noaux_tc'];
  if (known.some((one) => one === method)) return method !== 'greedy';
  throw new EngineError('unsupported', `config.json: topk_method is ${describe(method)}, expected ${known.join(' or ')}`);
}

/** By layer, whether it has experts: all but the first few, or as `mlp_layer_types` of GLM-4.7-Flash says. */
function sparseLayers(json: Json, type: Type, layers: number): readonly boolean[] {
  const types = type === 'glm4_moe_lite' ? (json['mlp_layer_types'] ?? undefined) : undefined;
  const dense = number(json, 'first_k_dense_replace');
  if (types === undefined) return Array.from({ length: layers }, (_, layer) => layer >= dense);
  if (Array.isArray(types) && types.length >= layers && types.every((one) => one === 'dense' || one === 'sparse')) {
    return types.slice(0, layers).map((one) => one === 'sparse');
  }
  throw new EngineError('invalid_model', `config.json: mlp_layer_types is ${describe(types)}, expected dense or sparse for each of ${layers} layers`); // prettier-ignore
}
