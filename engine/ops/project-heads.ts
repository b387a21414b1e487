/**
 * Projects a few rows of the residual stream to heads of queries, keys and values, and stores keys and values in their pages, in one
 * dispatch where the adapter has a kernel for that.
 */
import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { BindingsOf, Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { fewRowsFragments, isSplit } from './few-rows.ts';
import type { FewRows } from './few-rows.ts';
import { HELD, canHold, fusedParts, groupsFragments, normVariant } from './fused-linear.ts';
import type { NormedRows } from './fused-linear.ts';
import { kvFragment, pagesVariant, storeFragment } from './kv.ts';
import type { RopeKVStoreArgs } from './kv.ts';
import { takesMatrices } from './linear-matrix.ts';
import type { PromptRows } from './linear-matrix.ts';
import { manyRows, takesMany } from './linear-normed.ts';
import { wholeHeadShape } from './product-shapes.ts';
import type { SplitShape } from './product-shapes.ts';
import { reduceVariant } from './reduce.ts';
import { avoids } from './replaceable.ts';
import { weightFragments } from './weight.ts';
import type { LinearWeight } from './weight.ts';

export const PROJECT_HEADS = defineKernel({
  file: 'kv/project_heads.wgsl',
  fragments: (v) => [...fewRowsFragments(v), ...groupsFragments(v), 'lib/head_squares.wgsl', ...placesFragments(v)],
  consts: ['ROWS', 'D8', 'HEAD_LANES', 'HEAD_PARTS'],
  bindings: {
    x: 'read',
    norm: 'read',
    weight: 'read',
    of_heads: 'read',
    cos_sin: 'read',
    positions: 'read',
    slots: 'read',
    q: 'write',
    k_pages: 'update',
    v_pages: 'update',
  },
  params: { m: 'u32', n_weight: 'u32', k4: 'u32', heads: 'u32', kv_heads: 'u32', first_head: 'u32', each: 'u32', eps: 'f32' },
  overrides: { HAS_NORM: 'bool', HAS_BIAS: 'bool', HAS_HEAD_NORM: 'bool' },
});

export const PROJECT_HEADS_MANY = defineKernel({
  file: 'kv/project_heads_many.wgsl',
  fragments: (v) => [
    ...weightFragments(v, 4),
    'lib/reduce_lanes.wgsl',
    'lib/held_rows.wgsl',
    ...placesFragments(v),
  ],
  consts: ['LANES', 'D8'],
  bindings: { x: 'read', norm: 'read', weight: 'read', bias: 'read', cos_sin: 'read', positions: 'read', slots: 'read', q: 'write', k_pages: 'update', v_pages: 'update' },
  params: { m: 'u32', n: 'u32', n_weight: 'u32', k4: 'u32', heads: 'u32', kv_heads: 'u32', first_head: 'u32', tiles: 'u32', eps: 'f32' },
  overrides: { HAS_NORM: 'bool', HAS_BIAS: 'bool' },
}); // prettier-ignore

function placesFragments(v: Variant): readonly string[] {
  return [kvFragment({ storage: v.consts?.['HALF_PAGES'] ? 'f16' : 'f32' }), 'lib/turned.wgsl', 'lib/rope_store.wgsl', storeFragment(v)];
}

export interface ProjectHeadsArgs extends Omit<RopeKVStoreArgs, 'qkv' | 'rows'>, PromptRows {
  readonly input: NormedRows;
  /** Merged projection [(H + 2 K) D, C], or [H D, C] with `queriesOnly`. */
  readonly weight: LinearWeight;
  /** [(H + 2 K) D]. */
  readonly bias: Tensor | undefined;
  /** [2, D], or [D] with `queriesOnly`: norms of each head of queries and of keys. */
  readonly headNorm: Tensor | undefined;
  /** The shape of a GPU's workgroups where heads have no norms, for the self-test; default: as fewRows chooses. */
  readonly shape?: SplitShape | undefined;
}

/** Channels of a head are two groups of at least 32. */
const HEAD_STEP = 64;

/**
 * Does what normedLinear, qkNorm and ropeKVStore do, with the same bits. Returns false, and records nothing, where no kernel does it at
 * once: for many rows of quantised weights, of many inputs or with norms of heads; for int8 pages (whose scale needs all of a rotated
 * head); with both bias and norms of heads (one binding has either); where a part of the weight ends within a head; on adapters with few
 * bindings.
 */
export function projectHeads(rec: Recorder, args: ProjectHeadsArgs): boolean {
  const { input, weight, bias, headNorm, queriesOnly = false, cosSin, positions, slots, q, kv, layer, heads, rows } = args;
  const { headDim, kvHeads, k, v } = kv.layers[layer]!;
  const { caps } = rec;
  const { x, norm, eps } = input;
  if (takesMatrices(caps, weight, args)) return false;
  const fits =
    headDim % HEAD_STEP === 0 &&
    kv.dtype !== 'int8' &&
    !(bias && headNorm) &&
    caps.maxStorageBuffers >= Object.keys(PROJECT_HEADS.spec.bindings).length;
  // The same fragment sums rows and heads.
  const columns = inputSize(input);
  const subgroups = [headDim, columns].map((size) => reduceVariant(caps, size).variant.subgroups);
  const asHeads = !headNorm || subgroups[0] === subgroups[1];
  const wholeHeads = weight.parts.every(({ first, count }) => first % headDim === 0 && count % headDim === 0);
  const places = { cos_sin: cosSin, positions, slots, q, k_pages: k, v_pages: v };
  const pages = { D8: headDim / 8, PAGE: kv.pageSize, HALF_PAGES: kv.dtype === 'f16' ? 1 : 0 };
  assert(
    weight.outFeatures === (heads + (queriesOnly ? 0 : 2 * kvHeads)) * headDim,
    `project_heads: ${weight.outFeatures} columns for ${heads} over ${kvHeads} heads`,
  );
  if (fits && wholeHeads && !headNorm && takesMany(caps, { x, weight, rows }) && !avoids(caps, 'project_heads_many')) {
    projectMany(rec, args, places, pages);
    return true;
  }
  // On a GPU a workgroup computes a part of a head, or all of it where a norm needs that.
  const options = headNorm && caps.family !== 'cpu' ? { shape: wholeHeadShape(rows, headDim), held: headDim } : { shape: args.shape };
  const fused =
    fits && wholeHeads && asHeads && !avoids(caps, 'project_heads') ? fusedParts(caps, input, weight, rows, options) : undefined;
  if (!fused) return false;
  const overrides = { HAS_NORM: norm ? 1 : 0, HAS_BIAS: bias ? 1 : 0, HAS_HEAD_NORM: headNorm ? 1 : 0 };
  for (const { part, few } of fused) {
    const all = part.count / headDim;
    const each = norm && canHold(part, few, columns) ? sharedHeads(caps, all) : 1;
    const variant = normVariant(caps, few, columns);
    const held = each > 1 ? { HELD } : {};
    const own = {
      ...held,
      ...pages,
      HEAD_LANES: reduceVariant(caps, headDim).wg,
      HEAD_PARTS: headNorm ? 1 : headParts(few, headDim),
    };
    const bindings = { x, norm: norm ?? x, weight: part.weight, of_heads: bias ?? headNorm ?? x, ...places };
    const sizes = { m: rows, n_weight: part.padded, k4: columns / 4, heads, kv_heads: kvHeads };
    const params = { ...sizes, first_head: part.first / headDim, each, eps };
    rec.dispatch(
      PROJECT_HEADS,
      { ...variant, consts: { ...variant.consts, ...own }, overrides, ...pagesVariant({ k }) },
      bindings,
      params,
      [(all / each) * own.HEAD_PARTS, 1],
    );
  }
  return true;
}

type Places = Pick<BindingsOf<typeof PROJECT_HEADS.spec>, 'cos_sin' | 'positions' | 'slots' | 'q' | 'k_pages' | 'v_pages'>;

function projectMany(
  rec: Recorder,
  { input, weight, bias, kv, layer, heads, rows }: ProjectHeadsArgs,
  places: Places,
  pages: Readonly<Record<string, number>>,
): void {
  const { x, norm, eps } = input;
  const { kvHeads, headDim } = kv.layers[layer]!;
  const overrides = { HAS_NORM: norm ? 1 : 0, HAS_BIAS: bias ? 1 : 0 };
  for (const part of weight.parts) {
    const { tiles, workgroups, variant } = manyRows(rec.caps, part, rows);
    const sizes = { m: rows, n: part.count, n_weight: part.padded, k4: inputSize(input) / 4, heads, kv_heads: kvHeads };
    const params = { ...sizes, first_head: part.first / headDim, tiles, eps };
    const own = { ...variant, consts: { ...variant.consts, ...pages }, overrides, ...pagesVariant(kv.layers[layer]!) };
    const bindings = { x, norm: norm ?? x, weight: part.weight, bias: bias ?? x, ...places };
    rec.dispatch(PROJECT_HEADS_MANY, own, bindings, params, workgroups);
  }
}

const inputSize = ({ x }: NormedRows): number => x.shape.at(-1) ?? 0;

/** With fewer workgroups than this, each head has one: software adapters deal them out to a few threads, all at once. */
const FEW_WORKGROUPS = 8;
/** A multiple of this many workgroups is shared evenly by those threads. */
const EVEN = 4;

/** Number of workgroups that share a head. */
function headParts(few: FewRows, headDim: number): number {
  return isSplit(few.variant) ? headDim / few.columns : 1;
}

/** Number of heads that share the norm of their rows. */
function sharedHeads(caps: Caps, all: number): number {
  if (caps.family !== 'cpu') return 1;
  let each = Math.max(1, Math.floor(all / FEW_WORKGROUPS));
  while (each > 1 && (all % each !== 0 || (all / each) % EVEN !== 0)) each--;
  return each;
}
