import type { Json } from '../../util/json.ts';
import { alignUp } from '../../util/math.ts';
import { convTaps, expectValue, integer, layerCount, layerTypes, number, recurrentKinds } from '../config-fields.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { expertSizes } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { expertMlp } from '../layers/experts.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import { shortConv } from '../layers/short-conv.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of Lfm2Config (transformers, configuration_lfm2.py). */
const DEFAULTS = {
  hidden_size: 2560,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  vocab_size: 65_536,
  max_position_embeddings: 128_000,
};
/** Defaults of Lfm2MoeConfig (configuration_lfm2_moe.py). */
const EXPERT_DEFAULTS = { ...DEFAULTS, hidden_size: 2048, intermediate_size: 7168 };
/** Added to the sum of a row's shares before dividing by it (transformers, Lfm2MoeTopKRouter). */
const SHARES_FLOOR = 1e-6;

/**
 * Reads config.json of LFM2, with experts or without. Throws EngineError naming the field that is wrong or beyond what the forward pass
 * does.
 */
export function parseLfm2Config(json: Json): DecoderStackConfig {
  expectValue(json, 'conv_bias', false);
  const hasExperts = json['model_type'] === 'lfm2_moe';
  const settings = { ...(hasExperts ? EXPERT_DEFAULTS : DEFAULTS), ...json };
  const layers = layerCount(settings);
  const taps = convTaps(json, 'conv_L_cache', 3);
  // Early files have other names for three of the fields.
  const tied = json['tie_embedding'] ?? json['tie_word_embeddings'] ?? true;
  const columns = hasExperts ? integer(settings, 'intermediate_size') : mlpColumns(json);
  const own = { rms_norm_eps: number(json, 'norm_eps', 1e-5), intermediate_size: columns, tie_word_embeddings: tied };
  const config = parseLlamaConfig({ ...settings, ...own, layer_types: undefined });
  const types = layerTypes(json, layers, ['full_attention', 'conv']) ?? typesByIndex(json, layers);
  const kinds = recurrentKinds(layers, config.rope, (layer) => types[layer] === 'conv');
  const recurrent = kinds.some((kind) => kind.isRecurrent) ? shortConv({ hidden: config.hidden, taps }) : undefined;
  return { ...config, kinds, recurrent, qkNorm: true, experts: hasExperts ? lfm2Experts(json, layers) : undefined };
}

/** A mixture of experts in all layers after the first `num_dense_layers`; each share is the sigmoid of its own logit. */
function lfm2Experts(json: Json, layers: number): ExpertsConfig {
  const dense = number(json, 'num_dense_layers', 2);
  return {
    ...expertSizes(json, { count: 32, perRow: 4, intermediate: 1792 }),
    routing: { sigmoid: true, hasBias: json['use_expert_bias'] !== false },
    shares: { normalised: json['norm_topk_prob'] !== false, floor: SHARES_FLOOR, scale: number(json, 'routed_scaling_factor', 1) },
    layers: Array.from({ length: layers }, (_, layer) => layer >= dense),
  };
}

/** Layer types from `full_attn_idxs`, the indices of attention layers; without the field all layers have attention. */
function typesByIndex(json: Json, layers: number): readonly ('full_attention' | 'conv')[] {
  const found = json['full_attn_idxs'] ?? undefined;
  return Array.from({ length: layers }, (_, i) =>
    found === undefined || (Array.isArray(found) && found.includes(i)) ? 'full_attention' : 'conv',
  );
}

/** Columns of the MLP: two thirds of the given number, rounded up, unless the file says to use it as it is. */
function mlpColumns(json: Json): number {
  const given = integer(json, 'block_ff_dim', integer(json, 'intermediate_size', 12_288));
  if (json['block_auto_adjust_ff_dim'] === false) return given;
  const part = Math.trunc((2 * given) / 3);
  if (json['block_ffn_dim_multiplier'] === null) return part;
  return alignUp(Math.trunc(number(json, 'block_ffn_dim_multiplier', 1) * part), integer(json, 'block_multiple_of', 256));
}

const STACK = decoderStack({
  parseConfig: parseLfm2Config,
  mlp: expertMlp('silu'),
  norms: { beforeAttention: 'operator_norm', beforeMlp: 'ffn_norm' },
});

/** LFM2's tensor names, mapped to those of other families. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^model\.embedding_norm\./, 'model.norm.'],
  [/\.self_attn\.out_proj\./, '.self_attn.o_proj.'],
  [/\.self_attn\.(q|k)_layernorm\./, '.self_attn.$1_norm.'],
  [/\.feed_forward\./, '.mlp.'],
  [/\.w1\./, '.gate_proj.'],
  [/\.w3\./, '.up_proj.'],
  [/\.w2\./, '.down_proj.'],
];

/** LFM2: short convolutions, attention in some layers, and a dense MLP or experts. Shapes and names: MODEL.md. */
export const LFM2: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
