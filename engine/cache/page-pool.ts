import { assert } from '../errors.ts';

/**
 * Reference-counted allocator of KV pages, or of recurrent-state slots; sequences and a prefix cache share them. A page that was never used
 * is given only when every page before it is in use, so that device memory is allocated for the first pages alone.
 */
export class PagePool {
  readonly size: number;
  readonly #free: number[];
  readonly #holders: Uint16Array;
  /** By page: 1 = one of its holders is the cache. */
  readonly #cached: Uint8Array;
  #idle = 0;

  constructor(size: number) {
    this.size = size;
    // Allocated from the end: lower pages first, and released pages before those that were never used.
    this.#free = Array.from({ length: size }, (_, i) => size - 1 - i);
    this.#holders = new Uint16Array(size);
    this.#cached = new Uint8Array(size);
  }

  get numFree(): number {
    return this.#free.length;
  }

  get numUsed(): number {
    return this.size - this.#free.length;
  }

  /** Pages that only the cache holds, which gives them up when asked. */
  get numIdle(): number {
    return this.#idle;
  }

  /** Makes the cache, of which there is one, a holder of a page in use. */
  cache(page: number): void {
    this.share([page]);
    this.#cached[page] = 1;
  }

  /** Removes the cache from the holders of a page. */
  uncache(page: number): void {
    assert(this.#cached[page], `page ${page} is not cached`);
    if (this.isIdle(page)) this.#idle--;
    this.#cached[page] = 0;
    this.release([page]);
  }

  /** Whether only the cache holds a page. */
  isIdle(page: number): boolean {
    return this.#cached[page] === 1 && this.#holders[page] === 1;
  }

  /** Allocates `count` pages with one holder each; returns undefined, and changes nothing, when too few are free. */
  allocate(count: number): number[] | undefined {
    if (count > this.#free.length) return undefined;
    const pages = this.#free.splice(this.#free.length - count, count).reverse();
    for (const page of pages) this.#holders[page] = 1;
    return pages;
  }

  /** Adds a holder to each of these pages, which must be in use. */
  share(pages: readonly number[]): void {
    for (const page of pages) {
      assert(this.#holders[page]! > 0, `page ${page} is shared but free`);
      if (this.isIdle(page)) this.#idle--;
      this.#holders[page]!++;
    }
  }

  /** Number of holders of a page. */
  holders(page: number): number {
    return this.#holders[page]!;
  }

  /** Removes a holder from each of these pages; a page without holders is free. */
  release(pages: readonly number[]): void {
    for (const page of pages) {
      assert(this.#holders[page]! > 0, `page ${page} is released but free`);
      if (--this.#holders[page]! === 0) this.#free.push(page);
      else if (this.isIdle(page)) this.#idle++;
    }
  }

  /** Throws unless every page is either held or in the free list once, and the count of idle pages is right. */
  checkIntegrity(): void {
    const free = new Set(this.#free);
    assert(free.size === this.#free.length, 'a page is in the free list twice');
    const idle = this.#cached.reduce((sum, _, page) => sum + Number(this.isIdle(page)), 0);
    assert(idle === this.#idle, `${idle} pages are idle, the count says ${this.#idle}`);
    this.#holders.forEach((holders, page) => assert(holders > 0 !== free.has(page), `page ${page} has ${holders} holders, free: ${free.has(page)}`)); // prettier-ignore
  }
}
