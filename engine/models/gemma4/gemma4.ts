import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { textPart } from '../text-part.ts';
import { parseGemma4Config } from './config.ts';

const TEXT = decoderStack({
  parseConfig: parseGemma4Config,
  mlp: gatedMlp('gelu_pytorch_tanh'),
  norms: {
    beforeAttention: 'input_layernorm',
    afterAttention: 'post_attention_layernorm',
    beforeMlp: 'pre_feedforward_layernorm',
    afterMlp: 'post_feedforward_layernorm',
  },
});

/** Gemma 4 with or without eyes and ears: of models that have them, the text part. Shapes and names: MODEL.md. */
export const GEMMA4: DecoderDefinition = textPart(TEXT);
