import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { withUsualNames } from '../text-part.ts';
import { parseGptOssConfig } from './config.ts';
import { withRowsFirst } from './rows-first.ts';

const STACK = decoderStack({ parseConfig: parseGptOssConfig, mlp: expertMlp('silu') });

/** The router's tensor name, mapped to that of other families. */
const NAMES = [[/\.mlp\.router\./, '.mlp.gate.']] as const;

/** gpt-oss: experts in every layer; attention with sinks, alternately with a sliding window and full. Shapes and names: MODEL.md. */
export const GPT_OSS: DecoderDefinition = {
  ...STACK,
  load: (loader, ...rest) => STACK.load(withUsualNames(loader.over(withRowsFirst(loader.checkpoint)), NAMES), ...rest),
};
