/** Gated delta-nets of Qwen3-Next and Qwen3.5, as llama.cpp's converter writes them (conversion/qwen.py, models/qwen3next.cpp, models/qwen35.cpp). */
import type { Architecture } from './family.ts';

type Own = Omit<Architecture, 'modelType' | 'permuted' | 'activation'>;

const SIZES = {
  conv_kernel: 'linear_conv_kernel_dim',
  state_size: 'linear_key_head_dim',
  group_count: 'linear_num_key_heads',
  time_step_rank: 'linear_num_value_heads',
};

/** Value heads in the order of checkpoints. Rates and decays are one tensor by key head, and in older files so is all that is multiplied before. */
export function qwen3Next(): Own {
  return {
    parts: new Map([
      ['post_attention_norm', 'post_attention_layernorm'],
      ['ssm_in', 'linear_attn.in_proj_qkvz'],
      ['attn_qkv', 'linear_attn.in_proj_qkv'],
      ['attn_gate', 'linear_attn.in_proj_z'],
      ['ssm_ba', 'linear_attn.in_proj_ba'],
      ['ssm_conv1d', 'linear_attn.conv1d'],
      ['ssm_norm', 'linear_attn.norm'],
      ['ssm_out', 'linear_attn.out_proj'],
    ]),
    tensors: new Map([
      ['ssm_a', 'linear_attn.A_log'],
      ['ssm_dt.bias', 'linear_attn.dt_bias'],
    ]),
    values: new Map([
      ['ssm_a', (stored) => Math.log(-stored)],
      ['ssm_norm.weight', (stored) => stored],
    ]),
    normOffset: 1,
    settings: (metadata, key, { headDim, layers }) => {
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      const recurrent = metadata.get(key('attention.recurrent_layers'));
      return {
        ...Object.fromEntries(Object.entries(SIZES).map(([stored, name]) => [name, size(`ssm.${stored}`)])),
        linear_value_head_dim: size('ssm.inner_size') / size('ssm.time_step_rank'),
        partial_rotary_factor: size('rope.dimension_count') / headDim,
        full_attention_interval: metadata.number(key('full_attention_interval')) ?? 4,
        ...(Array.isArray(recurrent) && {
          layer_types: recurrent.slice(0, layers).map((is) => (is ? 'linear_attention' : 'full_attention')),
        }),
      };
    },
  };
}

/**
 * In every tensor of a file, the value heads that share a key head are not adjacent but lie as many apart as there are key heads;
 * `linear_value_heads_tiled` tells the forward pass (conversion/qwen.py, _LinearAttentionVReorderBase).
 */
export function qwen35(): Own {
  const { parts, settings, ...own } = qwen3Next();
  return {
    ...own,
    parts: new Map([...parts!, ['ssm_beta', 'linear_attn.in_proj_b'], ['ssm_alpha', 'linear_attn.in_proj_a']]),
    head: new Map([
      ['nextn.eh_proj.weight', 'mtp.fc.weight'],
      ['nextn.enorm.weight', 'mtp.pre_fc_norm_embedding.weight'],
      ['nextn.hnorm.weight', 'mtp.pre_fc_norm_hidden.weight'],
      ['nextn.shared_head_norm.weight', 'mtp.norm.weight'],
    ]),
    settings: (metadata, key, sizes) => ({
      ...settings!(metadata, key, sizes),
      linear_value_heads_tiled: true,
      mtp_num_hidden_layers: metadata.number(key('nextn_predict_layers')) ?? 0,
    }),
  };
}
