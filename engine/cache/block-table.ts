import { assert } from '../errors.ts';

/** Changed columns of one row that the device does not have yet. */
export interface DirtyRange {
  readonly row: number;
  readonly from: number;
  readonly pages: Uint32Array;
}

/** Host copy of the block table [rows, columns] of page numbers, with a row for each running sequence. */
export class BlockTable {
  readonly rows: number;
  readonly columns: number;
  /**
   * The block table of the sliding-window layers, which have pages of their own. A sequence has the same row in both. Undefined in models
   * without such layers.
   */
  readonly windows: BlockTable | undefined;
  readonly #pages: Uint32Array;
  readonly #freeRows: number[];
  /** Range [from, to) of changed columns, by row. */
  readonly #dirty = new Map<number, { from: number; to: number }>();

  constructor(rows: number, columns: number, { windows = false } = {}) {
    this.rows = rows;
    this.columns = columns;
    this.windows = windows ? new BlockTable(rows, columns) : undefined;
    this.#pages = new Uint32Array(rows * columns);
    this.#freeRows = Array.from({ length: rows }, (_, i) => rows - 1 - i);
  }

  get numFreeRows(): number {
    return this.#freeRows.length;
  }

  /** Takes a row for a sequence; undefined when all are taken. */
  takeRow(): number | undefined {
    return this.#freeRows.pop();
  }

  freeRow(row: number): void {
    assert(!this.#freeRows.includes(row), `block table row ${row} is freed twice`);
    this.#freeRows.push(row);
  }

  /** Writes page numbers into a row, from `column` on. */
  set(row: number, column: number, pages: readonly number[]): void {
    if (pages.length === 0) return;
    assert(column + pages.length <= this.columns, `row ${row}: ${column + pages.length} pages, expected at most ${this.columns}`);
    this.#pages.set(pages, row * this.columns + column);
    const range = this.#dirty.get(row);
    const to = column + pages.length;
    this.#dirty.set(row, { from: Math.min(range?.from ?? column, column), to: Math.max(range?.to ?? to, to) });
  }

  /** Returns what has changed since the last call: at most one range per row. */
  takeDirty(): DirtyRange[] {
    const ranges = [...this.#dirty].map(([row, { from, to }]) => {
      const start = row * this.columns;
      return { row, from, pages: this.#pages.slice(start + from, start + to) };
    });
    this.#dirty.clear();
    return ranges;
  }
}
