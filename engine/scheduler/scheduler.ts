import type { BlockTable } from '../cache/block-table.ts';
import type { PagePool } from '../cache/page-pool.ts';
import { EngineError, assert } from '../errors.ts';
import { RadixCache } from '../cache/radix-cache.ts';
import type { Batch, BatchItem } from './batch.ts';
import { CacheManager } from './cache-manager.ts';
import { FCFS } from './policy.ts';
import type { SchedulePolicy } from './policy.ts';
import type { Sequence } from './sequence.ts';

export interface SchedulerOptions {
  readonly pageSize: number;
  /** Sequences running at a time. */
  readonly maxRunning: number;
  /** Prompt tokens a step. */
  readonly prefillChunk: number;
  readonly maxQueued: number;
  readonly policy?: SchedulePolicy;
  /** Share the pages of equal prefixes; default off. */
  readonly prefixCache?: boolean;
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
  readonly #pages: number;
  readonly #options: SchedulerOptions;
  readonly #policy: SchedulePolicy;
  /** In order of arrival, retracted ones first. */
  #waiting: Sequence[] = [];
  /** In order of admission: the last is the youngest. */
  #running: Sequence[] = [];
  /** Finished or retracted, but still read by a submitted step. */
  readonly #leaving = new Set<Sequence>();

  constructor(pool: PagePool, table: BlockTable, options: SchedulerOptions) {
    const { pageSize, prefixCache } = options;
    this.#cache = new CacheManager(pool, table, pageSize, prefixCache ? new RadixCache(pageSize) : undefined);
    this.#options = options;
    this.#pages = pool.size;
    this.#policy = options.policy ?? FCFS;
  }

  get numWaiting(): number {
    return this.#waiting.length;
  }

  get numRunning(): number {
    return this.#running.length;
  }

  /** Queues sequences of one request, all or none; throws EngineError('queue_full'). */
  add(sequences: readonly Sequence[]): void {
    if (this.#waiting.length + sequences.length > this.#options.maxQueued + Math.max(0, this.#options.maxRunning - this.#running.length)) {
      throw new EngineError('queue_full', `${this.#waiting.length} requests are waiting; try again later`);
    }
    this.#waiting.push(...sequences);
  }

  /** Ends a sequence: finished, stopped or aborted. Its pages are free as soon as no submitted step uses them. */
  finish(sequence: Sequence): void {
    if (sequence.status === 'finished') return;
    sequence.status = 'finished';
    this.#waiting = this.#waiting.filter((other) => other !== sequence);
    this.#running = this.#running.filter((other) => other !== sequence);
    if (sequence.inFlight === 0) this.#release(sequence);
    else this.#leaving.add(sequence);
  }

