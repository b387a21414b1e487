import type { Json } from '../../util/json.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { integer, layerTypes } from '../config-fields.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { gatedMlp } from '../layers/mlp.ts';
import type { DecoderStackConfig, LayerKind } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';

/** Defaults of Exaone4Config (transformers, configuration_exaone4.py). */
const DEFAULTS = { num_key_value_heads: 32, rms_norm_eps: 1e-5, tie_word_embeddings: false, eos_token_id: 2 };
const WINDOW = { size: 4096, pattern: 4 };

/** Reads config.json of EXAONE 4. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseExaone4Config(json: Json): DecoderStackConfig {
  // Windows are read below, not as Llama's.
  const own = { attention_bias: false, sliding_window: undefined, layer_types: undefined };
  const config = parseLlamaConfig({ ...DEFAULTS, ...json, ...own });
  return { ...config, kinds: layerKinds(json, config), qkNorm: true };
}

/**
 * Layers with a window rotate queries and keys; the others, every fourth, do neither. Where there is no window, all layers rotate
 * (Exaone4Attention).
 */
function layerKinds(json: Json, { layers, rope }: DecoderStackConfig): readonly LayerKind[] | undefined {
  const types = layerTypes(json, layers, ['full_attention', 'sliding_attention']);
  if (json['sliding_window'] === null && types?.includes('sliding_attention') !== true) return undefined;
  const window = integer({ sliding_window: WINDOW.size, ...json }, 'sliding_window');
  const pattern = types ? 1 : integer(json, 'sliding_window_pattern', WINDOW.pattern);
  const slides = (layer: number): boolean => (types ? types[layer] === 'sliding_attention' : (layer + 1) % pattern !== 0);
  const unrotated: RopeConfig = { ...rope, scaling: { kind: 'none' } };
  return Array.from({ length: layers }, (_, layer) => (slides(layer) ? { rope, window } : { rope: unrotated }));
}

/** EXAONE 4: Llama with norms after the halves of a layer, norms of queries and keys, and layers without positions. Shapes and names: MODEL.md. */
export const EXAONE4 = decoderStack({
  parseConfig: parseExaone4Config,
  mlp: gatedMlp('silu'),
  norms: { afterAttention: 'post_attention_layernorm', afterMlp: 'post_feedforward_layernorm' },
});
