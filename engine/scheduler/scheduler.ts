import type { BlockTable } from '../cache/block-table.ts';
import { PagePool } from '../cache/page-pool.ts';
import { assert } from '../errors.ts';
import { RadixCache } from '../cache/radix-cache.ts';
import { FROM_HEAD, isOfPrompt } from './batch.ts';
import type { Batch, BatchItem, SampledRow } from './batch.ts';
import { CacheManager } from './cache-manager.ts';
import { ComputingPrompts } from './computing-prompts.ts';
import { Guesses } from './guesses.ts';
import type { GuessOptions } from './guesses.ts';
import { MAX_MATCHED } from './policy.ts';
import type { PrefillPace } from './prefill-pace.ts';
import { SequenceQueues } from './sequence-queues.ts';
import type { QueueOptions } from './sequence-queues.ts';
import { SequenceStates } from './sequence-states.ts';
import { SequenceWindows, pagesBefore } from './sequence-windows.ts';
import type { WindowOptions } from './sequence-windows.ts';
import type { Sequence } from './sequence.ts';

export interface SchedulerOptions extends GuessOptions, QueueOptions {
  readonly pageSize: number;
  /** Prompt tokens a step. */
  readonly prefillChunk: number;
  /** Fewer, by how long steps take; absent = always as many. */
  readonly pace?: PrefillPace | undefined;
  /** Share the pages of equal prefixes; default off. */
  readonly prefixCache?: boolean;
  /**
   * Prompts are computed with other bits than answers: what one step computes of a sequence is all of its prompt or nothing of it, prompts come last in a step,
   * and only they are shared. So what a position gives depends on what it is, never on when or beside what it is computed.
   */
  readonly promptsApart?: boolean | undefined;
  /** Slots for states, more than `maxRunning`, of a model with recurrent layers; with guesses more than twice as many. */
  readonly stateSlots?: number | undefined;
  /** Of a model with layers that see a window only. */
  readonly windows?: WindowOptions | undefined;
}

/** Share of a step's prompt tokens that a prompt under way may take while others wait. */
const LONGEST_SHARE = 3 / 4;

/** Shared tokens from which it is worth waiting for another sequence to compute them first (SGLang's threshold). */
const WORTH_WAITING = 32;

/**
 * Decides what the next step computes. Continuous batching: every running sequence decodes in every step, and prompts fill the
 * step up to `prefillChunk` tokens beside them. Steps are submitted one ahead: `next()` may be called before the step before was
 * `complete()`d. A sequence that ends meanwhile has been computed one position too far, into its own pages, which are released
 * when its last step completes.
 */
export class Scheduler {
  readonly #cache: CacheManager;
  readonly #states: SequenceStates | undefined;
  readonly #windows: SequenceWindows | undefined;
  readonly #pages: number;
  readonly #options: SchedulerOptions;
  readonly #queues: SequenceQueues;
  readonly #guesses: Guesses;

