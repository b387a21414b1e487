/** KV pages of sequences: rows of the block table, pages from the pool, and prefixes shared through the radix tree. */
import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import type { RadixCache, RadixNode } from '../cache/radix-cache.ts';
import type { BatchItem, StateUse } from './batch.ts';
import type { SequenceStates } from './sequence-states.ts';
import { assert } from '../errors.ts';
import { ceilDiv } from '../util/math.ts';
import type { Sequence } from './sequence.ts';

/**
 * Every page is held by those who use it: the sequences whose row names it, and the tree. A page without holders is free.
 *
 *     pages of a sequence:  |-- shared: found in the tree, path locked --|-- own, published once computed --|-- own, partial --|
 */
export class CacheManager {
  readonly pageSize: number;
  readonly #pool: PagePool;
  readonly #table: BlockTable;
  readonly #prefixes: RadixCache | undefined;
  readonly #states: SequenceStates | undefined;

  /** `states` of a model with recurrent layers. */
  constructor(pool: PagePool, table: BlockTable, pageSize: number, prefixes?: RadixCache, states?: SequenceStates) {
    this.pageSize = pageSize;
    this.#pool = pool;
    this.#table = table;
    this.#prefixes = prefixes;
    this.#states = states;
  }

  /** Pages that are free or become so by eviction. */
  get numAvailable(): number {
    return this.#pool.numFree + (this.#prefixes?.numEvictable ?? 0);
  }

  /** Tokens of a waiting sequence whose keys and values are cached; its last token is always computed, to get logits. */
  cachedTokens(sequence: Sequence): number {
    return this.#prefixes?.peek(sequence.tokens, sequence.salt, sequence.tokens.length - 1) ?? 0;
  }

  /**
   * Gives a waiting sequence a row and its cached prefix, if afterwards there is room for the rest of its tokens and `reserve` more
   * pages. Changes nothing when it returns false.
   */
  admit(sequence: Sequence, reserve: number | undefined): boolean {
    if (this.#table.numFreeRows === 0) return false;
    const match = this.#prefixes?.match(sequence.tokens, sequence.salt, sequence.tokens.length - 1);
    // Locked before counting: what it needs itself must not count as room.
    if (match) this.#prefixes!.lock(match.node);
    const needed = ceilDiv(sequence.length, this.pageSize) - (match?.pages.length ?? 0);
    const hasPages = reserve === undefined || needed + reserve <= this.numAvailable;
    if (!hasPages || this.#states?.begin(sequence, match) === false) {
      if (match) this.#prefixes!.unlock(match.node);
      return false;
    }
    sequence.row = this.#table.takeRow()!;
    if (match) {
      this.#pool.share(match.pages);
      this.#table.set(sequence.row, 0, match.pages);
      sequence.pages = [...match.pages];
      sequence.node = match.node;
      sequence.computed = match.length;
    }
    // A sequence that was retracted finds its own pages again: those are no hits of its request.
    if (sequence.numGenerated === 0) sequence.cached = match?.length ?? 0;
    return true;
  }

  /** Pages that a sequence lacks for `count` more positions. */
  missingPages(sequence: Sequence, count: number): number {
    return Math.max(0, ceilDiv(sequence.computed + count, this.pageSize) - sequence.pages.length);
  }

  /** Gives a running sequence pages, evicting cached prefixes if it must; false when even that does not suffice. */
  grow(sequence: Sequence, pages: number): boolean {
    if (pages === 0) return true;
    if (pages > this.numAvailable) return false;
    const short = pages - this.#pool.numFree;
    if (short > 0) this.#pool.release(this.#prefixes!.evict(short));
    const got = this.#pool.allocate(pages)!;
    this.#table.set(sequence.row, sequence.pages.length, got);
    sequence.pages.push(...got);
    return true;
  }

  /** The slots of a step's item, of a model with recurrent layers. */
  useState({ sequence, start, count }: BatchItem): StateUse | undefined {
    // A copy that others may ask for goes to the tree before the next takes its place; of those on the way through an answer the last is enough.
    if (this.#states?.isWanted(sequence)) this.publish(sequence);
    return this.#states?.use(sequence, start, count);
  }

  /**
   * Puts a sequence's whole computed pages into the tree. Steps run in the order they are submitted, so a page may be shared as soon as
   * the step that fills it is submitted; tokens that only the device knows cannot be named yet.
   */
  publish(sequence: Sequence): void {
    if (!this.#prefixes || sequence.row < 0) return;
    const known = Math.min(sequence.computed, sequence.tokens.length);
    const copy = this.#states?.copyWithin(sequence, known);
    if (copy !== undefined) this.#states!.publish(sequence, this.#insert(sequence, copy / this.pageSize));
    const pages = Math.floor(known / this.pageSize);
    if (pages > sequence.published) this.#insert(sequence, pages);
  }

  /** Puts a sequence's first pages into the tree; returns the node that ends with them. */
  #insert(sequence: Sequence, pages: number): RadixNode {
    const prefixes = this.#prefixes!;
    const { known, node } = prefixes.insert(sequence.tokens.slice(0, pages * this.pageSize), sequence.pages, sequence.salt);
    this.#pool.share(sequence.pages.slice(known, pages));
    prefixes.lock(node);
    if (sequence.node) prefixes.unlock(sequence.node);
    sequence.node = node;
    sequence.published = pages;
    return node;
  }

  /** Takes row and pages back; published pages stay in the tree until they are evicted. */
  release(sequence: Sequence): void {
    this.#states?.end(sequence);
    if (sequence.node) this.#prefixes!.unlock(sequence.node);
    sequence.node = undefined;
    sequence.published = 0;
    this.#pool.release(sequence.pages);
    sequence.pages = [];
    if (sequence.row >= 0) this.#table.freeRow(sequence.row);
    sequence.row = -1;
  }

  /** Forgets every prefix that no running sequence reads. */
  flush(): void {
    if (this.#prefixes) this.#pool.release(this.#prefixes.clear());
  }

  /** Throws unless pages, rows and the tree add up for these running sequences. */
  checkIntegrity(running: readonly Sequence[]): void {
    this.#pool.checkIntegrity();
    this.#prefixes?.checkIntegrity();
    const own = new Set(running.flatMap(({ pages }) => pages));
    const tree = this.#prefixes?.pages() ?? [];
    const held = new Set([...own, ...tree]);
    assert(held.size === this.#pool.numUsed, `${this.#pool.numUsed} pages are used, sequences and tree hold ${held.size}`);
    this.#states?.checkIntegrity(running);
    const rows = this.#table.rows - this.#table.numFreeRows;
    assert(rows === running.length, `${rows} rows are used by ${running.length} running sequences`);
  }
}
