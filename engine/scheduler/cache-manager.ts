/** KV cache bookkeeping of sequences: block table rows, pages from the pool, and prefixes shared through the radix tree. */
import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import type { RadixCache } from '../cache/radix-cache.ts';
import type { PrefixMatch, RadixNode } from '../cache/radix-node.ts';
import type { BatchItem, StateUse } from './batch.ts';
import type { SequenceStates } from './sequence-states.ts';
import type { SequenceWindows } from './sequence-windows.ts';
import { assert } from '../errors.ts';
import { ceilDiv } from '../util/math.ts';
import type { Sequence } from './sequence.ts';

export interface CacheParts {
  /** The prefix cache; absent = no pages are shared. */
  readonly prefixes?: RadixCache | undefined;
  /** Slots of recurrent states; absent in models without recurrent layers. */
  readonly states?: SequenceStates | undefined;
  /** Pages of sliding-window layers; absent in models without them. */
  readonly windows?: SequenceWindows | undefined;
  /** Publishes pages of prompts only, never of generated tokens; default false. */
  readonly promptsOnly?: boolean | undefined;
}

/**
 * Allocates, shares and releases the KV pages of sequences. Pages are reference-counted: each sequence whose row names a page holds it, and
 * so does the tree. A page without holders is free.
 *
 *     pages of a sequence:  |-- shared: found in the tree, path locked --|-- own, published once computed --|-- own, partial --|
 */
export class CacheManager {
  readonly pageSize: number;
  readonly #pool: PagePool;
  readonly #table: BlockTable;
  readonly #prefixes: RadixCache | undefined;
  readonly #states: SequenceStates | undefined;
  readonly #windows: SequenceWindows | undefined;
  readonly #promptsOnly: boolean;

  constructor(pool: PagePool, table: BlockTable, pageSize: number, { prefixes, states, windows, promptsOnly = false }: CacheParts = {}) {
    this.pageSize = pageSize;
    this.#pool = pool;
    this.#table = table;
    this.#prefixes = prefixes;
    this.#states = states;
    this.#windows = windows;
    this.#promptsOnly = promptsOnly;
  }

  /** Pages that are free or can be evicted from the prefix cache. */
  get numAvailable(): number {
    return this.#pool.numFree + (this.#prefixes?.numEvictable ?? 0);
  }

  /** Tokens of a waiting sequence that the prefix cache holds. The last token never counts: it is always computed, to get logits. */
  cachedTokens(sequence: Sequence): number {
    return this.#prefixes?.peek(sequence.tokens, sequence.salt, this.#shareable(sequence)) ?? 0;
  }

  /**
   * The most tokens of a waiting sequence that may come from the cache. With `promptsOnly` these end with its prompt: the tree may hold
   * this sequence's generated tokens too, as part of another sequence's prompt.
   */
  #shareable({ tokens, numPrompt }: Sequence): number {
    return Math.min(tokens.length - 1, this.#promptsOnly ? numPrompt : Infinity);
  }

