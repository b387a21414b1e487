import { parseGlmConfig } from '../glm/glm.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';

/** GLM-4-0414 and GLM-Z1: GLM with norms behind the halves of a layer too. Shapes and names: MODEL.md. */
export const GLM4 = decoderStack({
  parseConfig: parseGlmConfig,
  mlp: gatedMlp('silu', { fused: true }),
  norms: {
    beforeAttention: 'input_layernorm',
    afterAttention: 'post_self_attn_layernorm',
    beforeMlp: 'post_attention_layernorm',
    afterMlp: 'post_mlp_layernorm',
  },
});
