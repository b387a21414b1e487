import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv, nextPowerOfTwo } from '../util/math.ts';
import { avoids } from './replaceable.ts';
import { isQuad } from './weight-place.ts';

const WG = 64;

/** Logits per workgroup of the first argmax stage. */
const ARGMAX_BLOCK = 1024;

/**
 * Sizes for large vocabularies on a GPU: logits that one workgroup sorts, and its invocations; least and most slices (the most because a
 * workgroup has an invocation for each); and rows whose sorted logits are held at a time.
 */
const SLICE = 1024;
const SORT_LANES = 128;
const SLICES = { least: 5, most: 256 } as const;
const SLICED_ROWS = 16;

/** Flag of a token id from the host: FROM_DEVICE + slot is the token that the device has for that slot (resolveTokens). */
export const FROM_DEVICE = 0x80000000;

export const RESOLVE_TOKENS = defineKernel({
  file: 'sample/resolve_tokens.wgsl',
  bindings: { tokens: 'read', last_tokens: 'read', ids: 'write' },
  params: { rows: 'u32' },
  overrides: { WG: 'u32' },
});

/** ids[t] = tokens[t], or lastTokens[slot] where tokens[t] is FROM_DEVICE + slot. */
export function resolveTokens(
  rec: Recorder,
  { tokens, lastTokens, ids, rows }: { tokens: Tensor; lastTokens: Tensor; ids: Tensor; rows: number },
): void {
  rec.dispatch(RESOLVE_TOKENS, { overrides: { WG } }, { tokens, last_tokens: lastTokens, ids }, { rows }, [ceilDiv(rows, WG)]);
}

export const GATHER_ROWS = defineKernel({
  file: 'sample/gather_rows.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'read', indices: 'read', out: 'write' },
  params: { rows: 'u32', c4: 'u32' },
  overrides: { WG: 'u32' },
});

/** out[b] = x[indices[b]]; x [T, C] with C a multiple of 4. */
export function gatherRows(rec: Recorder, { x, indices, out, rows }: { x: Tensor; indices: Tensor; out: Tensor; rows: number }): void {
  const columns = x.shape[1] ?? 0;
  assert(columns % 4 === 0 && out.shape[1] === columns, `gather_rows: ${columns} columns into ${out.shape[1]}`);
  rec.dispatch(GATHER_ROWS, { overrides: { WG } }, { x, indices, out }, { rows, c4: columns / 4 }, [ceilDiv((rows * columns) / 4, WG)]);
}

export const COPY_ROWS = defineKernel({
  file: 'sample/copy_rows.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'update', pairs: 'read' },
  params: { count: 'u32', c4: 'u32' },
  overrides: { WG: 'u32' },
});

/** x[to] = x[from] for every (from, to) of the first `count` pairs [.., 2] u32; x [T, C] with C a multiple of 4. No row may be both. */
export function copyRows(rec: Recorder, { x, pairs, count }: { x: Tensor; pairs: Tensor; count: number }): void {
  const columns = x.shape[1] ?? 0;
  assert(columns % 4 === 0, `copy_rows: ${columns} columns of ${x.label}`);
  rec.dispatch(COPY_ROWS, { overrides: { WG } }, { x, pairs }, { count, c4: columns / 4 }, [ceilDiv((count * columns) / 4, WG)]);
}

export const SAMPLE_THRESHOLD = defineKernel({
  file: 'sample/sample_threshold.wgsl',
  fragments: () => ['lib/sampling_row.wgsl'],
  bindings: { logits: 'read', rows: 'read', thresholds: 'write' },
  params: { vocabulary: 'u32', stride: 'u32' },
  overrides: { WG: 'u32', BITS: 'u32' },
});

export const SORT_SLICES = defineKernel({
  file: 'sample/sort_slices.wgsl',
  fragments: () => ['lib/sampling_row.wgsl', 'lib/reduce.wgsl'],
  consts: ['WG', 'EACH'],
  bindings: { logits: 'read', rows: 'read', sorted: 'write', stats: 'write' },
  params: { vocabulary: 'u32', stride: 'u32', first_row: 'u32', size: 'u32' },
});

