/**
 * Counts what a dispatch of each kernel reads, writes and computes: for the expected time of a step on a card of known speed, for `parley
 * bench`, and for limits on one dispatch. The table has a row per kernel: the bytes of bindings that are not read or written whole, and its
 * multiplications and additions. What several workgroups read of a tensor counts once, as with a cache.
 */
import { assert } from '../errors.ts';
import type { Access, Kernel, Variant } from '../gpu/kernel.ts';
import type { StepWork } from '../gpu/step.ts';
import type { Tensor } from '../gpu/tensor.ts';

/** The work of one dispatch. Each value that is written counts as one more operation. */
export interface KernelWork extends StepWork {
  /** Bytes read, by binding; a tensor that is bound twice counts once. */
  readonly reads: ReadonlyMap<string, number>;
  /** Bytes written, by binding. */
  readonly writes: ReadonlyMap<string, number>;
}

/** A dispatch, as rows of the table see it: params, variant, bindings and grid. */
interface Dispatch {
  /** Params. */
  readonly p: Readonly<Record<string, number>>;
  /** Constants and overrides of the variant. */
  readonly v: Readonly<Record<string, number>>;
  /** Bindings. */
  readonly b: Readonly<Record<string, Tensor>>;
  /** Workgroups. */
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

interface Counted {
  /** Bytes by binding; all others are read or written whole. */
  readonly bytes?: Readonly<Record<string, number>>;
  readonly operations?: number;
  readonly positions?: { readonly read: number; readonly operations: number };
}

type Row = (dispatch: Dispatch) => Counted;

/** Bytes of f32 values, for the product of `sizes`. */
const f32 = (...sizes: readonly number[]): number => 4 * sizes.reduce((a, b) => a * b, 1);

/** Bytes of the first rows of a tensor. */
const rowsOf = (tensor: Tensor, rows: number): number => Math.min(tensor.byteLength, (tensor.byteLength / tensor.shape[0]!) * rows);

/** Rows of all sequences. Where only the device knows their lengths, each counts as the longest. */
const spanRows = ({ p, v, x, z }: Dispatch, perGroup: number, name = 'rows'): number => (v['SPANS'] === 1 ? x * perGroup * z : p[name]!);

/** The row of kernels without products: every binding once, and an operation for each value. */
const WHOLE: Row = () => ({});

/** Bytes of optional bindings; 0 where the variant does not read them and another tensor is bound instead. */
const optional = (v: Dispatch['v'], flag: string, bytes: Readonly<Record<string, number>>): Readonly<Record<string, number>> =>
  v[flag] === 1 ? bytes : v[flag] === 0 ? Object.fromEntries(Object.keys(bytes).map((name) => [name, 0])) : {};

/** A product of m rows of x by a matrix of `n` columns; with gates and ups half as many are stored. */
const product: Row = ({ p, v, b }) => {
  const [m, n, k] = [p['m']!, p['n']!, 4 * p['k4']!];
  const out = v['GATED'] === 1 || p['gated'] === 1 ? n / 2 : n;
  return {
    bytes: { x: f32(m, k), out: f32(m, out), ...optional(v, 'HAS_RESIDUAL', { residual: f32(m, n) }), ...optional(v, 'HAS_BIAS', { bias: f32(n) }), ...(b['norm'] && { norm: f32(k) }) },
    operations: 2 * m * n * k,
  };
}; // prettier-ignore

/** A product of rows `first_row` to m - 1 by subgroup matrices; x is read as f16. */
const matrixProduct: Row = (d) => {
  const rows = d.p['m']! - d.p['first_row']!;
  const counted = product({ ...d, p: { ...d.p, m: rows } });
  return { ...counted, bytes: { ...counted.bytes, halves: 8 * rows * d.p['row_quads']!, scales: f32(rows) } };
};

/** Rows per workgroup of a convolution. */
const CONV_ROWS: Readonly<Record<string, (v: Dispatch['v']) => number>> = {
  conv1d_broadcast: ({ LANES = 8, ROW_BLOCKS = 1 }) => LANES * ROW_BLOCKS,
  conv1d_texels: ({ LANES = 8, ROW_BLOCKS = 1 }) => LANES * ROW_BLOCKS,
  conv1d_quad: () => 16,
  conv1d_tile: ({ TILE_M = 1 }) => TILE_M,
};

const convolution =
  (name: string): Row =>
  (d) => {
    const { p, v, b } = d;
    const rows = spanRows(d, CONV_ROWS[name]!(v));
    const [n, channels] = [p['n']!, 4 * p['c4']!];
    const rowsIn = v['SPANS'] === 1 ? rows * p['stride']! : p['rows_in']!;
    const residual = v['HAS_RESIDUAL'] === 1 && { residual: f32(rows / Math.max(1, p['residual_repeat']!), n) };
    return {
      bytes: { x: Math.min(b['x']!.byteLength, f32(rowsIn, channels)), out: f32(rows, n), ...residual, ...(v['HAS_BIAS'] === 1 && { bias: f32(n) }) },
      operations: 2 * rows * n * p['taps']! * channels,
    };
  }; // prettier-ignore

/** Heads in y, or tiles of rows of several sequences in z, whose keys only the device knows. */
const denseAttention: Row = ({ p, b, y, z }) => {
  const [heads, d] = [y, 4 * p['d4']!];
  if (p['tiled'] === 1) {
    const tile = heads * d * p['queries']!;
    return {
      bytes: { q: f32(tile, z), out: f32(tile, z), k: 0, v: 0 },
      positions: { read: 2 * f32(heads * d, z), operations: 4 * tile * z },
    };
  }
  const [queries, keys] = [p['queries']!, p['keys']!];
  const kv = Math.min(b['k']!.byteLength, f32(keys, heads, d));
  return { bytes: { q: f32(queries, heads, d), k: kv, v: kv, out: f32(queries, heads, d) }, operations: 4 * heads * queries * keys * d };
};

/**
 * Paged attention: tiles in x, each of which reads the pages of its sequence. Rows of a prompt attend to half as many positions as its last
 * row on average; its tiles read all of them.
 */
const pagedAttention: Row = ({ p, v, b, x, z }) => {
  const [heads, kvHeads, d, valueD] = [p['heads']!, p['kv_heads']!, 4 * v['D4']!, 4 * v['VALUE4']!];
  const rows = x * (v['QUERIES']! / v['GROUP']!);
  const position = (pages: Tensor): number => pages.byteLength / pages.shape[0]! / v['PAGE']!;
  const out = v['QUERIES'] === v['GROUP'] && p['partial'] === 1 ? f32(x, heads, z, valueD + 4) : f32(rows, heads, valueD);
  // Values that are channels of keys are not read again.
  const ofValues = b['v_pages']!.key === b['k_pages']!.key ? 0 : position(b['v_pages']!);
  assert(kvHeads > 0, `paged_attention: ${kvHeads} heads`);
  return {
    bytes: { q: rowsOf(b['q']!, rows), k_pages: 0, v_pages: 0, block_table: 0, out, tiles: 16 * x },
    positions: { read: x * (position(b['k_pages']!) + ofValues), operations: 2 * rows * heads * (d + valueD) },
  };
};

const storeHeads: Row = ({ p, b, y }) => {
  const rows = p['m'] ?? y;
  const pages = (name: string): number => b[name]!.byteLength / b[name]!.shape[0]!;
  const page = b['k_pages']!.shape.length > 1 ? b['k_pages']!.shape.at(-1)! : 1;
  const looked = { cos_sin: b['q']!.byteLength, positions: 4 * rows, slots: 4 * rows };
  return {
    bytes: { q: rowsOf(b['q']!, rows), k_pages: (pages('k_pages') / page) * rows, v_pages: (pages('v_pages') / page) * rows, ...looked },
  };
};

/** Latents and rotary parts of a step's rows: of every head, or of the one key. */
const latentRows: Row = ({ p, v, b, y }) => {
  const [rank, rotary] = [4 * v['R4']!, 8 * v['D8']!];
  const rows = p['rows'] ?? y;
  if (b['q']) return { bytes: { latent: f32(rows, p['heads']!, rank), rotary: f32(rows, p['heads']!, rotary), cos_sin: f32(rows, rotary), positions: 4 * rows, q: f32(rows, p['heads']!, rank + rotary) } };
  const page = b['k_pages']!.byteLength / b['k_pages']!.shape[0]! / v['PAGE']!;
  return { bytes: { x: f32(rows, rank + rotary), cos_sin: f32(rows, rotary), positions: 4 * rows, slots: 4 * rows, k_pages: page * rows }, operations: f32(rows, rank) };
}; // prettier-ignore

const projectHeads: Row = (d) => {
  const { p, v, x } = d;
  const columns = p['n'] ?? (x * 8 * v['D8']!) / v['HEAD_PARTS']!;
  const stored = storeHeads(d).bytes;
  return { bytes: { ...stored, x: f32(p['m']!, 4 * p['k4']!) }, operations: 2 * p['m']! * columns * 4 * p['k4']! };
};

/** A step multiplies h by [4 H, H], in each direction. */
const lstm: Row = ({ p, v, b, x, z }) => {
  const hidden = v['HIDDEN'] ?? 16 * v['UNITS']!;
  const steps = v['SPANS'] === 1 ? Math.min(b['out']!.shape[0]!, p['steps_unit']! + p['steps']!) * (p['count'] ?? z) : p['steps']!;
  return { bytes: { inputs: f32(steps, x, 4 * hidden), out: f32(steps, x, hidden) }, operations: 2 * steps * x * 4 * hidden * hidden };
};

const elements =
  (count: (p: Dispatch['p']) => number, ...names: readonly string[]): Row =>
  ({ p, b }) => ({ bytes: Object.fromEntries(names.map((name) => [name, Math.min(b[name]!.byteLength, f32(count(p)))])) });

/** One pair of rows of `width` in, one out, rows in the grid or the params. */
const normed =
  (read: readonly string[] = ['x']): Row =>
  (d) => {
    const rows = spanRows(d, 1);
    const size = f32(rows, d.p['columns']!);
    return { bytes: { ...Object.fromEntries(read.map((name) => [name, size])), out: size }, operations: (4 * size) / 4 };
  };

/** One pass over the logits of the rows in the grid. */
const logitRows =
  (out: readonly string[] = []): Row =>
  ({ p, b, x, y }) => {
    const rows = Math.max(1, Math.min(b['logits']!.shape[0]!, y > 1 ? y : x));
    return { bytes: { logits: f32(rows, p['vocabulary']!), ...Object.fromEntries(out.map((name) => [name, rowsOf(b[name]!, rows)])) } };
  };
const gateSizes: Row = ({ p }) => ({
  bytes: { gate_up: 2 * f32(p['rows']!, 4 * p['columns4']!), out: f32(p['rows']!, 4 * p['columns4']!) },
});

/** By the kernel's name. */
const ROWS: Readonly<Record<string, Row>> = {
  linear_rows: product, linear_broadcast: product, linear_texels: product, linear_quad: product, linear_tile: product, linear_split: product, linear_block: product, linear_fused: product,
  linear_normed: product, linear_matrix: matrixProduct,
  half_rows: ({ p }) => ({ bytes: { x: f32(p['rows']!, 4 * p['k4']!), halves: 8 * p['rows']! * p['row_quads']!, scales: f32(p['rows']!) } }),
  conv1d_broadcast: convolution('conv1d_broadcast'), conv1d_texels: convolution('conv1d_texels'), conv1d_quad: convolution('conv1d_quad'), conv1d_tile: convolution('conv1d_tile'),
  dense: denseAttention, dense_texels: denseAttention, dense_broadcast: denseAttention, dense_quad: denseAttention,
  paged_attention: pagedAttention, paged_attention_wide: pagedAttention,
  project_heads: projectHeads, project_heads_many: projectHeads, rope_kv_store: storeHeads, rope_kv_store_int8: storeHeads,
  latent_queries: latentRows, latent_store: latentRows,
  lstm, lstm_texels: lstm, lstm_forward: lstm,
  conv_transpose1d_depthwise: (d) => {
    const values = spanRows(d, 1) * 4 * d.p['c4']!;
    return { operations: 2 * values * d.p['taps']! };
  },
  causal_conv: ({ v, b }) => ({ operations: 2 * (b['out']!.byteLength / 4) * v['TAPS']! }),
  // Per state [Dk, Dv]: decayed, read, updated, and read again.
  gated_delta_rule: ({ p, v, b, y, z }) => {
    const state = y * 4 * v['D4']! * 4 * p['values4']!;
    const rows = b['qkv']!.shape[0]!;
    return { bytes: { states: f32(z, state) }, operations: 7 * rows * state };
  },
  // Per state [P, N]: decayed, updated, and read.
  selective_scan: ({ p, v, b, y, z }) => {
    const state = y * 4 * v['D4']! * 4 * p['values4']!;
    return { bytes: { states: f32(z, state) }, operations: 5 * b['xbc']!.shape[0]! * state };
  },
  expert_linear: ({ p, b, v }) => {
    const [pairs, n, k] = [p['pairs']!, p['n']!, 4 * p['k4']!];
    // No more experts are read than there are pairs.
    const used = Math.min(p['experts']!, pairs) / p['experts']!;
    return { bytes: { x: rowsOf(b['x']!, pairs / p['x_share']!), weight: b['weight']!.byteLength * used, out: f32(pairs, n), ...(v['HAS_BIAS'] === 1 && { bias: f32(p['experts']! * used, n) }) }, operations: 2 * pairs * n * k };
  },
  // Rows may have any adapter, so all are read.
  lora_add: ({ p, v, b, y }) => {
    const [n, k, segments, { a, table }] = [4 * p['n4']!, 4 * p['k4']!, p['segments']!, b as { readonly a: Tensor; readonly table: Tensor }];
    // Of all segments, on an average of the adapters.
    const ranks = a.size / k / (table.shape[0]! - 1);
    const bytes = { x: f32(y, k), loras: 4 * y, out: f32(y, n), ...optional(v, 'HAS_NORM', { norm: f32(k) }), ...optional(v, 'GATED', { activated: f32(y, n / 2) }) }; // prettier-ignore
    return { bytes, operations: 2 * y * ranks * (k + n / segments) };
  },
  lora_shrink: ({ p, v }) => {
    const [rows, ranks, k] = [p['rows']!, 4 * p['segments']! * p['ranks']!, 4 * p['k4']!];
    const bytes = { x: f32(rows, k), loras: 4 * rows, out: f32(rows, ranks), ...optional(v, 'HAS_NORM', { norm: f32(k) }) };
    return { bytes, operations: 2 * rows * ranks * k };
  },
  lora_expand: ({ p, y }) => {
    const [ranks, n] = [4 * p['ranks']!, 4 * p['n4']!];
    return { bytes: { h: f32(y, p['segments']!, ranks), loras: 4 * y, out: f32(y, n) }, operations: 2 * y * ranks * n };
  },
  lora_gate: ({ p, y }) => {
    const [ranks, n] = [4 * p['ranks']!, 8 * p['columns4']!];
    return { bytes: { h: f32(y, p['segments']!, ranks), loras: 4 * y, gate_up: f32(y, n), out: f32(y, n / 2) }, operations: 2 * y * ranks * n };
  },
  mel_log: ({ p }) => ({ operations: 2 * p['frames']! * p['bins']! * p['mels']! }),
  attention_weights: ({ p, x }) => {
    const d = 4 * p['d4']!;
    return { bytes: { q: f32(x, d), k: f32(p['keys']!, d), weights: f32(x, p['keys']!) }, operations: 2 * x * p['keys']! * d };
  },
  paged_attention_reduce: ({ p, v, x, y }) => {
    const d = 4 * v['D4']!;
    return { bytes: { partials: f32(x, y, p['parts']!, d + 4), out: f32(x, y, d) }, operations: 2 * x * y * p['parts']! * d };
  },
  embedding: ({ p, v, b }) => {
    const rows = p['rows']!;
    const width = 4 * p['k4']!;
    const stored = b['weight']!.byteLength / Math.max(1, p['n_weight']!);
    const learned = v['HAS_POSITIONS'] ? { positions: f32(rows, width), places: 4 * rows } : {};
    return { bytes: { ids: 4 * rows, weight: rows * stored, ...learned, out: f32(rows, width) } };
  },
  rms_norm: normed(['x']), layer_norm: normed(['x']), match_rms: normed(['x', 'like']),
  rms_norm_gated: ({ p }) => {
    const size = f32(p['rows']!, p['heads']!, p['columns']!);
    return { bytes: { x: size, gate: size, out: size }, operations: size };
  },
  gate_mul: gateSizes, gate_clamped: gateSizes,
  gate_sparse: ({ p }) => ({ bytes: { gate_up: 2 * f32(p['rows']!, p['columns']!), out: f32(p['rows']!, p['columns']!) } }),
  gate_slice: ({ p }) => ({ bytes: { gate: f32(p['rows']!, 4 * p['columns4']!), x: f32(p['rows']!, 4 * p['columns4']!), out: f32(p['rows']!, 4 * p['columns4']!) } }),
  activate: elements((p) => p['count']!, 'x', 'out'), soft_cap: elements((p) => p['count']!, 'x'), xielu: elements((p) => p['count']!, 'x'), mul_sigmoid: elements((p) => 4 * p['count4']!, 'x'),
  binary: elements((p) => p['count']!, 'a', 'out'),
  average_leaky: (d) => ({ bytes: { parts: Math.min(d.b['parts']!.byteLength, f32(4 * d.p['count4']!, d.v['PARTS']!)), out: f32(4 * d.p['count4']!) } }),
  gather_rows: ({ p }) => ({ bytes: { x: f32(p['rows']!, 4 * p['c4']!), out: f32(p['rows']!, 4 * p['c4']!) } }),
  copy_rows: ({ p }) => ({ bytes: { x: 2 * f32(p['count']!, 4 * p['c4']!) } }),
  qk_norm: ({ p }) => ({ bytes: { qkv: 2 * f32(p['rows']!, p['width']!) } }),
  rope_norm: ({ p, v }) => ({ bytes: { qkv: 2 * f32(p['rows']!, p['heads']! + 2 * p['kv_heads']!, 8 * v['D8']!) } }),
  dense_store: ({ p, b }) => {
    const size = f32(p['rows']!, 4 * p['c4']!);
    return { bytes: { x: Math.min(b['x']!.byteLength, size), cache: size } };
  },
  mask_logits: logitRows(['out']), penalize_logits: logitRows(), sample_threshold: logitRows(), argmax_blocks: logitRows(['best']), sort_slices: logitRows(), logprobs: logitRows(),
  constrained_token: logitRows(), token_candidates: logitRows(), shard_candidates: logitRows(), bias_logits: ({ p }) => ({ bytes: { logits: 8 * p['count']! } }),
  magnitude: ({ p }) => ({ bytes: { x: f32(p['frames']!, 2, p['bins']!), out: f32(p['frames']!, p['bins']!) } }),
  adain: (d) => {
    const size = f32(spanRows(d, d.v['WG_ROWS']! * d.v['ROWS']!), 4 * d.p['c4']!);
    return { bytes: { x: size, out: size }, operations: size / 2 };
  },
  instance_stats: (d) => {
    const size = f32(spanRows(d, d.p['chunk']!), 4 * d.p['c4']!);
    return { bytes: { x: size, partial: f32(d.x * d.z, 8 * d.p['c4']!) }, operations: size / 2 };
  },
  // With several sequences only the device knows how many values instance_stats left; they are next to none beside x.
  instance_affine: ({ v, p }) => ({ bytes: { partial: v['SPANS'] === 1 ? 0 : f32(Math.ceil(p['rows']! / p['chunk']!), 8 * p['c4']!) } }),
  alignment_matrix: WHOLE, alignment_stats: WHOLE, combine_rows: WHOLE, group_rows: WHOLE, route_rows: WHOLE,
  frame: WHOLE, overlap_add: WHOLE, polar: WHOLE, spectrum: WHOLE, count_tokens: WHOLE, pack_blocks: WHOLE, pack_floats: WHOLE, pack_taps: WHOLE, quantize_floats: WHOLE,
  random_blocks: WHOLE, random_floats: WHOLE, expand_rows: WHOLE, mirror_add: WHOLE, argmax_reduce: WHOLE, resolve_tokens: WHOLE, slice_threshold: WHOLE, shard_best: WHOLE,
  source: WHOLE, source_phase: WHOLE, mel_denoise: WHOLE, mel_scale: WHOLE, correct_streams: WHOLE, predict_streams: WHOLE,
}; // prettier-ignore

/** Names of kernels that are counted. */
export const COUNTED: readonly string[] = Object.keys(ROWS);

/** workOf without its maps, which plans would keep. */
export const stepWork = (...dispatch: Parameters<typeof workOf>): StepWork => {
  const { read, written, operations, readAPosition, operationsAPosition } = workOf(...dispatch);
  return { read, written, operations, readAPosition, operationsAPosition };
};

/** Counts a dispatch. */
export function workOf(
  kernel: Kernel,
  { consts, overrides }: Variant,
  bindings: Readonly<Record<string, Tensor>>,
  params: Readonly<Record<string, number>>,
  [x = 1, y = 1, z = 1]: readonly number[],
): KernelWork {
  const row = ROWS[kernel.name];
  assert(row !== undefined, `${kernel.name}: nobody says what it reads and computes`);
  const { bytes = {}, operations = 0, positions } = row({ p: params, v: { ...consts, ...overrides }, b: bindings, x, y, z });
  const reads = new Map<string, number>();
  const seen = new Map<string, string>();
  const writes = new Map<string, number>();
  for (const [name, access] of Object.entries(kernel.spec.bindings)) {
    const { byteLength, key } = bindings[name]!;
    const size = Math.min(bytes[name] ?? byteLength, byteLength);
    if (isWritten(access, name)) writes.set(name, size);
    if (access === 'write' || (access === 'update' && name.endsWith('_pages'))) continue;
    // Another tensor may be bound in place of one that a variant does not read.
    const first = seen.get(key);
    if (first === undefined) reads.set(name, size);
    seen.set(key, first ?? name);
  }
  const [read, written] = [total(reads), total(writes)];
  const { read: readAPosition = 0, operations: operationsAPosition = 0 } = positions ?? {};
  return { read, written, operations: operations + written / 4, readAPosition, operationsAPosition, reads, writes };
}

function isWritten(access: Access, name: string): boolean {
  return access === 'write' || (access === 'update' && name !== 'flags');
}

function total(sizes: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const size of sizes.values()) sum += size;
  return sum;
}
