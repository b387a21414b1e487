import type { DecoderDefinition } from '../decoder.ts';
import { NAMES } from '../glm4-moe/glm4-moe.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { withoutDraftLayers } from '../text-part.ts';
import { MOST_DEFAULT_LAYERS, parseDeepSeekConfig } from './config.ts';

const STACK = decoderStack({ parseConfig: parseDeepSeekConfig, mlp: expertMlp('silu') });

/** DeepSeek-V2, V3 and R1, Moonlight and GLM-4.7-Flash: latent attention, and experts beside a shared one. Shapes and names: MODEL.md. */
export const DEEPSEEK: DecoderDefinition = withoutDraftLayers(STACK, MOST_DEFAULT_LAYERS, NAMES);
