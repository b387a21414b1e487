import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Variant } from '../gpu/kernel.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import { TEXEL_ROW } from '../gpu/tensor.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { avoids } from './replaceable.ts';
import { reserveTexels, texelsOf } from './texels.ts';
import { isQuad } from './weight-place.ts';

const PARAMS = {
  queries: 'u32', keys: 'u32', q_stride4: 'u32', q_column4: 'u32', k_stride4: 'u32', k_column4: 'u32', v_stride4: 'u32', v_column4: 'u32',
  out_stride4: 'u32', d4: 'u32', lanes: 'u32', scale: 'f32',
} as const; // prettier-ignore

const rowFragments = ({ subgroups }: Variant): readonly string[] => [
  subgroups ? 'lib/lanes_subgroup.wgsl' : 'lib/lanes.wgsl',
  'lib/dense_rows.wgsl',
];

export const DENSE_ATTENTION = defineKernel({
  file: 'attention/dense.wgsl',
  fragments: (v) => ['lib/keys_buffer.wgsl', ...rowFragments(v)],
  bindings: { q: 'read', k: 'read', v: 'read', tiles: 'read', out: 'write' },
  params: { ...PARAMS, tiled: 'u32' },
  consts: ['LANES'],
});

/** DENSE_ATTENTION for keys and values in a texture, where `k` and `v` are columns of one tensor. */
export const DENSE_ATTENTION_TEXELS = defineKernel({
  file: 'attention/dense_texels.wgsl',
  fragments: (v) => ['lib/keys_texture.wgsl', ...rowFragments(v)],
  bindings: { q: 'read', k: 'texels', tiles: 'read', out: 'write' },
  params: { ...PARAMS, tiled: 'u32' },
  consts: ['LANES'],
});

/**
 * Attention within one sequence on SIMD-quad adapters. Tiles of a few rows take DENSE_ATTENTION everywhere, which gives a row the same bits
 * in a tile of any size.
 */
export const DENSE_ATTENTION_QUAD = defineKernel({
  file: 'attention/dense_quad.wgsl',
  fragments: () => ['lib/quad.wgsl'],
  bindings: { q: 'read', k: 'read', v: 'read', out: 'write' },
  params: PARAMS,
  consts: ['D4'],
});
/** Queries per workgroup of DENSE_ATTENTION_QUAD. */
const QUAD_QUERIES = 16;

/** Attention within one sequence, for heads of `BROADCAST.d4` vec4s, which every published Whisper has. */
export const DENSE_ATTENTION_BROADCAST = defineKernel({
  file: 'attention/dense_broadcast.wgsl',
  bindings: { q: 'texels', k: 'texels', v: 'texels', out: 'write' },
  params: PARAMS,
  consts: ['LANES', 'D4'],
});
/** Queries per workgroup: three SIMD registers of lanes. */
const BROADCAST = { lanes: 8, d4: 16, queries: 24 } as const;

/** Columns of a tensor that hold the vectors of all heads, e.g. the keys in a merged projection [T, 3 C]. */
export interface HeadColumns {
  readonly tensor: Tensor;
  /** First column; default 0. */
  readonly column?: number;
}

export interface DenseAttentionArgs {
  /** [T, >= H D] f32. */
  readonly q: HeadColumns;
  /** [S, >= H D] f32. A cache with keys and values side by side may be a texture, where rows come in tiles (cacheInTexels). */
  readonly k: HeadColumns;
  readonly v: HeadColumns;
  /** [T, H D] f32. */
  readonly out: Tensor;
  readonly heads: number;
  /** Channels per head, a multiple of 4. */
  readonly headDim: number;
  readonly over: OneSequence | Tiles;
  /** Factor of the scores; default 1 / sqrt(D). */
  readonly scale?: number;
}

/** One sequence: rows [0, queries) of q attend to rows [0, keys) of k and v. */
export interface OneSequence {
  readonly queries: number;
  readonly keys: number;
}

/** Several sequences, as tiles of rows. Rows of one tile share their keys, which are loaded once for all of them. */
export interface Tiles {
  /** [tiles, 4] u32: first row and number of rows in k and v, first row and number of rows in q; 0 keys leave `out` as it is. */
  readonly tiles: Tensor;
  readonly count: number;
  /** Rows of q in the largest tile, at most `denseTileRows`. A row's result is the same in a larger tile. */
  readonly rows: number;
}

