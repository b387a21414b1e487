import { plainMlp } from '../layers/mlp.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Arcee (AFM-4.5B): Llama with an MLP of squared ReLU and no gate. Shapes and names: MODEL.md. */
export const ARCEE = decoderStack({ parseConfig: parseLlamaConfig, mlp: plainMlp('relu2') });
