/** Reads the rotary embeddings of a config.json. */
import { EngineError } from '../errors.ts';
import type { RopeConfig, RopeScaling } from '../ops/rope.ts';
import { describe } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import { integer, number, optionalObject } from './config-fields.ts';

/** What differs between families. */
interface Allowed {
  /** The family supports partial rotary embeddings. In transformers each family's code decides that, whatever a file says. */
  readonly partial?: boolean;
  /** Rotary base where the file has none; default 10,000. */
  readonly theta?: number | undefined;
  /** The family's `dynamic` scaling may have a fixed `alpha`. */
  readonly alpha?: boolean;
}

const ORIGINAL = 'original_max_position_embeddings';

/**
 * Reads `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling` (transformers 4); where a file has both, they must agree.
 */
export function parseRope(json: Json, headDim: number, allowed?: Allowed): RopeConfig {
  const [newer, older] = [optionalObject(json, 'rope_parameters'), optionalObject(json, 'rope_scaling')];
  const rope = readRope(json, newer ?? older ?? {}, headDim, allowed);
  const theta = number(json, 'rope_theta', rope.theta);
  const other = newer && older ? readRope({ ...json, rope_theta: theta }, older, headDim, allowed) : rope;
  if (theta === rope.theta && sameScaling(other, rope)) return rope;
  const shown = (fields: Json): string => JSON.stringify(fields);
  throw new EngineError('invalid_model', `config.json: rope_parameters ${shown(newer ?? {})} and ${theta === rope.theta ? `rope_scaling ${shown(older ?? {})}` : `rope_theta ${theta}`} differ; one of them is wrong`); // prettier-ignore
}

function sameScaling(a: RopeConfig, b: RopeConfig): boolean {
  const fields = ({ theta, scaling }: RopeConfig): unknown => [theta, Object.entries(scaling ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))];
  return JSON.stringify(fields(a)) === JSON.stringify(fields(b));
}

/** Reads the rotary embedding of one object of parameters: `rope_parameters`, or one of several in it. */
export function readRope(
  json: Json,
  parameters: Json,
  headDim: number,
  { partial = false, theta: usual = 10_000, alpha = false }: Allowed = {},
): RopeConfig {
  const theta = number(parameters, 'rope_theta', number(json, 'rope_theta', usual));
  if (theta <= 0) throw new EngineError('invalid_model', `config.json: rope_theta is ${theta}, expected a positive number`);
  const kind = parameters['rope_type'] ?? parameters['type'] ?? 'default';
  if (kind === 'proportional') return { theta, headDim, scaling: proportional(parameters, headDim) };
  const rotary = rotatedChannels(json, parameters, headDim, partial);
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
      originalContext: originalContext(json, parameters),
    };
  } else if (kind === 'yarn') {
    const by = factor('factor');
    scaling = {
      kind,
      factor: by,
      originalContext: originalContext(json, parameters),
      betaFast: number(parameters, 'beta_fast', 32),
      betaSlow: number(parameters, 'beta_slow', 1),
      truncate: parameters['truncate'] !== false,
      attentionFactor: yarnAttention(parameters, by),
    };
  } else if (kind === 'longrope') scaling = longRope(json, parameters, rotary);
  else if (kind === 'dynamic' && alpha && parameters['alpha']) scaling = { kind: 'alpha', alpha: factor('alpha') };
  // Dynamic scaling only applies beyond max_position_embeddings, which sequences here never exceed.
  else if (kind === 'dynamic') factor('factor');
  else if (kind !== 'default') {
    throw new EngineError(
      'unsupported',
      `config.json: rope type ${describe(kind)}; known are default, linear, dynamic, llama3, yarn, longrope and proportional`,
    );
  }
  return { theta, headDim, scaling, ...(rotary !== headDim && { rotary }) };
}

/**
 * Reads the rotary embeddings of full-attention and of sliding-window layers: one object each in `rope_parameters` (transformers 5); or
 * `rope_theta` with `rope_scaling` for the former and `slidingTheta` for the latter (transformers 4).
 */
export function readRopes(given: Json, headDim: number, slidingTheta: number): { readonly full: RopeConfig; readonly sliding: RopeConfig } {
  const newer = optionalObject(given, 'rope_parameters');
  const [full, sliding] = newer ? [optionalObject(newer, 'full_attention'), optionalObject(newer, 'sliding_attention')] : [];
  if (newer && !full && !sliding && Object.keys(newer).length > 0) {
    throw new EngineError('unsupported', `config.json: rope_parameters ${JSON.stringify(newer)} says nothing of full_attention and sliding_attention`); // prettier-ignore
  }
  // A top-level original context belongs to files with one rotary embedding.
  const json = { ...given, [ORIGINAL]: undefined };
  return {
    full: readRope(json, full ?? (sliding ? {} : (optionalObject(json, 'rope_scaling') ?? {})), headDim),
    sliding: readRope({ ...json, rope_theta: slidingTheta }, sliding ?? {}, headDim),
  };
}

