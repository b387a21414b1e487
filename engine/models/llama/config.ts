import { EngineError } from '../../errors.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, integer, layerCount, layerTypes, number, tokenIds } from '../config-fields.ts';
import type { RopeConfig } from '../../ops/rope.ts';
import { describe } from '../../util/json.ts';
import type { DecoderStackConfig, LayerKind } from '../layers/stack-config.ts';
import { parseRope } from '../rope-config.ts';

/**
 * Defaults by model type where they differ from the common ones (each type's configuration class in transformers). An explicit null counts
 * as given.
 */
const DEFAULTS: Readonly<Record<string, Json>> = {
  dots1: { sliding_window: 4096, max_window_layers: 62 },
  arcee: { max_position_embeddings: 4096, rms_norm_eps: 1e-5 },
  mistral: { num_key_value_heads: 8, max_position_embeddings: 131_072, sliding_window: 4096 },
  ministral3: { num_key_value_heads: 8, head_dim: 128 },
  mixtral: { num_key_value_heads: 8, max_position_embeddings: 131_072, rms_norm_eps: 1e-5 },
  qwen2: { num_key_value_heads: 32, max_position_embeddings: 32_768, sliding_window: 4096 },
  qwen3: { num_key_value_heads: 32, head_dim: 128, max_position_embeddings: 32_768, sliding_window: 4096 },
  qwen3_moe: { num_key_value_heads: 4, max_position_embeddings: 32_768, sliding_window: 4096 },
  smollm3: { num_key_value_heads: 4, max_position_embeddings: 32_768, tie_word_embeddings: true },
};
/** Default rotary bases by model type where they are not 10,000. */
const THETAS: Readonly<Record<string, number>> = {
  smollm3: 2e6,
  mixtral: 1e6,
  lfm2: 1e6,
  lfm2_moe: 1e6,
  cohere: 500_000,
  gpt_oss: 150_000,
  ernie4_5: 500_000,
  flex_olmo: 500_000,
  apertus: 12e6,
  phimoe: 1e6,
};
/** Types that rotate a part of a head's channels where the file says so. */
const PARTIAL = ['phi', 'phi3', 'stablelm', 'nemotron', 'glm', 'glm4', 'gpt_neox'];
/** ASKED: types with sliding windows only if `use_sliding_window` is true. WITHOUT_WINDOWS: types that never have any. */
const ASKED = ['qwen2', 'qwen3', 'qwen3_moe', 'smollm3'];
const WITHOUT_WINDOWS = [
  'llama',
  'granite',
  'granitemoehybrid',
  'apertus',
  'arcee',
  'olmo2',
  'olmoe',
  'flex_olmo',
  'gemma',
  'lfm2',
  'lfm2_moe',
  'cohere',
  'stablelm',
  'nemotron',
  'ernie4_5',
  'hunyuan_v1_dense',
  'seed_oss',
  'glm',
  'glm4',
  'gpt_neox',
  'phi',
  'gpt2',
  'opt',
];
/** Types with multipliers. */
const GRANITES = ['granite', 'granitemoehybrid'];

/**
 * Reads config.json of a Llama-shaped decoder: Llama, Mistral, Qwen2 (biases on q, k, v), Qwen3 (norms on q and k), SmolLM3 (layers without
 * rotation), Granite (multipliers). Throws EngineError naming the field that is missing or beyond what the forward pass does.
 */
