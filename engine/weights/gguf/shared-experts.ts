/** Architectures with experts beside a shared one, as llama.cpp's converter writes them (conversion/qwen.py, glm.py). */
import type { Architecture } from './family.ts';
import { rotatedShare } from './glm.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';

/** What an architecture's row says of its experts. */
type Experts = Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>>;

/** Names of the shared expert's parts. */
export const SHARED = ['gate', 'up', 'down'].map((part) => [`ffn_${part}_shexp`, `mlp.shared_expert.${part}_proj`] as const);

/** Experts beside a shared one that a row of the router weights. */
export function withGatedExpert({ parts, reads, settings }: Experts): Experts {
  const name = 'expert_shared_feed_forward_length';
  return {
    reads,
    parts: new Map([...parts, ...SHARED, ['ffn_gate_inp_shexp', 'mlp.shared_expert_gate']]),
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      shared_expert_intermediate_size: metadata.number(key(name)) ?? metadata.refuse(`${key(name)} is missing`),
    }),
  };
}

/** Qwen1.5 and Qwen2 with experts. Files do not say whether shares are normalised: they are not (llama.cpp: models/qwen2moe.cpp). */
export function qwen2Experts(experts: Experts): Experts {
  const { settings, ...names } = withGatedExpert(experts);
  return { ...names, settings: (...given) => ({ ...settings(...given), norm_topk_prob: false }) };
}

/** GLM-4.5, 4.6 and 4.7, without the head that guesses (models/glm4-moe.cpp). */
export function glm4Experts({ parts, reads, settings }: Experts): Experts & Pick<Architecture, 'tensors'> {
  return {
    reads,
    tensors: new Map([['exp_probs_b.bias', 'mlp.expert_bias']]),
    parts: new Map([...parts, ...SHARED, ['post_attention_norm', 'post_attention_layernorm']]),
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      n_routed_experts: metadata.number(key(KEYS.num_experts)),
      n_shared_experts: metadata.number(key('expert_shared_count')) ?? metadata.refuse(`${key('expert_shared_count')} is missing`),
      first_k_dense_replace: metadata.number(key('leading_dense_block_count')) ?? 0,
      routed_scaling_factor: metadata.number(key('expert_weights_scale')) || 1,
      norm_topk_prob: metadata.get(key('expert_weights_norm')) === true,
      partial_rotary_factor: rotatedShare(metadata, key, sizes.headDim),
      use_qk_norm: sizes.has('blk.0.attn_q_norm.weight'),
      num_nextn_predict_layers: 0,
    }),
  };
}
