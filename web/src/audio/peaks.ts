/** Levels of a sound over its length, for the trace. */

const COUNT = 1200;
/** Least peak that levels are scaled by, so that silence is not stretched to full height. */
const LEAST = 1e-3;

/** Finds the largest magnitude in each of at most 1200 equal parts of a sound of `length` samples that arrives in blocks. */
export class PeakMeter {
  readonly #peaks: Float32Array;
  readonly #length: number;
  #at = 0;

  constructor(length: number, count = COUNT) {
    this.#length = length;
    this.#peaks = new Float32Array(Math.min(count, length));
  }

  push(block: Float32Array): void {
    const { length: count } = this.#peaks;
    for (let i = 0; i < block.length && this.#at < this.#length;) {
      const part = Math.min(count - 1, Math.floor((this.#at * count) / this.#length));
      // The part ends before the first sample that falls into the next one.
      const end = Math.min(block.length, i + Math.max(1, Math.ceil(((part + 1) * this.#length) / count) - this.#at));
      const from = i;
      let most = this.#peaks[part]!;
      for (; i < end; i++) most = Math.max(most, Math.abs(block[i]!));
      this.#peaks[part] = most;
      this.#at += end - from;
    }
  }

  /** The levels 0..1, scaled so that quiet sound is visible. */
  levels(): Float32Array {
    const loudest = this.#peaks.reduce((most, peak) => Math.max(most, peak), LEAST);
    return this.#peaks.map((peak) => peak / loudest);
  }
}

/** Returns the levels of a whole sound. */
export function peaksOf(samples: Float32Array, count = COUNT): Float32Array {
  const meter = new PeakMeter(samples.length, count);
  meter.push(samples);
  return meter.levels();
}
