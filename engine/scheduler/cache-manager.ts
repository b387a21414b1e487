/** KV pages of sequences: rows of the block table, pages from the pool, and prefixes shared through the radix tree. */
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
  /** Where pages are shared; absent = they are not. */
  readonly prefixes?: RadixCache | undefined;
  /** Of a model with recurrent layers. */
  readonly states?: SequenceStates | undefined;
  /** Of a model with layers that see a window only. */
  readonly windows?: SequenceWindows | undefined;
  /** Pages of answers are not shared. */
  readonly promptsOnly?: boolean | undefined;
}

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

  /** Pages that are free or become so by eviction. */
  get numAvailable(): number {
    return this.#pool.numFree + (this.#prefixes?.numEvictable ?? 0);
  }

  /** Tokens of a waiting sequence whose keys and values are cached; its last token is always computed, to get logits. */
  cachedTokens(sequence: Sequence): number {
    return this.#prefixes?.peek(sequence.tokens, sequence.salt, this.#shareable(sequence)) ?? 0;
  }

  /** Tokens of a waiting sequence that may come from the cache. Where pages are of prompts alone, what it has answered may stand there as another's prompt. */
  #shareable({ tokens, numPrompt }: Sequence): number {
    return Math.min(tokens.length - 1, this.#promptsOnly ? numPrompt : Infinity);
  }

  /**
   * Gives a waiting sequence a row and its cached prefix, if afterwards there is room for the rest of its tokens and `reserve` more
   * pages. Changes nothing when it returns false.
   */
  admit(sequence: Sequence, reserve: number | undefined): boolean {
    if (this.#table.numFreeRows === 0) return false;
    const match = this.#prefixes?.match(sequence.tokens, sequence.salt, this.#shareable(sequence));
    // Locked before counting: what it needs itself must not count as room.
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
    // A sequence that was retracted finds its own pages again: those are no hits of its request.
    if (!sequence.hasRun) sequence.cached = match?.length ?? 0;
    return true;
  }

  /** What a sequence begins from beside its pages; false, and nothing changed, where there is no room for that. */
  #begin(sequence: Sequence, match: PrefixMatch | undefined, reserve: number | undefined): boolean {
    if (this.#windows?.begin(sequence, match, reserve) === false) return false;
    if (this.#states?.begin(sequence, match) !== false) return true;
    this.#windows?.end(sequence);
    return false;
  }

  /** Pages that a sequence lacks for `count` more positions. */
  #missing(sequence: Sequence, count: number): number {
    return Math.max(0, ceilDiv(sequence.computed + count, this.pageSize) - sequence.pages.length);
  }

  /** Whether a sequence that cannot have `count` more positions now could once those that leave have given theirs back. */
  canGrowAfter(sequence: Sequence, count: number, leaving: readonly Sequence[]): boolean {
    const sum = (held: (leaving: Sequence) => readonly number[]): number => leaving.reduce((all, one) => all + held(one).length, 0);
    if (this.#missing(sequence, count) > this.numAvailable + sum(({ pages }) => pages)) return false;
    return !this.#windows || this.#windows.missing(sequence, count) <= this.#windows.numAvailable + sum(({ windows }) => windows);
  }

  /** Gives a running sequence room for `count` more positions, evicting cached prefixes if it must; false when even that does not suffice. */
  grow(sequence: Sequence, count: number): boolean {
    this.#leave(sequence);
    const pages = this.#missing(sequence, count);
    const windows = this.#windows?.missing(sequence, count) ?? 0;
    if (pages > this.numAvailable || windows > (this.#windows?.numAvailable ?? 0)) return false;
    if (windows > 0) this.#windows!.grow(sequence, windows);
    if (pages > 0) this.#take(sequence, pages);
    return true;
  }

  /** Lets go of what lies behind a sequence's windows. The tree gets the pages of prompts first: others may part from one anywhere. */
  #leave(sequence: Sequence): void {
    if (!this.#windows) return;
    const behind = this.#windows.numBehind(sequence);
    if (behind === 0) return;
    if (sequence.published < Math.min(sequence.firstWindow + behind, Math.floor(sequence.numPrompt / this.pageSize)))
      this.publish(sequence);
    this.#windows.leave(sequence);
  }

  /** Takes pages for a sequence, of which there are as many. */
  #take(sequence: Sequence, pages: number): void {
    const short = pages - this.#pool.numFree;
    if (short > 0) this.#pool.release(this.#prefixes!.evict(short));
    const got = this.#pool.allocate(pages)!;
    this.#table.set(sequence.row, sequence.pages.length, got);
    sequence.pages.push(...got);
  }

  /** The slots of a step's item, of a model with recurrent layers. */
  useState(item: BatchItem): StateUse | undefined {
    // A copy that others may ask for goes to the tree before the next takes its place; of those on the way through an answer the last is enough.
    if (this.#states?.isWanted(item.sequence)) this.publish(item.sequence);
    return this.#states?.use(item);
  }

  /**
   * Puts a sequence's whole computed pages into the tree. Steps run in the order they are submitted, so a page may be shared as soon as
   * the step that fills it is submitted; tokens that only the device knows cannot be named yet.
   */
  publish(sequence: Sequence): void {
    if (!this.#prefixes || sequence.row < 0) return;
    const known = Math.min(sequence.computed, this.#promptsOnly ? sequence.numPrompt : sequence.tokens.length);
    const copy = this.#states?.copyWithin(sequence, known);
    if (copy !== undefined) this.#states!.publish(sequence, this.#insert(sequence, copy / this.pageSize));
    const pages = Math.floor(known / this.pageSize);
    if (pages > sequence.published) this.#insert(sequence, pages);
  }

  /** Puts a sequence's first pages into the tree; returns the node that ends with them. */
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

  /** Takes row and pages back; published pages stay in the tree until they are evicted. */
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
    this.#windows?.checkIntegrity(running);
    const rows = this.#table.rows - this.#table.numFreeRows;
    assert(rows === running.length, `${rows} rows are used by ${running.length} running sequences`);
  }
}
