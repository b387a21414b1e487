import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { resolveTokens, sample, sampleScratch } from '../ops/sample.ts';
import type { SampleArgs, SampleScratch } from '../ops/sample.ts';

/** Draws the next tokens on the device and keeps them there for the next step; the host reads 4 bytes a sequence. */
export class Sampler {
  readonly #vocabulary: number;
  readonly #scratch: SampleScratch;
  /** Last token by block table row; one more takes what padding and verified guesses sample; behind them what a head guesses (guessSlot). */
  readonly lastTokens: Tensor;
  /** [B] u32: this step's tokens, a row each. */
  readonly sampled: Tensor;

  /** `rows` = most rows that yield tokens in one step: maxRunning, or more where guesses are verified. */
  constructor(device: Device, vocabulary: number, maxRunning: number, rows: number, headDrafts = 0) {
    this.#vocabulary = vocabulary;
    this.#scratch = sampleScratch(device, vocabulary, rows);
    this.lastTokens = device.tensor('last tokens', 'u32', [maxRunning + 1 + maxRunning * headDrafts]);
    this.sampled = device.tensor('sampled', 'u32', [rows]);
  }

  /** ids = tokens, with what the step before sampled filled in. */
  resolve(rec: Recorder, tokens: Tensor, ids: Tensor, rows: number): void {
    resolveTokens(rec, { tokens, lastTokens: this.lastTokens, ids, rows });
  }

  /** Appends the drawing of a token for each row of the logits. */
  record(rec: Recorder, args: Pick<SampleArgs, 'logits' | 'settings' | 'rows' | 'greedy'>): void {
    this.#sample(rec, { ...args, sampled: this.sampled });
  }

  /** ids = the largest logits, which also go where `settings` say. */
  guess(rec: Recorder, { ids, ...args }: Pick<SampleArgs, 'logits' | 'settings' | 'rows'> & { readonly ids: Tensor }): void {
    this.#sample(rec, { ...args, sampled: ids, greedy: true });
  }

  #sample(rec: Recorder, args: Pick<SampleArgs, 'logits' | 'settings' | 'rows' | 'greedy' | 'sampled'>): void {
    sample(rec, { ...args, vocabulary: this.#vocabulary, scratch: this.#scratch, lastTokens: this.lastTokens });
  }
}