/**
 * The context length that the frequencies were made for: the file's top-level field, that of the parameters, or else the model's context
 * (transformers, standardize_rope_params).
 */
function originalContext(json: Json, parameters: Json): number {
  const from = [json, parameters].find((fields) => (fields[ORIGINAL] ?? undefined) !== undefined);
  return from ? integer(from, ORIGINAL) : integer(json, 'max_position_embeddings');
}

/** Rounding error of a factor that was computed as a quotient. */
const ROUNDING = 1e-6;

/** Number of rotated channels of a head, its first ones. */
function rotatedChannels(json: Json, parameters: Json, headDim: number, allowed: boolean): number {
  const factor = parameters['partial_rotary_factor'] ?? json['partial_rotary_factor'] ?? 1;
  if (factor === 1) return headDim;
  if (!allowed) throw new EngineError('unsupported', `config.json: partial_rotary_factor ${describe(factor)}`);
  const rotary = typeof factor === 'number' ? Math.floor(headDim * factor + ROUNDING) : 0;
  if (rotary > 0 && rotary < headDim && rotary % 2 === 0) return rotary;
  throw new EngineError('invalid_model', `config.json: partial_rotary_factor is ${describe(factor)}, expected an even number of the ${headDim} channels of a head`); // prettier-ignore
}

/** Proportional rotary embedding: only the first pairs rotate, with the frequencies that they have in the whole head. */
function proportional(parameters: Json, headDim: number): RopeScaling {
  const [share, factor] = [number(parameters, 'partial_rotary_factor', 1), number(parameters, 'factor', 1)];
  const pairs = Math.floor((share * headDim) / 2 + ROUNDING);
  if (pairs > 0 && 2 * pairs <= headDim && factor > 0) return { kind: 'proportional', pairs, factor };
  throw new EngineError('invalid_model', `config.json: partial_rotary_factor is ${share} and factor ${factor} of the rotary embedding, expected a part of ${headDim} channels and a positive number`); // prettier-ignore
}

/** YaRN's factor of rotated queries and keys, as given or as transformers infers it. */
function yarnAttention(parameters: Json, factor: number): number {
  const given = parameters['attention_factor'] ?? undefined;
  if (given !== undefined) return number(parameters, 'attention_factor');
  const scale = (by: number): number => (factor <= 1 ? 1 : 0.1 * by * Math.log(factor) + 1);
  const [mscale, all] = [number(parameters, 'mscale', 0), number(parameters, 'mscale_all_dim', 0)];
  return mscale !== 0 && all !== 0 ? scale(mscale) / scale(all) : scale(1);
}

/** LongRoPE as transformers infers it: the original context may stand at the top of the file, and the factors may be missing. */
function longRope(json: Json, parameters: Json, rotary: number): RopeScaling {
  const [short, long] = [ropeFactors(parameters, 'short_factor', rotary), ropeFactors(parameters, 'long_factor', rotary)];
  const given = (parameters['attention_factor'] ?? undefined) === undefined ? undefined : number(parameters, 'attention_factor');
  // Here nothing depends on the original context, which the file need not have.
  if (given !== undefined && JSON.stringify(short) === JSON.stringify(long)) {
    return { kind: 'factors', factors: short, ...(given !== 1 && { attentionFactor: given }) };
  }
  const positions = integer(json, 'max_position_embeddings');
  const original = originalContext(json, parameters);
  const factor = number(parameters, 'factor', positions / original);
  const inferred = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
  return { kind: 'longrope', short, long, originalContext: original, attentionFactor: given ?? inferred };
}

/** Reads one positive factor for every rotated pair. */
function ropeFactors(parameters: Json, field: string, rotary: number): readonly number[] {
  const factors = parameters[field];
  const isFactors = (value: unknown): value is readonly number[] => Array.isArray(value) && value.length === rotary / 2 && value.every((factor) => typeof factor === 'number' && factor > 0); // prettier-ignore
  if (isFactors(factors)) return factors;
  throw new EngineError('invalid_model', `config.json: ${field} of the rotary embedding is ${describe(factors)}, expected ${rotary / 2} positive numbers`); // prettier-ignore
}
