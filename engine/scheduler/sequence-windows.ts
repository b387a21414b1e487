/** Pages of sliding-window layers: a sequence holds those that its next rows attend to, and those that they fill. */
import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import type { RadixCache } from '../cache/radix-cache.ts';
import type { PrefixMatch } from '../cache/radix-node.ts';
import { assert } from '../errors.ts';
import { ceilDiv } from '../util/math.ts';
import type { Sequence } from './sequence.ts';

/** Sizes of the sliding-window layers. */
export interface WindowOptions {
  /** Positions that a row attends to, its own included: of the layer with the largest window. */
  readonly window: number;
  /** Pages in the pool of these layers. */
  readonly pages: number;
}

/** Pages before a page boundary that the row at the boundary still attends to. */
export function pagesBefore(window: number, pageSize: number): number {
  return ceilDiv(window - 1, pageSize);
}

/** Most pages that a sequence of `length` positions holds at once, when a step computes at most `chunk` of its positions. */
export function mostWindowPages(window: number, pageSize: number, chunk: number, length: number): number {
  return Math.min(ceilDiv(length, pageSize), ceilDiv(window - 1 + chunk, pageSize) + 1);
}

/** When pages run out, the prefix cache drops at least 1/DROPPED_SHARE of the pool at once. */
const DROPPED_SHARE = 32;

/**
 * Steps run in the order of submission, so a page that the window has passed may be reused at once: the steps that read it come first.
 *
 *     pages of a sequence:  |-- released, or the tree's alone --|-- held: the window before the next row --|-- to be computed --|
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

  /** Pages that are free, or that the prefix cache alone holds and would drop. */
  get numAvailable(): number {
    return this.#pool.numFree + this.#pool.numIdle;
  }

  /** Pages that running sequences hold. */
  get numHeld(): number {
    return this.#pool.size - this.numAvailable;
  }

  /**
   * Gives a waiting sequence the cached pages of the window before its first row, if that leaves room for all it may hold at once and for
   * `reserve` pages more; with `reserve` undefined it does not ask for room. Returns false, and changes nothing, otherwise.
   */
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

  /** Writes a sequence's first pages to the block table, once it has its row. */
  place({ row, firstWindow, windows }: Sequence): void {
    this.#table.set(row, firstWindow, windows);
  }

  /** Pages of a sequence that no row after its first `computed` positions attends to. */
  numBehind({ computed, firstWindow, windows }: Sequence): number {
    const first = Math.floor(Math.max(0, computed - this.window + 1) / this.#pageSize);
    return Math.max(0, Math.min(windows.length, first - firstWindow));
  }

  /** Releases the pages that `numBehind` counts. */
  leave(sequence: Sequence): void {
    const gone = sequence.windows.splice(0, this.numBehind(sequence));
    sequence.firstWindow += gone.length;
    this.#pool.release(gone);
  }

  /** Pages that a sequence lacks to hold `count` more positions. */
  missing({ computed, firstWindow, windows }: Sequence, count: number): number {
    return Math.max(0, ceilDiv(computed + count, this.#pageSize) - firstWindow - windows.length);
  }

  /** Allocates pages for a running sequence; the caller has checked that as many are available. */
  grow(sequence: Sequence, pages: number): void {
    const lacking = pages - this.#pool.numFree;
    // Dropping walks the whole tree, so it is not done page by page.
    if (lacking > 0) this.#prefixes?.dropWindows(Math.max(lacking, Math.floor(this.#pool.size / DROPPED_SHARE)));
    const got = this.#pool.allocate(pages)!;
    this.#table.set(sequence.row, sequence.firstWindow + sequence.windows.length, got);
    for (const page of got) sequence.windows.push(page);
  }

  /** Releases all pages of a sequence. */
  end(sequence: Sequence): void {
    this.#pool.release(sequence.windows);
    sequence.windows = [];
    sequence.firstWindow = 0;
  }

  /** Throws unless the pages in use are those that `running` and the tree hold. */
  checkIntegrity(running: readonly Sequence[]): void {
    this.#pool.checkIntegrity();
    const held = new Set([...running.flatMap(({ windows }) => windows), ...(this.#prefixes?.windowPages() ?? [])]);
    assert(held.size === this.#pool.numUsed, `${this.#pool.numUsed} pages of windows are used, sequences and tree hold ${held.size}`);
  }
}