export const SLICE_THRESHOLD = defineKernel({
  file: 'sample/slice_threshold.wgsl',
  fragments: () => ['lib/sampling_row.wgsl'],
  bindings: { sorted: 'read', stats: 'read', rows: 'read', thresholds: 'write' },
  params: { vocabulary: 'u32', slices: 'u32', first_row: 'u32', size: 'u32', width: 'u32' },
  overrides: { WG: 'u32' },
});

export const ARGMAX_BLOCKS = defineKernel({
  file: 'sample/argmax_blocks.wgsl',
  fragments: () => ['lib/sampling_row.wgsl', 'lib/minus_log.wgsl', 'lib/gumbel.wgsl', 'lib/best_of_lanes.wgsl'],
  bindings: { logits: 'read', rows: 'read', thresholds: 'read', best: 'write' },
  params: { vocabulary: 'u32', stride: 'u32', first: 'u32' },
  overrides: { WG: 'u32', BLOCK: 'u32', NOISE: 'bool' },
});

export const ARGMAX_REDUCE = defineKernel({
  file: 'sample/argmax_reduce.wgsl',
  fragments: () => ['lib/sampling_row.wgsl', 'lib/best_of_lanes.wgsl'],
  bindings: { best: 'read', rows: 'read', sampled: 'write', last_tokens: 'update' },
  params: { blocks: 'u32' },
  overrides: { WG: 'u32' },
});

export interface BestBlocksArgs {
  /** [B, stride >= V] f32. */
  readonly logits: Tensor;
  readonly vocabulary: number;
  /** Token id of the first column, a multiple of 4; 0 unless the logits are of a slice of the vocabulary. */
  readonly first: number;
  /** [B, SAMPLING_ROW_WORDS] u32, from writeSamplingRow. */
  readonly settings: Tensor;
  readonly scratch: SampleScratch;
  readonly rows: number;
  /** Every row is greedy: no noise, no thresholds. */
  readonly greedy: boolean;
}

export interface SampleArgs extends Omit<BestBlocksArgs, 'first'> {
  /** [B] u32: the sampled tokens. */
  readonly sampled: Tensor;
  /** [slots] u32: the sampled tokens by slot, for the next step's resolveTokens. */
  readonly lastTokens: Tensor;
}

/** Scratch tensors of sampling. */
export interface SampleScratch {
  /** [B] f32: the smallest logit that passes a row's top-k, top-p and min-p. */
  readonly thresholds: Tensor;
  /** [B, blocks, 2] u32: the best token of each block of logits. */
  readonly best: Tensor;
  /**
   * Where thresholds are found by slices of the vocabulary, for as many rows as are processed at a time: [rows, slices, logits per slice,
   * 2] u32 and [rows, slices, 4] f32.
   */
  readonly slices?: { readonly sorted: Tensor; readonly stats: Tensor; readonly rows: number };
}

/** Allocates scratch for at most `rows` rows of logits. */
export function sampleScratch(device: Device, vocabulary: number, rows: number): SampleScratch {
  const thresholds = device.tensor('thresholds', 'f32', [rows]);
  const best = device.tensor('argmax blocks', 'u32', [rows, sampleBlocks(vocabulary), 2]);
  if (!isSliced(device.caps, vocabulary)) return { thresholds, best };
  const together = Math.min(rows, SLICED_ROWS);
  const { slice, count } = sliceVocabulary(vocabulary);
  return {
    thresholds,
    best,
    slices: {
      sorted: device.tensor('sorted logits', 'u32', [together, count, slice, 2]),
      stats: device.tensor('slices of logits', 'f32', [together, count, 4]),
      rows: together,
    },
  };
}

/** Number of blocks of the first argmax stage. */
export function sampleBlocks(vocabulary: number): number {
  return ceilDiv(vocabulary, ARGMAX_BLOCK);
}

