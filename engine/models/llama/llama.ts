import { gatedMlp } from '../layers/mlp.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { parseLlamaConfig } from './config.ts';

/** Llama, Mistral, Qwen2 (biases on q, k, v) and Qwen3 (norms on q and k). Shapes and names: MODEL.md. */
export const LLAMA = decoderStack({ parseConfig: parseLlamaConfig, mlp: gatedMlp('silu') });
