/** Recurrent-state slots: one for each running sequence, and copies at page boundaries for the prefix cache. */
import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import type { RadixCache } from '../cache/radix-cache.ts';
import type { PrefixMatch, RadixNode } from '../cache/radix-node.ts';
import { assert } from '../errors.ts';
import type { BatchItem, StateUse } from './batch.ts';
import type { Sequence } from './sequence.ts';

/**
 * A sequence writes its own slot in every step. Where a step crosses a page boundary, it also leaves a copy of the state there, which goes
 * to the tree together with the pages before it. Copies are optional: they use only slots that sequences still to be admitted can spare,
 * and the least recently used ones that nobody reads are dropped first.
 *
 *     slots:  |-- own: one per running sequence --|-- copies not in the tree yet --|-- the tree's --|-- free --|
 *
 * With speculative decoding a sequence has two slots. A verifying step leaves the state after the known tokens in one, and the state after
 * all drafts in the other. If all drafts were right, the other becomes its own; else the next step computes the accepted drafts again, from
 * the first.
 */
export class SequenceStates {
  readonly #slots: PagePool;
  readonly #table: BlockTable;
  readonly #pageSize: number;
  readonly #prefixes: RadixCache | undefined;
  /** Own slots per sequence: 2 with speculative decoding, else 1. */
  readonly #each: number;
  /** Slots of cached states that the step being scheduled reads: nothing in that step may write them. */
  #read: number[] = [];

  /** `slots` must have more than one slot per row of the table, or more than two where `speculative`: drafts are verified. */
  constructor(slots: PagePool, table: BlockTable, pageSize: number, prefixes: RadixCache | undefined, { speculative = false } = {}) {
    this.#each = speculative ? 2 : 1;
    assert(slots.size > this.#each * table.rows, `${slots.size} states for ${table.rows} sequences, expected more than ${this.#each} each`);
    this.#slots = slots;
    this.#table = table;
    this.#pageSize = pageSize;
    this.#prefixes = prefixes;
  }

  /** Begins a step. Steps run in order, so this one may write what the previous one reads. */
  turn(): void {
    this.#slots.release(this.#read);
    this.#read = [];
  }

  /**
   * Allocates a waiting sequence's slots and holds the cached state that it begins from; returns false, and changes nothing, when none is
   * free.
   */
  begin(sequence: Sequence, match: PrefixMatch | undefined): boolean {
    const from = match?.state;
    if (from !== undefined) this.#slots.share([from]);
    const slot = this.#take();
    const spare = slot === undefined || this.#each === 1 ? undefined : this.#take();
    if (slot === undefined || (spare === undefined && this.#each > 1)) {
      this.#slots.release([from, slot].filter((held) => held !== undefined));
      return false;
    }
    sequence.state = { slot, spare, from, kept: undefined, drafted: undefined, wanted: this.#wanted(sequence, match) };
    return true;
  }

  /** Limits a prompt chunk of `count` positions, so that a step passes at most one position whose state is wanted: it can keep one copy. */
  cut({ state, computed }: Sequence, count: number): number {
    const passed = (state?.wanted ?? []).filter((at) => at > computed && at <= computed + count);
    return passed.length > 1 ? passed[0]! - computed : count;
  }

  /** Whether a sequence holds a copy taken at a wanted position. */
  isWanted({ state }: Sequence): boolean {
    return state?.kept !== undefined && state.wanted.includes(state.kept.at);
  }

  /** Chooses the slots of a step over positions [start, start + count), of which the last `drafts.length` are drafts. */
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
    if (at > start + certain) state.drafted = { slot: copy, at };
    else {
      if (kept) this.#slots.release([kept.slot]);
      state.kept = { slot: copy, at };
    }
    return { ...step, keep: { slot: copy, after: at - start } };
  }

  /**
   * Settles a verification: if all drafts were right, the state after them becomes the sequence's own, and so does a copy taken among them.
   */
  settle({ state }: Sequence, allRight: boolean): void {
    const { slot, spare, kept, drafted } = state!;
    if (allRight) [state!.slot, state!.spare] = [spare!, slot];
    if (!drafted) return;
    const dropped = allRight ? kept : drafted;
    if (dropped) this.#slots.release([dropped.slot]);
    if (allRight) state!.kept = drafted;
    state!.drafted = undefined;
  }

  /** Length of the prefix that a sequence has a state copy for, if that is at most `known` tokens. */
  copyWithin({ state }: Sequence, known: number): number | undefined {
    const at = state?.kept?.at;
    return at !== undefined && at <= known ? at : undefined;
  }

  /** Hands a sequence's copy to the tree node whose prefix ends where the copy was taken. */
  publish({ state }: Sequence, node: RadixNode): void {
    const { slot } = state!.kept!;
    this.#prefixes!.keep(node, slot);
    this.#slots.release([slot]);
    state!.kept = undefined;
  }

  /** Releases all slots of a sequence. */
  end(sequence: Sequence): void {
    this.#slots.release(slotsOf(sequence));
    sequence.state = undefined;
  }

  /** Throws unless the slots in use are those that `running`, the step being scheduled and the tree hold. */
  checkIntegrity(running: readonly Sequence[]): void {
    this.#slots.checkIntegrity();
    const held = new Set([...running.flatMap(slotsOf), ...this.#read, ...(this.#prefixes?.states() ?? [])]);
    assert(held.size === this.#slots.numUsed, `${this.#slots.numUsed} states are used, sequences and tree hold ${held.size}`);
  }

  /**
   * Positions whose state the cache lacks: where other cached prompts diverge from this one, and the last page boundary before its last
   * token, which is always computed.
   */
  #wanted({ length }: Sequence, match: PrefixMatch | undefined): readonly number[] {
    if (!match) return [];
    const last = Math.floor((length - 1) / this.#pageSize) * this.#pageSize;
    return [...new Set([match.known, last])].filter((at) => at > match.length).sort((a, b) => a - b);
  }

  /** Where a step over positions [start, end) leaves a copy: at a wanted position, else at the last page boundary that it reaches. */
  #copyAt({ state }: Sequence, start: number, end: number): number | undefined {
    if (!this.#prefixes) return undefined;
    const wanted = state!.wanted.find((at) => at > start && at <= end);
    const last = Math.floor(end / this.#pageSize) * this.#pageSize;
    return wanted ?? (last > start ? last : undefined);
  }

  /** A slot for a copy, or undefined where sequences yet to be admitted would lack it. */
  #takeCopy(): number | undefined {
    const available = this.#slots.numFree + (this.#prefixes?.numIdleStates ?? 0);
    return available > this.#each * this.#table.numFreeRows ? this.#take() : undefined;
  }

  /** A free slot, or that of the least recently used cached state that nobody reads. */
  #take(): number | undefined {
    if (this.#slots.numFree === 0) this.#prefixes?.dropState();
    return this.#slots.allocate(1)?.[0];
  }
}

function slotsOf({ state }: Sequence): number[] {
  return [state?.slot, state?.spare, state?.from, state?.kept?.slot, state?.drafted?.slot].filter((slot) => slot !== undefined);
}
