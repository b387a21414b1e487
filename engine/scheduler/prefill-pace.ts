/** How many tokens a step may compute, by how fast the steps before it were: chats beside a prompt wait for no more than a moment, on any device. */

/** Milliseconds that a step should take at most. Windows ends a dispatch after two seconds, and a step's longest is a good part of it. */
const STEP_MS = 200;
/** Fewer tokens read the weights so often that the prompt takes far longer. */
const LEAST = 64;
/** A step of fewer says little of those with many. */
const TELLING = 32;

/**
 * Multiplications and additions of a step before anything is known. With at least LEAST tokens the longest dispatch of a model of up to 8 B then takes 50 ms at 0.32 TFLOP/s,
 * which small GPUs have (test/models/kernel-work.test.ts counts it).
 */
const FIRST_OPERATIONS = 0.5e12;

/** Tokens of such a step of a model, at most so many. */
export function firstChunk(parameters: number, most: number): number {
  return Math.min(most, Math.max(LEAST, Math.floor(FIRST_OPERATIONS / (2 * parameters))));
}

export class PrefillPace {
  readonly #most: number;
  #chunk: number;

  /** `first`: tokens before anything is known; `most`: tokens that there is room for. */
  constructor(first: number, most: number) {
    this.#most = most;
    this.#chunk = Math.min(first, most);
  }

  /** Tokens for the next step. */
  get chunk(): number {
    return this.#chunk;
  }

  /** Hears how long a step of so many tokens took. Down at once, up no more than twice at a time: what compiled in the step is not its pace. */
  took(tokens: number, milliseconds: number): void {
    if (tokens < TELLING) return;
    const fitting = (tokens * STEP_MS) / Math.max(milliseconds, 1);
    this.#chunk = Math.min(this.#most, Math.max(Math.min(LEAST, this.#most), Math.min(Math.floor(fitting), 2 * this.#chunk)));
  }
}
