import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { mlpBesideExperts } from '../layers/experts-beside.ts';
import { textPart, withUsualNames } from '../text-part.ts';
import { parseGemma4Config } from './config.ts';

const TEXT = decoderStack({
  parseConfig: parseGemma4Config,
  readsLayers: true,
  mlp: mlpBesideExperts('gelu_pytorch_tanh'),
  norms: {
    beforeAttention: 'input_layernorm',
    afterAttention: 'post_attention_layernorm',
    beforeMlp: 'pre_feedforward_layernorm',
    afterMlp: 'post_feedforward_layernorm',
  },
});

/** Tensor names of a feed-forward half with experts, mapped below `mlp`, beside which the checkpoint has them. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.router\.proj\./, '.mlp.gate.'],
  [/\.router\.scale$/, '.mlp.router_scale'],
  [/\.router\.per_expert_scale$/, '.mlp.expert_scales'],
  [/\.experts\./, '.mlp.experts.'],
  [/\.post_feedforward_layernorm_1\./, '.mlp.mlp_post_norm.'],
  [/\.pre_feedforward_layernorm_2\./, '.mlp.experts_pre_norm.'],
  [/\.post_feedforward_layernorm_2\./, '.mlp.experts_post_norm.'],
];

/** Gemma 4, dense or with experts; of multimodal checkpoints the text part. Shapes and names: MODEL.md. */
export const GEMMA4: DecoderDefinition = textPart({
  ...TEXT,
  load: (loader, ...rest) => TEXT.load(withUsualNames(loader, NAMES), ...rest),
});
