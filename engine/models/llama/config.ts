import { EngineError } from '../../errors.ts';
import type { RopeConfig, RopeScaling } from '../../ops/rope.ts';
import { describe, isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import type { PreNormConfig } from '../layers/pre-norm.ts';

/**
 * Reads config.json of a Llama-shaped decoder: Llama, Mistral, Qwen2 (biases on q, k, v), Qwen3 (norms on q and k). Throws EngineError naming the
 * field that is missing or beyond what the forward pass does.
 */
export function parseLlamaConfig(json: Json): PreNormConfig {
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
  expectValue(json, 'mlp_bias', false);
  const positions = integer(json, 'max_position_embeddings', 2048);
  const layers = integer(json, 'num_hidden_layers');
  const window = slidingWindow(json, type, layers);
  return {
    layers,
    heads,
    kvHeads,
    headDim,
    hidden,
    intermediate,
    vocabulary: integer(json, 'vocab_size'),
    // Within its window sliding attention is full attention; beyond it we do not go.
    maxPositions: Math.min(window ?? Infinity, positions),
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

/** The window that some layer attends within, as transformers decides it: Qwen's first `max_window_layers` layers see everything. */
function slidingWindow(json: Json, type: string, layers: number): number | undefined {
  const isQwen = type === 'qwen2' || type === 'qwen3';
  const kinds = json['layer_types'];
  const some = Array.isArray(kinds) ? kinds : [];
  const other = some.find((kind) => kind !== 'full_attention' && kind !== 'sliding_attention');
  if (other !== undefined) throw new EngineError('unsupported', `config.json: layer_types has ${JSON.stringify(other)}; known are full_attention and sliding_attention`); // prettier-ignore
  if (json['use_sliding_window'] === false || (isQwen && json['use_sliding_window'] !== true)) return undefined;
  if (Array.isArray(kinds) && !kinds.slice(0, layers).includes('sliding_attention')) return undefined;
  if (!Array.isArray(kinds) && isQwen && number(json, 'max_window_layers', 28) >= layers) return undefined;
  return json['sliding_window'] === undefined || json['sliding_window'] === null ? undefined : integer(json, 'sliding_window');
}

/** `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`; where a file has both, they must say the same. */
function parseRope(json: Json, headDim: number): RopeConfig {
  const [newer, older] = [optionalObject(json, 'rope_parameters'), optionalObject(json, 'rope_scaling')];
  const rope = readRope(json, newer ?? older ?? {}, headDim);
  const theta = number(json, 'rope_theta', rope.theta);
  const other = newer && older ? readRope({ ...json, rope_theta: theta }, older, headDim) : rope;
  if (theta === rope.theta && sameScaling(other, rope)) return rope;
  const shown = (fields: Json): string => JSON.stringify(fields);
  throw new EngineError('invalid_model', `config.json: rope_parameters ${shown(newer ?? {})} and ${theta === rope.theta ? `rope_scaling ${shown(older ?? {})}` : `rope_theta ${theta}`} differ; one of them is wrong`); // prettier-ignore
}

function sameScaling(a: RopeConfig, b: RopeConfig): boolean {
  const fields = ({ theta, scaling }: RopeConfig): unknown => [theta, Object.entries(scaling ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))];
  return JSON.stringify(fields(a)) === JSON.stringify(fields(b));
}

function readRope(json: Json, parameters: Json, headDim: number): RopeConfig {
  const theta = number(parameters, 'rope_theta', number(json, 'rope_theta', 10000));
  if (theta <= 0) throw new EngineError('invalid_model', `config.json: rope_theta is ${theta}, expected a positive number`);
  const kind = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  const factor = (name: string): number => {
    const value = number(parameters, name);
    if (value > 0) return value;
    throw new EngineError('invalid_model', `config.json: ${name} of the rotary embedding is ${value}, expected a positive number`);
  };
  let scaling: RopeScaling | undefined;
  if (kind === 'linear') scaling = { kind, factor: factor('factor') };
  else if (kind === 'llama3') {
    scaling = {
      kind,
      factor: factor('factor'),
      lowFreqFactor: factor('low_freq_factor'),
      highFreqFactor: factor('high_freq_factor'),
      originalContext: factor('original_max_position_embeddings'),
    };
  } else if (kind === 'longrope') scaling = { kind: 'factors', factors: ropeFactors(parameters, headDim) };
  else if (kind !== 'default') {
    throw new EngineError('unsupported', `config.json: rope type ${JSON.stringify(kind)}; known are default, linear, llama3 and longrope`);
  }
  const partial = parameters['partial_rotary_factor'] ?? json['partial_rotary_factor'] ?? 1;
  if (partial !== 1) throw new EngineError('unsupported', `config.json: partial_rotary_factor ${describe(partial)}`);
  return { theta, headDim, scaling };
}

/** Of longrope, where short and long texts have the same: then it is one table. */
function ropeFactors(parameters: Json, headDim: number): readonly number[] {
  const [short, long] = [parameters['short_factor'], parameters['long_factor']];
  const isFactors = (value: unknown): value is readonly number[] => Array.isArray(value) && value.length === headDim / 2 && value.every((factor) => typeof factor === 'number' && factor > 0); // prettier-ignore
  if (!isFactors(short)) throw new EngineError('invalid_model', `config.json: short_factor of the rotary embedding is ${describe(short)}, expected ${headDim / 2} positive numbers`); // prettier-ignore
  if (JSON.stringify(short) !== JSON.stringify(long) || parameters['attention_factor'] !== 1) {
    throw new EngineError('unsupported', 'config.json: longrope with other factors for long texts, or with an attention_factor');
  }
  return short;
}

function optionalObject(json: Json, field: string): Json | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected an object`);
}

function number(json: Json, field: string, fallback?: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a number`);
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
    throw new EngineError('unsupported', `config.json: ${field} is ${describe(value)}, expected ${JSON.stringify(expected)}`);
  }
}
