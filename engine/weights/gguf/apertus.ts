/** Apertus, as llama.cpp's converter writes it (conversion/apertus.py, models/apertus.cpp). */
import type { Architecture } from './family.ts';
import { ropeOf } from './rope.ts';

/** Numbers of xIELU. They are settings, for every layer, which checkpoints have as tensors. */
const NUMBERS = ['alpha_p', 'alpha_n', 'beta', 'eps'] as const;

/** Rows keep Hugging Face's order, and a file without factors scales no positions. */
export function apertus(): Architecture {
  return {
    modelType: 'apertus',
    permuted: false,
    activation: 'xielu',
    parts: new Map([
      ['attn_norm', 'attention_layernorm'],
      ['ffn_norm', 'feedforward_layernorm'],
    ]),
    settings: (metadata, key, { layers, ropeFactors }) => ({
      xielu: Object.fromEntries(NUMBERS.map((name) => [name, metadata.byLayer(`xielu.${name}`, layers)])),
      rope_scaling: ropeOf(metadata, key, ropeFactors)['rope_scaling'] ?? null,
    }),
  };
}
