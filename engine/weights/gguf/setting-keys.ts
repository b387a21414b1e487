/** Maps fields of config.json to the GGUF keys that they are derived from: used to derive them, and to name the key in errors. */

/** GGUF keys, without the architecture's prefix, by the field they become. Those of one family only are in its row of architecture.ts. */
export const SETTING_KEYS = {
  hidden_size: 'embedding_length',
  intermediate_size: 'feed_forward_length',
  num_hidden_layers: 'block_count',
  num_attention_heads: 'attention.head_count',
  num_key_value_heads: 'attention.head_count_kv',
  head_dim: 'attention.key_length',
  max_position_embeddings: 'context_length',
  rms_norm_eps: 'attention.layer_norm_rms_epsilon',
  sliding_window: 'attention.sliding_window',
  rope_theta: 'rope.freq_base',
  num_experts: 'expert_count',
  num_experts_per_tok: 'expert_used_count',
  moe_intermediate_size: 'expert_feed_forward_length',
  norm_eps: 'attention.layer_norm_rms_epsilon',
  conv_L_cache: 'shortconv.l_cache',
  embedding_multiplier: 'embedding_scale',
  residual_multiplier: 'residual_scale',
  attention_multiplier: 'attention.scale',
  logits_scaling: 'logit_scale',
} as const;

/** The GGUF key that a field was derived from; undefined if there is none. */
export function settingAt(architecture: string, setting: string): string | undefined {
  const rest = (SETTING_KEYS as Readonly<Record<string, string | undefined>>)[setting];
  return rest === undefined ? undefined : `${architecture}.${rest}`;
}
