/** Collects the cross-attention of a Whisper's alignment heads for the rows of one window, and computes the alignment matrix from it. */
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Readback } from '../gpu/staging.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { WhisperShape } from '../models/whisper/load.ts';
import { alignmentMatrix, attentionWeights } from '../ops/alignment.ts';

/** Rows of a window that are going through the decoder. */
export interface AlignedRows {
  /** [T, C]: queries of the layer's cross-attention. */
  readonly query: Tensor;
  /** The layer's cross-attention cache, and the window's rows in it. */
  readonly cache: Tensor;
  readonly keys: { readonly first: number; readonly count: number };
  /** Range of rows of `query`. */
  readonly rows: { readonly first: number; readonly count: number };
  /** Number of the window's rows before these. */
  readonly row: number;
}

export class WhisperAligner {
  readonly #heads: WhisperShape['alignmentHeads'];
  readonly #headDim: number;
  /** [heads, rows, positions]. */
  readonly #weights: Tensor;
  readonly #stats: Tensor;
  readonly #matrix: Tensor;

  /**
   * Allocates for windows of up to `rows` rows: a transcript has half of the decoder's positions, and the last token of its prompt may come
   * before it.
   */
  constructor(device: Device, { config, alignmentHeads }: WhisperShape, rows = Math.floor(config.targetPositions / 2) + 1) {
    const heads = alignmentHeads.length;
    const positions = config.windows.frames / 2;
    this.#heads = alignmentHeads;
    this.#headDim = config.channels / config.decoder.heads;
    this.#weights = device.tensor('alignment weights', 'f32', [heads, rows, positions]);
    this.#stats = device.tensor('alignment stats', 'f32', [heads, positions, 2]);
    this.#matrix = device.tensor('alignment matrix', 'f32', [rows, positions]);
  }

  /** Appends the attention weights of the rows in a layer's alignment heads. */
  keep(rec: Recorder, layer: number, { query, cache, keys, rows, row }: AlignedRows): void {
    this.#heads.forEach((one, head) => {
      if (one.layer !== layer || rows.count === 0) return;
      const where = { keys, rows, weights: this.#weights, to: { head, row } };
      attentionWeights(rec, { q: query, k: cache, head: one.head, headDim: this.#headDim, ...where });
    });
  }

  /** Appends alignmentMatrix [rows, columns], once all rows of a window were added. */
  align(rec: Recorder, rows: number, columns: number): void {
    const args = { weights: this.#weights, stats: this.#stats, out: this.#matrix, heads: this.#heads.length };
    alignmentMatrix(rec, { ...args, rows, columns });
  }

  /** Appends alignmentMatrix and its readback: rows * columns f32. */
  read(rec: Recorder, rows: number, columns: number): Readback {
    this.align(rec, rows, columns);
    return rec.readback(this.#matrix, rows * columns * 4);
  }

  /** Frees its tensors. */
  destroy(device: Device): void {
    device.destroy(this.#weights, this.#stats, this.#matrix);
  }
}
