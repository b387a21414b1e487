import type { Json } from '../../util/json.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of HunYuanDenseV1Config (transformers, configuration_hunyuan_v1_dense.py). */
const DEFAULTS = { rms_norm_eps: 1e-5, tie_word_embeddings: false, eos_token_id: 2 };

/** Reads config.json of Hunyuan. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseHunyuanConfig(json: Json): DecoderStackConfig {
  return { ...parseLlamaConfig({ ...DEFAULTS, ...json }), qkNorm: 'rotated' };
}

const STACK = decoderStack({ parseConfig: parseHunyuanConfig, mlp: gatedMlp('silu') });

/** Hunyuan's tensor names, mapped to those of other families. */
export const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.query_layernorm\./, '.q_norm.'],
  [/\.key_layernorm\./, '.k_norm.'],
];

/** Hunyuan without experts: Llama with norms of queries and keys behind their rotation. Shapes and names: MODEL.md. */
export const HUNYUAN: DecoderDefinition = {
  ...STACK,
  load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest),
};
