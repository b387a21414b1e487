import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { resolveTokens, sample, sampleScratch } from '../ops/sample.ts';
import type { SampleScratch } from '../ops/sample.ts';
import { SAMPLING_ROW_WORDS } from '../ops/sampling-row.ts';

/** Draws the next tokens on the device and keeps them there for the next step; the host reads 4 bytes a sequence. */
export class Sampler {
  readonly #device: Device;
  readonly #vocabulary: number;
  readonly #settings: Tensor;
  readonly #scratch: SampleScratch;
  /** Last token by block table row; one more takes what padding and verified guesses sample. */
  readonly #lastTokens: Tensor;
  /** [B] u32: this step's tokens, a row each. */
  readonly sampled: Tensor;

  /** `rows` = most rows that yield tokens in one step: maxRunning, or more where guesses are verified. */
  constructor(device: Device, vocabulary: number, maxRunning: number, rows: number) {
    this.#device = device;
    this.#vocabulary = vocabulary;
    this.#settings = device.tensor('sampling settings', 'u32', [rows, SAMPLING_ROW_WORDS]);
    this.#scratch = sampleScratch(device, vocabulary, rows);
    this.#lastTokens = device.tensor('last tokens', 'u32', [maxRunning + 1]);
    this.sampled = device.tensor('sampled', 'u32', [rows]);
  }

  /** Uploads the settings of a step's rows (writeSamplingRow). */
  upload(settings: Uint32Array, rows: number): void {
    if (rows > 0) this.#device.write(this.#settings, settings.subarray(0, rows * SAMPLING_ROW_WORDS));
  }

  /** ids = tokens, with what the step before sampled filled in. */
  resolve(rec: Recorder, tokens: Tensor, ids: Tensor, rows: number): void {
    resolveTokens(rec, { tokens, lastTokens: this.#lastTokens, ids, rows });
  }

  record(rec: Recorder, logits: Tensor, rows: number, greedy: boolean): void {
    sample(rec, {
      logits,
      vocabulary: this.#vocabulary,
      settings: this.#settings,
      scratch: this.#scratch,
      sampled: this.sampled,
      lastTokens: this.#lastTokens,
      rows,
      greedy,
    });
  }
}
