/** Products fused with the norm before them and the gate after them, in one dispatch where the adapter has a kernel for that. */
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
import type { ManyRowsArgs } from './linear-normed.ts';
import { layerNorm, rmsNorm } from './norm.ts';
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

/** The fragments of kernels that norm their rows and compute whole groups of columns. */
export function groupsFragments(v: Variant): readonly string[] {
  const groups = isSplit(v) ? [reduceRowsFragment(v), 'lib/groups_split.wgsl'] : ['lib/reduce_rows_lanes.wgsl', 'lib/groups_rows.wgsl'];
  return [...groups, v.consts?.['HELD'] ? 'lib/normed_lanes.wgsl' : 'lib/normed_rows.wgsl'];
}

/** The input of half a layer: rows of the residual stream, and the RMS norm that they still have to pass. */
export interface NormedRows {
  /** [T, C] f32. */
  readonly x: Tensor;
  /** [C] f32; absent = x is read as it is. */
  readonly norm: Tensor | undefined;
  readonly eps: number;
  /** [T, C] f32, scratch: takes the normed rows where nothing is fused. */
  readonly normed: Tensor;
}

/** The normed rows as a tensor: x itself where there is no norm. */
export function normedRows(rec: Recorder, { x, norm, eps, normed }: NormedRows, rows: number): Tensor {
  if (!norm) return x;
  rmsNorm(rec, { x, weight: norm, out: normed, eps, rows });
  return normed;
}

/**
 * The input of half a layer. A norm with a `shift` [C] is a layer norm, which no product is fused with: it is computed here, into `normed`.
 */
export function behindNorm(rec: Recorder, input: NormedRows, shift: Tensor | undefined, rows: number): NormedRows {
  const { x, norm, eps, normed } = input;
  if (!norm || !shift) return input;
  layerNorm(rec, { x, weight: norm, bias: shift, out: normed, eps, rows });
  return { ...input, x: normed, norm: undefined };
}

export interface NormedLinearArgs extends PromptRows {
  readonly input: NormedRows;
  readonly weight: LinearWeight;
  /** [N] f32. */
  readonly bias?: Tensor | undefined;
  /** [T, N] f32. */
  readonly out: Tensor;
  /** The shape of a GPU's workgroups, for the self-test; default: as fewRows chooses. */
  readonly shape?: SplitShape | undefined;
}

/** out = norm(x) W^T + bias, with the bits of rmsNorm and linear. */
export function normedLinear(rec: Recorder, { input, weight, bias, out, rows, promptFrom, shape }: NormedLinearArgs): void {
  const mayFuse = input.norm !== undefined && !takesMatrices(rec.caps, weight, { rows, promptFrom });
  if (mayFuse && fusedLinear(rec, { input, weight, bias, out, rows, shape })) return;
  linear(rec, { x: normedRows(rec, input, rows), weight, bias, out, rows, promptFrom });
}

export interface GatedLinearArgs extends NormedLinearArgs {
  /** Gates, then as many ups: [2 I, C]. */
  readonly weight: LinearWeight;
  readonly activation: Activation;
  /** [T, 2 I] f32, scratch: takes the product where nothing is fused. */
  readonly gateUp: Tensor;
  /** [T, I] f32. */
  readonly out: Tensor;
}

/** out = act(gates of norm(x)) * ups of norm(x), with the bits of rmsNorm, linear and gateMul. */
export function gatedLinear(rec: Recorder, args: GatedLinearArgs): void {
  const { input, weight, bias, activation, gateUp, out, rows, promptFrom, shape } = args;
  // No fused kernel has biases of gates and ups, which few models have.
  const isWhole = !bias && weight.parts.length === 1 && weight.outFeatures % 8 === 0;
  const mayFuse = isWhole && !takesMatrices(rec.caps, weight, { rows, promptFrom });
  if (mayFuse && fusedLinear(rec, { input, weight, activation, out, rows, shape })) return;
  linear(rec, { x: normedRows(rec, input, rows), weight, bias, out: gateUp, rows, promptFrom });
  gateMul(rec, { gateUp, out, activation, rows });
}

/** With an activation, the weight is gates and ups. */
type FusedLinearArgs = Omit<NormedLinearArgs, 'promptFrom'> & Pick<ManyRowsArgs, 'activation'>;

/**
 * Records a dispatch for each part of the weight; false, and nothing recorded, where the adapter has no kernel for this product or is
 * faster without.
 */
