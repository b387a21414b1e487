/** Adapts the tokens per step to the measured speed, so that decoding sequences wait only briefly beside a long prompt, on any device. */

/**
 * Longest step aimed at, in milliseconds. Windows resets a GPU whose dispatch runs for two seconds, and the longest dispatch is a good part
 * of a step.
 */
const STEP_MS = 200;
/** Smallest chunk, in tokens: smaller ones would read the weights so often that a prompt takes far longer. */
const LEAST = 64;
/** Steps of fewer tokens are not measured: their time per token says little about a large chunk's. */
const TELLING = 32;

/**
 * Floating-point operations of the first step, before any measurement. With at least LEAST tokens, the longest dispatch of a model of up to
 * 8 B parameters then takes 50 ms at 0.32 TFLOP/s, which small GPUs reach (test/models/kernel-work.test.ts counts it).
 */
const FIRST_OPERATIONS = 0.5e12;

/** Tokens of the first step of a model with this many parameters, at most `most`. */
export function firstChunk(parameters: number, most: number): number {
  return Math.min(most, Math.max(LEAST, Math.floor(FIRST_OPERATIONS / (2 * parameters))));
}

export class PrefillPace {
  readonly #most: number;
  #chunk: number;

  /** `first`: tokens of a step before any measurement; `most`: the largest chunk that the workspace has room for. */
  constructor(first: number, most: number) {
    this.#most = most;
    this.#chunk = Math.min(first, most);
  }

  /** Tokens that the next step may compute. */
  get chunk(): number {
    return this.#chunk;
  }

  /**
   * Records how long a step of `tokens` tokens took. The chunk shrinks at once but at most doubles per step. A step that also compiled
   * kernels therefore costs a few smaller chunks and no more.
   */
  took(tokens: number, milliseconds: number): void {
    if (tokens < TELLING) return;
    const fitting = (tokens * STEP_MS) / Math.max(milliseconds, 1);
    this.#chunk = Math.min(this.#most, Math.max(Math.min(LEAST, this.#most), Math.min(Math.floor(fitting), 2 * this.#chunk)));
  }
}
