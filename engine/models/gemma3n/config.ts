import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { normalQuantile } from '../../util/math.ts';
import { expectUsual, expectValue, integer, layerCount, layerTypes, number, softCap, tiedByDefault, tokenIds } from '../config-fields.ts';
import type { LayerKind } from '../layers/stack-config.ts';
import type { StreamsConfig } from '../layers/streams-stack.ts';
import { readRopes } from '../rope-config.ts';

/** Defaults of Gemma3nTextConfig (transformers, configuration_gemma3n.py). */
const DEFAULTS = {
  vocab_size: 262_400,
  vocab_size_per_layer_input: 262_144,
  hidden_size: 2048,
  hidden_size_per_layer_input: 256,
  intermediate_size: 16_384,
  num_hidden_layers: 35,
  num_attention_heads: 8,
  num_key_value_heads: 2,
  head_dim: 256,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  rope_local_base_freq: 1e4,
  sliding_window: 512,
  num_kv_shared_layers: 15,
  altup_num_inputs: 4,
  laurel_rank: 64,
  final_logit_softcapping: 30,
};
/** The last of this many layers has full attention. */
const PATTERN = 5;
/** Default sparsity: in models with more layers, the first SPARSE_LAYERS keep one gate in twenty. */
const SPARSE_LAYERS = 10;
const SPARSITY = 0.95;

/**
 * Reads config.json of the text part of Gemma 3n. Throws EngineError naming the field that is wrong or beyond what the forward pass does.
 */
export function parseGemma3nConfig(given: Json): StreamsConfig {
  const json: Json = { ...DEFAULTS, ...given };
  expectUsual(json);
  const heads = integer(json, 'num_attention_heads');
  const kvHeads = integer(json, 'num_key_value_heads');
  const headDim = integer(json, 'head_dim');
  const hidden = integer(json, 'hidden_size');
  const layers = layerCount(json);
  const intermediate = sameColumns(json, layers);
  const [laurelRank, columns] = [integer(json, 'laurel_rank'), integer(json, 'hidden_size_per_layer_input')];
  if (heads % kvHeads !== 0) throw new EngineError('invalid_model', `config.json: ${heads} heads over ${kvHeads} key/value heads`);
  if (headDim % 8 !== 0 || [hidden, intermediate, laurelRank, columns].some((size) => size % 4 !== 0)) {
    throw new EngineError('unsupported', `config.json: head dim ${headDim} (multiple of 8), hidden ${hidden}, intermediate ${intermediate}, laurel_rank ${laurelRank}, hidden_size_per_layer_input ${columns} (multiples of 4)`); // prettier-ignore
  }
  expectValue(json, 'attention_bias', false);
  expectValue(json, 'hidden_activation', 'gelu_pytorch_tanh');
  expectValue(json, 'altup_active_idx', 0);
  expectValue(json, 'altup_correct_scale', true);
  expectValue(json, 'altup_num_inputs', DEFAULTS.altup_num_inputs);
  const kinds = layerKinds(json, layers, headDim);
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
    layerInputs: { columns, activation: 'gelu_pytorch_tanh' },
    tied: tiedByDefault(json),
    eosTokenIds: tokenIds(json['eos_token_id']),
    streams: DEFAULTS.altup_num_inputs,
    laurelRank,
    inputVocabulary: integer(json, 'vocab_size_per_layer_input'),
    cuts: cutsOf(json, layers),
  };
}

/** `intermediate_size`, one number or a list of equal ones. */
function sameColumns(json: Json, layers: number): number {
  const given = json['intermediate_size'];
  if (!Array.isArray(given)) return integer(json, 'intermediate_size');
  if (given.length === layers && given.every((size) => size === given[0])) return integer({ intermediate_size: given[0] as unknown }, 'intermediate_size'); // prettier-ignore
  throw new EngineError('unsupported', `config.json: intermediate_size is ${describe(given)}, expected the same number for each of ${layers} layers`); // prettier-ignore
}

/**
 * By layer, the cut of its gates in standard deviations above their mean. GGUF files store it; others store the share of gates that become
 * 0.
 */
function cutsOf(json: Json, layers: number): readonly (number | undefined)[] {
  const stored = json['activation_sparsity_scale'];
  if (Array.isArray(stored)) return stored.map((cut: unknown) => (typeof cut === 'number' && Number.isFinite(cut) ? cut : undefined));
  return sparsities(json, layers).map((share) => (share > 0 ? Math.fround(normalQuantile(share)) : undefined));
}

/** By layer, the share of gates that become 0. */
function sparsities(json: Json, layers: number): readonly number[] {
  const given = json['activation_sparsity_pattern'] ?? undefined;
  if (given === undefined) return Array.from({ length: layers }, (_, layer) => (layers > SPARSE_LAYERS && layer < SPARSE_LAYERS ? SPARSITY : 0)); // prettier-ignore
  const isShare = (share: unknown): share is number => typeof share === 'number' && share >= 0 && share < 1;
  if (Array.isArray(given) && given.length === layers && given.every(isShare)) return given;
  throw new EngineError('invalid_model', `config.json: activation_sparsity_pattern is ${describe(given)}, expected ${layers} numbers from 0 to below 1`); // prettier-ignore
}

/**
 * The kind of each layer: sliding-window layers, with a full-attention layer after every PATTERN - 1 of them. The last
 * `num_kv_shared_layers` layers read the keys of the last earlier layer of their type.
 */
function layerKinds(json: Json, layers: number, headDim: number): readonly LayerKind[] {
  const types = layerTypes(json, layers, ['full_attention', 'sliding_attention']);
  const slides = (layer: number): boolean => (types ? types[layer] === 'sliding_attention' : (layer + 1) % PATTERN !== 0);
  const shared = number(json, 'num_kv_shared_layers');
  if (!Number.isInteger(shared) || shared < 0 || shared >= layers) {
    throw new EngineError('invalid_model', `config.json: num_kv_shared_layers is ${shared} of ${layers} layers`);
  }
  const ropes = readRopes(json, headDim, number(json, 'rope_local_base_freq'));
  const window = integer(json, 'sliding_window');
  return Array.from({ length: layers }, (_, layer) => {
    const kind = slides(layer) ? { rope: ropes.sliding, window } : { rope: ropes.full };
    if (layer < layers - shared) return kind;
    const keysOf = Array.from({ length: layers - shared }, (_, i) => i).findLast((other) => slides(other) === slides(layer));
    if (keysOf !== undefined) return { ...kind, keysOf };
    throw new EngineError('invalid_model', `config.json: layer ${layer} reads the keys of a layer of its type, of which there is none before layer ${layers - shared}`); // prettier-ignore
  });
}
