/** Counters that ranks wait on, for ranks in one thread (promises) or in several (Atomics). Counts wrap at 32 bits. */
import { EngineError } from '../errors.ts';

/** The counters of a group of ranks. */
export interface Signals {
  /** Adds 1 to a counter and wakes the ranks that wait for it. */
  raise(counter: number): void;
  /** Waits until a counter has been raised `count` times; returns undefined if it has. Throws, or rejects with, EngineError('device_lost') once the group has failed. */
  reached(counter: number, count: number): Promise<void> | undefined;
  /** Marks the group as failed, which ends all current and later waits. */
  fail(): void;
}

const lost = (): EngineError => new EngineError('device_lost', 'another adapter of a split model was lost');

interface Waiting {
  readonly counter: number;
  readonly count: number;
  readonly resolve: () => void;
  readonly reject: (error: EngineError) => void;
}

/** Signals of ranks that share a thread. */
export class LocalSignals implements Signals {
  readonly #counts: Int32Array;
  #waiting: Waiting[] = [];
  #failed = false;

  constructor(counters: number) {
    this.#counts = new Int32Array(counters);
  }

  raise(counter: number): void {
    this.#counts[counter]!++;
    const ready = this.#waiting.filter((waiting) => waiting.counter === counter && this.#isReached(counter, waiting.count));
    if (ready.length === 0) return;
    this.#waiting = this.#waiting.filter((waiting) => !ready.includes(waiting));
    for (const { resolve } of ready) resolve();
  }

  reached(counter: number, count: number): Promise<void> | undefined {
    if (this.#failed) throw lost();
    if (this.#isReached(counter, count)) return undefined;
    return new Promise((resolve, reject) => this.#waiting.push({ counter, count, resolve, reject }));
  }

  fail(): void {
    this.#failed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(lost());
  }

  #isReached(counter: number, count: number): boolean {
    return ((this.#counts[counter]! - count) | 0) >= 0;
  }
}

/** Time that a thread spins before it sleeps: about the cost of falling asleep and waking. */
const SPIN_MS = 0.02;
/** Longest sleep at a time, so that a failure is noticed even if its wake-up was missed. */
const SLEEP_MS = 100;

/** Signals of ranks in threads of their own. Waiting blocks the thread, which has nothing else to do. Word 0 tells whether the group has failed. */
export class SharedSignals implements Signals {
  readonly #words: Int32Array;

  /** `words`: SharedSignals.words(counters) words of shared memory, initially 0. */
  constructor(words: Int32Array) {
    this.#words = words;
  }

  /** Words of shared memory that this many counters take. */
  static words(counters: number): number {
    return counters + 1;
  }

  raise(counter: number): void {
    Atomics.add(this.#words, counter + 1, 1);
    Atomics.notify(this.#words, counter + 1);
  }

  reached(counter: number, count: number): undefined {
    const words = this.#words;
    const spinUntil = performance.now() + SPIN_MS;
    for (;;) {
      if (Atomics.load(words, 0) !== 0) throw lost();
      const value = Atomics.load(words, counter + 1);
      if (((value - count) | 0) >= 0) return undefined;
      if (performance.now() > spinUntil) Atomics.wait(words, counter + 1, value, SLEEP_MS);
    }
  }

  fail(): void {
    Atomics.store(this.#words, 0, 1);
    for (let i = 1; i < this.#words.length; i++) Atomics.notify(this.#words, i);
  }
}