/**
 * Attention of each query to all keys of its sequence, without a causal mask: for encoders, cross-attention, and cached self-attention with
 * one new row per sequence.
 */
export function denseAttention(rec: Recorder, args: DenseAttentionArgs): void {
  const { q, k, v, out, heads, headDim, over, scale = headDim ** -0.5 } = args;
  assert(headDim % 4 === 0, `dense_attention: ${headDim} channels a head, expected a multiple of 4`);
  const stride = ({ tensor, column = 0 }: HeadColumns): number => {
    const columns = tensor.shape.at(-1) ?? 0;
    assert(column % 4 === 0 && columns % 4 === 0 && column + heads * headDim <= columns, `dense_attention: columns of ${tensor.label}`);
    return columns / 4;
  };
  const d4 = headDim / 4;
  const tiled = 'tiles' in over;
  const [queries, keys] = tiled ? [over.rows, 0] : [over.queries, over.keys];
  assert(!tiled || over.rows <= denseTileRows(rec.caps, headDim), `dense_attention: a tile of ${queries} rows`);
  const shape = tileShape(rec.caps, queries, d4);
  const params = {
    queries, keys, q_stride4: stride(q), q_column4: (q.column ?? 0) / 4, k_stride4: stride(k), k_column4: (k.column ?? 0) / 4,
    v_stride4: stride(v), v_column4: (v.column ?? 0) / 4, out_stride4: stride({ tensor: out }), d4, lanes: shape.lanes, scale: scale * Math.LOG2E,
  }; // prettier-ignore
  const bindings = { q: q.tensor, k: k.tensor, v: v.tensor, out };
  if (!tiled && queries > 1 && isQuad(rec.caps) && !avoids(rec.caps, 'dense_quad')) {
    const variant = { consts: { D4: d4 }, subgroups: true };
    rec.dispatch(DENSE_ATTENTION_QUAD, variant, bindings, params, [ceilDiv(queries, QUAD_QUERIES), heads]);
    return;
  }
  const quads = Math.max(queries, keys) * Math.max(params.q_stride4, params.k_stride4, params.v_stride4);
  if (!tiled && queries > shape.lanes && takesBroadcast(rec.caps, d4, quads)) {
    const variant = { consts: { LANES: BROADCAST.lanes, D4: d4 }, subgroups: true };
    const texels = inTexels(rec, { q: q.tensor, k: k.tensor, v: v.tensor }, over);
    rec.dispatch(DENSE_ATTENTION_BROADCAST, variant, { ...texels, out }, params, [ceilDiv(queries, BROADCAST.queries), heads]);
    return;
  }
  const consts = { LANES: shape.lanes, QUERIES: shape.queries, KEYS: shape.keys, D4: d4, SLICES: ceilDiv(d4, shape.queries) };
  const variant = { consts, ...(shape.subgroups ? { subgroups: true } : {}) };
  const [tiles, grid] = tiled
    ? [over.tiles, [1, heads, over.count] as const]
    : [k.tensor, [ceilDiv(queries, shape.queries), heads] as const];
  const given = { ...params, tiled: tiled ? 1 : 0 };
  if (k.tensor.texture === undefined) {
    rec.dispatch(DENSE_ATTENTION, variant, { ...bindings, tiles }, given, grid);
    return;
  }
  assert(k.tensor === v.tensor && tiled, `dense_attention: ${k.tensor.label} is no cache`);
  rec.dispatch(DENSE_ATTENTION_TEXELS, variant, { q: q.tensor, k: k.tensor, tiles, out }, given, grid);
}

/** Whether keys and values [S, 2 C] that tiles attend to are best put into a texture, where every `step` rows begin a row of texels. */
export function cacheInTexels(caps: Caps, shape: readonly [number, number], step: number): boolean {
  const [rows, columns] = shape;
  const isFit = caps.maxTexels >= (rows * columns) / 4 && ((step * columns) / 4) % TEXEL_ROW === 0;
  return isFit && isRegister(caps, 8) && !avoids(caps, 'dense_texels') && !avoids(caps, 'words_texture');
}

/** Whether DENSE_ATTENTION_BROADCAST can serve heads of `d4` vec4s, and a texture can hold the vec4s that it reads of a tensor. */
function takesBroadcast(caps: Caps, d4: number, quads: number): boolean {
  return d4 === BROADCAST.d4 && isRegister(caps, BROADCAST.lanes) && caps.maxTexels >= 2 * quads && !avoids(caps, 'dense_broadcast');
}

