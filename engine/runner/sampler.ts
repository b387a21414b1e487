import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { SAMPLING_ROW_WORDS, resolveTokens, sample, sampleBlocks, writeSamplingRow } from '../ops/sample.ts';
import type { SampledRow } from '../scheduler/batch.ts';

/** Draws the next tokens on the device and keeps them there for the next step; the host reads 4 bytes a sequence. */
export class Sampler {
  readonly #device: Device;
  readonly #vocabulary: number;
  readonly #maxRunning: number;
  readonly #words: Uint32Array;
  readonly #settings: Tensor;
  readonly #thresholds: Tensor;
  readonly #best: Tensor;
  /** Last token by block table row; one more takes what padding and verified guesses sample. */
  readonly #lastTokens: Tensor;
  /** [B] u32: this step's tokens, a row each. */
  readonly sampled: Tensor;

  /** `rows` = most rows that yield tokens in one step: maxRunning, or more where guesses are verified. */
  constructor(device: Device, vocabulary: number, maxRunning: number, rows: number) {
    this.#device = device;
    this.#vocabulary = vocabulary;
    this.#maxRunning = maxRunning;
    this.#words = new Uint32Array(rows * SAMPLING_ROW_WORDS);
    this.#settings = device.tensor('sampling settings', 'u32', [rows, SAMPLING_ROW_WORDS]);
    this.#thresholds = device.tensor('thresholds', 'f32', [rows]);
    this.#best = device.tensor('argmax blocks', 'u32', [rows, sampleBlocks(vocabulary), 2]);
    this.#lastTokens = device.tensor('last tokens', 'u32', [maxRunning + 1]);
    this.sampled = device.tensor('sampled', 'u32', [rows]);
  }

  /** Uploads the settings of a step's sampled rows, padded with greedy ones to `rows`; returns whether all are greedy. */
  prepare(sampled: readonly SampledRow[], rows: number): boolean {
    let greedy = true;
    for (let i = 0; i < rows; i++) {
      const sequence = sampled[i]?.sequence;
      const sampling = sequence?.sampling;
      writeSamplingRow(this.#words, i, {
        temperature: sampling?.temperature ?? 0,
        topP: sampling?.topP ?? 1,
        topK: sampling?.topK ?? 0,
        minP: sampling?.minP ?? 0,
        seed: sampling?.seed ?? 0,
        choice: sequence?.choice ?? 0,
        position: sampled[i]?.position ?? 0,
        // Which of a verified sequence's tokens is its last, the host decides.
        slot: sequence && !sequence.verifying ? sequence.row : this.#maxRunning,
      });
      if (sampling && sampling.temperature > 0) greedy = false;
    }
    if (rows > 0) this.#device.write(this.#settings, this.#words.subarray(0, rows * SAMPLING_ROW_WORDS));
    return greedy;
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
      thresholds: this.#thresholds,
      best: this.#best,
      sampled: this.sampled,
      lastTokens: this.#lastTokens,
      rows,
      greedy,
    });
  }
}
