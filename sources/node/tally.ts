/** Adds up the bytes of the files of one pull, and tells them. */
import type { PullProgress } from '../progress.ts';
import type { HeldLock } from './lock.ts';

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

  /** Bytes that are here. */
  add(bytes: number): void {
    this.#done += bytes;
    this.#lock.tell(this.#done, this.#total);
    // Links may be all that is missing.
    if (this.#total > 0) this.#tell({ what: this.#what, step: 'fetching', done: this.#done, total: this.#total });
  }

  /** Bytes whose hash was computed; shown once nothing is fetched any more. */
  check(bytes: number): void {
    this.#checked += bytes;
    if (this.#done >= this.#total) this.#tell({ what: this.#what, step: 'checking', done: this.#checked, total: this.#total });
  }
}
