import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { textPart } from '../text-part.ts';
import { parseGemmaConfig } from './config.ts';

const TEXT = decoderStack({
  parseConfig: parseGemmaConfig,
  mlp: gatedMlp('gelu_pytorch_tanh'),
  norms: {
    beforeAttention: 'input_layernorm',
    afterAttention: 'post_attention_layernorm',
    beforeMlp: 'pre_feedforward_layernorm',
    afterMlp: 'post_feedforward_layernorm',
  },
});

/** Gemma 2 and Gemma 3; of multimodal checkpoints the text part. Shapes and names: MODEL.md. */
export const GEMMA: DecoderDefinition = textPart(TEXT);
