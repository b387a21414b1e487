import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { kvFragment, pagesVariant } from './kv.ts';
import type { KVCache, KVHeads } from './kv.ts';
import { lanesOf } from './lanes.ts';
import { avoids } from './replaceable.ts';

/**
 * Positions per part: scores of a part share one maximum and sum. Parts are cut at absolute multiples, so a result does not depend on the
 * batch.
 */
export const ATTENTION_SPLIT = 256;

/**
 * Queries per workgroup (rows of a tile x heads of a group), and the vec4s that a lane may hold for them. Measured on lavapipe: with head
 * dim 64, 6.6 GFLOP/s with 2 queries, 8.5 with 4, 13.0 with 8; with head dim 128 (four vec4s per query), 4.8 with 4 and 3.9 with 8.
 */
const MAX_QUERIES = 8;
const MAX_VECTORS = 16;

/** Bytes of workgroup memory that every adapter has. */
const WORKGROUP_BYTES = 16384;
/**
 * Loads that an invocation of PAGED_ATTENTION_WIDE has in flight. Unrolled, they take lavapipe, which is recognised by its subgroups of 8,
 * seconds to compile.
 */
const LOADS = { usual: 16, lavapipe: 1 };
/** Most vec4s of a value that PAGED_ATTENTION_WIDE takes: at least two groups of its invocations then share the sums of values. */
const MAX_WIDE_VALUE4 = ATTENTION_SPLIT / 2;

const BINDINGS = { q: 'read', k_pages: 'read', v_pages: 'read', block_table: 'read', tiles: 'read', sinks: 'read', out: 'write' } as const;

/** Params before and after `lanes` or `rounds`, which is the length of a loop: a param, so that no compiler unrolls it. */
const FIRST_PARAMS = {
  first_tile: 'u32',
  heads: 'u32',
  kv_heads: 'u32',
  table_stride: 'u32',
  parts: 'u32',
  scale: 'f32',
} as const;
const LAST_PARAMS = {
  window: 'u32',
  soft_cap: 'f32',
  growth: 'f32',
  growth_span: 'u32',
  partial: 'u32',
} as const;
const SCALES = ['lib/rescale.wgsl', 'lib/query_scale.wgsl'] as const;

export const PAGED_ATTENTION = defineKernel({
  file: 'attention/paged_attention.wgsl',
  fragments: (v) => [
    ...SCALES,
    kvFragment(v),
    v.textures ? 'lib/pages_texture.wgsl' : 'lib/pages_buffer.wgsl',
    v.subgroups ? 'lib/lanes_subgroup.wgsl' : 'lib/lanes.wgsl',
  ],
  consts: ['PAGE', 'SPLIT', 'LANES', 'D4', 'VALUE4', 'SLICES', 'GROUP', 'SHARES', 'QUERIES'],
  bindings: BINDINGS,
  params: { ...FIRST_PARAMS, lanes: 'u32', ...LAST_PARAMS },
  overrides: { HAS_CAP: 'bool', HAS_SINK: 'bool' },
});

/** Attention on GPUs: one invocation for each position of a part. */
export const PAGED_ATTENTION_WIDE = defineKernel({
  file: 'attention/paged_attention_wide.wgsl',
  fragments: (v) => [...SCALES, kvFragment(v), 'lib/attention_part.wgsl'],
  consts: ['PAGE', 'SPLIT', 'LOADS', 'D4', 'VALUE4', 'GROUP', 'SHARES', 'QUERIES'],
  bindings: BINDINGS,
  params: { ...FIRST_PARAMS, rounds: 'u32', ...LAST_PARAMS },
  overrides: { HAS_CAP: 'bool', HAS_SINK: 'bool' },
});

export const PAGED_ATTENTION_REDUCE = defineKernel({
  file: 'attention/paged_attention_reduce.wgsl',
  fragments: () => ['lib/rescale.wgsl'],
  consts: ['LANES', 'D4', 'SPLIT'],
  bindings: { partials: 'read', positions: 'read', sinks: 'read', out: 'write' },
  params: { heads: 'u32', parts: 'u32', window: 'u32' },
  overrides: { HAS_SINK: 'bool' },
});

/** vec4s of a head's key, and of its value. */
interface HeadQuads {
  readonly d4: number;
  readonly value4: number;
}

function quadsOf({ headDim, valuesInKeys = headDim }: Omit<KVHeads, 'kvHeads'>): HeadQuads {
  return { d4: headDim / 4, value4: valuesInKeys / 4 };
}

/** Rows of one sequence per prefill tile. */
export function attentionTileRows(caps: Caps, heads: number, pages: KVHeads): number {
  return Math.max(1, Math.floor(mostQueries(caps, quadsOf(pages)) / (heads / pages.kvHeads)));
}

/**
 * Whether attention takes PAGED_ATTENTION_WIDE. The choice must not differ between steps, because the two kernels add in different orders.
 */
function isWide(caps: Caps, { d4, value4 }: HeadQuads): boolean {
  const fits = value4 <= MAX_WIDE_VALUE4 && wideBytes(1, d4) <= WORKGROUP_BYTES;
  return caps.family !== 'cpu' && caps.maxInvocations >= ATTENTION_SPLIT && fits && !avoids(caps, 'paged_attention_wide');
}

/** Queries per workgroup of a prefill tile. */
function mostQueries(caps: Caps, quads: HeadQuads): number {
  const { d4 } = quads;
  let queries = MAX_QUERIES;
  if (!isWide(caps, quads)) return Math.min(queries, Math.floor(MAX_VECTORS / ceilDiv(d4, lanesOf(caps).lanes)));
  while (queries > 1 && wideBytes(queries, d4) > WORKGROUP_BYTES) queries--;
  return queries;
}

