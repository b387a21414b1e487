import { EngineError } from '../../errors.ts';
import type { RopeConfig, RopeScaling } from '../../ops/rope.ts';
import type { DecoderShape } from '../registry.ts';

/** config.json of a Llama-shaped decoder: Llama, Mistral, Qwen2 (biases on q, k, v), Qwen3 (norms on q and k). */
export interface LlamaConfig extends DecoderShape {
  readonly hidden: number;
  readonly intermediate: number;
  readonly eps: number;
  readonly rope: RopeConfig;
  readonly qkvBias: boolean;
  readonly outputBias: boolean;
  readonly qkNorm: boolean;
  /** Undefined: decided by whether the checkpoint has a head of its own. */
  readonly tied: boolean | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/** Reads config.json; throws EngineError naming the field that is missing or beyond what the forward pass does. */
export function parseLlamaConfig(json: Json): LlamaConfig {
  const type = String(json['model_type']);
  const hidden = integer(json, 'hidden_size');
  const heads = integer(json, 'num_attention_heads');
  const kvHeads = integer(json, 'num_key_value_heads', heads);
  const headDim = integer(json, 'head_dim', hidden / heads);
  const intermediate = integer(json, 'intermediate_size');
  if (heads % kvHeads !== 0) throw new EngineError('invalid_model', `config.json: ${heads} heads over ${kvHeads} key/value heads`);
  if (headDim % 8 !== 0 || hidden % 4 !== 0 || intermediate % 4 !== 0) {
    throw new EngineError('unsupported', `config.json: head dim ${headDim} (multiple of 8), hidden ${hidden}, intermediate ${intermediate} (multiples of 4)`); // prettier-ignore
  }
  expectValue(json, 'hidden_act', 'silu');
  expectValue(json, 'mlp_bias', false);
  const positions = integer(json, 'max_position_embeddings', 2048);
  const window = json['use_sliding_window'] === false ? undefined : json['sliding_window'];
  return {
    layers: integer(json, 'num_hidden_layers'),
    heads,
    kvHeads,
    headDim,
    hidden,
    intermediate,
    vocabulary: integer(json, 'vocab_size'),
    // Within its window sliding attention is full attention; beyond it we do not go.
    maxPositions: typeof window === 'number' && window > 0 ? Math.min(window, positions) : positions,
    widestRow: Math.max(2 * intermediate, (heads + 2 * kvHeads) * headDim),
    eps: number(json, 'rms_norm_eps', 1e-6),
    rope: parseRope(json, headDim),
    qkvBias: type === 'qwen2' || json['attention_bias'] === true,
    outputBias: type !== 'qwen2' && json['attention_bias'] === true,
    qkNorm: type === 'qwen3',
    tied: typeof json['tie_word_embeddings'] === 'boolean' ? json['tie_word_embeddings'] : undefined,
    eosTokenIds: tokenIds(json['eos_token_id']),
  };
}

/** A token id field that may be one id, a list or null. */
export function tokenIds(value: unknown): number[] {
  return (Array.isArray(value) ? value : [value]).filter((id): id is number => typeof id === 'number');
}

/** `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`. */
function parseRope(json: Json, headDim: number): RopeConfig {
  const parameters = (json['rope_parameters'] ?? json['rope_scaling'] ?? {}) as Json;
  const theta = number(parameters, 'rope_theta', number(json, 'rope_theta', 10000));
  const kind = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  let scaling: RopeScaling | undefined;
  if (kind === 'linear') scaling = { kind, factor: number(parameters, 'factor') };
  else if (kind === 'llama3') {
    scaling = {
      kind,
      factor: number(parameters, 'factor'),
      lowFreqFactor: number(parameters, 'low_freq_factor'),
      highFreqFactor: number(parameters, 'high_freq_factor'),
      originalContext: number(parameters, 'original_max_position_embeddings'),
    };
  } else if (kind !== 'default') {
    throw new EngineError('unsupported', `config.json: rope type ${JSON.stringify(kind)}; known are default, linear and llama3`);
  }
  const partial = parameters['partial_rotary_factor'] ?? json['partial_rotary_factor'];
  if (partial !== undefined && partial !== 1) throw new EngineError('unsupported', `config.json: partial_rotary_factor ${String(partial)}`);
  return { theta, headDim, scaling };
}

function number(json: Json, field: string, fallback?: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new EngineError('invalid_model', `config.json: ${field} is ${JSON.stringify(value)}, expected a number`);
  }
  return value;
}

function integer(json: Json, field: string, fallback?: number): number {
  const value = number(json, field, fallback);
  if (!Number.isInteger(value) || value < 1) throw new EngineError('invalid_model', `config.json: ${field} is ${value}, expected a positive integer`); // prettier-ignore
  return value;
}

function expectValue(json: Json, field: string, expected: unknown): void {
  const value = json[field] ?? expected;
  if (value !== expected) {
    throw new EngineError('unsupported', `config.json: ${field} is ${JSON.stringify(value)}, expected ${JSON.stringify(expected)}`);
  }
}
