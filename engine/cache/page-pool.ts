import { assert } from '../errors.ts';

/**
 * Which KV pages are free, or which slots for the states of recurrent layers. Pages are counted by their holders, so that sequences (and a prefix cache) may share them. A page that was never used is
 * given only when every page before it is in use: memory is taken for the first ones alone.
 */
export class PagePool {
  readonly size: number;
  readonly #free: number[];
  readonly #holders: Uint16Array;
  /** 1: one of a page's holders is a cache. */
  readonly #cached: Uint8Array;
  #idle = 0;

  constructor(size: number) {
    this.size = size;
    // Popped from the end: low pages first, and pages that came back before those that were never used.
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

  /** Pages that only a cache holds, which gives them up when it is asked. */
  get numIdle(): number {
    return this.#idle;
  }

  /** Adds a cache, of which there is one, as a holder of a page in use. */
  cache(page: number): void {
    this.share([page]);
    this.#cached[page] = 1;
  }

  /** The cache is a holder no more. */
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

  /** `count` pages with one holder each, or undefined (and nothing changed) when there are too few. */
  allocate(count: number): number[] | undefined {
    if (count > this.#free.length) return undefined;
    const pages = this.#free.splice(this.#free.length - count, count).reverse();
    for (const page of pages) this.#holders[page] = 1;
    return pages;
  }

  /** Adds a holder to pages in use. */
  share(pages: readonly number[]): void {
    for (const page of pages) {
      assert(this.#holders[page]! > 0, `page ${page} is shared but free`);
      if (this.isIdle(page)) this.#idle--;
      this.#holders[page]!++;
    }
  }

  /** How many hold a page. */
  holders(page: number): number {
    return this.#holders[page]!;
  }

  /** Removes a holder; a page without holders is free. */
  release(pages: readonly number[]): void {
    for (const page of pages) {
      assert(this.#holders[page]! > 0, `page ${page} is released but free`);
      if (--this.#holders[page]! === 0) this.#free.push(page);
      else if (this.isIdle(page)) this.#idle++;
    }
  }

  /** Throws unless every page is either free or held, once, and the idle ones are counted. */
  checkIntegrity(): void {
    const free = new Set(this.#free);
    assert(free.size === this.#free.length, 'a page is in the free list twice');
    const idle = this.#cached.reduce((sum, _, page) => sum + Number(this.isIdle(page)), 0);
    assert(idle === this.#idle, `${idle} pages are idle, the count says ${this.#idle}`);
    this.#holders.forEach((holders, page) => assert(holders > 0 !== free.has(page), `page ${page} has ${holders} holders, free: ${free.has(page)}`)); // prettier-ignore
  }
}
