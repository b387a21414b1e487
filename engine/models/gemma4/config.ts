import { EngineError } from '../../errors.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { describe, isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expertSizes } from '../experts-config.ts';
import {
  expectValue,
  integer,
  layerCount,
  layerTypes,
  number,
  optionalObject,
  softCap,
  tiedByDefault,
  tokenIds,
} from '../config-fields.ts';
import type { LayerInputsConfig } from '../layers/layer-inputs.ts';
import type { ExpertsConfig } from '../layers/mlp.ts';
import type { DecoderStackConfig, LayerKind } from '../layers/stack-config.ts';
import { readRope } from '../rope-config.ts';

/** Defaults of Gemma4TextConfig (transformers, configuration_gemma4.py). */
const DEFAULTS = {
  vocab_size: 262_144,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 30,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
  global_head_dim: 512,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-6,
  sliding_window: 512,
  hidden_size_per_layer_input: 256,
  vocab_size_per_layer_input: 262_144,
  num_kv_shared_layers: 0,
};
const ROPES = {
  full_attention: { rope_type: 'proportional', partial_rotary_factor: 0.25, rope_theta: 1e6 },
  sliding_attention: { rope_type: 'default', rope_theta: 1e4 },
};
/** The last of every this many layers sees all positions. */
const PATTERN = 6;

/** The sizes of layers that have none of their own. */
type ModelSizes = Pick<DecoderStackConfig, 'kvHeads' | 'headDim' | 'intermediate'>;
type Heads = Partial<Pick<DecoderStackConfig, 'kvHeads' | 'headDim'>>;

/**
 * Reads config.json of the text part of Gemma 4. Throws EngineError naming the field that is wrong or beyond what the forward pass does.
 */
export function parseGemma4Config(given: Json): DecoderStackConfig {
  const json: Json = { ...DEFAULTS, ...given };
  const heads = integer(json, 'num_attention_heads');
  const kvHeads = integer(json, 'num_key_value_heads');
  const headDim = integer(json, 'head_dim');
  const hidden = integer(json, 'hidden_size');
  const intermediate = integer(json, 'intermediate_size');
  const layers = layerCount(json);
  expectValue(json, 'attention_bias', false);
  // Files give the scaling by layer type, in rope_parameters.
  if (!json['rope_parameters']) expectValue(json, 'rope_scaling', null);
  // With 'vision' only image tokens attend bidirectionally: text stays causal.
  if (json['use_bidirectional_attention'] !== 'vision') expectValue(json, 'use_bidirectional_attention', null);
  const kinds = layerKinds(json, layers, { kvHeads, headDim, intermediate });
  for (const { kvHeads: own, headDim: channels } of kinds) checkHeads(heads, own!, channels!);
  if (hidden % 4 !== 0 || intermediate % 4 !== 0) {
    throw new EngineError('unsupported', `config.json: hidden ${hidden}, intermediate ${intermediate}, expected multiples of 4`);
  }
  return {
    layers,
    heads,
    kvHeads,
    headDim,
    hidden,
    intermediate,
    vocabulary: integer(json, 'vocab_size'),
    maxPositions: integer(json, 'max_position_embeddings'),
    eps: number(json, 'rms_norm_eps'),
    rope: kinds[0]!.rope,
    kinds,
    qkvBias: false,
    outputBias: false,
    qkNorm: true,
    valueNorm: true,
    scores: { scale: 1 },
    embeddingScale: Math.fround(Math.sqrt(hidden)),
    logitSoftCap: softCap(json, 'final_logit_softcapping'),
    hasLayerScalars: true,
    layerInputs: layerInputs(json),
    experts: json['enable_moe_block'] === true ? expertsOf(json, layers) : undefined,
    tied: tiedByDefault(json),
    eosTokenIds: tokenIds(json['eos_token_id']),
  };
}

function checkHeads(heads: number, kvHeads: number, headDim: number): void {
  if (heads % kvHeads !== 0) throw new EngineError('invalid_model', `config.json: ${heads} heads over ${kvHeads} key/value heads`);
  if (headDim % 8 !== 0) throw new EngineError('unsupported', `config.json: heads of ${headDim} channels, expected a multiple of 8`);
}

/**
 * The kind of each layer. The last `num_kv_shared_layers` layers compute no keys: each reads those of the last layer of its type before
 * them.
 */
