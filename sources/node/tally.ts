/** Adds up the bytes of the files of one pull, and reports them. */
import type { PullProgress } from '../progress.ts';
import type { HeldLock } from './lock.ts';

/** The byte counts of one pull. */
export class Tally {
  readonly #what: string;
  readonly #total: number;
  readonly #tell: (progress: PullProgress) => void;
  readonly #lock: HeldLock;
  #done = 0;
  #checked = 0;

  constructor(what: string, total: number, tell: (progress: PullProgress) => void, lock: HeldLock) {
    [this.#what, this.#total, this.#tell, this.#lock] = [what, total, tell, lock];
    this.add(0);
  }

  /** Adds bytes that have arrived. */
  add(bytes: number): void {
    this.#done += bytes;
    this.#lock.tell(this.#done, this.#total);
    // Without bytes only links may be missing.
    if (this.#total > 0) this.#tell({ what: this.#what, step: 'fetching', done: this.#done, total: this.#total });
  }

  /** Adds bytes whose hash was computed; reported once everything is fetched. */
  check(bytes: number): void {
    this.#checked += bytes;
    if (this.#done >= this.#total) this.#tell({ what: this.#what, step: 'checking', done: this.#checked, total: this.#total });
  }
}
