import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { parseMiniCpm3Config } from './config.ts';

/** MiniCPM3: latent attention without experts, and multipliers. Shapes and names: MODEL.md. */
export const MINICPM3: DecoderDefinition = decoderStack({ parseConfig: parseMiniCpm3Config, mlp: gatedMlp('silu') });