  constructor(pool: PagePool, table: BlockTable, options: SchedulerOptions) {
    const { pageSize, prefixCache, stateSlots, draftRows = 0 } = options;
    const slots = stateSlots === undefined ? undefined : new PagePool(stateSlots);
    const { windows, prefillChunk: chunk } = options;
    const windowPool = new PagePool(windows?.pages ?? 0);
    const kept = windows && { pool: windowPool, pages: pagesBefore(windows.window, pageSize) };
    const prefixes = prefixCache ? new RadixCache(pageSize, slots, kept) : undefined;
    this.#states = slots && new SequenceStates(slots, table, pageSize, prefixes, { guesses: draftRows > 0 });
    this.#windows = windows && new SequenceWindows(windowPool, table.windows!, pageSize, { window: windows.window, chunk }, prefixes);
    const parts = { prefixes, states: this.#states, windows: this.#windows, promptsOnly: options.promptsApart };
    this.#cache = new CacheManager(pool, table, pageSize, parts);
    this.#queues = new SequenceQueues(this.#cache, options);
    this.#options = options;
    this.#guesses = new Guesses(options);
    this.#pages = pool.size;
  }

  get numWaiting(): number {
    return this.#queues.waiting.length;
  }

  /** Tokens of waiting sequences that are not cached; of the many that are not matched with the cache, all tokens. */
  get numWaitingTokens(): number {
    const cached = (sequence: Sequence, index: number): number => (index < MAX_MATCHED ? this.#cache.cachedTokens(sequence) : 0);
    return this.#queues.waiting.reduce((sum, sequence, index) => sum + sequence.tokens.length - cached(sequence, index), 0);
  }

  get numRunning(): number {
    return this.#queues.running.length;
  }

  /** Guesses verified so far, and how many of them were right. */
  get guesses(): { readonly drafted: number; readonly accepted: number } {
    return this.#guesses.counts;
  }

  /** Queues sequences of one request, all or none; throws EngineError('queue_full'). */
  add(sequences: readonly Sequence[]): void {
    this.#queues.add(sequences);
  }

  /** Ends a sequence: finished, stopped or aborted. Its pages are free as soon as no submitted step uses them. */
  finish(sequence: Sequence): void {
    this.#queues.finish(sequence);
  }

  /** The next step, or undefined when nothing can run before a submitted step completes or a sequence arrives. */
  next(): Batch | undefined {
    this.#states?.turn();
    // How far a sequence with guesses comes is worth waiting for: without it the next step would run twice, once for the others.
    if (this.#queues.running.some(({ verifying }) => verifying)) return undefined;
    const decodes: BatchItem[] = [];
    const prefills: BatchItem[] = [];
    let budget = this.#options.pace?.chunk ?? this.#options.prefillChunk;
    for (const sequence of [...this.#queues.running]) {
      // What is computed again counts as tokens of a prompt do.
      const count = Math.min(sequence.uncomputed, 1 + budget);
      if (!isReady(sequence) || !this.#decodes(sequence) || !this.#queues.grow(sequence, count)) continue;
      const drafts = count === sequence.uncomputed ? this.#guess(sequence, budget - sequence.again) : [];
      const item = this.#item(sequence, count + drafts.length, drafts);
      budget -= item.count - 1;
      if (item.count > 1) prefills.push(item);
      else decodes.push(item);
    }
    this.#schedulePrompts(decodes, prefills, budget);
    // Retracting may have taken pages of a sequence that was scheduled before.
    const live = (item: BatchItem): boolean => item.sequence.status === 'running';
    const placed = (item: BatchItem): BatchItem => (this.#states ? { ...item, state: this.#cache.useState(item) } : item);
    const batch = { decodes: decodes.filter(live).map(placed), prefills: prefills.filter(live).map(placed) };
    if (this.#options.promptsApart) batch.prefills.sort((a, b) => Number(isOfPrompt(a)) - Number(isOfPrompt(b)));
    const items = [...batch.decodes, ...batch.prefills];
    if (items.length === 0) return undefined;
    for (const { sequence, count, samples, drafts } of items) {
      // What follows a guess counts only once the guess was right.
      sequence.computed += count - drafts.length;
      sequence.again = Math.max(0, sequence.again - count);
      sequence.hasRun = true;
      sequence.hasSampled = samples > 0;
      sequence.pending += samples > 0 ? 1 : 0;
      sequence.verifying = drafts.length > 0;
      sequence.inFlight++;
    }
    const sampled = items.flatMap(({ sequence, start, count, samples }) =>
      Array.from({ length: samples }, (_, i): SampledRow => ({ sequence, position: start + count - samples + i + 1 })),
    );
    return { ...batch, sampled };
  }

  /** Hears how long a step took, in milliseconds. */
  took({ decodes, prefills }: Batch, milliseconds: number): void {
    this.#options.pace?.took(
      [...decodes, ...prefills].reduce((sum, { count }) => sum + count, 0),
      milliseconds,
    );
  }

  /**
   * Takes a step's tokens, one for each of batch.sampled, and what the head has guessed for those FROM_HEAD. `take` gets those that their sequences still want, in order, with the number of
   * their row; it may finish the sequence, which then wants no more.
   */
  complete(
    batch: Batch,
    tokens: ArrayLike<number>,
    take: (sequence: Sequence, token: number, row: number) => void,
    guesses: ArrayLike<number> = [],
  ): void {
    assert(tokens.length === batch.sampled.length, `${tokens.length} tokens for ${batch.sampled.length} rows`);
    const items = [...batch.decodes, ...batch.prefills];
    let row = 0;
    let guess = 0;
    for (const item of items) {
      const drafts = item.drafts.map((draft) => (draft === FROM_HEAD ? guesses[guess++]! : draft));
      if (item.samples > 0) this.#accept({ ...item, drafts }, tokens, row, take);
      row += item.samples;
    }
    for (const { sequence, drafts } of batch.prefills) if (drafts.length === 0) this.#cache.publish(sequence);
    for (const { sequence } of items) {
      sequence.inFlight--;
      if (sequence.inFlight === 0) this.#queues.stepsDone(sequence);
    }
  }

  /** Pages in use that could not be had for the asking. */
  get numPagesHeld(): number {
    return this.#pages - this.#cache.numAvailable;
  }

  /** Pages of the layers that see a window only, and those of them in use that could not be had for the asking. */
  get numWindowPages(): number {
    return this.#options.windows?.pages ?? 0;
  }

  get numWindowPagesHeld(): number {
    return this.#windows?.numHeld ?? 0;
  }

  /** Forgets every cached prefix that no running sequence reads. */
  flushCache(): void {
    this.#cache.flush();
  }

  /** Throws unless pages and rows add up; call it when nothing is in flight. */
  checkIntegrity(): void {
    this.#cache.checkIntegrity(this.#queues.running);
  }

  /** Takes the tokens of an item up to the first that was guessed wrong: what follows that was computed on another one. */
  #accept(
    { sequence, samples, drafts }: BatchItem,
    tokens: ArrayLike<number>,
    first: number,
    take: (sequence: Sequence, token: number, row: number) => void,
  ): void {
    sequence.pending--;
    let accepted = 0;
    for (let i = 0; i < samples && sequence.status !== 'finished'; i++) {
      const token = tokens[first + i]!;
      sequence.tokens.push(token);
      take(sequence, token, first + i);
      if (token !== drafts[i]) break;
      accepted++;
    }
    if (drafts.length > 0) this.#settle(sequence, drafts.length, accepted);
  }

  /** The first `accepted` of a sequence's guesses were right: they are computed, but that a state lies behind all of them or behind none. */
  #settle(sequence: Sequence, drafted: number, accepted: number): void {
    sequence.verifying = false;
    this.#guesses.count(drafted, accepted);
    const allRight = accepted === drafted;
    if (this.#states && !allRight) sequence.again = accepted;
    else sequence.computed += accepted;
    this.#states?.settle(sequence, allRight);
  }

  /** Guesses to verify with a sequence's next token, as far as there are pages for them. */
  #guess(sequence: Sequence, budget: number): readonly number[] {
    const drafts = this.#guesses.of(sequence, this.#queues.running.length, budget);
    // A guess is not worth another sequence's pages.
    return this.#cache.grow(sequence, sequence.uncomputed + drafts.length) ? drafts : [];
  }

  /** Fills the step up to `budget` tokens with chunks of prompts: of running sequences first, then of waiting ones that can be admitted. */
  #schedulePrompts(decodes: readonly BatchItem[], prefills: BatchItem[], budget: number): void {
    // A long prompt leaves a part of every step to the prompts behind it, which may be short.
    const share = this.#queues.waiting.length > 0 ? Math.ceil(budget * LONGEST_SHARE) : budget;
    const prefill = (sequence: Sequence, most = budget): void => {
      const asked = Math.min(this.#apart(sequence) ? sequence.numPrompt - sequence.computed : sequence.uncomputed, budget, most);
      const count = this.#states?.cut(sequence, asked) ?? asked;
      if (count === 0 || !this.#queues.grow(sequence, count)) return;
      budget -= count;
      prefills.push(this.#item(sequence, count));
    };
    for (const sequence of [...this.#queues.running]) {
      if (isReady(sequence) && !this.#decodes(sequence)) prefill(sequence, share);
    }
    const candidates = budget > 0 ? this.#queues.candidates() : [];
    if (candidates.length === 0) return;
    const computing = this.#computing();
    // One that has lost its place in this step, with an item in it, would come back to other pages than the item has.
    const scheduled = new Set([...decodes, ...prefills].map(({ sequence }) => sequence));
    for (const sequence of candidates) {
      if (budget === 0) break;
      // One that lost its place may wait for its mask: without it the step would sample what its grammar does not allow.
      if (sequence.isBlocked || scheduled.has(sequence)) continue;
      if (computing && computing.shared(sequence) - this.#cache.cachedTokens(sequence) >= WORTH_WAITING) continue;
      if (!this.#queues.admit(sequence)) break;
      computing?.add(sequence);
      prefill(sequence);
    }
  }

  /** Prompts that running sequences are still computing; undefined without a prefix cache or without a choice to make. */
  #computing(): ComputingPrompts | undefined {
    if (!this.#options.prefixCache || this.#queues.waiting.length === 0) return undefined;
    return new ComputingPrompts(this.#queues.running, { ...this.#options, hasStates: this.#states !== undefined });
  }

  /** Whether positions of a sequence's prompt are left, which are computed apart. */
  #apart({ computed, numPrompt }: Sequence): boolean {
    return this.#options.promptsApart === true && computed < numPrompt;
  }

  #decodes(sequence: Sequence): boolean {
    return sequence.isDecoding && !this.#apart(sequence);
  }

  #item(sequence: Sequence, count: number, drafts: readonly number[] = []): BatchItem {
    const { computed: start, tokens } = sequence;
    // A sequence at its last token computes nothing more, so what reaches the end always samples.
    const samples = drafts.length > 0 ? 1 + drafts.length : start + count === sequence.length ? 1 : 0;
    return { sequence, start, count, samples, fromDevice: start >= tokens.length, drafts };
  }
}

/** Whether a running sequence may be computed in the next step. */
function isReady(sequence: Sequence): boolean {
  return sequence.status === 'running' && !sequence.isBlocked;
}
