/**
 * Prefix cache over KV pages: a radix tree whose edges are runs of whole pages (SGLang's RadixAttention). Host bookkeeping only: it maps
 * token prefixes to page numbers and never touches the contents of pages.
 *
 * Who owns a page: the tree owns the pages it holds, a running sequence owns the pages it allocated beyond its match. `insert` hands a
 * sequence's pages to the tree, except those whose tokens the tree has already. `lock` keeps a path from eviction while a sequence reads
 * it.
 *
 *     tokens of a sequence   |<--- match: locked, read-only --->|<-- own full pages -->|<- tail ->|
 *     on insert              | (already the tree's)             | adopted by the tree  | not kept |
 *
 * In a model with recurrent layers, a prefix is usable only where the state after it was kept. A node may have one such state, at the end
 * of its edge, and `match` goes no further than the last state on its path. The tree holds the slots of its states and releases them with
 * their nodes, or before them when slots run short, least recently used first.
 *
 * In a model with sliding-window layers, a node also has those layers' pages, each of which may be missing: a prefix is usable up to where
 * all pages of the window before its end are there. The tree drops such pages separately, least recently used first, when they run short.
 */
import { assert } from '../errors.ts';
import type { PagePool } from './page-pool.ts';
import { RadixNode } from './radix-node.ts';
import type { Insertion, Path, PrefixMatch, WindowPages, Windows } from './radix-node.ts';

export class RadixCache {
  readonly pageSize: number;
  readonly #states: PagePool | undefined;
  readonly #windows: Windows | undefined;
  /** Nodes that nobody holds, least recently used first, each before those above it: so the first one is a leaf. */
  readonly #idle = new Set<RadixNode>();
  /** Nodes that have a state. */
  readonly #stateful = new Set<RadixNode>();
  readonly #roots = new Map<string, RadixNode>();
  #clock = 0;
  #pages = 0;
  #locked = 0;

  /**
   * `states`: the pool of recurrent-state slots; `windows`: the pages of sliding-window layers. Undefined in models without such layers.
   */
  constructor(pageSize: number, states?: PagePool, windows?: Windows) {
    this.pageSize = pageSize;
    this.#states = states;
    this.#windows = windows;
  }

  /** Number of pages that the tree holds. */
  get numPages(): number {
    return this.#pages;
  }

  /** Number of pages that `evict` could free now. */
  get numEvictable(): number {
    return this.#pages - this.#locked;
  }

