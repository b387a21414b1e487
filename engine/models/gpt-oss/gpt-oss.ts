import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { renamed } from '../text-part.ts';
import type { WeightLoader } from '../weight-loader.ts';
import { parseGptOssConfig } from './config.ts';
import { withRowsFirst } from './rows-first.ts';

const STACK = decoderStack({ parseConfig: parseGptOssConfig, mlp: expertMlp('silu') });

/** Experts with their rows first, and the router under the name that other families have for it. */
function withUsualNames(loader: WeightLoader): WeightLoader {
  const checkpoint = withRowsFirst(loader.checkpoint);
  const names = checkpoint.names().map((stored) => [stored.replace('.mlp.router.', '.mlp.gate.'), stored] as const);
  return loader.over(renamed(checkpoint, new Map(names)));
}

/** gpt-oss: experts in every layer, attention with sinks and, by turns, a window. Shapes and names: MODEL.md. */
export const GPT_OSS: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader), ...rest) };
