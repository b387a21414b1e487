import { GATED_SILU } from '../layers/mlp.ts';
import { preNormDecoder } from '../layers/pre-norm.ts';
import { parseLlamaConfig } from './config.ts';

/** Llama, Mistral, Qwen2 (biases on q, k, v) and Qwen3 (norms on q and k). Shapes and names: MODEL.md. */
export const LLAMA = preNormDecoder({ parseConfig: parseLlamaConfig, mlp: GATED_SILU });
