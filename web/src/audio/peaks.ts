/** Levels of a sound over its length, for the trace. */

const COUNT = 1200;
/** Least peak that levels are scaled by, so that silence is not stretched to full height. */
const LEAST = 1e-3;

/** Finds the largest magnitude in equal parts of a sound that arrives in blocks: in each sample, and from 2400 parts on in parts of twice the length, so that there are never more. */
export class PeakMeter {
  readonly #peaks = new Float32Array(2 * COUNT);
  /** Samples per part. */
  #step = 1;
  #at = 0;

  push(block: Float32Array): void {
    for (let i = 0; i < block.length;) {
      let part = Math.floor(this.#at / this.#step);
      if (part === 2 * COUNT) {
        this.#join();
        part = COUNT;
      }
      const end = Math.min(block.length, i + (part + 1) * this.#step - this.#at);
      this.#at += end - i;
      let most = this.#peaks[part]!;
      for (; i < end; i++) most = Math.max(most, Math.abs(block[i]!));
      this.#peaks[part] = most;
    }
  }

  /** The levels 0..1 of the sound so far, scaled so that quiet sound is visible. */
  levels(): Float32Array<ArrayBuffer> {
    const peaks = this.#peaks.slice(0, Math.ceil(this.#at / this.#step));
    const loudest = peaks.reduce((most, peak) => Math.max(most, peak), LEAST);
    return peaks.map((peak) => peak / loudest);
  }

  /** Makes one part of every two. */
  #join(): void {
    const peaks = this.#peaks;
    for (let i = 0; i < COUNT; i++) peaks[i] = Math.max(peaks[2 * i]!, peaks[2 * i + 1]!);
    peaks.fill(0, COUNT);
    this.#step *= 2;
  }
}

/** Returns the levels of a whole sound. */
export function peaksOf(samples: Float32Array): Float32Array {
  const meter = new PeakMeter();
  meter.push(samples);
  return meter.levels();
}
