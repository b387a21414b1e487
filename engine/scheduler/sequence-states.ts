/** States of sequences of a model with recurrent layers: a slot for each that runs, and copies behind whole pages for the prefix cache. */
import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import type { RadixCache } from '../cache/radix-cache.ts';
import type { PrefixMatch, RadixNode } from '../cache/radix-node.ts';
import { assert } from '../errors.ts';
import type { BatchItem, StateUse } from './batch.ts';
import type { Sequence } from './sequence.ts';

/**
 * A sequence writes its own slot in every step. Where a step passes the end of a page, a copy is taken on the way, which becomes the tree's together with the
 * pages before it. Copies are a luxury: they get what is left by the sequences that may still be admitted, and the oldest that nobody reads give way.
 *
 *     slots:  |-- own: one a running sequence --|-- copies of running sequences, not in the tree yet --|-- the tree's --|-- free --|
 *
 * Where guesses are verified a sequence has two: a step leaves the state behind its certain tokens in the one, and behind all guesses in the other. If all were
 * right, the other becomes its own; else what was right among them is computed again from the one, in the next step.
 */
export class SequenceStates {
  readonly #slots: PagePool;
  readonly #table: BlockTable;
  readonly #pageSize: number;
  readonly #prefixes: RadixCache | undefined;
  /** Slots of a sequence's own. */
  readonly #each: number;
  /** States of the tree that the step under way begins from: nothing of that step may write them. */
  #read: number[] = [];

  /** There are more slots than rows of the table, or than two for each where guesses are verified. */
  constructor(slots: PagePool, table: BlockTable, pageSize: number, prefixes: RadixCache | undefined, { guesses = false } = {}) {
    this.#each = guesses ? 2 : 1;
    assert(slots.size > this.#each * table.rows, `${slots.size} states for ${table.rows} sequences, expected more than ${this.#each} each`);
    this.#slots = slots;
    this.#table = table;
    this.#pageSize = pageSize;
    this.#prefixes = prefixes;
  }

  /** A step begins. Steps run one after the other, so that what the step before reads may be written in this one. */
  turn(): void {
    this.#slots.release(this.#read);
    this.#read = [];
  }

  /** Gives a waiting sequence a slot, and holds the state that it begins from; false, and nothing changed, when there is no slot in this step. */
  begin(sequence: Sequence, match: PrefixMatch | undefined): boolean {
    const from = match?.state;
    if (from !== undefined) this.#slots.share([from]);
    const slot = this.#take();
    const spare = slot === undefined || this.#each === 1 ? undefined : this.#take();
    if (slot === undefined || (spare === undefined && this.#each > 1)) {
      this.#slots.release([from, slot].filter((held) => held !== undefined));
      return false;
    }
    sequence.state = { slot, spare, from, kept: undefined, guessed: undefined, wanted: this.#wanted(sequence, match) };
    return true;
  }

  /** Of `count` positions of a prompt those that one step computes: it passes one position at most whose state is wanted. */
  cut({ state, computed }: Sequence, count: number): number {
    const passed = (state?.wanted ?? []).filter((at) => at > computed && at <= computed + count);
    return passed.length > 1 ? passed[0]! - computed : count;
  }

  /** Whether a sequence has a copy where one was wanted. */
  isWanted({ state }: Sequence): boolean {
    return state?.kept !== undefined && state.wanted.includes(state.kept.at);
  }

  /** The slots of a step that computes `count` positions of a sequence from `start` on, the last of which hold guesses. */
  use({ sequence, start, count, drafts }: BatchItem): StateUse {
    const state = sequence.state!;
    const { slot, spare, from, kept } = state;
    if (from !== undefined) this.#read.push(from);
    state.from = undefined;
    const certain = count - drafts.length;
    const read = start === 0 ? undefined : (from ?? slot);
    const step = drafts.length > 0 ? { read, write: spare!, certain: { slot, after: certain } } : { read, write: slot };
    const at = this.#copyAt(sequence, start, start + count);
    const copy = at === undefined ? undefined : this.#takeCopy();
    if (at === undefined || copy === undefined) return step;
    if (at > start + certain) state.guessed = { slot: copy, at };
    else {
      if (kept) this.#slots.release([kept.slot]);
      state.kept = { slot: copy, at };
    }
    return { ...step, keep: { slot: copy, after: at - start } };
  }

  /** A step's guesses are verified: its last state is the sequence's if all were right. */
  settle({ state }: Sequence, allRight: boolean): void {
    const { slot, spare, kept, guessed } = state!;
    if (allRight) [state!.slot, state!.spare] = [spare!, slot];
    if (!guessed) return;
    const dropped = allRight ? kept : guessed;
    if (dropped) this.#slots.release([dropped.slot]);
    if (allRight) state!.kept = guessed;
    state!.guessed = undefined;
  }

  /** Tokens behind which a sequence has a copy, if that is within the first `known`. */
  copyWithin({ state }: Sequence, known: number): number | undefined {
    const at = state?.kept?.at;
    return at !== undefined && at <= known ? at : undefined;
  }

  /** Gives a sequence's copy to the node of the tree that ends where it was taken. */
  publish({ state }: Sequence, node: RadixNode): void {
    const { slot } = state!.kept!;
    this.#prefixes!.keep(node, slot);
    this.#slots.release([slot]);
    state!.kept = undefined;
  }

  /** Takes everything back. */
  end(sequence: Sequence): void {
    this.#slots.release(slotsOf(sequence));
    sequence.state = undefined;
  }

  /** Throws unless the slots add up for these running sequences. */
  checkIntegrity(running: readonly Sequence[]): void {
    this.#slots.checkIntegrity();
    const held = new Set([...running.flatMap(slotsOf), ...this.#read, ...(this.#prefixes?.states() ?? [])]);
    assert(held.size === this.#slots.numUsed, `${this.#slots.numUsed} states are used, sequences and tree hold ${held.size}`);
  }

  /** Where other prompts part from this one though no state was kept, and the last end of a page before its last token, which is always computed. */
  #wanted({ length }: Sequence, match: PrefixMatch | undefined): readonly number[] {
    if (!match) return [];
    const last = Math.floor((length - 1) / this.#pageSize) * this.#pageSize;
    return [...new Set([match.known, last])].filter((at) => at > match.length).sort((a, b) => a - b);
  }

  /** Where a step over [start, end) should leave a copy: where one is wanted, else at the last end of a page that it passes. */
  #copyAt({ state }: Sequence, start: number, end: number): number | undefined {
    if (!this.#prefixes) return undefined;
    const wanted = state!.wanted.find((at) => at > start && at <= end);
    const last = Math.floor(end / this.#pageSize) * this.#pageSize;
    return wanted ?? (last > start ? last : undefined);
  }

  /** A slot for a copy, unless sequences that may still come would lack it. */
  #takeCopy(): number | undefined {
    const available = this.#slots.numFree + (this.#prefixes?.numIdleStates ?? 0);
    return available > this.#each * this.#table.numFreeRows ? this.#take() : undefined;
  }

  /** A free slot, or that of the oldest state that nobody reads. */
  #take(): number | undefined {
    if (this.#slots.numFree === 0) this.#prefixes?.dropState();
    return this.#slots.allocate(1)?.[0];
  }
}

function slotsOf({ state }: Sequence): number[] {
  return [state?.slot, state?.spare, state?.from, state?.kept?.slot, state?.guessed?.slot].filter((slot) => slot !== undefined);
}
