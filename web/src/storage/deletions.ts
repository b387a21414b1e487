/** What has been deleted and can still be brought back. */
import { signal } from '@preact/signals';

/** ms in which a deletion can be undone. */
export const UNDO_MS = 10_000;

export interface Deletion {
  readonly id: string;
  /** What was deleted, for people. */
  readonly label: string;
  readonly undo: () => void;
  /** Called when it can no longer be undone. */
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

  /** It was brought back elsewhere. */
  forget(id: string): void {
    this.list.value = this.list.peek().filter((deletion) => deletion.id !== id);
  }

  #withdraw(deletion: Deletion, act: () => void): void {
    if (!this.list.peek().includes(deletion)) return;
    this.list.value = this.list.peek().filter((other) => other !== deletion);
    act();
  }
}