/**
 * Whether thresholds are found by slices. One workgroup per row leaves a GPU idle, and takes milliseconds over a large vocabulary. A
 * software adapter has as many workgroups as cores, and sorting costs it more.
 */
function isSliced(caps: Caps, vocabulary: number): boolean {
  if (caps.family === 'cpu' || avoids(caps, 'sort_slices') || avoids(caps, 'slice_threshold')) return false;
  return sliceVocabulary(vocabulary).count >= SLICES.least;
}

function sliceVocabulary(vocabulary: number): { readonly slice: number; readonly count: number } {
  const slice = SLICE * nextPowerOfTwo(ceilDiv(vocabulary, SLICE * SLICES.most));
  return { slice, count: ceilDiv(vocabulary, slice) };
}

/** Finds each row's threshold of top-k, top-p and min-p, and the best token of each block of logits. */
export function bestBlocks(rec: Recorder, args: BestBlocksArgs): void {
  const { logits, vocabulary, first, settings, scratch, rows, greedy } = args;
  if (!greedy) findThresholds(rec, args);
  const variant = { overrides: { WG: argmaxLanes(rec.caps), BLOCK: ARGMAX_BLOCK, NOISE: greedy ? 0 : 1 } };
  const bindings = { logits, rows: settings, thresholds: scratch.thresholds, best: scratch.best };
  rec.dispatch(ARGMAX_BLOCKS, variant, bindings, { vocabulary, stride: logits.shape[1]!, first }, [sampleBlocks(vocabulary), rows]);
}

function findThresholds(rec: Recorder, { logits, vocabulary, settings, scratch: { thresholds, slices }, rows }: BestBlocksArgs): void {
  const stride = logits.shape[1]!;
  if (!slices) {
    // Histograms of the first two take 8 KiB: few wide lanes with coarse rounds on a GPU, one SIMD register with fine rounds on a CPU. SwiftShader clears workgroup
    // memory word by word in the code it compiles: 2048 words took it longer than all other kernels of a chat model.
    const cpu = rec.caps.family === 'cpu';
    const overrides = isQuad(rec.caps) ? { WG: 4, BITS: 4 } : cpu ? { WG: 8, BITS: 8 } : { WG: 128, BITS: 4 };
    rec.dispatch(SAMPLE_THRESHOLD, { overrides }, { logits, rows: settings, thresholds }, { vocabulary, stride }, [rows]);
    return;
  }
  const { sorted, stats } = slices;
  const { slice, count } = sliceVocabulary(vocabulary);
  for (let row = 0; row < rows; row += slices.rows) {
    const together = Math.min(slices.rows, rows - row);
    const sortVariant = { consts: { WG: SORT_LANES, EACH: slice / SORT_LANES } };
    rec.dispatch(SORT_SLICES, sortVariant, { logits, rows: settings, sorted, stats }, { vocabulary, stride, first_row: row, size: slice }, [
      count,
      together,
    ]);
    const searchVariant = { overrides: { WG: SLICES.most } };
    const params = { vocabulary, slices: count, first_row: row, size: slice, width: nextPowerOfTwo(count) };
    rec.dispatch(SLICE_THRESHOLD, searchVariant, { sorted, stats, rows: settings, thresholds }, params, [together]);
  }
}

/** Lanes that search a row's logits, or its blocks, for the best. */
export function argmaxLanes({ family }: Caps): number {
  return family === 'cpu' ? 8 : 128;
}

/** Samples one token per row: temperature, then top-k, top-p and min-p over the whole vocabulary, then a draw; or the largest logit. */
export function sample(rec: Recorder, args: SampleArgs): void {
  const { vocabulary, settings, scratch, sampled, lastTokens, rows } = args;
  bestBlocks(rec, { ...args, first: 0 });
  const reduced = { best: scratch.best, rows: settings, sampled, last_tokens: lastTokens };
  rec.dispatch(ARGMAX_REDUCE, { overrides: { WG: argmaxLanes(rec.caps) } }, reduced, { blocks: sampleBlocks(vocabulary) }, [rows]);
}