  /**
   * Gives a waiting sequence a block table row and its cached prefix, if that leaves room for the rest of its tokens and for `reserve`
   * pages more; with `reserve` undefined it does not ask for room. Changes nothing when it returns false.
   */
  admit(sequence: Sequence, reserve: number | undefined): boolean {
    if (this.#table.numFreeRows === 0) return false;
    const match = this.#prefixes?.match(sequence.tokens, sequence.salt, this.#shareable(sequence));
    // Lock before counting: pages of its own prefix must not count as evictable.
    if (match) this.#prefixes!.lock(match.node);
    const needed = ceilDiv(sequence.length, this.pageSize) - (match?.pages.length ?? 0);
    const hasPages = reserve === undefined || needed + reserve <= this.numAvailable;
    if (!hasPages || !this.#begin(sequence, match, reserve)) {
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
    this.#windows?.place(sequence);
    // A retracted sequence finds its own pages again, which is no cache hit of its request.
    if (!sequence.hasRun) sequence.cached = match?.length ?? 0;
    return true;
  }

  /** Gives a sequence its window pages and its recurrent-state slot; returns false, and changes nothing, when either has no room. */
  #begin(sequence: Sequence, match: PrefixMatch | undefined, reserve: number | undefined): boolean {
    if (this.#windows?.begin(sequence, match, reserve) === false) return false;
    if (this.#states?.begin(sequence, match) !== false) return true;
    this.#windows?.end(sequence);
    return false;
  }

  /** Pages that a sequence lacks to hold `count` more positions. */
  #missing(sequence: Sequence, count: number): number {
    return Math.max(0, ceilDiv(sequence.computed + count, this.pageSize) - sequence.pages.length);
  }

  /** Whether `grow` by `count` positions would succeed once the `leaving` sequences have released their pages. */
  canGrowAfter(sequence: Sequence, count: number, leaving: readonly Sequence[]): boolean {
    const sum = (held: (leaving: Sequence) => readonly number[]): number => leaving.reduce((all, one) => all + held(one).length, 0);
    if (this.#missing(sequence, count) > this.numAvailable + sum(({ pages }) => pages)) return false;
    return !this.#windows || this.#windows.missing(sequence, count) <= this.#windows.numAvailable + sum(({ windows }) => windows);
  }

  /**
   * Allocates pages for `count` more positions of a running sequence, evicting cached prefixes if needed; false when that does not suffice.
   */
  grow(sequence: Sequence, count: number): boolean {
    this.#leave(sequence);
    const pages = this.#missing(sequence, count);
    const windows = this.#windows?.missing(sequence, count) ?? 0;
    if (pages > this.numAvailable || windows > (this.#windows?.numAvailable ?? 0)) return false;
    if (windows > 0) this.#windows!.grow(sequence, windows);
    if (pages > 0) this.#take(sequence, pages);
    return true;
  }

  /**
   * Releases the pages that a sequence's sliding windows have passed. Those of its prompt are published first, because another prompt may
   * share any part of it.
   */
  #leave(sequence: Sequence): void {
    if (!this.#windows) return;
    const behind = this.#windows.numBehind(sequence);
    if (behind === 0) return;
    if (sequence.published < Math.min(sequence.firstWindow + behind, Math.floor(sequence.numPrompt / this.pageSize)))
      this.publish(sequence);
    this.#windows.leave(sequence);
  }

  /** Allocates pages for a sequence, evicting where too few are free; the caller has checked that enough are available. */
  #take(sequence: Sequence, pages: number): void {
    const short = pages - this.#pool.numFree;
    if (short > 0) this.#pool.release(this.#prefixes!.evict(short));
    const got = this.#pool.allocate(pages)!;
    this.#table.set(sequence.row, sequence.pages.length, got);
    for (const page of got) sequence.pages.push(page);
  }

  /** The recurrent-state slots of a batch item; undefined in models without recurrent layers. */
  useState(item: BatchItem): StateUse | undefined {
    // A wanted copy enters the tree before the next one replaces it; of the copies taken while generating, the last one is enough.
    if (this.#states?.isWanted(item.sequence)) this.publish(item.sequence);
    return this.#states?.use(item);
  }

  /**
   * Inserts a sequence's full computed pages into the tree. Steps run in the order of submission, so a page may be shared as soon as the
   * step that fills it is submitted. Tokens that only the device knows are left out, since they cannot be keys yet.
   */
  publish(sequence: Sequence): void {
    if (!this.#prefixes || sequence.row < 0) return;
    const known = Math.min(sequence.computed, this.#promptsOnly ? sequence.numPrompt : sequence.tokens.length);
    const copy = this.#states?.copyWithin(sequence, known);
    if (copy !== undefined) this.#states!.publish(sequence, this.#insert(sequence, copy / this.pageSize));
    const pages = Math.floor(known / this.pageSize);
    if (pages > sequence.published) this.#insert(sequence, pages);
  }

  /** Inserts the first `pages` pages of a sequence into the tree and moves its lock to the node at their end, which it returns. */
  #insert(sequence: Sequence, pages: number): RadixNode {
    const prefixes = this.#prefixes!;
    const windows = this.#windows && { first: sequence.firstWindow, pages: sequence.windows };
    const { known, node } = prefixes.insert(sequence.tokens.slice(0, pages * this.pageSize), sequence.pages, sequence.salt, windows);
    this.#pool.share(sequence.pages.slice(known, pages));
    prefixes.lock(node);
    if (sequence.node) prefixes.unlock(sequence.node);
    sequence.node = node;
    sequence.published = pages;
    return node;
  }

  /** Releases a sequence's row, pages and slots; published pages stay in the tree until they are evicted. */
  release(sequence: Sequence): void {
    this.#states?.end(sequence);
    this.#windows?.end(sequence);
    if (sequence.node) this.#prefixes!.unlock(sequence.node);
    sequence.node = undefined;
    sequence.published = 0;
    this.#pool.release(sequence.pages);
    sequence.pages = [];
    if (sequence.row >= 0) this.#table.freeRow(sequence.row);
    sequence.row = -1;
  }

  /** Evicts every cached prefix that no running sequence reads. */
  flush(): void {
    if (this.#prefixes) this.#pool.release(this.#prefixes.clear());
  }

  /** Throws unless the pages, rows and slots in use are those that `running` and the tree hold. */
  checkIntegrity(running: readonly Sequence[]): void {
    this.#pool.checkIntegrity();
    this.#prefixes?.checkIntegrity();
    const own = new Set(running.flatMap(({ pages }) => pages));
    const tree = this.#prefixes?.pages() ?? [];
    const held = new Set([...own, ...tree]);
    assert(held.size === this.#pool.numUsed, `${this.#pool.numUsed} pages are used, sequences and tree hold ${held.size}`);
    this.#states?.checkIntegrity(running);
    this.#windows?.checkIntegrity(running);
    const rows = this.#table.rows - this.#table.numFreeRows;
    assert(rows === running.length, `${rows} rows are used by ${running.length} running sequences`);
  }
}
