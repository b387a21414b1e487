import type { BlockTable } from '../cache/block-table.ts';
import { PagePool } from '../cache/page-pool.ts';
import { assert } from '../errors.ts';
import { RadixCache } from '../cache/radix-cache.ts';
import { FROM_HEAD, isOfPrompt } from './batch.ts';
import type { Batch, BatchItem, SampledRow } from './batch.ts';
import { CacheManager } from './cache-manager.ts';
import { ComputingPrompts } from './computing-prompts.ts';
import { Drafter } from './drafter.ts';
import type { DrafterOptions } from './drafter.ts';
import { MAX_MATCHED } from './policy.ts';
import type { PrefillPace } from './prefill-pace.ts';
import { SequenceQueues } from './sequence-queues.ts';
import type { QueueOptions } from './sequence-queues.ts';
import { SequenceStates } from './sequence-states.ts';
import { SequenceWindows, pagesBefore } from './sequence-windows.ts';
import type { WindowOptions } from './sequence-windows.ts';
import type { Sequence } from './sequence.ts';

export interface SchedulerOptions extends DrafterOptions, QueueOptions {
  readonly pageSize: number;
  /** Most prompt tokens per step. */
  readonly prefillChunk: number;
  /** Lowers that to what steps have time for; absent = always `prefillChunk`. */
  readonly pace?: PrefillPace | undefined;
  /** Shares the pages of equal prefixes; default off. */
  readonly prefixCache?: boolean;
  /**
   * Prompts are computed by other kernels than generated tokens, whose results differ in the last bits. A step then computes either all
   * positions of a sequence as prompt or none, prompt rows come last in the batch, and only prompt pages are shared. What a position
   * computes thus never depends on when, or beside what, it is computed.
   */
  readonly promptsApart?: boolean | undefined;
  /**
   * Recurrent-state slots: more than `maxRunning`, or more than twice as many with speculative decoding. Absent in models without recurrent
   * layers.
   */
  readonly stateSlots?: number | undefined;
  /** Absent in models without sliding-window layers. */
  readonly windows?: WindowOptions | undefined;
}

/** Share of a step's prompt tokens that one prompt under way may take while other sequences wait. */
const LONGEST_SHARE = 3 / 4;

/** With at least this many shared tokens, a sequence waits until another has computed them (SGLang's threshold). */
const WORTH_WAITING = 32;

/**
 * Decides what the next step computes. Continuous batching: every running sequence decodes in every step, and prompt chunks fill the step
 * up to `prefillChunk` tokens. Steps are submitted one ahead: `next()` may be called before `complete()` of the previous step. A sequence
 * that ends meanwhile has been computed one position too far, into its own pages, which are released when its last step completes.
 */
export class Scheduler {
  readonly #cache: CacheManager;
  readonly #states: SequenceStates | undefined;
  readonly #windows: SequenceWindows | undefined;
  readonly #pages: number;
  readonly #options: SchedulerOptions;
  readonly #queues: SequenceQueues;
  readonly #drafter: Drafter;

