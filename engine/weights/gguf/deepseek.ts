/**
 * Architectures with multi-head latent attention (conversion/deepseek.py, glm.py; models/deepseek2.cpp): DeepSeek-V2 and V3, Moonlight,
 * GLM-4.7-Flash; and MiniCPM3.
 */
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import type { Architecture, Sizes } from './family.ts';
import type { Metadata } from './metadata.ts';
import { ropeOf } from './rope.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';
import { SHARED } from './shared-experts.ts';

type Key = (rest: string) => string;

/** Router functions by their `expert_gating_func`, and what config.json says of a model that has one. */
const ROUTERS: ReadonlyMap<number, Json> = new Map([
  [1, { model_type: 'deepseek_v2' }],
  [2, { model_type: 'deepseek_v3', topk_method: 'noaux_tc' }],
]);

/** Names of the parts of attention. Older files have W_UK and W_UV in one tensor, newer ones in two, the former transposed. */
const PARTS = [
  ['attn_q_a', 'self_attn.q_a_proj'],
  ['attn_q_a_norm', 'self_attn.q_a_layernorm'],
  ['attn_q_b', 'self_attn.q_b_proj'],
  ['attn_kv_a_mqa', 'self_attn.kv_a_proj_with_mqa'],
  ['attn_kv_a_norm', 'self_attn.kv_a_layernorm'],
  ['attn_kv_b', 'self_attn.kv_b_proj'],
  ['attn_k_b', 'self_attn.k_b_proj'],
  ['attn_v_b', 'self_attn.v_b_proj'],
] as const;

/** Rows keep Hugging Face's order, whose pairs are adjacent. */
export function deepseek2({
  parts,
  reads,
}: Required<Pick<Architecture, 'reads' | 'parts'>>): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    otherTypes: ['deepseek_v2'],
    latent: true,
    reads,
    parts: new Map([...parts, ...PARTS, ...SHARED]),
    tensors: new Map([['exp_probs_b.bias', 'mlp.expert_bias']]),
    settings: (metadata, key, sizes) => ({ ...attentionOf(metadata, key, sizes), ...expertsOf(metadata, key, sizes) }),
  };
}

function attentionOf(metadata: Metadata, key: Key, { has }: Sizes): Json {
  const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
  const rotary = size('rope.dimension_count');
  const scale = metadata.number(key('attention.temperature_scale')) ?? 0;
  if (scale !== 0) metadata.refuse(`${key('attention.temperature_scale')} is ${scale}, which is not supported`);
  // Newer files call the latent's size that of keys, and those of heads otherwise.
  const ofHeads = (side: string): number | undefined =>
    metadata.number(key(`attention.${side}_length_mla`)) ?? metadata.number(key(`attention.${side}_length`));
  // A tenth of mscale_all_dim, which equals mscale in all published models.
  const mscale = 10 * (metadata.number(key('rope.scaling.yarn_log_multiplier')) ?? 0);
  const { rope_scaling } = ropeOf(metadata, key, undefined);
  return {
    kv_lora_rank: size('attention.kv_lora_rank'),
    q_lora_rank: has('blk.0.attn_q_a.weight') ? size('attention.q_lora_rank') : null,
    qk_rope_head_dim: rotary,
    qk_nope_head_dim: (ofHeads('key') ?? size('attention.key_length')) - rotary,
    v_head_dim: ofHeads('value'),
    // Said otherwise.
    num_key_value_heads: undefined,
    head_dim: undefined,
    partial_rotary_factor: undefined,
    ...(isObject(rope_scaling) && mscale !== 0 && { rope_scaling: { ...rope_scaling, mscale, mscale_all_dim: mscale } }),
  };
}

function expertsOf(metadata: Metadata, key: Key, { has }: Sizes): Json {
  const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
  const dense = metadata.number(key('leading_dense_block_count')) ?? 0;
  // Files from before there was the key do not say it; V3's bias tells.
  const gating = metadata.number(key('expert_gating_func')) ?? (has(`blk.${dense}.exp_probs_b.bias`) ? 2 : 1);
  const router = ROUTERS.get(gating) ?? metadata.refuse(`${key('expert_gating_func')} is ${gating}, expected 1 (softmax) or 2 (sigmoid)`);
  const groups = metadata.number(key('expert_group_count')) ?? 1;
  return {
    topk_method: groups > 1 ? 'group_limited_greedy' : 'greedy',
    ...router,
    n_routed_experts: size(KEYS.num_experts),
    num_experts_per_tok: size(KEYS.num_experts_per_tok),
    moe_intermediate_size: metadata.everyLayer(key(KEYS.moe_intermediate_size)) ?? size(KEYS.moe_intermediate_size),
    n_shared_experts: size('expert_shared_count'),
    first_k_dense_replace: dense,
    n_group: groups,
    topk_group: groups > 1 ? size('expert_group_used_count') : 1,
    routed_scaling_factor: metadata.number(key('expert_weights_scale')) || 1,
    norm_topk_prob: metadata.flag(key('expert_weights_norm')) === true,
    num_nextn_predict_layers: 0,
  };
}

/** MiniCPM3 (conversion/minicpm.py, models/minicpm3.cpp), whose rows have the channels of a pair apart. Its multipliers are those of the 4B model, as in llama.cpp. */
export function minicpm3(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    latent: true,
    parts: new Map(PARTS),
    settings: (metadata, key, sizes) => ({ ...attentionOf(metadata, key, sizes), v_head_dim: sizes.hidden / sizes.heads }),
  };
}
