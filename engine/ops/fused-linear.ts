/** Products with what stands before and behind them in a decoder's layer, in one dispatch where the adapter has a kernel for that. */
import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { isBlockType } from '../weights/storage.ts';
import { ceilDiv } from '../util/math.ts';
import { ACTIVATIONS, gateMul } from './activation.ts';
import type { Activation } from './activation.ts';
import { REREAD_BYTES, fewRows, fewRowsFragments, isSplit, rereadBytes } from './few-rows.ts';
import type { FewRows } from './few-rows.ts';
import { linear } from './linear.ts';
import { takesMatrices } from './linear-matrix.ts';
import type { PromptRows } from './linear-matrix.ts';
import { linearNormed, takesMany } from './linear-normed.ts';
import { rmsNorm } from './norm.ts';
import type { SplitShape } from './product-shapes.ts';
import { reduceRowsFragment, reduceVariant, reduceWithin } from './reduce.ts';
import { avoids } from './replaceable.ts';
import type { LinearPart, LinearWeight } from './weight.ts';

export const LINEAR_FUSED = defineKernel({
  file: 'linear/linear_fused.wgsl',
  fragments: (v) => [...fewRowsFragments(v), ...groupsFragments(v), 'lib/activation.wgsl'],
  consts: ['ROWS', 'COLUMN_GROUPS'],
  bindings: { x: 'read', norm: 'read', weight: 'read', bias: 'read', out: 'write' },
  params: {
    m: 'u32',
    n: 'u32',
    n_weight: 'u32',
    k4: 'u32',
    out_stride: 'u32',
    out_column: 'u32',
    bias_column: 'u32',
    tiles: 'u32',
    eps: 'f32',
  },
  overrides: { ACTIVATION: 'u32', HAS_BIAS: 'bool', HAS_NORM: 'bool', GATED: 'bool' },
});

/** The fragments of kernels that make norms of their rows and whole groups of columns. */
export function groupsFragments(v: Variant): readonly string[] {
  const groups = isSplit(v) ? [reduceRowsFragment(v), 'lib/groups_split.wgsl'] : ['lib/reduce_rows_lanes.wgsl', 'lib/groups_rows.wgsl'];
  return [...groups, v.consts?.['HELD'] ? 'lib/normed_lanes.wgsl' : 'lib/normed_rows.wgsl'];
}

/** What a half of a layer reads: rows of the residual stream, behind an RMS norm where there is one. */
export interface NormedRows {
  /** [T, C] f32. */
  readonly x: Tensor;
  /** [C] f32; absent = x is read as it is. */
  readonly norm: Tensor | undefined;
  readonly eps: number;
  /** [T, C] f32: takes the normed rows where they have to stand somewhere. */
  readonly normed: Tensor;
}

/** The rows behind their norm, as a tensor. */
export function normedRows(rec: Recorder, { x, norm, eps, normed }: NormedRows, rows: number): Tensor {
  if (!norm) return x;
  rmsNorm(rec, { x, weight: norm, out: normed, eps, rows });
  return normed;
}

export interface NormedLinearArgs extends PromptRows {
  readonly input: NormedRows;
  readonly weight: LinearWeight;
  /** [N] f32. */
  readonly bias?: Tensor | undefined;
  /** [T, N] f32. */
  readonly out: Tensor;
  /** Of a GPU's workgroups; default: as fewRows chooses. */
  readonly shape?: SplitShape | undefined;
}

/** out = norm(x) W^T + bias, with the bits of rmsNorm and linear. */
export function normedLinear(rec: Recorder, { input, weight, bias, out, rows, promptFrom, shape }: NormedLinearArgs): void {
  const whole = input.norm && !takesMatrices(rec.caps, weight, { rows, promptFrom });
  if (whole && takesMany(rec.caps, { ...input, weight, rows })) {
    linearNormed(rec, { ...input, weight, bias, out, rows });
    return;
  }
  const fused = whole && !avoids(rec.caps, 'linear_fused') && fusedParts(rec.caps, input, weight, rows, { shape });
  if (!fused || hasNormApart(input, fused, rows)) {
    linear(rec, { x: normedRows(rec, input, rows), weight, bias, out, rows, promptFrom });
    return;
  }
  for (const { part, few } of fused) dispatch(rec, { input, part, few, bias, out, rows });
}

export interface GatedLinearArgs extends Omit<NormedLinearArgs, 'bias'> {
  /** Gates, then as many ups: [2 I, C]. */
  readonly weight: LinearWeight;
  readonly activation: Activation;
  /** [T, 2 I] f32: takes what the product makes where it has to stand somewhere. */
  readonly gateUp: Tensor;
  /** [T, I] f32. */
  readonly out: Tensor;
}

/** out = act(gates of norm(x)) * ups of norm(x), with the bits of rmsNorm, linear and gateMul. */
export function gatedLinear(rec: Recorder, { input, weight, activation, gateUp, out, rows, promptFrom, shape }: GatedLinearArgs): void {
  const whole = weight.parts.length === 1 && weight.outFeatures % 8 === 0 && !takesMatrices(rec.caps, weight, { rows, promptFrom });
  if (whole && takesMany(rec.caps, { ...input, weight, rows })) {
    linearNormed(rec, { ...input, weight, activation, out, rows });
    return;
  }
  const fused = whole && !avoids(rec.caps, 'linear_fused') && fusedParts(rec.caps, input, weight, rows, { shape });
  if (!fused || hasNormApart(input, fused, rows)) {
    linear(rec, { x: normedRows(rec, input, rows), weight, out: gateUp, rows, promptFrom });
    gateMul(rec, { gateUp, out, activation, rows });
    return;
  }
  for (const { part, few } of fused) dispatch(rec, { input, part, few, activation, out, rows });
}