function fusedLinear(rec: Recorder, { input, weight, bias, activation, out, rows, shape }: FusedLinearArgs): boolean {
  if (takesMany(rec.caps, { ...input, weight, rows })) {
    linearNormed(rec, { ...input, weight, bias, activation, out, rows });
    return true;
  }
  const fused = avoids(rec.caps, 'linear_fused') ? undefined : fusedParts(rec.caps, input, weight, rows, { shape });
  for (const part of fused ?? []) dispatch(rec, part, { input, bias, activation, out, rows });
  return fused !== undefined;
}

/**
 * Rows up to which a product is fused whatever its workgroups read again. With more, `linear` has faster shapes for a large matrix: more
 * columns share a load of x.
 */
const FUSED_ROWS = 4;

/** A part of a weight, and the tile that fuses its product. */
interface FusedPart {
  readonly part: LinearPart;
  readonly few: FewRows;
}

/** A kernel's requirements of a GPU's workgroups, where the defaults do not suit it. */
interface FusedOptions {
  readonly shape?: SplitShape | undefined;
  /** Columns of results that a workgroup keeps in its memory; default: those of the shape. */
  readonly held?: number | undefined;
}

/**
 * The parts of a weight, each with its tile. Undefined where the adapter has no tile for one of them, or where a dispatch for the norm
 * costs less than every workgroup norming the rows for itself.
 */
export function fusedParts(
  caps: Caps,
  { x, norm }: NormedRows,
  { inFeatures, parts }: LinearWeight,
  rows: number,
  { shape, held }: FusedOptions = {},
): FusedPart[] | undefined {
  const columns = x.shape.at(-1) ?? 0;
  assert(
    inFeatures === columns && (norm?.size ?? columns) === columns,
    `fused product: ${x.label} has ${columns} columns, weight ${inFeatures}`,
  );
  // On software adapters invocations keep their own results, so sums of them go over a subgroup.
  const cannot = caps.family === 'cpu' && !reduceVariant(caps, columns).variant.subgroups;
  if (rows === 0 || columns % 4 !== 0 || cannot) return undefined;
  const found: FusedPart[] = [];
  for (const part of parts) {
    const size = { rows, k4: columns / 4, count: part.count };
    const few = fewRows(caps, part, size, shape);
    if (!few || few.sharedBytes + 4 * few.rows * (held ?? few.columns) > caps.maxWorkgroupBytes) return undefined;
    if (norm && rows > FUSED_ROWS && isSplit(few.variant) && rereadBytes(few.columns, size) > REREAD_BYTES) return undefined;
    found.push({ part, few });
  }
  return found;
}

/** Columns of a tile where a subgroup is a SIMD register: two groups of GROUP. */
const TILE_COLUMNS = 64;
const GROUP = 32;
/** Workgroups that a software adapter's few cores need before one of them gets several tiles. */
const FEW_WORKGROUPS = 16;
/** Quads that an invocation holds of a normed row (lib/normed_lanes.wgsl). */
export const HELD = 64;
/** The most columns that share one norm. */
const MOST_COLUMNS = 512;

function dispatch(
  rec: Recorder,
  { part, few }: FusedPart,
  { input, bias, activation, out, rows }: Omit<FusedLinearArgs, 'weight' | 'shape'>,
): void {
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

/**
 * Columns of a tile on a software adapter. From a texture, a tile of twice as many reads its gates as one stream of words and its ups as
 * another, if that leaves enough workgroups.
 */
function tileColumns({ place, count }: LinearPart, gated: boolean): number {
  const twice = 2 * TILE_COLUMNS;
  return gated && place === 'texture' && count >= FEW_WORKGROUPS * twice ? twice : TILE_COLUMNS;
}

/**
 * Whether invocations can hold their normed rows for several tiles, and gain by it. Float weights gain nothing: they are more to load than
 * the rows.
 */
export function canHold({ dtype }: LinearPart, { wg }: FewRows, columns: number): boolean {
  return isBlockType(dtype) && columns / 4 <= HELD * wg;
}

/**
 * The variant of a kernel that norms its rows before it multiplies. It sums squares in the order of rmsNorm's workgroup, which may be
 * smaller than its own.
 */
export function normVariant(caps: Caps, few: FewRows, columns: number): FewRows['variant'] {
  const { wg, variant } = reduceVariant(caps, columns);
  const reduced = variant.subgroups ? reduceWithin(caps, few.wg) : {};
  return { ...few.variant, ...reduced, consts: { ...few.variant.consts, ...reduced.consts, NORM_LANES: wg } };
}
