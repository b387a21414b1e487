/** Sampling from a slice of the vocabulary: the candidates of each slice, which engine/parallel merges. */
import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { argmaxLanes } from './sample.ts';

/** u32 words of a row's best token: value (f32), token id. */
export const BEST_WORDS = 2;
/** u32 words before a row's candidates: their number, largest logit, sum of exp((logit - largest) / T), threshold. */
export const CANDIDATE_HEAD = 4;
/** u32 words per candidate: token id, logit, logit / T + noise, logit before processing. */
export const CANDIDATE_WORDS = 4;

export const SHARD_BEST = defineKernel({
  file: 'sample/shard_best.wgsl',
  fragments: () => ['lib/best_of_lanes.wgsl'],
  bindings: { best: 'read', local: 'write', out: 'update' },
  params: { blocks: 'u32', first: 'u32' },
  overrides: { WG: 'u32' },
});

export interface ShardBestArgs {
  /** [B, blocks, 2] u32, from bestBlocks. */
  readonly best: Tensor;
  /** [B] u32: the best tokens, as indices within the slice. */
  readonly local: Tensor;
  /** u32: BEST_WORDS words per row, from word 0. */
  readonly out: Tensor;
  readonly rows: number;
  readonly blocks: number;
  /** Token id of the slice's first column. */
  readonly first: number;
}

/** Finds the best token of the slice for every row. */
export function shardBest(rec: Recorder, { best, local, out, rows, blocks, first }: ShardBestArgs): void {
  assert(out.shape[0]! >= rows * BEST_WORDS, `shard_best: ${rows} rows into ${out.shape[0]} words`);
  rec.dispatch(SHARD_BEST, { overrides: { WG: argmaxLanes(rec.caps) } }, { best, local, out }, { blocks, first }, [rows]);
}

export const SHARD_CANDIDATES = defineKernel({
  file: 'sample/shard_candidates.wgsl',
  fragments: () => ['lib/sampling_row.wgsl', 'lib/minus_log.wgsl', 'lib/gumbel.wgsl'],
  bindings: { logits: 'read', unprocessed: 'read', rows: 'read', indices: 'read', thresholds: 'read', out: 'update' },
  params: { vocabulary: 'u32', stride: 'u32', first: 'u32', at: 'u32', capacity: 'u32' },
  overrides: { WG: 'u32' },
});

export interface ShardCandidatesArgs {
  /** [B, stride] f32: logits to sample from, and the model's unprocessed logits (may be the same tensor). */
  readonly logits: Tensor;
  readonly unprocessed: Tensor;
  /** [B, SAMPLING_ROW_WORDS] u32. */
  readonly settings: Tensor;
  /** [R] u32: the rows whose candidates are listed. */
  readonly indices: Tensor;
  /** [B] f32: the smallest logit to list. */
  readonly thresholds: Tensor;
  /** u32: candidateWords(capacity) words per listed row, from word `at`. */
  readonly out: Tensor;
  readonly at: number;
  readonly count: number;
  /** Most candidates per row; a larger count in the head says that some are missing. */
  readonly capacity: number;
  /** Columns of the slice, and the token id of its first. */
  readonly vocabulary: number;
  readonly first: number;
}

/** u32 words of one listed row. */
export function candidateWords(capacity: number): number {
  return CANDIDATE_HEAD + CANDIDATE_WORDS * capacity;
}

/** Lists the tokens of a slice that may survive top-k, top-p and min-p over the whole vocabulary. */
export function shardCandidates(rec: Recorder, args: ShardCandidatesArgs): void {
  const { logits, unprocessed, settings, indices, thresholds, out, at, count, capacity, vocabulary, first } = args;
  assert(unprocessed.shape[1] === logits.shape[1], `shard_candidates: rows of ${logits.shape[1]} and ${unprocessed.shape[1]}`);
  assert(out.shape[0]! >= at + count * candidateWords(capacity), `shard_candidates: ${count} rows do not fit into ${out.shape[0]} words`);
  const bindings = { logits, unprocessed, rows: settings, indices, thresholds, out };
  const params = { vocabulary, stride: logits.shape[1]!, first, at, capacity };
  rec.dispatch(SHARD_CANDIDATES, { overrides: { WG: rec.caps.family === 'cpu' ? 8 : 128 } }, bindings, params, [count]);
}