/** Allocates the textures that attention uses, for `rows` of a merged projection [rows, 3 H D]. */
export function reserveDense(device: Device, { rows, heads, headDim }: { rows: number; heads: number; headDim: number }): void {
  const columns = 3 * heads * headDim;
  if (takesBroadcast(device.caps, headDim / 4, (rows * columns) / 4)) reserveTexels(device, QUERIES, rows * columns);
}

/** Label of the texture for the queries, and for keys and values that are columns of the same tensor. */
const QUERIES = 'queries in texels';

/** Copies queries, keys and values to textures: to one, where they are columns of one tensor. */
function inTexels(
  rec: Recorder,
  { q, k, v }: Record<'q' | 'k' | 'v', Tensor>,
  { queries, keys }: OneSequence,
): Record<'q' | 'k' | 'v', Tensor> {
  const rowsOf = (tensor: Tensor): number => Math.max(tensor === q ? queries : 0, tensor === k || tensor === v ? keys : 0);
  const queried = texelsOf(rec, QUERIES, q, rowsOf(q));
  const keyed = k === q ? queried : texelsOf(rec, 'keys in texels', k, rowsOf(k));
  return { q: queried, k: keyed, v: v === q ? queried : v === k ? keyed : texelsOf(rec, 'values in texels', v, rowsOf(v)) };
}

interface TileShape {
  readonly lanes: number;
  readonly queries: number;
  readonly keys: number;
  readonly subgroups: boolean;
}

/** Most rows of q per tile. */
export function denseTileRows(caps: Caps, headDim: number): number {
  return tileShape(caps, Infinity, headDim / 4).queries;
}

/** Whether a subgroup is a SIMD register of this many lanes. */
function isRegister({ family, subgroups, subgroupMinSize, subgroupMaxSize }: Caps, lanes: number): boolean {
  return family === 'cpu' && subgroups && subgroupMinSize === lanes && subgroupMaxSize === lanes;
}

function tileShape(caps: Caps, queries: number, d4: number): TileShape {
  const lanes = caps.subgroupMinSize;
  if (caps.family === 'cpu') {
    // Keys per step are the same for one query as for several, because the order of a row's sums depends on it.
    if (!avoids(caps, 'lanes_subgroup') && (isRegister(caps, 8) || isRegister(caps, 4)))
      return { lanes, queries: queries > 1 ? lanes : 1, keys: lanes === 8 ? 4 : 1, subgroups: true };
    return { lanes: 8, queries: queries > 1 ? 8 : 1, keys: 1, subgroups: false };
  }
  // Wide heads in tiles of 8 queries would not fit the 16 KiB of workgroup memory that WebGPU promises.
  return { lanes: Math.max(32, d4), queries: queries === 1 ? 1 : d4 > 16 ? 4 : 8, keys: 1, subgroups: false };
}

const WG = 64;

export const DENSE_STORE = defineKernel({
  file: 'attention/dense_store.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'read', slots: 'read', cache: 'update' },
  params: { rows: 'u32', c4: 'u32', x_stride4: 'u32', x_column4: 'u32' },
  overrides: { WG: 'u32' },
});

export interface DenseStoreArgs {
  /** [T, >= column + C] f32. */
  readonly x: Tensor;
  /** First column of x that is stored. */
  readonly column: number;
  /** [T] u32: row of the cache for each row of x. */
  readonly slots: Tensor;
  /** [S, C] f32. */
  readonly cache: Tensor;
  readonly rows: number;
}

/** cache[slots[t]] = x[t, column..column + C]. */
export function denseStore(rec: Recorder, { x, column, slots, cache, rows }: DenseStoreArgs): void {
  const columns = cache.shape.at(-1) ?? 0;
  const stride = x.shape.at(-1) ?? 0;
  assert(columns % 4 === 0 && stride % 4 === 0 && column % 4 === 0 && column + columns <= stride, `dense_store: columns of ${x.label}`);
  const params = { rows, c4: columns / 4, x_stride4: stride / 4, x_column4: column / 4 };
  rec.dispatch(DENSE_STORE, { overrides: { WG } }, { x, slots, cache }, params, [ceilDiv((rows * columns) / 4, WG)]);
}