  constructor(pool: PagePool, table: BlockTable, options: SchedulerOptions) {
    const { pageSize, prefixCache, stateSlots, draftRows = 0 } = options;
    const slots = stateSlots === undefined ? undefined : new PagePool(stateSlots);
    const { windows, prefillChunk: chunk } = options;
    const windowPool = new PagePool(windows?.pages ?? 0);
    const kept = windows && { pool: windowPool, pages: pagesBefore(windows.window, pageSize) };
    const prefixes = prefixCache ? new RadixCache(pageSize, slots, kept) : undefined;
    this.#states = slots && new SequenceStates(slots, table, pageSize, prefixes, { speculative: draftRows > 0 });
    this.#windows = windows && new SequenceWindows(windowPool, table.windows!, pageSize, { window: windows.window, chunk }, prefixes);
    const parts = { prefixes, states: this.#states, windows: this.#windows, promptsOnly: options.promptsApart };
    this.#cache = new CacheManager(pool, table, pageSize, parts);
    this.#queues = new SequenceQueues(this.#cache, options);
    this.#options = options;
    this.#drafter = new Drafter(options);
    this.#pages = pool.size;
  }

  get numWaiting(): number {
    return this.#queues.waiting.length;
  }

  /**
   * Tokens of waiting sequences that are not in the prefix cache. Sequences beyond the first MAX_MATCHED count in full, because matching
   * them all is expensive.
   */
  get numWaitingTokens(): number {
    const cached = (sequence: Sequence, index: number): number => (index < MAX_MATCHED ? this.#cache.cachedTokens(sequence) : 0);
    return this.#queues.waiting.reduce((sum, sequence, index) => sum + sequence.tokens.length - cached(sequence, index), 0);
  }

  get numRunning(): number {
    return this.#queues.running.length;
  }

  /** Draft tokens verified so far, and how many of them were accepted. */
  get draftCounts(): { readonly drafted: number; readonly accepted: number } {
    return this.#drafter.counts;
  }

  /** Queues sequences of one request, all or none; throws EngineError as SequenceQueues.add does. */
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
    // How many drafts are accepted is worth waiting for: without it this step would leave the verifying sequences out, and they would need
    // one of their own.
    if (this.#queues.running.some(({ verifying }) => verifying)) return undefined;
    const decodes: BatchItem[] = [];
    const prefills: BatchItem[] = [];
    let budget = this.#options.pace?.chunk ?? this.#options.prefillChunk;
    for (const sequence of [...this.#queues.running]) {
      // Accepted drafts that are computed again count against the prompt budget.
      const count = Math.min(sequence.uncomputed, 1 + budget);
      if (!isReady(sequence) || !this.#decodes(sequence) || !this.#queues.grow(sequence, count)) continue;
      const drafts = count === sequence.uncomputed ? this.#draft(sequence, budget - sequence.again) : [];
      const item = this.#item(sequence, count + drafts.length, drafts);
      budget -= item.count - 1;
      if (item.count > 1) prefills.push(item);
      else decodes.push(item);
    }
    this.#schedulePrompts(decodes, prefills, budget);
    // Retraction may have taken the pages of a sequence that was scheduled earlier in this loop.
    const live = (item: BatchItem): boolean => item.sequence.status === 'running';
    const placed = (item: BatchItem): BatchItem => (this.#states ? { ...item, state: this.#cache.useState(item) } : item);
    const batch = { decodes: decodes.filter(live).map(placed), prefills: prefills.filter(live).map(placed) };
    if (this.#options.promptsApart) batch.prefills.sort((a, b) => Number(isOfPrompt(a)) - Number(isOfPrompt(b)));
    const items = [...batch.decodes, ...batch.prefills];
    if (items.length === 0) return undefined;
    for (const { sequence, count, samples, drafts } of items) {
      // Positions of drafts count only once the drafts are accepted.
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

  /** Tells the pace how long a step took, in milliseconds. */
  took({ decodes, prefills }: Batch, milliseconds: number): void {
    this.#options.pace?.took(
      [...decodes, ...prefills].reduce((sum, { count }) => sum + count, 0),
      milliseconds,
    );
  }

  /**
   * Takes the tokens of a step, one for each of batch.sampled, and `headDrafts`, the draft head's tokens for all FROM_HEAD drafts in batch
   * order. Calls `take` for each token that its sequence still wants, with the token's row in batch.sampled; `take` may finish the
   * sequence.
   */
  complete(
    batch: Batch,
    tokens: ArrayLike<number>,
    take: (sequence: Sequence, token: number, row: number) => void,
    headDrafts: ArrayLike<number> = [],
  ): void {
    assert(tokens.length === batch.sampled.length, `${tokens.length} tokens for ${batch.sampled.length} rows`);
    const items = [...batch.decodes, ...batch.prefills];
    let row = 0;
    let next = 0;
    for (const item of items) {
      const drafts = item.drafts.map((draft) => (draft === FROM_HEAD ? headDrafts[next++]! : draft));
      if (item.samples > 0) this.#accept({ ...item, drafts }, tokens, row, take);
      row += item.samples;
    }
    for (const { sequence, drafts } of batch.prefills) if (drafts.length === 0) this.#cache.publish(sequence);
    for (const { sequence } of items) {
      sequence.inFlight--;
      if (sequence.inFlight === 0) this.#queues.stepsDone(sequence);
    }
  }

  /** Pages in use that eviction could not free. */
  get numPagesHeld(): number {
    return this.#pages - this.#cache.numAvailable;
  }

  /** Pages of the sliding-window layers. */
  get numWindowPages(): number {
    return this.#options.windows?.pages ?? 0;
  }

  get numWindowPagesHeld(): number {
    return this.#windows?.numHeld ?? 0;
  }

  /** Evicts every cached prefix that no running sequence reads. */
  flushCache(): void {
    this.#cache.flush();
  }

  /** Throws unless pages, rows and slots add up. Call it only while no step is in flight. */
  checkIntegrity(): void {
    this.#cache.checkIntegrity(this.#queues.running);
  }

  /** Takes an item's tokens up to and including the first that differs from its draft: later ones were computed from a wrong token. */
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

  /**
   * Settles a verification. The accepted drafts count as computed, except that a recurrent state exists only behind all drafts or behind
   * none: unless all were right, a model with such a state computes the accepted ones again.
   */
  #settle(sequence: Sequence, drafted: number, accepted: number): void {
    sequence.verifying = false;
    this.#drafter.count(drafted, accepted);
    const allRight = accepted === drafted;
    if (this.#states && !allRight) sequence.again = accepted;
    else sequence.computed += accepted;
    this.#states?.settle(sequence, allRight);
  }

  /** Draft tokens to verify with a sequence's next token; none where there are no pages for them. */
  #draft(sequence: Sequence, budget: number): readonly number[] {
    const drafts = this.#drafter.of(sequence, this.#queues.running.length, budget);
    // Drafts are not worth retracting another sequence.
    return this.#cache.grow(sequence, sequence.uncomputed + drafts.length) ? drafts : [];
  }

  /**
   * Fills the step with prompt chunks of at most `budget` tokens: of running sequences first, then of waiting ones that can be admitted.
   */
  #schedulePrompts(decodes: readonly BatchItem[], prefills: BatchItem[], budget: number): void {
    // A long prompt leaves a part of every step to the waiting ones, which may be short.
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
    // A sequence retracted in this step may still have an item in it, and would be admitted to other pages than that item names.
    const scheduled = new Set([...decodes, ...prefills].map(({ sequence }) => sequence));
    for (const sequence of candidates) {
      if (budget === 0) break;
      // A retracted sequence may still wait for its grammar mask: without it the step would sample a token that the grammar forbids.
      if (sequence.isBlocked || scheduled.has(sequence)) continue;
      if (computing && computing.shared(sequence) - this.#cache.cachedTokens(sequence) >= WORTH_WAITING) continue;
      if (!this.#queues.admit(sequence)) break;
      computing?.add(sequence);
      prefill(sequence);
    }
  }

  /** Prompts that running sequences are still computing; undefined without a prefix cache or waiting sequences. */
  #computing(): ComputingPrompts | undefined {
    if (!this.#options.prefixCache || this.#queues.waiting.length === 0) return undefined;
    return new ComputingPrompts(this.#queues.running, { ...this.#options, hasStates: this.#states !== undefined });
  }

  /** Whether `promptsApart` holds and part of a sequence's prompt is still uncomputed. */
  #apart({ computed, numPrompt }: Sequence): boolean {
    return this.#options.promptsApart === true && computed < numPrompt;
  }

  #decodes(sequence: Sequence): boolean {
    return sequence.isDecoding && !this.#apart(sequence);
  }

  #item(sequence: Sequence, count: number, drafts: readonly number[] = []): BatchItem {
    const { computed: start, tokens } = sequence;
    // A sequence that has all its tokens is not scheduled again, so an item that reaches the end always samples.
    const samples = drafts.length > 0 ? 1 + drafts.length : start + count === sequence.length ? 1 : 0;
    return { sequence, start, count, samples, fromDevice: start >= tokens.length, drafts };
  }
}

/** Whether a running sequence may be computed in the next step. */
function isReady(sequence: Sequence): boolean {
  return sequence.status === 'running' && !sequence.isBlocked;
}
