/** Deletions that can still be undone. */
import { signal } from '@preact/signals';

/** Time in which a deletion can be undone, in ms. */
export const UNDO_MS = 10_000;

export interface Deletion {
  readonly id: string;
  /** Name of what was deleted, for people. */
  readonly label: string;
  readonly undo: () => void;
  /** Deletes for good; called when the deletion can no longer be undone. */
  readonly purge: () => void;
}

export class Deletions {
  /** Oldest first. */
  readonly list = signal<readonly Deletion[]>([]);

  /** Offers to undo a deletion until `UNDO_MS` after `at` (ms since 1970). */
  offer(deletion: Deletion, at = Date.now()): void {
    this.list.value = [...this.list.peek().filter(({ id }) => id !== deletion.id), deletion];
    setTimeout(() => this.#withdraw(deletion, deletion.purge), Math.max(0, at + UNDO_MS - Date.now()));
  }

  undo(deletion: Deletion): void {
    this.#withdraw(deletion, deletion.undo);
  }

  /** Drops a deletion that was undone in another tab. */
  forget(id: string): void {
    this.list.value = this.list.peek().filter((deletion) => deletion.id !== id);
  }

  #withdraw(deletion: Deletion, act: () => void): void {
    if (!this.list.peek().includes(deletion)) return;
    this.list.value = this.list.peek().filter((other) => other !== deletion);
    act();
  }
}
