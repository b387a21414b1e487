import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { resolveTokens, sample, sampleScratch } from '../ops/sample.ts';
import type { SampleArgs, SampleScratch } from '../ops/sample.ts';

/** Samples the next tokens on the device and keeps them there for the next step; the host reads 4 bytes per sequence. */
export class Sampler {
  readonly #vocabulary: number;
  readonly #scratch: SampleScratch;
  /**
   * u32: the last token of each block table row, then one entry for tokens of padding and of verified drafts, then the draft head's guesses
   * (draftSlot).
   */
  readonly lastTokens: Tensor;
  /** [B] u32: the tokens that this step sampled, one per logit row. */
  readonly sampled: Tensor;

  /** `rows`: most logit rows in one step, which is maxRunning + draftRows. */
  constructor(device: Device, vocabulary: number, maxRunning: number, rows: number, headDrafts = 0) {
    this.#vocabulary = vocabulary;
    this.#scratch = sampleScratch(device, vocabulary, rows);
    this.lastTokens = device.tensor('last tokens', 'u32', [maxRunning + 1 + maxRunning * headDrafts]);
    this.sampled = device.tensor('sampled', 'u32', [rows]);
  }

  /** ids[i] = tokens[i], or the last token that a FROM_DEVICE entry refers to. */
  resolve(rec: Recorder, tokens: Tensor, ids: Tensor, rows: number): void {
    resolveTokens(rec, { tokens, lastTokens: this.lastTokens, ids, rows });
  }

  /** Appends the sampling of one token for each row of the logits. */
  record(rec: Recorder, args: Pick<SampleArgs, 'logits' | 'settings' | 'rows' | 'greedy'>): void {
    this.#sample(rec, { ...args, sampled: this.sampled });
  }

  /** ids = argmax of each row of the logits, stored in `lastTokens` too, in the slots that `settings` name. */
  draft(rec: Recorder, { ids, ...args }: Pick<SampleArgs, 'logits' | 'settings' | 'rows'> & { readonly ids: Tensor }): void {
    this.#sample(rec, { ...args, sampled: ids, greedy: true });
  }

  #sample(rec: Recorder, args: Pick<SampleArgs, 'logits' | 'settings' | 'rows' | 'greedy' | 'sampled'>): void {
    sample(rec, { ...args, vocabulary: this.#vocabulary, scratch: this.#scratch, lastTokens: this.lastTokens });
  }
}
