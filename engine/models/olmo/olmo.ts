import type { Json } from '../../util/json.ts';
import { integer, layerTypes, number } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import type { DecoderStackConfig, LayerNorms } from '../layers/stack-config.ts';
import { gatedMlp } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { readRopes } from '../rope-config.ts';

/** Defaults of Olmo2Config and Olmo3Config (transformers, configuration_olmo2.py and configuration_olmo3.py). */
const EPS = 1e-5;
const OLMO3 = { theta: 500_000, window: 4096, pattern: 4 };

/** Reads config.json of OLMo 2 and 3. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseOlmoConfig(json: Json): DecoderStackConfig {
  const settings = { rms_norm_eps: EPS, ...json };
  if (json['model_type'] === 'olmo2') return { ...parseLlamaConfig(settings), qkNorm: 'full' };
  // Sliding windows and rotary embeddings are read below, not as Llama's.
  const config = parseLlamaConfig({ ...settings, rope_parameters: undefined, rope_scaling: undefined, sliding_window: undefined });
  const theta = number(json, 'rope_theta', OLMO3.theta);
  const { full, sliding } = readRopes({ ...json, rope_theta: theta }, config.headDim, theta);
  const types = layerTypes(json, config.layers, ['full_attention', 'sliding_attention']);
  const slides = (layer: number): boolean => (types ? types[layer] === 'sliding_attention' : (layer + 1) % OLMO3.pattern !== 0);
  const window = integer(json, 'sliding_window', OLMO3.window);
  const kinds = Array.from({ length: config.layers }, (_, layer) => (slides(layer) ? { rope: sliding, window } : { rope: full }));
  return { ...config, rope: full, kinds, qkNorm: 'full' };
}

/** Norms behind the halves of a layer. */
export const NORMS: LayerNorms = { afterAttention: 'post_attention_layernorm', afterMlp: 'post_feedforward_layernorm' };

/**
 * OLMo 2 and 3: Llama with norms after the halves of a layer instead of before them, and norms over all heads of queries and keys. Shapes
 * and names: MODEL.md.
 */
export const OLMO = decoderStack({
  parseConfig: parseOlmoConfig,
  mlp: gatedMlp('silu'),
  norms: NORMS,
});
