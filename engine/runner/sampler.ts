import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { resolveTokens, sample, sampleScratch } from '../ops/sample.ts';
import type { SampleArgs, SampleScratch } from '../ops/sample.ts';

/** Draws the next tokens on the device and keeps them there for the next step; the host reads 4 bytes a sequence. */
export class Sampler {
  readonly #vocabulary: number;
  readonly #scratch: SampleScratch;
  /** Last token by block table row; one more takes what padding and verified guesses sample. */
  readonly #lastTokens: Tensor;
  /** [B] u32: this step's tokens, a row each. */
  readonly sampled: Tensor;

  /** `rows` = most rows that yield tokens in one step: maxRunning, or more where guesses are verified. */
  constructor(device: Device, vocabulary: number, maxRunning: number, rows: number) {
    this.#vocabulary = vocabulary;
    this.#scratch = sampleScratch(device, vocabulary, rows);
    this.#lastTokens = device.tensor('last tokens', 'u32', [maxRunning + 1]);
    this.sampled = device.tensor('sampled', 'u32', [rows]);
  }

  /** ids = tokens, with what the step before sampled filled in. */
  resolve(rec: Recorder, tokens: Tensor, ids: Tensor, rows: number): void {
    resolveTokens(rec, { tokens, lastTokens: this.#lastTokens, ids, rows });
  }

  /** Appends the drawing of a token for each row of the logits. */
  record(rec: Recorder, args: Pick<SampleArgs, 'logits' | 'settings' | 'rows' | 'greedy'>): void {
    const [vocabulary, scratch, sampled, lastTokens] = [this.#vocabulary, this.#scratch, this.sampled, this.#lastTokens];
    sample(rec, { ...args, vocabulary, scratch, sampled, lastTokens });
  }
}
