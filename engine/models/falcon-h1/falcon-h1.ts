import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { scaledCheckpoint } from '../scaled-checkpoint.ts';
import { withUsualNames } from '../text-part.ts';
import { falconH1Factors, parseFalconH1Config } from './config.ts';

const STACK = decoderStack({
  parseConfig: parseFalconH1Config,
  mlp: gatedMlp('silu'),
  norms: { beforeAttention: 'input_layernorm', beforeMlp: 'pre_ff_layernorm' },
});

/** Falcon-H1's tensor names, mapped to those of other families. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^model\.final_layernorm\./, 'model.norm.'],
  [/\.feed_forward\./, '.mlp.'],
];

/** Falcon-H1: attention and Mamba 2 side by side in every layer, and multipliers. Shapes and names: MODEL.md. */
export const FALCON_H1: DecoderDefinition = {
  ...STACK,
  load: (loader, json, ...rest) => {
    const named = withUsualNames(loader, NAMES);
    return STACK.load(named.over(scaledCheckpoint(named.checkpoint, falconH1Factors(json))), json, ...rest);
  },
};
