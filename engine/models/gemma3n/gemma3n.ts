import type { DecoderDefinition } from '../decoder.ts';
import { streamsStack } from '../layers/streams-stack.ts';
import { textPart } from '../text-part.ts';
import { parseGemma3nConfig } from './config.ts';

/** Gemma 3n; of multimodal checkpoints the text part. Shapes and names: MODEL.md. */
export const GEMMA3N: DecoderDefinition = textPart(streamsStack(parseGemma3nConfig));
