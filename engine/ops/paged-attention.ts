import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { kvFragment, pagesVariant } from './kv.ts';
import type { KVCache } from './kv.ts';
import { lanesOf } from './lanes.ts';

/** Positions whose scores share one maximum and sum; parts are cut at absolute multiples, so a result does not depend on the batch. */
export const ATTENTION_SPLIT = 256;

/**
 * Queries a workgroup works on (rows of a tile x heads of a group), and vectors of four channels it may hold for them in each lane. Measured on
 * lavapipe, head dim 64: 6.6 GFLOP/s with 2 queries, 8.5 with 4, 13.0 with 8; head dim 128 (four vectors a query): 4.8 with 4, 3.9 with 8.
 */
const MAX_QUERIES = 8;
const MAX_VECTORS = 16;

export const PAGED_ATTENTION = defineKernel({
  file: 'attention/paged_attention.wgsl',
  fragments: (v) => [
    kvFragment(v),
    v.textures ? 'lib/pages_texture.wgsl' : 'lib/pages_buffer.wgsl',
    v.subgroups ? 'lib/lanes_subgroup.wgsl' : 'lib/lanes.wgsl',
  ],
  consts: ['PAGE', 'SPLIT', 'LANES', 'D4', 'SLICES', 'GROUP', 'SHARES', 'QUERIES'],
  bindings: { q: 'read', k_pages: 'read', v_pages: 'read', block_table: 'read', tiles: 'read', sinks: 'read', out: 'write' },
  params: {
    first_tile: 'u32',
    heads: 'u32',
    kv_heads: 'u32',
    table_stride: 'u32',
    parts: 'u32',
    scale: 'f32',
    lanes: 'u32',
    window: 'u32',
    soft_cap: 'f32',
    growth: 'f32',
    growth_span: 'u32',
    partial: 'u32',
  },
  overrides: { HAS_CAP: 'bool', HAS_SINK: 'bool' },
});

export const PAGED_ATTENTION_REDUCE = defineKernel({
  file: 'attention/paged_attention_reduce.wgsl',
  consts: ['LANES', 'D4', 'SPLIT'],
  bindings: { partials: 'read', positions: 'read', sinks: 'read', out: 'write' },
  params: { heads: 'u32', parts: 'u32', window: 'u32' },
  overrides: { HAS_SINK: 'bool' },
});

/** Rows of one sequence that a prefill tile holds. */
export function attentionTileRows(caps: Caps, heads: number, kvHeads: number, headDim: number): number {
  const slices = ceilDiv(headDim / 4, lanesOf(caps).lanes);
  const queries = Math.min(MAX_QUERIES, Math.floor(MAX_VECTORS / slices));
  return Math.max(1, Math.floor(queries / (heads / kvHeads)));
}

/** Workgroups that the heads of a group are dealt out to, all alike: as few as hold their vectors. */
function headShares(group: number, slices: number): number {
  let shares = 1;
  while (shares < group && (group % shares !== 0 || (group / shares) * slices > MAX_VECTORS)) shares++;
  return shares;
}

/** A window that nothing lies outside of. */
const ALL_POSITIONS = 0xffffffff;

/** How scores are made of queries and keys. */
export interface AttentionScores {
  /** Default 1 / sqrt(D). */
  readonly scale?: number | undefined;
  /** Scores are cap * tanh(scores / cap) before the softmax (Gemma 2); absent = as they are. */
  readonly softCap?: number | undefined;
  /** A row sees this many positions, the last of which is its own; absent = all. */
  readonly window?: number | undefined;
  /** Scores of a row are multiplied by 1 + rate * ln(1 + floor(its position / span)) (Llama 4, Ministral 3); absent = as they are. */
  readonly growth?: { readonly rate: number; readonly span: number } | undefined;
}

export interface PagedAttentionArgs {
  /** As ropeKVStore leaves them for these pages. */
  readonly q: Tensor;
  readonly kv: KVCache;
  readonly layer: number;
  /** [sequences, stride] u32: page numbers. */
  readonly blockTable: Tensor;
  /** [tiles, 4] u32: first row, rows, sequence, position of the first row. Rows 0 = padding. */
  readonly tiles: Tensor;
  readonly firstTile: number;
  readonly tileCount: number;
  /** Rows a tile may hold: 1 for decode, attentionTileRows for prefill. */
  readonly tileRows: number;
  /** [T, H D]. */
  readonly out: Tensor;
  readonly heads: number;
  readonly scores?: AttentionScores | undefined;
  /** [H] f32: a score of each head that takes part in the softmax and has no value; absent = none. */
  readonly sinks?: Tensor | undefined;
  /** Given for decode of long sequences with idle workgroups to fill: parts of the positions run beside each other. */
  readonly split?: AttentionSplit | undefined;
}

export interface AttentionSplit {
  /** At least [T, H, parts, D + 4]. */
  readonly partials: Tensor;
  /** [T] u32. */
  readonly positions: Tensor;
  /** ceil(longest sequence / ATTENTION_SPLIT) or more. */
  readonly parts: number;
  readonly rows: number;
}

/** Causal attention of tiles of query rows over their sequences' pages. */
export function pagedAttention(rec: Recorder, args: PagedAttentionArgs): void {
  const { q, kv, layer, blockTable, tiles, firstTile, tileCount, tileRows, out, heads, scores = {}, sinks, split } = args;
  const { pageSize, dtype } = kv;
  const pages = kv.layers[layer]!;
  const { kvHeads, headDim } = pages;
  assert(heads % kvHeads === 0 && headDim % 8 === 0, `paged_attention: ${heads} heads over ${kvHeads} of ${headDim}`);
  const { lanes, variant: subgroups } = lanesOf(rec.caps);
  const d4 = headDim / 4;
  const slices = ceilDiv(d4, lanes);
  const shares = headShares(heads / kvHeads, slices);
  const group = heads / kvHeads / shares;
  const consts = { PAGE: pageSize, SPLIT: ATTENTION_SPLIT, LANES: lanes, D4: d4, SLICES: slices, GROUP: group, SHARES: shares, QUERIES: tileRows * group }; // prettier-ignore
  const { scale = 1 / Math.sqrt(headDim), softCap, window = ALL_POSITIONS, growth } = scores;
  const params = {
    first_tile: firstTile,
    heads,
    kv_heads: kvHeads,
    table_stride: blockTable.shape[1]!,
    parts: split?.parts ?? 1,
    scale: Math.LOG2E * scale,
    lanes,
    window,
    soft_cap: Math.LOG2E * (softCap ?? 0),
    growth: growth?.rate ?? 0,
    growth_span: growth?.span ?? 1,
    partial: split ? 1 : 0,
  };
  const sink = { HAS_SINK: sinks ? 1 : 0 };
  const bindings = {
    q,
    k_pages: pages.k,
    v_pages: pages.v,
    block_table: blockTable,
    tiles,
    sinks: sinks ?? q,
    out: split?.partials ?? out,
  };
  const variant = { storage: dtype, consts, overrides: { HAS_CAP: softCap ? 1 : 0, ...sink }, ...pagesVariant(pages), ...subgroups };
  rec.dispatch(PAGED_ATTENTION, variant, bindings, params, [tileCount, kvHeads * shares, split?.parts ?? 1]);
  if (!split) return;
  rec.dispatch(
    PAGED_ATTENTION_REDUCE,
    { consts: { LANES: lanes, D4: d4, SPLIT: ATTENTION_SPLIT }, overrides: sink },
    { partials: split.partials, positions: split.positions, sinks: sinks ?? q, out },
    { heads, parts: split.parts, window },
    [heads, split.rows],
  );
}