  /** The next step, or undefined when nothing can run before a submitted step completes or a sequence arrives. */
  next(): Batch | undefined {
    const decodes: BatchItem[] = [];
    const prefills: BatchItem[] = [];
    for (const sequence of [...this.#running]) {
      if (
        sequence.status === 'running' &&
        !sequence.isBlocked &&
        sequence.uncomputed === 1 &&
        sequence.computed > 0 &&
        this.#grow(sequence, 1)
      ) {
        decodes.push(this.#item(sequence, 1));
      }
    }
    let budget = this.#options.prefillChunk;
    // A long prompt leaves a part of every step to the prompts behind it, which may be short.
    const share = this.#waiting.length > 0 ? Math.ceil(budget * LONGEST_SHARE) : budget;
    const prefill = (sequence: Sequence, most = budget): void => {
      const count = Math.min(sequence.uncomputed, budget, most);
      if (count === 0 || !this.#grow(sequence, count)) return;
      budget -= count;
      prefills.push(this.#item(sequence, count));
    };
    const scheduled = new Set(decodes.map(({ sequence }) => sequence));
    for (const sequence of [...this.#running]) {
      if (sequence.status === 'running' && !scheduled.has(sequence) && !sequence.isBlocked && sequence.uncomputed > 0)
        prefill(sequence, share);
    }
    const computing = this.#computing();
    for (const sequence of this.#policy.order([...this.#waiting], (other) => this.#cache.cachedTokens(other))) {
      if (budget === 0) break;
      if (computing && this.#sharesMore(sequence, computing)) continue;
      if (!this.#admit(sequence)) break;
      computing?.insert(sequence.tokens, placeholders(sequence), sequence.salt);
      prefill(sequence);
    }
    // Retracting may have taken pages of a sequence that was scheduled before.
    const live = (item: BatchItem): boolean => item.sequence.status === 'running';
    const items = [...decodes.filter(live), ...prefills.filter(live)];
    if (items.length === 0) return undefined;
    for (const item of items) {
      item.sequence.computed += item.count;
      item.sequence.pending += item.samples ? 1 : 0;
      item.sequence.inFlight++;
    }
    return { decodes: decodes.filter(live), prefills: prefills.filter(live), sampled: items.filter((item) => item.samples) };
  }

  /** Takes a step's tokens, one for each item of batch.sampled; returns the items whose sequences still want them. */
  complete(batch: Batch, tokens: ArrayLike<number>): { readonly sequence: Sequence; readonly token: number }[] {
    assert(tokens.length === batch.sampled.length, `${tokens.length} tokens for ${batch.sampled.length} sequences`);
    const wanted: { sequence: Sequence; token: number }[] = [];
    batch.sampled.forEach(({ sequence }, i) => {
      sequence.pending--;
      if (sequence.status === 'finished') return;
      sequence.tokens.push(tokens[i]!);
      wanted.push({ sequence, token: tokens[i]! });
    });
    for (const { sequence } of batch.prefills) this.#cache.publish(sequence);
    for (const { sequence } of [...batch.decodes, ...batch.prefills]) {
      sequence.inFlight--;
      if (sequence.inFlight > 0) continue;
      if (sequence.status === 'finished') this.#release(sequence);
      else if (sequence.status === 'retracted') this.#requeue(sequence);
    }
    return wanted;
  }

  /** Pages in use that could not be had for the asking. */
  get numPagesHeld(): number {
    return this.#pages - this.#cache.numAvailable;
  }

  /** Forgets every cached prefix that no running sequence reads. */
  flushCache(): void {
    this.#cache.flush();
  }

  /** Throws unless pages and rows add up; call it when nothing is in flight. */
  checkIntegrity(): void {
    this.#cache.checkIntegrity(this.#running);
  }

  /** Prompts that running sequences are still computing, by prefix; undefined without a prefix cache or without a choice to make. */
  #computing(): RadixCache | undefined {
    if (!this.#options.prefixCache || this.#waiting.length === 0) return undefined;
    const tree = new RadixCache(this.#options.pageSize);
    for (const sequence of this.#running) {
      const complete = sequence.published * this.#options.pageSize + this.#options.pageSize > sequence.numPrompt;
      if (!complete) tree.insert(sequence.tokens, placeholders(sequence), sequence.salt);
    }
    return tree;
  }

  /** Whether a sequence that runs computes much more of this one's prompt than the cache has: then it waits for that. */
  #sharesMore(sequence: Sequence, computing: RadixCache): boolean {
    return computing.peek(sequence.tokens, sequence.salt) - this.#cache.cachedTokens(sequence) >= WORTH_WAITING;
  }

  #item(sequence: Sequence, count: number): BatchItem {
    const { computed: start, tokens } = sequence;
    // A sequence at its last token computes nothing more, so what reaches the end always samples.
    return { sequence, start, count, samples: start + count === sequence.length, fromDevice: start >= tokens.length };
  }

  /** Takes a waiting sequence in if a row is free, and pages for all its tokens beside one for each running sequence. */
  #admit(sequence: Sequence): boolean {
    if (this.#running.length >= this.#options.maxRunning) return false;
    if (!this.#cache.admit(sequence, this.#running.length > 0 ? this.#running.length : undefined)) return false;
    const index = this.#waiting.indexOf(sequence);
    for (const overtaken of this.#waiting.slice(0, index)) overtaken.overtaken++;
    this.#waiting.splice(index, 1);
    sequence.status = 'running';
    this.#running.push(sequence);
    return true;
  }

  /** Makes room for `count` more positions, retracting younger sequences if pages are short; false = not in this step. */
  #grow(sequence: Sequence, count: number): boolean {
    // The last token that may be generated is never an input.
    if (!sequence.canGrow) return false;
    const needed = this.#cache.missingPages(sequence, count);
    while (!this.#cache.grow(sequence, needed)) {
      // Pages that come back when submitted steps complete are worth waiting a step for.
      const leaving = [...this.#leaving].reduce((sum, { pages }) => sum + pages.length, 0);
      if (this.#cache.numAvailable + leaving >= needed) return false;
      const victim = this.#running.findLast(({ status }) => status === 'running')!;
      this.#retract(victim);
      if (victim === sequence) return false;
    }
    return true;
  }

  /** Gives a running sequence's pages up; it is computed again from its tokens later. */
  #retract(sequence: Sequence): void {
    sequence.status = 'retracted';
    if (sequence.inFlight === 0) this.#requeue(sequence);
    else this.#leaving.add(sequence);
  }

  #requeue(sequence: Sequence): void {
    this.#running = this.#running.filter((other) => other !== sequence);
    this.#release(sequence);
    sequence.status = 'waiting';
    sequence.computed = 0;
    this.#waiting.unshift(sequence);
  }

  #release(sequence: Sequence): void {
    this.#leaving.delete(sequence);
    this.#cache.publish(sequence);
    this.#cache.release(sequence);
  }
}

/** The tree of prompts being computed only answers how long a shared prefix is: which pages does not matter. */
function placeholders({ tokens }: Sequence): number[] {
  return Array.from({ length: tokens.length }, () => 0);
}
