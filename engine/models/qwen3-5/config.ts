import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import { convTaps, expectValue, integer, layerTypes, recurrentKinds } from '../config-fields.ts';
import { expertSizes } from '../experts-config.ts';
import { deltaNet } from '../layers/delta-net.ts';
import type { DeltaNetConfig } from '../layers/delta-net.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { parseRope } from '../rope-config.ts';

/** Defaults of Qwen3_5TextConfig (transformers, configuration_qwen3_5.py). */
const DEFAULTS = {
  hidden_size: 4096,
  intermediate_size: 12288,
  num_hidden_layers: 32,
  num_attention_heads: 16,
  num_key_value_heads: 4,
  head_dim: 256,
  vocab_size: 248_320,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-6,
  partial_rotary_factor: 0.25,
};
/** Defaults of Qwen3_5MoeTextConfig (configuration_qwen3_5_moe.py), whose dense MLP is the shared expert. */
const EXPERT_DEFAULTS = {
  ...DEFAULTS,
  hidden_size: 2048,
  num_hidden_layers: 40,
  num_key_value_heads: 2,
  tie_word_embeddings: false,
  shared_expert_intermediate_size: 512,
};

/**
 * Reads config.json of the text part of Qwen3.5 and 3.6, with experts or without. Throws EngineError naming the field that is wrong or
 * beyond what the forward pass does.
 */
export function parseQwen35Config(json: Json): DecoderStackConfig {
  const hasExperts = /^qwen3_5_moe(_text)?$/.test(String(json['model_type']));
  const given = hasExperts ? { ...EXPERT_DEFAULTS, ...json } : undefined;
  const settings = given ? { ...given, intermediate_size: given.shared_expert_intermediate_size } : { ...DEFAULTS, ...json };
  const config = parseHybridConfig(settings);
  return { ...config, experts: hasExperts ? qwen35Experts(json, config.layers) : undefined };
}

/** Reads the fields of gated attention and gated delta-nets by turns, and of a dense MLP, from settings with a family's defaults. */
export function parseHybridConfig(settings: Json): DecoderStackConfig {
  expectValue(settings, 'attention_bias', false);
  expectValue(settings, 'attn_output_gate', true);
  // Layer types and rotary embeddings are read below, not as Llama's.
  const config = parseLlamaConfig({ ...settings, partial_rotary_factor: undefined, layer_types: undefined, sliding_window: undefined, rope_parameters: undefined, rope_scaling: undefined, rope_theta: undefined }); // prettier-ignore
  const rope = parseRope(settings, config.headDim, { partial: true });
  const { layers, hidden } = config;
  const types = layerTypes(settings, layers, ['full_attention', 'linear_attention']);
  const interval = integer(settings, 'full_attention_interval', 4);
  const isRecurrent = (layer: number): boolean => (types ? types[layer] === 'linear_attention' : (layer + 1) % interval !== 0);
  const kinds = recurrentKinds(layers, rope, isRecurrent);
  return {
    ...config,
    rope,
    kinds,
    qkNorm: true,
    isGated: true,
    // Norm weights are stored minus 1, except the gated norm's.
    normOffset: 1,
    recurrent: kinds.some((kind) => kind.isRecurrent) ? deltaNet(deltaNetConfig(settings, hidden)) : undefined,
  };
}

/** Reads config.json as parseQwen35Config does, for a model loaded with its draft head, `mtp.*`. */
export function parseQwen35Head(json: Json): DecoderStackConfig {
  expectValue(json, 'mtp_num_hidden_layers', 1);
  expectValue(json, 'mtp_use_dedicated_embeddings', false);
  return { ...parseQwen35Config(json), hasDraftHead: true };
}

/** Experts in every layer; shares always sum to 1, whatever a file says (transformers, Qwen3_5MoeTopKRouter). */
function qwen35Experts(json: Json, layers: number): ExpertsConfig {
  const sizes = expertSizes(json, { count: 256, perRow: 8, intermediate: 512 });
  return { ...sizes, shares: { normalised: true }, hasShared: true, layers: new Array<boolean>(layers).fill(true) };
}

/** Reads the sizes of the delta-nets, of rows of `hidden` channels. */
export function deltaNetConfig(json: Json, hidden: number): DeltaNetConfig {
  const keyHeads = integer(json, 'linear_num_key_heads', 16);
  const heads = integer(json, 'linear_num_value_heads', 32);
  const keyDim = integer(json, 'linear_key_head_dim', 128);
  const valueDim = integer(json, 'linear_value_head_dim', 128);
  const taps = convTaps(json, 'linear_conv_kernel_dim', 4);
  if (heads % keyHeads !== 0) throw new EngineError('invalid_model', `config.json: linear_num_value_heads is ${heads}, expected a multiple of linear_num_key_heads, ${keyHeads}`); // prettier-ignore
  if (keyDim % 4 !== 0 || valueDim % 4 !== 0) throw new EngineError('unsupported', `config.json: linear_key_head_dim is ${keyDim} and linear_value_head_dim ${valueDim}, expected multiples of 4`); // prettier-ignore
  // Set only for GGUF files, whose metadata is read as a config.json.
  const isTiled = json['linear_value_heads_tiled'] === true;
  return { hidden, keyHeads, heads, keyDim, valueDim, taps, isTiled };
}
