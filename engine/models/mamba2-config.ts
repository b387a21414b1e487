/** Reads the sizes of Mamba 2 layers, whose fields families name differently. */
import { EngineError } from '../errors.ts';
import { describe } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import { convTaps, expectValue, integer } from './config-fields.ts';
import type { Mamba2Config } from './layers/mamba2.ts';

type Size = 'heads' | 'headDim' | 'groups' | 'stateDim' | 'taps';

/** By size, its field's name and default. */
export type Mamba2Fields = Readonly<Record<Size, readonly [field: string, fallback: number]>>;

/** The fields of Bamba (transformers), which Granite 4 and Falcon-H1 share, but for the head's size. */
export const BAMBA = {
  heads: ['mamba_n_heads', 128],
  groups: ['mamba_n_groups', 1],
  stateDim: ['mamba_d_state', 256],
  taps: ['mamba_d_conv', 4],
} as const;

/** What those fields say of layers of `columns` columns, which `source` gives. Throws EngineError naming the field that is wrong. */
export function bambaConfig(json: Json, columns: number, source: string): Pick<Mamba2Config, Size | 'hasConvBias'> {
  expectValue(json, 'mamba_proj_bias', false);
  expectNoTimeStepLimit(json);
  const perHead = columns / integer(json, ...BAMBA.heads);
  const own = json['mamba_d_head'] === 'auto' ? { ...json, mamba_d_head: perHead } : json;
  const sizes = mamba2Sizes(own, { ...BAMBA, headDim: ['mamba_d_head', perHead] });
  const { heads, headDim } = sizes;
  if (heads * headDim !== columns) throw new EngineError('invalid_model', `config.json: mamba_n_heads is ${heads} and mamba_d_head ${headDim}, expected a product of ${columns}, ${source}`); // prettier-ignore
  return { ...sizes, hasConvBias: json['mamba_conv_bias'] !== false };
}

/** The sizes that `fields` have; throws EngineError naming the field that is wrong. */
export function mamba2Sizes(json: Json, fields: Mamba2Fields): Pick<Mamba2Config, Size> {
  const size = (name: Exclude<Size, 'taps'>): number => integer(json, ...fields[name]);
  const [heads, headDim, groups, stateDim] = [size('heads'), size('headDim'), size('groups'), size('stateDim')];
  const named = (name: Size, value: number): string => `${fields[name][0]} is ${value}`;
  if (heads % groups !== 0) throw new EngineError('invalid_model', `config.json: ${named('heads', heads)}, expected a multiple of ${fields.groups[0]}, ${groups}`); // prettier-ignore
  if (headDim % 4 !== 0 || stateDim % 4 !== 0) throw new EngineError('unsupported', `config.json: ${named('headDim', headDim)} and ${fields.stateDim[0]} ${stateDim}, expected multiples of 4`); // prettier-ignore
  return { heads, headDim, groups, stateDim, taps: convTaps(json, ...fields.taps) };
}

/** Throws EngineError('unsupported') where time steps are clamped; transformers 5 writes infinity, the upper limit, as an object. */
export function expectNoTimeStepLimit(json: Json, field = 'time_step_limit'): void {
  const limit = json[field] ?? null;
  if (limit === null || JSON.stringify(limit) === JSON.stringify([0, { __float__: 'Infinity' }])) return;
  throw new EngineError('unsupported', `config.json: ${field} is ${describe(limit)}, expected 0 and infinity`);
}