  /**
   * Finds the longest usable prefix of the first `limit` tokens in namespace `salt`. Changes the tree only by splitting an edge at the end
   * of the match and by marking the path as used.
   */
  match(tokens: ArrayLike<number>, salt = '', limit = tokens.length): PrefixMatch {
    const { pages, windows, node: last } = this.#walk(tokens, salt, limit);
    const known = pages.length * this.pageSize;
    let node = last;
    let count = this.#states ? pages.length : this.#reach(windows, pages.length);
    while (this.#states && node.parent && (node.state === undefined || this.#reach(windows, count) < count)) {
      count -= node.pages.length;
      node = node.parent;
    }
    const length = count * this.pageSize;
    if (!this.#states && length < known) ({ node } = this.#walk(tokens, salt, length));
    const before = windows.slice(Math.max(0, count - (this.#windows?.pages ?? 0)), count);
    return { pages: pages.slice(0, count), length, node, state: node.state, windows: before.map((page) => page!), known };
  }

  /** The largest prefix of a path, of at most `count` pages, whose last window is complete; `windows` has the path's window pages. */
  #reach(windows: readonly (number | undefined)[], count: number): number {
    if (!this.#windows) return count;
    const whole = (end: number): boolean => windows.slice(Math.max(0, end - this.#windows!.pages), end).every((page) => page !== undefined);
    let reach = count;
    while (!whole(reach)) reach--;
    return reach;
  }

  /** The path of the longest prefix whose pages the tree holds; splits an edge so that it ends at a node. */
  #walk(tokens: ArrayLike<number>, salt: string, limit: number): Path {
    // Namespaces come from clients: those that nothing is put into are not kept.
    let node = this.#roots.get(salt) ?? emptyRoot(salt);
    const pages: number[] = [];
    const windows: (number | undefined)[] = [];
    for (;;) {
      const at = pages.length * this.pageSize;
      const child = at + this.pageSize <= limit ? node.children.get(this.#key(tokens, at)) : undefined;
      if (!child) break;
      const shared = this.#sharedPages(child, tokens, at, limit);
      node = shared < child.pages.length ? this.#split(child, shared) : child;
      append(pages, node.pages);
      append(windows, node.windows);
      if (shared < child.pages.length || node !== child) break;
    }
    this.#clock++;
    this.#use(node);
    return { pages, windows, node };
  }

  /** Marks the path to a node as used now. */
  #use(node: RadixNode): void {
    for (let at: RadixNode | undefined = node; at; at = at.parent) {
      at.used = this.#clock;
      if (at.locks === 0) this.#queue(at);
    }
  }

  /** Makes a node the last to be evicted; a root never is. */
  #queue(node: RadixNode): void {
    this.#idle.delete(node);
    if (node.parent) this.#idle.add(node);
  }

  /** Length, in tokens, of the prefix that `match` would find. Changes nothing, so the scheduler can order its queue with it. */
  peek(tokens: ArrayLike<number>, salt = '', limit = tokens.length): number {
    let node = this.#roots.get(salt);
    let length = 0;
    let usable = 0;
    const windows: (number | undefined)[] = [];
    while (node && length + this.pageSize <= limit) {
      const child = node.children.get(this.#key(tokens, length));
      if (!child) break;
      const shared = this.#sharedPages(child, tokens, length, limit);
      length += shared * this.pageSize;
      append(windows, child.windows.slice(0, shared));
      if (shared < child.pages.length) break;
      node = child;
      if (node.state !== undefined && this.#reach(windows, windows.length) === windows.length) usable = length;
    }
    return this.#states ? usable : this.#reach(windows, length / this.pageSize) * this.pageSize;
  }

  /**
   * Inserts the full pages of `tokens`. The tree keeps its own pages for the first `known` of them and adopts the rest, which belong to it
   * from now on. It becomes a holder of the window pages that it lacks.
   */
  insert(tokens: ArrayLike<number>, pages: readonly number[], salt = '', windows?: WindowPages): Insertion {
    const count = Math.floor(tokens.length / this.pageSize);
    assert(pages.length >= count, `insert: ${pages.length} pages for ${tokens.length} tokens of ${this.pageSize} a page`);
    if (!this.#roots.has(salt)) this.#roots.set(salt, emptyRoot(salt));
    const { pages: found, node } = this.#walk(tokens, salt, tokens.length);
    const [known, length] = [found.length, found.length * this.pageSize];
    if (windows) this.#keepWindows(node, known, windows);
    if (known === count) return { known, node };
    const rest = Uint32Array.from({ length: (count - known) * this.pageSize }, (_, i) => tokens[length + i]!);
    const leaf = new RadixNode(node, rest, pages.slice(known, count));
    this.#use(leaf);
    if (this.#windows) leaf.windows = leaf.pages.map(() => undefined);
    node.children.set(this.#key(rest, 0), leaf);
    this.#pages += leaf.pages.length;
    if (windows) this.#keepWindows(leaf, count, windows);
    return { known, node: leaf };
  }

  /** Gives the nodes of a path of `end` pages the window pages that they lack. */
  #keepWindows(last: RadixNode, end: number, { first, pages }: WindowPages): void {
    for (let node = last; node.parent && end > first; node = node.parent) {
      end -= node.pages.length;
      for (let i = Math.max(0, first - end); i < node.windows.length; i++) {
        const page = pages[end + i - first];
        if (page === undefined || node.windows[i] !== undefined) continue;
        this.#windows!.pool.cache(page);
        node.windows[i] = page;
      }
    }
  }

  /**
   * Drops up to `count` window pages that only the tree holds: from the least recently used nodes first, and the earliest pages of a node
   * first.
   */
  dropWindows(count: number): void {
    let left = count;
    // The sort is stable, so of a path that was used at once the upper nodes go first: their window pages help only prompts that diverge
    // there.
    for (const node of this.#nodes().sort((a, b) => a.used - b.used)) {
      for (let i = 0; i < node.windows.length && left > 0; i++) {
        const page = node.windows[i];
        if (page === undefined || !this.#windows!.pool.isIdle(page)) continue;
        this.#windows!.pool.uncache(page);
        node.windows[i] = undefined;
        left--;
      }
      if (left === 0) return;
    }
  }

  /** All window pages that the tree holds. */
  windowPages(): number[] {
    return this.#nodes().flatMap(({ windows }) => windows.filter((page) => page !== undefined));
  }

  /** Gives a node the state after its last token, whose slot the tree holds from now on; no effect where it has one. */
  keep(node: RadixNode, slot: number): void {
    if (!this.#states || node.state !== undefined || !node.parent) return;
    this.#states.share([slot]);
    node.state = slot;
    this.#stateful.add(node);
  }

  /** Number of states that only the tree holds. */
  get numIdleStates(): number {
    return this.#idleStates().length;
  }

  /** Drops the least recently used state that only the tree holds; false when there is none. The node keeps its pages. */
  dropState(): boolean {
    const [first, ...others] = this.#idleStates();
    if (!first) return false;
    this.#forgetState(others.reduce((oldest, node) => (node.used < oldest.used ? node : oldest), first));
    return true;
  }

  /** Protects a path from eviction until `unlock`; may be held several times. */
  lock(node: RadixNode): void {
    for (let at: RadixNode | undefined = node; at; at = at.parent) {
      if (at.locks++ > 0) continue;
      this.#locked += at.pages.length;
      this.#idle.delete(at);
    }
  }

  /** Undoes one `lock` of the same node. What nobody holds any more counts as used now. */
  unlock(node: RadixNode): void {
    for (let at: RadixNode | undefined = node; at; at = at.parent) {
      assert(at.locks > 0, 'unlock of a node that is not locked');
      if (--at.locks > 0) continue;
      this.#locked -= at.pages.length;
      this.#queue(at);
      this.#dropEmpty(at);
    }
  }

  /** Evicts leaves, least recently used first, until at least `count` pages are freed or no unlocked leaf is left; returns the pages. */
  evict(count: number): number[] {
    const freed: number[] = [];
    for (const leaf of this.#idle) {
      if (freed.length >= count) break;
      const parent = leaf.parent!;
      append(freed, leaf.pages);
      this.#pages -= leaf.pages.length;
      this.#idle.delete(leaf);
      parent.children.delete(this.#key(leaf.tokens, 0));
      this.#forgetState(leaf);
      for (const page of leaf.windows) if (page !== undefined) this.#windows!.pool.uncache(page);
      leaf.windows = [];
      leaf.parent = undefined;
      this.#dropEmpty(parent);
    }
    return freed;
  }

  /** Evicts everything that is unlocked; returns the pages. */
  clear(): number[] {
    return this.evict(this.numEvictable);
  }

  /** All pages that the tree holds. */
  pages(): number[] {
    return this.#nodes().flatMap(({ pages }) => pages);
  }

  /** Throws when a count or a link is wrong. */
  checkIntegrity(): void {
    const seen = new Set<number>();
    let locked = 0;
    let idle = 0;
    const order = new Map([...this.#idle].map((node, i) => [node, i]));
    const visit = (node: RadixNode): void => {
      assert(
        node.tokens.length === node.pages.length * this.pageSize,
        `edge of ${node.tokens.length} tokens with ${node.pages.length} pages`,
      );
      const windows = this.#windows ? node.pages.length : 0;
      assert(node.windows.length === windows, `edge of ${node.pages.length} pages with ${node.windows.length} of windows`);
      if (node.locks > 0) locked += node.pages.length;
      else if (node.parent) idle++;
      for (const page of node.pages) {
        assert(!seen.has(page), `page ${page} is in the tree twice`);
        seen.add(page);
      }
      for (const [key, child] of node.children) {
        assert(child.parent === node && key === this.#key(child.tokens, 0), 'a child is filed under a wrong key or parent');
        assert(child.locks <= node.locks, `a child has ${child.locks} locks, its parent ${node.locks}`);
        const [before, behind] = [order.get(child) ?? -1, order.get(node) ?? Infinity];
        assert(before >= 0 === (child.locks === 0) && before < behind, `a child is evicted at ${before}, its parent at ${behind}`);
        visit(child);
      }
    };
    for (const root of this.#roots.values()) visit(root);
    assert(idle === order.size, `${idle} nodes can be evicted, ${order.size} are queued`);
    assert(seen.size === this.#pages, `the tree holds ${seen.size} pages, the count says ${this.#pages}`);
    assert(locked === this.#locked, `${locked} pages are locked, the count says ${this.#locked}`);
  }

  #forgetState(node: RadixNode): void {
    if (node.state === undefined) return;
    this.#states!.release([node.state]);
    node.state = undefined;
    this.#stateful.delete(node);
  }

  /** Slots of all states that the tree holds. */
  states(): number[] {
    return [...this.#stateful].flatMap(({ state }) => state ?? []);
  }

  #idleStates(): RadixNode[] {
    return [...this.#stateful].filter(({ state }) => this.#states!.holders(state!) === 1);
  }

  /** All nodes, each behind its parent. A chain of them may be longer than the stack is deep. */
  #nodes(): RadixNode[] {
    const nodes = [...this.#roots.values()];
    // It grows on the way.
    for (const node of nodes) for (const child of node.children.values()) nodes.push(child);
    return nodes;
  }

  /** Forgets an empty namespace: they come from clients, so they must not accumulate. */
  #dropEmpty(node: RadixNode): void {
    const { children, locks, salt } = node;
    if (children.size === 0 && locks === 0 && this.#roots.get(salt) === node) this.#roots.delete(salt);
  }

  /** The tokens of the page that begins at `at`, as a map key. */
  #key(tokens: ArrayLike<number>, at: number): string {
    let key = '';
    for (let i = 0; i < this.pageSize; i++) key += String.fromCharCode(tokens[at + i]! & 0xffff, tokens[at + i]! >>> 16);
    return key;
  }

  /** Number of full pages of a node's edge whose tokens equal those from `at` on, below `limit`. */
  #sharedPages(node: RadixNode, tokens: ArrayLike<number>, at: number, limit: number): number {
    const most = Math.min(node.tokens.length, limit - at);
    let i = 0;
    while (i < most && node.tokens[i] === tokens[at + i]) i++;
    return Math.floor(i / this.pageSize);
  }

  /** Splits an edge after `count` pages and returns the new upper node. The locks of the lower node hold for both. */
  #split(node: RadixNode, count: number): RadixNode {
    const { parent } = node;
    assert(parent, 'a root has no edge to split');
    const cut = count * this.pageSize;
    const upper = new RadixNode(parent, node.tokens.slice(0, cut), node.pages.slice(0, count));
    upper.locks = node.locks;
    upper.used = node.used;
    upper.windows = node.windows.slice(0, count);
    node.windows = node.windows.slice(count);
    parent.children.set(this.#key(node.tokens, 0), upper);
    node.tokens = node.tokens.slice(cut);
    node.pages = node.pages.slice(count);
    node.parent = upper;
    upper.children.set(this.#key(node.tokens, 0), node);
    return upper;
  }
}

/** Appends one by one: an edge may have more pages than a call may have arguments. */
function append<Item>(list: Item[], items: readonly Item[]): void {
  for (const item of items) list.push(item);
}

function emptyRoot(salt: string): RadixNode {
  return new RadixNode(undefined, new Uint32Array(0), [], salt);
}
