/**
 * Sampling on a rank that has the logits of a slice of the vocabulary. The device finds the best token of the slice and, for rows with a cut such as top-p, the
 * candidates that may survive it; shard-merge.ts merges what the ranks found. So little is read back, unless more candidates survive than a list holds: then the
 * whole row is listed.
 */
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { logprobs } from '../ops/logits.ts';
import { bestBlocks, sampleBlocks, sampleScratch } from '../ops/sample.ts';
import type { SampleScratch } from '../ops/sample.ts';
import { SAMPLING_ROW_WORDS, writeCuts } from '../ops/sampling-row.ts';
import { candidateWords, shardBest, shardCandidates } from '../ops/shard-sample.ts';
import { NO_CUTS } from '../sampling.ts';
import { SHARD_CANDIDATE_LIMIT, ShardLayout } from './shard-layout.ts';
import type { SamplingStep, VocabularySlice } from './shard-layout.ts';

/** Threshold that lists every token that is not masked. */
const EVERYTHING = -3.4e38;

export class ShardSampler {
  readonly #device: Device;
  readonly #slice: VocabularySlice;
  readonly #layout: ShardLayout;
  readonly #words: Uint32Array;
  readonly #settings: Tensor;
  readonly #scratch: SampleScratch;
  readonly #local: Tensor;
  readonly #filtered: Tensor;
  readonly #reported: Tensor;
  readonly #whole: { readonly out: Tensor; readonly index: Tensor; readonly thresholds: Tensor };
  /** The words that record() writes, for the merge. */
  readonly out: Tensor;

  /** `slice.from` is a multiple of 32; `maxRows` is the largest number of rows with logits in one step. */
  constructor(device: Device, slice: VocabularySlice, maxRows: number) {
    this.#device = device;
    this.#slice = slice;
    this.#layout = new ShardLayout(maxRows);
    this.#words = new Uint32Array(maxRows * SAMPLING_ROW_WORDS);
    this.#settings = device.tensor('shard sampling settings', 'u32', [maxRows, SAMPLING_ROW_WORDS]);
    this.#scratch = sampleScratch(device, slice.to - slice.from, maxRows);
    this.#local = device.tensor('shard best tokens', 'u32', [maxRows]);
    this.#filtered = device.tensor('filtered rows', 'u32', [maxRows]);
    this.#reported = device.tensor('reported rows', 'u32', [maxRows]);
    this.out = device.tensor('shard samples', 'u32', [ShardLayout.capacity(maxRows)]);
    this.#whole = {
      out: device.tensor('whole row', 'u32', [candidateWords(slice.to - slice.from)]),
      index: device.tensor('whole row index', 'u32', [1]),
      thresholds: device.upload('whole row thresholds', 'f32', [maxRows], new Float32Array(maxRows).fill(EVERYTHING)),
    };
  }

  /** Uploads a step's settings; returns the bytes of `out` that its record() will fill. */
  prepare(step: SamplingStep): number {
    this.#layout.update(step);
    const { filtered, filteredCount, words } = this.#layout;
    const count = step.rows * SAMPLING_ROW_WORDS;
    this.#words.set(step.settings.subarray(0, count));
    // What a cut keeps depends on the whole vocabulary, so a slice only lists its largest logits, and the merge applies the cuts.
    for (let i = 0; i < filteredCount; i++) writeCuts(this.#words, filtered[i]!, { ...NO_CUTS, topK: SHARD_CANDIDATE_LIMIT });
    if (step.rows > 0) this.#device.write(this.#settings, this.#words.subarray(0, count));
    if (filteredCount > 0) this.#device.write(this.#filtered, filtered.subarray(0, filteredCount));
    if (step.reported.length > 0) this.#device.write(this.#reported, Uint32Array.from(step.reported));
    return words * 4;
  }

  /** Appends the sampling of the prepared step. `logits` [B, slice] are processed; `unprocessed` are the model's own, the same tensor if no processor changed them. */
  record(rec: Recorder, { rows, reported, top }: SamplingStep, logits: Tensor, unprocessed: Tensor): void {
    const { from, to } = this.#slice;
    const vocabulary = to - from;
    const { greedy, filteredCount, candidatesAt, logprobsAt } = this.#layout;
    const { out } = this;
    const [settings, scratch, local] = [this.#settings, this.#scratch, this.#local];
    const { thresholds, best } = scratch;
    bestBlocks(rec, { logits, vocabulary, first: from, settings, scratch, rows, greedy });
    shardBest(rec, { best, local, out, rows, blocks: sampleBlocks(vocabulary), first: from });
    if (filteredCount > 0) {
      const listed = { indices: this.#filtered, thresholds, out, at: candidatesAt, count: filteredCount, capacity: SHARD_CANDIDATE_LIMIT };
      shardCandidates(rec, { logits, unprocessed, settings, vocabulary, first: from, ...listed });
    }
    if (reported.length === 0) return;
    const indices = this.#reported;
    logprobs(rec, { logits: unprocessed, indices, sampled: local, out, at: logprobsAt, count: reported.length, vocabulary, top });
  }

  /** Lists all tokens of one row of the last recorded step, for a row that the merge could not settle; returns the tensor that it fills. */
  recordWhole(rec: Recorder, row: number, logits: Tensor, unprocessed: Tensor): Tensor {
    const { from, to } = this.#slice;
    const vocabulary = to - from;
    const { out, index, thresholds } = this.#whole;
    this.#device.write(index, Uint32Array.of(row));
    const listed = { indices: index, thresholds, out, at: 0, count: 1, capacity: vocabulary };
    shardCandidates(rec, { logits, unprocessed, settings: this.#settings, vocabulary, first: from, ...listed });
    return out;
  }
}