export function parseLlamaConfig(given: Json): DecoderStackConfig {
  const type = String(given['model_type']);
  const json = { ...DEFAULTS[type], ...given };
  const hidden = integer(json, 'hidden_size');
  const heads = integer(json, 'num_attention_heads');
  const kvHeads = integer(json, 'num_key_value_heads', heads);
  const headDim = integer(json, 'head_dim', hidden / heads);
  const intermediate = integer(json, 'intermediate_size');
  if (heads % kvHeads !== 0) throw new EngineError('invalid_model', `config.json: ${heads} heads over ${kvHeads} key/value heads`);
  if (headDim % 8 !== 0 || hidden % 4 !== 0 || intermediate % 4 !== 0) {
    throw new EngineError('unsupported', `config.json: head dim ${headDim} (multiple of 8), hidden ${hidden}, intermediate ${intermediate} (multiples of 4)`); // prettier-ignore
  }
  expectValue(json, 'mlp_bias', false);
  const layers = layerCount(json);
  const rope = parseRope(json, headDim, { partial: PARTIAL.includes(type), theta: THETAS[type], alpha: type === 'hunyuan_v1_dense' });
  return {
    layers,
    heads,
    kvHeads,
    headDim,
    hidden,
    intermediate,
    vocabulary: integer(json, 'vocab_size'),
    maxPositions: integer(json, 'max_position_embeddings', 2048),
    eps: number(json, 'rms_norm_eps', 1e-6),
    rope,
    kinds: layerKinds(json, type, layers, rope),
    qkvBias: type === 'qwen2' || json['attention_bias'] === true,
    outputBias: type !== 'qwen2' && json['attention_bias'] === true,
    qkNorm: type === 'qwen3' || type === 'qwen3_moe' || type === 'dots1',
    tied: typeof json['tie_word_embeddings'] === 'boolean' ? json['tie_word_embeddings'] : undefined,
    eosTokenIds: tokenIds(json['eos_token_id']),
    ...(GRANITES.includes(type) && multipliers(json)),
  };
}

/**
 * The kinds of layers with sliding windows, chosen as transformers does (the first `max_window_layers` layers of Qwen have full attention),
 * and of SmolLM3's layers without rotary embedding; undefined where all layers are alike.
 */
function layerKinds(json: Json, type: string, layers: number, rope: RopeConfig): readonly LayerKind[] | undefined {
  const isQwen = type === 'qwen2' || type === 'qwen3' || type === 'dots1';
  const types = layerTypes(json, layers, ['full_attention', 'sliding_attention']);
  const rotated = type === 'smollm3' ? rotatedLayers(json, layers) : undefined;
  const withoutWindows = WITHOUT_WINDOWS.includes(type);
  if (withoutWindows && json['use_sliding_window'] !== false) expectValue(json, 'sliding_window', null);
  const asked = ASKED.includes(type) ? json['use_sliding_window'] === true : !withoutWindows;
  const hasWindow = asked && json['sliding_window'] !== undefined && json['sliding_window'] !== null;
  const first = isQwen ? number(json, 'max_window_layers', 28) : 0;
  const slides = (layer: number): boolean => (types ? types[layer] === 'sliding_attention' : rotated ? !rotated[layer] : layer >= first);
  const unrotated: RopeConfig = { ...rope, scaling: { kind: 'none' } };
  const kinds = Array.from({ length: layers }, (_, layer) => ({
    rope: rotated?.[layer] === false ? unrotated : rope,
    window: hasWindow && slides(layer) ? integer(json, 'sliding_window') : undefined,
  }));
  return kinds.some((kind) => kind.rope !== rope || kind.window !== undefined) ? kinds : undefined;
}

/** By layer, whether queries and keys are rotated: SmolLM3's `no_rope_layers` has 1 for those that are. */
function rotatedLayers(json: Json, layers: number): readonly boolean[] {
  const given = json['no_rope_layers'] ?? undefined;
  const interval = integer(json, 'no_rope_layer_interval', 4);
  if (given === undefined) return Array.from({ length: layers }, (_, layer) => (layer + 1) % interval !== 0);
  if (Array.isArray(given) && given.length >= layers) return given.slice(0, layers).map(Boolean);
  throw new EngineError('invalid_model', `config.json: no_rope_layers is ${describe(given)}, expected a list of ${layers}`);
}

/**
 * Granite's multipliers. The residual multiplier m, which scales what each half adds, is removed by keeping the residual stream divided by
 * m: norms give the same result when their eps is divided by m squared.
 */
function multipliers(json: Json): Partial<DecoderStackConfig> {
  const [embedding, residual] = [number(json, 'embedding_multiplier', 1), number(json, 'residual_multiplier', 1)];
  if (residual <= 0) throw new EngineError('invalid_model', `config.json: residual_multiplier is ${residual}, expected a positive number`);
  return {
    embeddingScale: embedding / residual,
    eps: number(json, 'rms_norm_eps', 1e-6) / residual ** 2,
    scores: { scale: number(json, 'attention_multiplier', 1) },
    logitScale: 1 / number(json, 'logits_scaling', 1),
  };
}