/** Bytes of workgroup memory of paged_attention_wide.wgsl: the queries, every position's scores of them, and their sums and factors. */
function wideBytes(queries: number, d4: number): number {
  return queries * 16 * (d4 + 1) + ATTENTION_SPLIT * (16 * ceilDiv(queries, 4) + 8) + queries * (4 * 16 + 12);
}

/** Workgroups that share the heads of a group equally: as few as can hold their vec4s. */
function headShares(caps: Caps, group: number, quads: HeadQuads): number {
  const most = isWide(caps, quads) ? mostQueries(caps, quads) : MAX_VECTORS / ceilDiv(quads.d4, lanesOf(caps).lanes);
  let shares = 1;
  while (shares < group && (group % shares !== 0 || group / shares > most)) shares++;
  return shares;
}

/** Window that stands for full attention. */
const ALL_POSITIONS = 0xffffffff;

/** How attention scores are computed from queries and keys. */
export interface AttentionScores {
  /** Factor of q.k; default 1 / sqrt(D). */
  readonly scale?: number | undefined;
  /** Soft cap: scores become cap * tanh(scores / cap) before the softmax (Gemma 2); absent = none. */
  readonly softCap?: number | undefined;
  /** Sliding window: positions that a row attends to, its own included; absent = full attention. */
  readonly window?: number | undefined;
  /** Scores of a row are multiplied by 1 + rate * ln(1 + floor(its position / span)) (Llama 4, Ministral 3); absent = as they are. */
  readonly growth?: { readonly rate: number; readonly span: number } | undefined;
}

export interface PagedAttentionArgs {
  /** Rotated queries, as ropeKVStore leaves them for these pages. */
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
  /** [T, H D], with as many channels as values have. */
  readonly out: Tensor;
  readonly heads: number;
  readonly scores?: AttentionScores | undefined;
  /** [H] f32: attention sinks, a score per head that takes part in the softmax without a value; absent = none. */
  readonly sinks?: Tensor | undefined;
  /**
   * Splits the positions of decodes into parts that run in parallel, for long sequences in batches that leave workgroups idle; undefined =
   * no split.
   */
  readonly split?: AttentionSplit | undefined;
}

export interface AttentionSplit {
  /** Scratch for partial results, at least [T, H, parts, D + 4]. */
  readonly partials: Tensor;
  /** [T] u32. */
  readonly positions: Tensor;
  /** ceil(longest sequence / ATTENTION_SPLIT) or more. */
  readonly parts: number;
  readonly rows: number;
}

/** Causal attention of tiles of query rows to the keys and values in their sequences' pages. */
export function pagedAttention(rec: Recorder, args: PagedAttentionArgs): void {
  const { q, kv, layer, blockTable, tiles, firstTile, tileCount, tileRows, out, heads, scores = {}, sinks, split } = args;
  const { pageSize, dtype } = kv;
  const pages = kv.layers[layer]!;
  const { kvHeads, headDim } = pages;
  assert(heads % kvHeads === 0 && headDim % 8 === 0, `paged_attention: ${heads} heads over ${kvHeads} of ${headDim}`);
  const { lanes, variant: subgroups } = lanesOf(rec.caps);
  const quads = quadsOf(pages);
  const { d4: D4, value4: VALUE4 } = quads;
  const SHARES = headShares(rec.caps, heads / kvHeads, quads);
  const GROUP = heads / kvHeads / SHARES;
  const QUERIES = tileRows * GROUP;
  const { scale = 1 / Math.sqrt(headDim), softCap, window = ALL_POSITIONS, growth } = scores;
  const params = {
    first_tile: firstTile,
    heads,
    kv_heads: kvHeads,
    table_stride: blockTable.shape[1]!,
    parts: split?.parts ?? 1,
    scale: Math.LOG2E * scale,
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
  const places = { PAGE: pageSize, SPLIT: ATTENTION_SPLIT };
  const shape = { D4, VALUE4, GROUP, SHARES, QUERIES };
  const variant = { storage: dtype, overrides: { HAS_CAP: softCap ? 1 : 0, ...sink } };
  const workgroups = [tileCount, kvHeads * SHARES, split?.parts ?? 1] as const;
  if (isWide(rec.caps, quads)) {
    assert(!pages.k.texture && wideBytes(QUERIES, D4) <= WORKGROUP_BYTES, `paged_attention_wide: ${QUERIES} queries of ${headDim}`);
    const rounds = ceilDiv(QUERIES, ceilDiv(QUERIES, 4));
    rec.dispatch(
      PAGED_ATTENTION_WIDE,
      { ...variant, consts: { ...places, LOADS: lanes === 8 ? LOADS.lavapipe : LOADS.usual, ...shape } },
      bindings,
      { ...params, rounds },
      workgroups,
    );
  } else {
    const consts = { ...places, LANES: lanes, SLICES: ceilDiv(D4, lanes), ...shape };
    rec.dispatch(PAGED_ATTENTION, { ...variant, consts, ...pagesVariant(pages), ...subgroups }, bindings, { ...params, lanes }, workgroups);
  }
  if (!split) return;
  const reduced = { partials: split.partials, positions: split.positions, sinks: sinks ?? q, out };
  const consts = { LANES: lanes, D4: VALUE4, SPLIT: ATTENTION_SPLIT };
  rec.dispatch(PAGED_ATTENTION_REDUCE, { consts, overrides: sink }, reduced, { heads, parts: split.parts, window }, [heads, split.rows]);
}
