import type { Json } from '../../util/json.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of GlmConfig and Glm4Config (transformers, configuration_glm.py and configuration_glm4.py). */
const DEFAULTS = {
  num_key_value_heads: 2,
  head_dim: 128,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1.5625e-7,
  partial_rotary_factor: 0.5,
  attention_bias: true,
  tie_word_embeddings: false,
};
const EOS = [151_329, 151_336, 151_338];

/** Reads config.json of GLM without experts. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseGlmConfig(json: Json): DecoderStackConfig {
  const own = { eos_token_id: json['eos_token_id'] ?? EOS };
  return { ...parseLlamaConfig({ ...DEFAULTS, ...json, ...own }), outputBias: false, isInterleaved: true };
}

/** GLM-4 and GLM-Edge: Llama with a part of each head rotated, in pairs of adjacent channels, and gate and up in one tensor. Shapes and names: MODEL.md. */
export const GLM = decoderStack({ parseConfig: parseGlmConfig, mlp: gatedMlp('silu', { fused: true }) });
