/** Prompts that running sequences are still computing, by prefix: a sequence that shares more of one than is cached does better to wait. */
import { PagePool } from '../cache/page-pool.ts';
import { RadixCache } from '../cache/radix-cache.ts';
import type { Sequence } from './sequence.ts';

export interface ComputingOptions {
  readonly pageSize: number;
  readonly maxRunning: number;
  /** Of a model with recurrent layers. */
  readonly hasStates: boolean;
}

export class ComputingPrompts {
  readonly #slots: PagePool | undefined;
  readonly #tree: RadixCache;

  constructor(running: readonly Sequence[], { pageSize, maxRunning, hasStates }: ComputingOptions) {
    // Of those that run, and of as many that take their places in this step.
    this.#slots = hasStates ? new PagePool(2 * maxRunning) : undefined;
    this.#tree = new RadixCache(pageSize, this.#slots);
    for (const sequence of running) {
      // One whose reader is behind may stand still for ever.
      if (!sequence.paused && sequence.published * pageSize + pageSize <= sequence.numPrompt) this.add(sequence);
    }
  }

  /** Adds a sequence that computes its prompt. */
  add(sequence: Sequence): void {
    const tokens = sequence.tokens.slice(0, sequence.state?.wanted.at(-1) ?? sequence.tokens.length);
    const { node } = this.#tree.insert(tokens, placeholders(tokens), sequence.salt);
    // Where a state is to be kept: what comes between is of use to nobody.
    if (this.#slots) this.#tree.keep(node, this.#slots.allocate(1)![0]!);
  }

  /** Tokens of a waiting sequence that one of them computes. */
  shared({ tokens, salt }: Sequence): number {
    return this.#tree.peek(tokens, salt);
  }
}

/** The tree only answers how long a shared prefix is: which pages does not matter. */
function placeholders(tokens: readonly number[]): number[] {
  return tokens.map(() => 0);
}
