/**
 * Prompts that running sequences are still computing, as a radix tree. A waiting sequence that shares much more of one than is cached yet
 * had better wait for it.
 */
import { PagePool } from '../cache/page-pool.ts';
import { RadixCache } from '../cache/radix-cache.ts';
import type { Sequence } from './sequence.ts';

export interface ComputingOptions {
  readonly pageSize: number;
  readonly maxRunning: number;
  /** The model has recurrent layers, so that a prefix is usable only where a state is kept. */
  readonly hasStates: boolean;
}

export class ComputingPrompts {
  readonly #slots: PagePool | undefined;
  readonly #tree: RadixCache;

  constructor(running: readonly Sequence[], { pageSize, maxRunning, hasStates }: ComputingOptions) {
    // One slot for each running sequence, and one for each that may be admitted in this step.
    this.#slots = hasStates ? new PagePool(2 * maxRunning) : undefined;
    this.#tree = new RadixCache(pageSize, this.#slots);
    for (const sequence of running) {
      // A paused sequence may stand still for ever, and one that has published its whole prompt is in the prefix cache.
      if (!sequence.paused && sequence.published * pageSize + pageSize <= sequence.numPrompt) this.add(sequence);
    }
  }

  /** Adds a sequence that is computing its prompt. */
  add(sequence: Sequence): void {
    const tokens = sequence.tokens.slice(0, sequence.state?.wanted.at(-1) ?? sequence.tokens.length);
    const { node } = this.#tree.insert(tokens, placeholders(tokens), sequence.salt);
    // Other sequences can begin only where a state is kept, which is at the end of these tokens.
    if (this.#slots) this.#tree.keep(node, this.#slots.allocate(1)![0]!);
  }

  /** Length, in tokens, of the longest prefix that a waiting sequence shares with one of these prompts. */
  shared({ tokens, salt }: Sequence): number {
    return this.#tree.peek(tokens, salt);
  }
}

/** One page number per token is more than the tree needs; their values do not matter, because it is asked for lengths only. */
function placeholders(tokens: readonly number[]): number[] {
  return tokens.map(() => 0);
}
