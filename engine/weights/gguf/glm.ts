/** GGUF architectures of GLM without experts (conversion/chatglm.py, glm.py). */
import type { Architecture } from './family.ts';
import type { Metadata } from './metadata.ts';

/** Fused projections; llama.cpp calls the stacked gate and up "up". */
export const FUSED: ReadonlyMap<string, string> = new Map([
  ['attn_qkv', 'self_attn.qkv_proj'],
  ['ffn_up', 'mlp.gate_up_proj'],
]);

/** GLM-4's norms: those behind the halves have other families' names. */
const GLM4_NORMS = [
  ['post_attention_norm', 'post_self_attn_layernorm'],
  ['post_ffw_norm', 'post_mlp_layernorm'],
] as const;

/**
 * ChatGLM3 and GLM-4, whose files from before transformers knew it have q, k and v in one tensor, and GLM-4-0414. Rows keep their order,
 * whose pairs are adjacent, except in files for images, whose positions have sections.
 */
export function glm(modelType: 'glm' | 'glm4'): Architecture {
  return {
    modelType,
    permuted: false,
    activation: 'silu',
    parts: new Map([...FUSED, ...(modelType === 'glm4' ? GLM4_NORMS : [])]),
    settings: (metadata, key, { headDim, has }) => {
      const sections = key('rope.dimension_sections');
      if (metadata.has(sections)) metadata.refuse(`${sections} is there, a rotation for images, which is not supported`);
      return {
        attention_bias: has('blk.0.attn_q.bias') || has('blk.0.attn_qkv.bias'),
        partial_rotary_factor: rotatedShare(metadata, key, headDim),
      };
    },
  };
}

/** The part of a head's channels that are rotated. */
export function rotatedShare(metadata: Metadata, key: (rest: string) => string, headDim: number): number {
  return (metadata.number(key('rope.dimension_count')) ?? headDim) / headDim;
}
