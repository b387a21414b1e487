import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { parseQwen3MoeConfig } from './config.ts';

/**
 * Qwen3 with experts (30B-A3B, Coder): Llama with norms on q and k, and a mixture of experts in most layers. Shapes and names: MODEL.md.
 */
export const QWEN3_MOE = decoderStack({ parseConfig: parseQwen3MoeConfig, mlp: expertMlp('silu') });