function layerKinds(json: Json, layers: number, { kvHeads, headDim, intermediate }: ModelSizes): readonly LayerKind[] {
  const given = layerTypes(json, layers, ['full_attention', 'sliding_attention']);
  // The last layer has full attention, whatever a file says.
  const slides = (layer: number): boolean => layer < layers - 1 && (given ? given[layer] === 'sliding_attention' : (layer + 1) % PATTERN !== 0); // prettier-ignore
  const shared = number(json, 'num_kv_shared_layers');
  if (!Number.isInteger(shared) || shared < 0 || shared >= layers) {
    throw new EngineError('invalid_model', `config.json: num_kv_shared_layers is ${shared} of ${layers} layers`);
  }
  const firstShared = layers - shared;
  const window = integer(json, 'sliding_window');
  const valuesAreKeys = json['attention_k_eq_v'] === true;
  const wide = json['use_double_wide_mlp'] === true ? 2 : 1;
  const own = ownHeads(json, kvHeads);
  const ropes = new Map<string, RopeConfig>();
  return Array.from({ length: layers }, (_, layer) => {
    const type = slides(layer) ? 'sliding_attention' : 'full_attention';
    const sizes = { kvHeads, headDim, ...own(layer, type) };
    const known = `${type} ${sizes.headDim}`;
    const rope = ropes.get(known) ?? ropeOf(json, type, sizes.headDim);
    ropes.set(known, rope);
    if (layer < firstShared) return { rope, ...sizes, ...(type === 'full_attention' ? { valuesAreKeys } : { window }) };
    const keysOf = Array.from({ length: firstShared }, (_, i) => i).findLast((other) => slides(other) === slides(layer));
    if (keysOf === undefined) throw new EngineError('invalid_model', `config.json: layer ${layer} reads the keys of a layer with ${type}, of which there is none before layer ${firstShared}`); // prettier-ignore
    return { rope, ...sizes, keysOf, intermediate: wide * intermediate, ...(type === 'sliding_attention' && { window }) };
  });
}

/** The rotary embedding of the layers of a type. */
function ropeOf(json: Json, type: keyof typeof ROPES, headDim: number): RopeConfig {
  const parameters = optionalObject(optionalObject(json, 'rope_parameters') ?? ROPES, type);
  // Top-level fields apply to layer types that lack them; there is no default base.
  const own = { rope_theta: json['rope_theta'], partial_rotary_factor: json['partial_rotary_factor'], ...parameters };
  if (parameters)
    return readRope({ max_position_embeddings: json['max_position_embeddings'] }, own, headDim, { theta: number(own, 'rope_theta') });
  throw new EngineError('invalid_model', `config.json: rope_parameters has no ${type}`);
}

/**
 * Head sizes that differ from the model's: from `per_layer_config`, which transformers 5 writes, or from `global_head_dim` and
 * `num_global_key_value_heads` for full-attention layers.
 */
function ownHeads(json: Json, kvHeads: number): (layer: number, type: keyof typeof ROPES) => Heads {
  const written = optionalObject(json, 'per_layer_config');
  if (written) return (layer) => writtenHeads(layer, written[String(layer)] ?? {});
  const global = json['attention_k_eq_v'] === true ? integer(json, 'num_global_key_value_heads', kvHeads) : kvHeads;
  const headDim = integer(json, 'global_head_dim');
  return (_, type) => (type === 'full_attention' ? { kvHeads: global, headDim } : {});
}

function writtenHeads(layer: number, fields: unknown): Heads {
  if (!isObject(fields)) throw new EngineError('invalid_model', `config.json: per_layer_config has ${describe(fields)} for layer ${layer}, expected an object`); // prettier-ignore
  const unknown = Object.keys(fields).find((field) => field !== 'head_dim' && field !== 'num_key_value_heads');
  if (unknown !== undefined) throw new EngineError('unsupported', `config.json: per_layer_config has ${unknown}; known are head_dim and num_key_value_heads`); // prettier-ignore
  return {
    ...(fields['head_dim'] !== undefined && { headDim: integer(fields, 'head_dim') }),
    ...(fields['num_key_value_heads'] !== undefined && { kvHeads: integer(fields, 'num_key_value_heads') }),
  };
}

/** Per-layer embeddings, which E2B and E4B have; larger models have none (0 channels). */
function layerInputs(json: Json): Pick<LayerInputsConfig, 'columns' | 'activation'> | undefined {
  const columns = number(json, 'hidden_size_per_layer_input');
  if (columns === 0) return undefined;
  if (columns % 4 !== 0 || columns < 0) throw new EngineError('unsupported', `config.json: hidden_size_per_layer_input is ${columns}, expected a multiple of 4`); // prettier-ignore
  expectValue(json, 'vocab_size_per_layer_input', integer(json, 'vocab_size'));
  return { columns, activation: 'gelu_pytorch_tanh' };
}

/** Experts in every layer; defaults are those of 26B-A4B. */
function expertsOf(json: Json, layers: number): ExpertsConfig {
  const sizes = expertSizes({ ...json, num_experts_per_tok: json['top_k_experts'] }, { count: 128, perRow: 8, intermediate: 704 });
  return { ...sizes, shares: { normalised: true }, hasScales: true, besideMlp: true, layers: new Array<boolean>(layers).fill(true) };
}
