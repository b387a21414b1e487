import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { isQuad } from './linear.ts';

const WG = 64;

/** Logits one workgroup of the first argmax stage looks at. */
const ARGMAX_BLOCK = 1024;

/** Bit of a host token that says "the token sampled last for this slot" (resolveTokens). */
export const FROM_DEVICE = 0x80000000;

export const RESOLVE_TOKENS = defineKernel({
  file: 'sample/resolve_tokens.wgsl',
  bindings: { tokens: 'read', last_tokens: 'read', ids: 'write' },
  params: { rows: 'u32' },
  overrides: { WG: 'u32' },
});

/** ids[t] = tokens[t], or lastTokens[slot] for tokens that are FROM_DEVICE + slot. */
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

export const SAMPLE_THRESHOLD = defineKernel({
  file: 'sample/sample_threshold.wgsl',
  fragments: () => ['lib/sampling_row.wgsl'],
  bindings: { logits: 'read', rows: 'read', thresholds: 'write' },
  params: { vocabulary: 'u32', stride: 'u32' },
  overrides: { WG: 'u32', BITS: 'u32' },
});

export const ARGMAX_BLOCKS = defineKernel({
  file: 'sample/argmax_blocks.wgsl',
  fragments: () => ['lib/sampling_row.wgsl', 'lib/gumbel.wgsl'],
  bindings: { logits: 'read', rows: 'read', thresholds: 'read', best: 'write' },
  params: { vocabulary: 'u32', stride: 'u32', first: 'u32' },
  overrides: { WG: 'u32', BLOCK: 'u32', NOISE: 'bool' },
});

export const ARGMAX_REDUCE = defineKernel({
  file: 'sample/argmax_reduce.wgsl',
  fragments: () => ['lib/sampling_row.wgsl'],
  bindings: { best: 'read', rows: 'read', sampled: 'write', last_tokens: 'update' },
  params: { rows: 'u32', blocks: 'u32' },
  overrides: { WG: 'u32' },
});

export interface BestBlocksArgs {
  /** [B, stride >= V] f32. */
  readonly logits: Tensor;
  readonly vocabulary: number;
  /** Token of the first column, a multiple of 4: not 0 for a slice of a vocabulary. */
  readonly first: number;
  /** [B, SAMPLING_ROW_WORDS] u32, from writeSamplingRow. */
  readonly settings: Tensor;
  /** [B] f32: scratch. */
  readonly thresholds: Tensor;
  /** [B, sampleBlocks(V), 2] u32: scratch. */
  readonly best: Tensor;
  readonly rows: number;
  /** Every row is greedy: no noise, no thresholds. */
  readonly greedy: boolean;
}

export interface SampleArgs extends Omit<BestBlocksArgs, 'first'> {
  /** [B] u32: the tokens. */
  readonly sampled: Tensor;
  /** [slots] u32: the tokens by slot, for the next step's resolveTokens. */
  readonly lastTokens: Tensor;
}

/** Blocks of the first argmax stage: the size of its scratch. */
export function sampleBlocks(vocabulary: number): number {
  return ceilDiv(vocabulary, ARGMAX_BLOCK);
}

/** Thresholds of top-k, top-p and min-p, and the best token of every block of logits. */
export function bestBlocks(rec: Recorder, { logits, vocabulary, first, settings, thresholds, best, rows, greedy }: BestBlocksArgs): void {
  const cpu = rec.caps.family === 'cpu';
  const params = { vocabulary, stride: logits.shape[1]! };
  if (!greedy) {
    // Histograms of the first two take 8 KiB: few wide lanes with coarse rounds on a GPU, one SIMD register with fine rounds on a CPU. SwiftShader clears workgroup
    // memory word by word in the code it compiles: 2048 words took it longer than all other kernels of a chat model.
    const overrides = isQuad(rec.caps) ? { WG: 4, BITS: 4 } : cpu ? { WG: 8, BITS: 8 } : { WG: 128, BITS: 4 };
    rec.dispatch(SAMPLE_THRESHOLD, { overrides }, { logits, rows: settings, thresholds }, params, [rows]);
  }
  const variant = { overrides: { WG: cpu ? 8 : 128, BLOCK: ARGMAX_BLOCK, NOISE: greedy ? 0 : 1 } };
  rec.dispatch(ARGMAX_BLOCKS, variant, { logits, rows: settings, thresholds, best }, { ...params, first }, [
    sampleBlocks(vocabulary),
    rows,
  ]);
}

/** One token a row: temperature, then top-k, top-p, min-p over the whole vocabulary, then a draw; or the largest logit. */
export function sample(rec: Recorder, args: SampleArgs): void {
  const { vocabulary, settings, best, sampled, lastTokens, rows } = args;
  bestBlocks(rec, { ...args, first: 0 });
  const reduced = { best, rows: settings, sampled, last_tokens: lastTokens };
  rec.dispatch(ARGMAX_REDUCE, { overrides: { WG } }, reduced, { rows, blocks: sampleBlocks(vocabulary) }, [ceilDiv(rows, WG)]);
}
