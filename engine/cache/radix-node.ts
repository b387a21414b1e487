/** What the prefix cache (radix-cache.ts) is made of, and what it answers. */
import type { PagePool } from './page-pool.ts';

/** What `match` found; `lock` it before anything else may evict. */
export interface PrefixMatch {
  /** Pages of the longest cached prefix, in order. */
  readonly pages: readonly number[];
  /** Its length in tokens, a multiple of the page size. */
  readonly length: number;
  /** The last node of the path; opaque to callers. */
  readonly node: RadixNode;
  /** Slot of the state behind it; undefined without states, and where nothing was found. */
  readonly state: number | undefined;
  /** Pages of the window before its end, the last of as many pages of the prefix; empty without windows. */
  readonly windows: readonly number[];
  /** Tokens whose pages the tree has: more than `length` where no state was kept. */
  readonly known: number;
}

/** Pages of the layers that see a window only. */
export interface WindowPages {
  /** Which page of the sequence the first of them is. */
  readonly first: number;
  readonly pages: readonly number[];
}

/** Where the pages of windows come from, and how many of them stand before a position that begins a page. */
export interface Windows {
  readonly pool: PagePool;
  readonly pages: number;
}

/** Result of `insert`. */
export interface Insertion {
  /** Pages of the prefix that the tree had already; the caller frees those of its own that stand for the same tokens. */
  readonly known: number;
  /** The node at the end of the inserted tokens. */
  readonly node: RadixNode;
}

export class RadixNode {
  parent: RadixNode | undefined;
  /** Tokens of the edge from the parent; a multiple of the page size. */
  tokens: Uint32Array;
  pages: number[];
  /** Of the layers that see a window only, as many; undefined where there is none. Empty without such layers. */
  windows: (number | undefined)[] = [];
  readonly children = new Map<string, RadixNode>();
  /** Sequences that read this node or one below it. */
  locks = 0;
  /** Logical time of the last use. */
  used = 0;
  /** Slot of the state behind the last token. */
  state: number | undefined;

  constructor(parent: RadixNode | undefined, tokens: Uint32Array, pages: number[]) {
    this.parent = parent;
    this.tokens = tokens;
    this.pages = pages;
  }
}

/** Pages along a path, and the node that it ends at. */
export interface Path {
  readonly pages: number[];
  readonly windows: (number | undefined)[];
  readonly node: RadixNode;
}
