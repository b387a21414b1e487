/** Nodes of the prefix cache (radix-cache.ts), and the results of its operations. */
import type { PagePool } from './page-pool.ts';

/** Result of `match`. Call `lock` with its node before anything may be evicted. */
export interface PrefixMatch {
  /** Pages of the longest usable prefix, in order. */
  readonly pages: readonly number[];
  /** Its length in tokens, a multiple of the page size. */
  readonly length: number;
  /** Node at the end of the prefix; opaque to callers. */
  readonly node: RadixNode;
  /** Slot of the recurrent state after the prefix; undefined where the prefix is empty, and in models without recurrent layers. */
  readonly state: number | undefined;
  /** Sliding-window layers' pages of the window before the end of the prefix: those of its last pages. Empty without such layers. */
  readonly windows: readonly number[];
  /** Tokens whose pages the tree holds: more than `length` where a state or window pages are missing. */
  readonly known: number;
}

/** A sequence's pages of the sliding-window layers. */
export interface WindowPages {
  /** Index in the sequence of the first of `pages`. */
  readonly first: number;
  readonly pages: readonly number[];
}

/** The pool of the sliding-window layers' pages, and how many pages the window before a page boundary covers. */
export interface Windows {
  readonly pool: PagePool;
  readonly pages: number;
}

/** Result of `insert`. */
export interface Insertion {
  /** Number of leading pages whose tokens the tree had already: the caller's pages for those stay the caller's. */
  readonly known: number;
  /** The node at the end of the inserted tokens. */
  readonly node: RadixNode;
}

export class RadixNode {
  parent: RadixNode | undefined;
  /** Tokens of the edge from the parent: pages.length * pageSize of them. */
  tokens: Uint32Array;
  pages: number[];
  /** One page of the sliding-window layers per entry of `pages`, undefined where it is missing; empty in models without such layers. */
  windows: (number | undefined)[] = [];
  readonly children = new Map<string, RadixNode>();
  /** Number of locks by sequences that read this node or one below it. */
  locks = 0;
  /** Logical time of the last use. */
  used = 0;
  /** Slot of the recurrent state after the edge's last token. */
  state: number | undefined;
  /** Namespace of a root. */
  readonly salt: string;

  constructor(parent: RadixNode | undefined, tokens: Uint32Array, pages: number[], salt = '') {
    this.parent = parent;
    this.tokens = tokens;
    this.pages = pages;
    this.salt = salt;
  }
}

/** Pages along a path from the root, and the node at its end. */
export interface Path {
  readonly pages: number[];
  readonly windows: (number | undefined)[];
  readonly node: RadixNode;
}
