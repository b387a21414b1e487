/** Pages of layers that see a window only: a sequence holds those that its next rows may see, and what they fill. */
import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import type { RadixCache } from '../cache/radix-cache.ts';
import type { PrefixMatch } from '../cache/radix-node.ts';
import { assert } from '../errors.ts';
import { ceilDiv } from '../util/math.ts';
import type { Sequence } from './sequence.ts';

/** What the scheduler has to know of the layers that see a window only. */
export interface WindowOptions {
  /** Positions that a row sees, the last of which is its own: of the layer that sees the most. */
  readonly window: number;
  /** Pages of these layers. */
  readonly pages: number;
}

/** Pages before a position that begins a page of which the row there sees something. */
export function pagesBefore(window: number, pageSize: number): number {
  return ceilDiv(window - 1, pageSize);
}

/** The most pages that a sequence of `length` positions holds at once, of which a step computes `chunk` at most. */
export function mostWindowPages(window: number, pageSize: number, chunk: number, length: number): number {
  return Math.min(ceilDiv(length, pageSize), ceilDiv(window - 1 + chunk, pageSize) + 1);
}

/** Where pages run out the prefix cache lets go of one in so many of all at once. */
const DROPPED_SHARE = 32;

/**
 * Steps run in the order they are submitted, so a page behind the window of what is computed next may be given to others: whoever reads it did so before.
 *
 *     pages of a sequence:  |-- let go, or the tree's alone --|-- held: the window before the next row --|-- to be computed --|
 */
export class SequenceWindows {
  readonly window: number;
  readonly #pool: PagePool;
  readonly #table: BlockTable;
  readonly #pageSize: number;
  readonly #chunk: number;
  readonly #prefixes: RadixCache | undefined;

  constructor(
    pool: PagePool,
    table: BlockTable,
    pageSize: number,
    sizes: { readonly window: number; readonly chunk: number },
    prefixes?: RadixCache,
  ) {
    this.window = sizes.window;
    this.#pool = pool;
    this.#table = table;
    this.#pageSize = pageSize;
    this.#chunk = sizes.chunk;
    this.#prefixes = prefixes;
  }

  /** Pages that are free, or that the tree gives up when asked. */
  get numAvailable(): number {
    return this.#pool.numFree + this.#pool.numIdle;
  }

  /** Pages that running sequences hold. */
  get numHeld(): number {
    return this.#pool.size - this.numAvailable;
  }

  /** Gives a waiting sequence the window before its first row, if afterwards there is room for what it may hold at once, and `reserve` more pages; false, and nothing changed, otherwise. */
  begin(sequence: Sequence, match: PrefixMatch | undefined, reserve: number | undefined): boolean {
    const found = match?.windows ?? [];
    this.#pool.share(found);
    const most = mostWindowPages(this.window, this.#pageSize, this.#chunk, sequence.length);
    if (reserve !== undefined && most - found.length + reserve > this.numAvailable) {
      this.#pool.release(found);
      return false;
    }
    sequence.windows = [...found];
    sequence.firstWindow = (match?.pages.length ?? 0) - found.length;
    return true;
  }

  /** Tells the table what a sequence began with, once it has its row. */
  place({ row, firstWindow, windows }: Sequence): void {
    this.#table.set(row, firstWindow, windows);
  }

  /** Pages of a sequence that nothing will see once `computed` positions are computed. */
  numBehind({ computed, firstWindow, windows }: Sequence): number {
    const first = Math.floor(Math.max(0, computed - this.window + 1) / this.#pageSize);
    return Math.max(0, Math.min(windows.length, first - firstWindow));
  }

  /** Lets them go. */
  leave(sequence: Sequence): void {
    const gone = sequence.windows.splice(0, this.numBehind(sequence));
    sequence.firstWindow += gone.length;
    this.#pool.release(gone);
  }

  /** Pages that a sequence lacks for `count` more positions. */
  missing({ computed, firstWindow, windows }: Sequence, count: number): number {
    return Math.max(0, ceilDiv(computed + count, this.#pageSize) - firstWindow - windows.length);
  }

  /** Gives a running sequence that many pages, of which there are as many. */
  grow(sequence: Sequence, pages: number): void {
    const lacking = pages - this.#pool.numFree;
    // The tree looks through all its nodes for them: so not for each page anew.
    if (lacking > 0) this.#prefixes?.dropWindows(Math.max(lacking, Math.floor(this.#pool.size / DROPPED_SHARE)));
    const got = this.#pool.allocate(pages)!;
    this.#table.set(sequence.row, sequence.firstWindow + sequence.windows.length, got);
    sequence.windows.push(...got);
  }

  /** Takes everything back. */
  end(sequence: Sequence): void {
    this.#pool.release(sequence.windows);
    sequence.windows = [];
    sequence.firstWindow = 0;
  }

  /** Throws unless the pages add up for these running sequences. */
  checkIntegrity(running: readonly Sequence[]): void {
    this.#pool.checkIntegrity();
    const held = new Set([...running.flatMap(({ windows }) => windows), ...(this.#prefixes?.windowPages() ?? [])]);
    assert(held.size === this.#pool.numUsed, `${this.#pool.numUsed} pages of windows are used, sequences and tree hold ${held.size}`);
  }
}
