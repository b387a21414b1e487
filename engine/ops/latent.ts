/**
 * Multi-head latent attention (DeepSeek-V2, https://arxiv.org/abs/2405.04434) in its absorbed form: one key per token, the latent [R] and P
 * rotated channels, which all heads share and whose latent is their value. What is left per head are two small products.
 */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { PAIRS_PER_TILE, pairLinear } from './experts.ts';
import { kvFragment } from './kv.ts';
import type { KVCache } from './kv.ts';
import { reduceFragment, reduceVariant } from './reduce.ts';
import type { LinearWeight } from './weight.ts';

export const LATENT_QUERIES = defineKernel({
  file: 'kv/latent_queries.wgsl',
  fragments: () => ['lib/turned.wgsl'],
  bindings: { latent: 'read', rotary: 'read', cos_sin: 'read', positions: 'read', q: 'write' },
  params: { heads: 'u32' },
  overrides: { WG: 'u32', R4: 'u32', D8: 'u32' },
});

export const LATENT_STORE = defineKernel({
  file: 'kv/latent_store.wgsl',
  fragments: (v) => ['lib/grid.wgsl', kvFragment(v), reduceFragment(v), 'lib/turned.wgsl'],
  consts: ['PAGE'],
  bindings: { x: 'read', norm: 'read', cos_sin: 'read', positions: 'read', slots: 'read', k_pages: 'update' },
  params: { rows: 'u32', eps: 'f32' },
  overrides: { WG: 'u32', R4: 'u32', D8: 'u32' },
});

const WG = 64;

/** Sizes of a key: the latent's channels, R, and the rotated ones, P. */
export interface LatentSizes {
  readonly rank: number;
  readonly rotary: number;
}

const overridesOf = ({ rank, rotary }: LatentSizes, wg: number) => {
  assert(rank % 4 === 0 && rotary % 8 === 0, `latent keys of ${rank} and ${rotary} channels, expected multiples of 4 and 8`);
  return { WG: wg, R4: rank / 4, D8: rotary / 8 };
};

/** What rotates a row. */
interface Rotation {
  /** From ropeTable, of P channels. */
  readonly cosSin: Tensor;
  /** [T] u32. */
  readonly positions: Tensor;
}

export interface LatentQueriesArgs extends Rotation {
  readonly sizes: LatentSizes;
  /** [T, H R]: the queries in the latent space. */
  readonly latent: Tensor;
  /** [T, H P]: their rotary part, before rotation. */
  readonly rotary: Tensor;
  /** [T, H (R + P)]. */
  readonly q: Tensor;
  readonly heads: number;
  readonly rows: number;
}

/** Rotates queries, and puts both of their parts where attention over latent keys reads them. */
export function latentQueries(rec: Recorder, { sizes, latent, rotary, cosSin, positions, q, heads, rows }: LatentQueriesArgs): void {
  const overrides = overridesOf(sizes, WG);
  const bindings = { latent, rotary, cos_sin: cosSin, positions, q };
  rec.dispatch(LATENT_QUERIES, { overrides }, bindings, { heads }, [ceilDiv(heads * (overrides.R4 + overrides.D8), WG), rows]);
}

export interface LatentStoreArgs extends Rotation {
  readonly sizes: LatentSizes;
  /** [T, R + P]: the latent before its norm, and the key's rotary part before rotation. */
  readonly x: Tensor;
  /** [R]. */
  readonly norm: Tensor;
  readonly eps: number;
  /** [T] u32: page * pageSize + offset, NO_SLOT for padding. */
  readonly slots: Tensor;
  readonly kv: KVCache;
  readonly layer: number;
  readonly rows: number;
}

/** Norms the latents, rotates the keys, and stores both in the layer's pages. */
export function latentStore(rec: Recorder, { sizes, x, norm, eps, cosSin, positions, slots, kv, layer, rows }: LatentStoreArgs): void {
  const { kvHeads, headDim, valuesInKeys, k } = kv.layers[layer]!;
  assert(
    kvHeads === 1 && valuesInKeys === sizes.rank && headDim === sizes.rank + sizes.rotary,
    `latent_store: pages of ${kvHeads} x ${headDim}`,
  );
  const { wg, variant } = reduceVariant(rec.caps, sizes.rank);
  const consts = { PAGE: kv.pageSize, ...variant.consts };
  const bindings = { x, norm, cos_sin: cosSin, positions, slots, k_pages: k };
  rec.dispatch(LATENT_STORE, { ...variant, storage: kv.dtype, consts, overrides: overridesOf(sizes, wg) }, bindings, { rows, eps }, [rows]);
}

/** The heads of the rows of a step in tiles, as those of pairs of rows and experts: they depend on nothing, so they are made once. */
export interface HeadTiles {
  readonly heads: number;
  /** [tiles] u32, and [tiles, PAIRS_PER_TILE] u32. */
  readonly tileHeads: Tensor;
  readonly tilePairs: Tensor;
}

/** Tiles of `rows` rows: of adjacent rows, one for each head. */
function tileCount(heads: number, rows: number): number {
  return ceilDiv(rows, PAIRS_PER_TILE) * heads;
}

/** Makes the tiles of at most `rows` rows. */
export function createHeadTiles(
  upload: (label: string, dtype: 'u32', shape: readonly number[], values: Uint32Array) => Tensor,
  heads: number,
  rows: number,
): HeadTiles {
  const tiles = tileCount(heads, rows);
  const pairOf = (tile: number, i: number): number => (Math.floor(tile / heads) * PAIRS_PER_TILE + i) * heads + (tile % heads);
  const pairs = Uint32Array.from({ length: tiles * PAIRS_PER_TILE }, (_, at) =>
    pairOf(Math.floor(at / PAIRS_PER_TILE), at % PAIRS_PER_TILE),
  );
  return {
    heads,
    tileHeads: upload(
      'tile heads',
      'u32',
      [tiles],
      Uint32Array.from({ length: tiles }, (_, tile) => tile % heads),
    ),
    tilePairs: upload('tile head pairs', 'u32', [tiles, PAIRS_PER_TILE], pairs),
  };
}

export interface HeadLinearArgs {
  /** [T, H K]. */
  readonly x: Tensor;
  /** [H N, K]: the heads' matrices. */
  readonly weight: LinearWeight;
  readonly tiles: HeadTiles;
  /** [T, H N]. */
  readonly out: Tensor;
  readonly rows: number;
}

/** out[t, h] = x[t, h] W[h]^T: a matrix for each head, as for each expert of a row that has all of them. */
export function headLinear(rec: Recorder, { x, weight, tiles: { heads, tileHeads, tilePairs }, out, rows }: HeadLinearArgs): void {
  const n = weight.outFeatures / heads;
  const isAlone = rows === 1;
  const tiles = isAlone ? { count: heads, experts: tileHeads, pairs: undefined } : { count: tileCount(heads, rows), experts: tileHeads, pairs: tilePairs }; // prettier-ignore
  const width = weight.inFeatures;
  assert(x.size % width === 0, `head_linear: ${x.label} [${x.shape.join(', ')}] is not rows of ${width}`);
  const ofPairs = x.reshape([x.size / width, width]);
  pairLinear(rec, { x: ofPairs, width, weight, out, columns: n, pairs: rows * heads, share: 1, held: { from: 0, to: heads }, tiles });
}