/** Rows up to which large matrices do more with their sums in one dispatch: `linear` has ways with more columns an invocation, which share what is read of more rows. */
const FUSED_ROWS = 4;

/** Whether dispatches for the norm and for what comes behind the product cost less than each workgroup making the norm anew. */
export function hasNormApart({ x, norm }: NormedRows, parts: readonly FusedPart[], rows: number): boolean {
  if (!norm || rows <= FUSED_ROWS) return false;
  const k4 = (x.shape.at(-1) ?? 0) / 4;
  return parts.some(({ part, few }) => isSplit(few.variant) && rereadBytes(few, part.count, rows, k4) > REREAD_BYTES);
}

interface FusedPart {
  readonly part: LinearPart;
  readonly few: FewRows;
}

/** How a GPU's workgroups make what is fused, where not as usual. */
export interface FusedWay {
  readonly shape?: SplitShape | undefined;
  /** Columns that a workgroup keeps; default those of the shape. */
  readonly held?: number | undefined;
}

/** The parts of a weight with the kernel for so few rows of each; undefined where one has none. */
export function fusedParts(
  caps: Caps,
  { x, norm }: NormedRows,
  { inFeatures, parts }: LinearWeight,
  rows: number,
  { shape, held }: FusedWay = {},
): FusedPart[] | undefined {
  const columns = x.shape.at(-1) ?? 0;
  assert(
    inFeatures === columns && (norm?.size ?? columns) === columns,
    `fused product: ${x.label} has ${columns} columns, weight ${inFeatures}`,
  );
  // An invocation that keeps what it made has sums over a subgroup only.
  const cannot = caps.family === 'cpu' && !reduceVariant(caps, columns).variant.subgroups;
  if (rows === 0 || columns % 4 !== 0 || cannot) return undefined;
  const found: FusedPart[] = [];
  for (const part of parts) {
    const few = fewRows(caps, part, { rows, k4: columns / 4, count: part.count, shape });
    if (!few || few.sharedBytes + 4 * few.rows * (held ?? few.columns) > caps.maxWorkgroupBytes) return undefined;
    found.push({ part, few });
  }
  return found;
}

interface Fused {
  readonly input: NormedRows;
  readonly part: LinearPart;
  readonly few: FewRows;
  readonly bias?: Tensor | undefined;
  /** The product is of gates and ups. */
  readonly activation?: Activation;
  readonly out: Tensor;
  readonly rows: number;
}

/** Columns that a workgroup holds at a time where a subgroup is a SIMD register: two groups of GROUP. */
const TILE_COLUMNS = 64;
const GROUP = 32;
/** Workgroups below which a software adapter's tiles have one each: it has a few cores. */
const FEW_WORKGROUPS = 16;
/** Quads that an invocation holds of a normed row (lib/normed_lanes.wgsl). */
export const HELD = 64;
/** Columns that share one norm at most. */
const MOST_COLUMNS = 512;

function dispatch(rec: Recorder, { input, part, few, bias, activation, out, rows }: Fused): void {
  const { x, norm, eps } = input;
  const columns = x.shape.at(-1) ?? 0;
  const { weight, first, count, padded } = part;
  const gated = activation !== undefined;
  const group = isSplit(few.variant) ? few.columns / 2 : GROUP;
  const held = isSplit(few.variant) ? few.columns : tileColumns(part, gated);
  const all = ceilDiv(count, held);
  const tiles = rec.caps.family === 'cpu' ? Math.min(MOST_COLUMNS / held, Math.max(1, Math.floor(all / FEW_WORKGROUPS))) : 1;
  const params = {
    m: rows,
    n: count,
    n_weight: padded,
    k4: columns / 4,
    out_stride: out.shape.at(-1) ?? 0,
    out_column: first,
    bias_column: first,
    tiles,
    eps,
  };
  const overrides = { ACTIVATION: ACTIVATIONS[activation ?? 'none'], HAS_BIAS: bias ? 1 : 0, HAS_NORM: norm ? 1 : 0, GATED: gated ? 1 : 0 };
  const bindings = { x, norm: norm ?? x, weight, bias: bias ?? x, out };
  const variant = normVariant(rec.caps, few, columns);
  const holds = norm && tiles > 1 && canHold(part, few, columns);
  const consts = { ...variant.consts, COLUMN_GROUPS: held / group, ...(holds && { HELD }) };
  rec.dispatch(LINEAR_FUSED, { ...variant, consts, overrides }, bindings, params, [ceilDiv(all, tiles), 1]);
}

/** Of a texture gates fill one stream of words, then ups another, where that leaves enough workgroups. */
function tileColumns({ place, count }: LinearPart, gated: boolean): number {
  const twice = 2 * TILE_COLUMNS;
  return gated && place === 'texture' && count >= FEW_WORKGROUPS * twice ? twice : TILE_COLUMNS;
}

/** Whether invocations can hold their rows, and should where a workgroup has several tiles: floats, whose weights are more to load than the row, gain nothing. */
export function canHold({ dtype }: LinearPart, { wg }: FewRows, columns: number): boolean {
  return isBlockType(dtype) && columns / 4 <= HELD * wg;
}

/** The variant of a kernel that makes norms of its rows before it multiplies: the sum in the order of rmsNorm's workgroup, which may be smaller than its own. */
export function normVariant(caps: Caps, few: FewRows, columns: number): FewRows['variant'] {
  const { wg, variant } = reduceVariant(caps, columns);
  const reduced = variant.subgroups ? reduceWithin(caps, few.wg) : {};
  return { ...few.variant, ...reduced, consts: { ...few.variant.consts, ...reduced.consts, NORM_LANES: wg } };
}
