import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { textPart } from '../text-part.ts';
import { parseQwen35Config, parseQwen35Head } from './config.ts';

const TEXT = decoderStack({ parseConfig: parseQwen35Config, mlp: expertMlp('silu') });
const WITH_HEAD = decoderStack({ parseConfig: parseQwen35Head, mlp: expertMlp('silu') });

/**
 * Qwen3.5 and 3.6: three gated delta-net layers for each gated attention layer, and a dense MLP or experts; of multimodal checkpoints the
 * text part. Shapes and names: MODEL.md.
 */
export const QWEN3_5: DecoderDefinition = { ...textPart(TEXT), withHead: textPart(WITH_HEAD, { hasHead: true }) };
