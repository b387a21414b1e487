/** Counters that ranks wait on: of one thread (promises) or of several (Atomics). Counts wrap at 32 bits. */
import { EngineError } from '../errors.ts';

export interface Signals {
  /** Adds 1 to a counter and wakes those who wait for it. */
  raise(counter: number): void;
  /** Waits until a counter has been raised `count` times; undefined when it has been. Throws EngineError('device_lost') once the group has failed. */
  reached(counter: number, count: number): Promise<void> | undefined;
  /** Ends all waits, now and later. */
  fail(): void;
}

const lost = (): EngineError => new EngineError('device_lost', 'another adapter of a split model was lost');

interface Waiting {
  readonly counter: number;
  readonly count: number;
  readonly resolve: () => void;
  readonly reject: (error: EngineError) => void;
}

/** For ranks that share a thread. */
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

/** How long a thread looks again and again before it sleeps: about what falling asleep and waking costs. */
const SPIN_MS = 0.02;
/** Sleep at most this long at a time, so that a failure without a wake-up is noticed. */
const SLEEP_MS = 100;

/** For ranks that are threads: waiting blocks the thread, which has nothing else to do. Word 0 is the group's `failed`. */
export class SharedSignals implements Signals {
  readonly #words: Int32Array;

  /** `words` = SharedSignals.words(counters) words of shared memory, all 0 at first. */
  constructor(words: Int32Array) {
    this.#words = words;
  }

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
