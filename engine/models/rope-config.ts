/** The rotary embedding that a config.json asks for. */
import { EngineError } from '../errors.ts';
import type { RopeConfig, RopeScaling } from '../ops/rope.ts';
import { describe } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import { number, optionalObject } from './config-fields.ts';

/** `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`; where a file has both, they must say the same. */
export function parseRope(json: Json, headDim: number): RopeConfig {
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

/** The same of one object of parameters, `rope_parameters` or one of several in it. */
export function readRope(json: Json, parameters: Json, headDim: number): RopeConfig {
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
  } else if (kind === 'yarn') {
    const by = factor('factor');
    scaling = {
      kind,
      factor: by,
      // Where a file does not say it, the model's own positions are the original ones (transformers, standardize_rope_params).
      originalContext: number(parameters, 'original_max_position_embeddings', number(json, 'max_position_embeddings')),
      betaFast: number(parameters, 'beta_fast', 32),
      betaSlow: number(parameters, 'beta_slow', 1),
      truncate: parameters['truncate'] !== false,
      attentionFactor: yarnAttention(parameters, by),
    };
  } else if (kind === 'longrope') scaling = { kind: 'factors', factors: ropeFactors(parameters, headDim) };
  else if (kind !== 'default') {
    throw new EngineError(
      'unsupported',
      `config.json: rope type ${JSON.stringify(kind)}; known are default, linear, llama3, yarn and longrope`,
    );
  }
  const partial = parameters['partial_rotary_factor'] ?? json['partial_rotary_factor'] ?? 1;
  if (partial !== 1) throw new EngineError('unsupported', `config.json: partial_rotary_factor ${describe(partial)}`);
  return { theta, headDim, scaling };
}

/** What YaRN multiplies rotated queries and keys with, given or as transformers infers it. */
function yarnAttention(parameters: Json, factor: number): number {
  const given = parameters['attention_factor'] ?? undefined;
  if (given !== undefined) return number(parameters, 'attention_factor');
  const scale = (by: number): number => (factor <= 1 ? 1 : 0.1 * by * Math.log(factor) + 1);
  const [mscale, all] = [number(parameters, 'mscale', 0), number(parameters, 'mscale_all_dim', 0)];
  return mscale !== 0 && all !== 0 ? scale(mscale) / scale(all) : scale(1);
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
