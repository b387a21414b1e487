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

/** The same with a bias of the router. */
type BiasedExperts = Experts & Required<Pick<Architecture, 'tensors'>>;

/** A router's bias. */
const CHOICE_BIAS = new Map([['exp_probs_b.bias', 'mlp.expert_bias']]);

/** dots.llm1 (conversion/dots1.py, models/dots1.cpp). */
export function dots1Experts({ parts, reads, settings }: Experts): BiasedExperts {
  return {
    reads,
    tensors: CHOICE_BIAS,
    parts: new Map([...parts, ...SHARED]),
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      n_routed_experts: metadata.number(key(KEYS.num_experts)),
      n_shared_experts: metadata.number(key('expert_shared_count')) ?? metadata.refuse(`${key('expert_shared_count')} is missing`),
      first_k_dense_replace: metadata.number(key('leading_dense_block_count')) ?? 0,
      routed_scaling_factor: metadata.number(key('expert_weights_scale')) || 1,
      norm_topk_prob: metadata.get(key('expert_weights_norm')) === true,
      n_group: metadata.number(key('expert_group_count')) || 1,
      topk_group: metadata.number(key('expert_group_used_count')) || 1,
    }),
  };
}

/** GLM-4.5, 4.6 and 4.7, without the head that guesses (models/glm4-moe.cpp). */
export function glm4Experts(experts: Experts): BiasedExperts {
  const { reads, tensors, parts, settings } = dots1Experts(experts);
  return {
    reads,
    tensors,
    parts: new Map([...parts, ['post_attention_norm', 'post_attention_layernorm']]),
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      partial_rotary_factor: rotatedShare(metadata, key, sizes.headDim),
      use_qk_norm: sizes.has('blk.0.attn_q_norm.weight'),
      num_nextn_predict_layers: 0,
    }),
  };
}

/**
 * ERNIE 4.5 with experts (conversion/ernie.py, models/ernie4-5-moe.cpp), whose rows keep Hugging Face's order, as without experts. Files do
 * not say which layer is the last with experts: the last one is.
 */
export function ernieExperts({ parts, reads, settings }: Experts): BiasedExperts {
  return {
    reads,
    tensors: CHOICE_BIAS,
    parts: new Map([...parts, ...SHARED]),
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      moe_num_shared_experts: metadata.number(key('expert_shared_count')) ?? 0,
      moe_layer_start_index: metadata.number(key('leading_dense_block_count')) ?? 0,
      moe_layer_interval: metadata.number(key('interleave_moe_layer_step')) ?? 1,
      use_bias: sizes.has('blk.0.attn_q.bias'),
    }),
  };
}

/** Hunyuan with experts (conversion/hunyuan.py, models/hunyuan-moe.cpp). As without experts, the base of a file has its alpha in it. */
export function hunyuanExperts({ parts, reads, settings }: Experts): Experts {
  return {
    reads,
    parts: new Map([...parts, ...SHARED]),
    settings: (metadata, key, sizes) => {
      const shared = metadata.number(key('expert_shared_feed_forward_length'));
      return {
        ...settings(metadata, key, sizes),
        intermediate_size: shared ?? metadata.everyLayer(key(KEYS.intermediate_size)),
        num_shared_expert: metadata.number(key('expert_shared_count')) ?? 1,
      };
    },
  };
}

/** MiniMax-M2 (conversion/minimax.py, models/minimax-m2.cpp), whose experts have as many columns as config.json says of an MLP. */
export function miniMaxExperts({ parts, reads, settings }: Experts): BiasedExperts {
  return {
    reads,
    tensors: CHOICE_BIAS,
    parts,
    settings: (metadata, key, sizes) => {
      const { moe_intermediate_size: intermediate_size, ...own } = settings(metadata, key, sizes);
      return { ...own, intermediate_size, partial_rotary_factor: rotatedShare(metadata, key, sizes.headDim) };
    },
  };
}
