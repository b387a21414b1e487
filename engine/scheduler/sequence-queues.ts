/** Who waits and who runs: sequences are admitted when there are rows and pages for them, and give their pages up when these are short. */
import { EngineError } from '../errors.ts';
import type { CacheManager } from './cache-manager.ts';
import { FCFS } from './policy.ts';
import type { SchedulePolicy } from './policy.ts';
import type { Sequence } from './sequence.ts';

export interface QueueOptions {
  /** Sequences running at a time. */
  readonly maxRunning: number;
  readonly maxQueued: number;
  readonly policy?: SchedulePolicy;
  /** A waiting sequence whose priority is higher than a running one's by more than this takes its place; default never. */
  readonly preemptionThreshold?: number | undefined;
}

/** The two queues of a scheduler. A sequence that ends or gives its pages up keeps them until no submitted step uses them. */
export class SequenceQueues {
  readonly #cache: CacheManager;
  readonly #options: QueueOptions;
  readonly #policy: SchedulePolicy;
  /** In order of arrival, retracted ones first. */
  #waiting: Sequence[] = [];
  /** In order of admission: the last is the youngest. */
  #running: Sequence[] = [];
  /** Finished or retracted, but still read by a submitted step. */
  readonly #leaving = new Set<Sequence>();

  constructor(cache: CacheManager, options: QueueOptions) {
    this.#cache = cache;
    this.#options = options;
    this.#policy = options.policy ?? FCFS;
  }

  /** In order of arrival, retracted ones first. */
  get waiting(): readonly Sequence[] {
    return this.#waiting;
  }

  /** In order of admission. */
  get running(): readonly Sequence[] {
    return this.#running;
  }

  /** Queues sequences of one request, all or none; throws EngineError('queue_full'). */
  add(sequences: readonly Sequence[]): void {
    if (this.#waiting.length + sequences.length > this.#options.maxQueued + Math.max(0, this.#options.maxRunning - this.#running.length)) {
      throw new EngineError('queue_full', `${this.#waiting.length} requests are waiting; try again later`);
    }
    this.#waiting.push(...sequences);
  }

  /** Ends a sequence. Its pages are free as soon as no submitted step uses them. */
  finish(sequence: Sequence): void {
    if (sequence.status === 'finished') return;
    sequence.status = 'finished';
    this.#waiting = this.#waiting.filter((other) => other !== sequence);
    this.#running = this.#running.filter((other) => other !== sequence);
    if (sequence.inFlight === 0) this.#release(sequence);
    else this.#leaving.add(sequence);
  }

  /** Hears that no submitted step uses a sequence any more. */
  stepsDone(sequence: Sequence): void {
    if (sequence.status === 'finished') this.#release(sequence);
    else if (sequence.status === 'retracted') this.#requeue(sequence);
  }

  /** Waiting sequences that may come in, best first: by priority, then by policy. */
  candidates(): readonly Sequence[] {
    const { maxRunning, preemptionThreshold } = this.#options;
    // Ordering the queue is worth it only where one of it may come in.
    if (this.#running.length >= maxRunning && preemptionThreshold === undefined) return [];
    const byPolicy = this.#policy.order([...this.#waiting], (sequence) => this.#cache.cachedTokens(sequence));
    return [...byPolicy].sort((a, b) => b.priority - a.priority);
  }

  /** Takes a waiting sequence in, if need be in place of a running one that is less important by enough; false when there is no room in this step. */
  admit(sequence: Sequence): boolean {
    return this.#takeIn(sequence) || (this.#preempt(sequence) && this.#takeIn(sequence));
  }

  /** Makes room for `count` more positions, retracting less important or younger sequences if pages are short; false = not in this step. */
  grow(sequence: Sequence, count: number): boolean {
    // The last token that may be generated is never an input.
    if (!sequence.canGrow) return false;
    while (!this.#cache.grow(sequence, count)) {
      // Pages that come back when submitted steps complete are worth waiting a step for.
      if (this.#cache.canGrowAfter(sequence, count, [...this.#leaving])) return false;
      const victim = this.#victim()!;
      this.#retract(victim);
      if (victim === sequence) return false;
    }
    return true;
  }

  /** Takes a waiting sequence in if a row is free, and pages for all its tokens beside one for each running sequence. */
  #takeIn(sequence: Sequence): boolean {
    if (this.#running.length >= this.#options.maxRunning) return false;
    if (!this.#cache.admit(sequence, this.#running.length > 0 ? this.#running.length : undefined)) return false;
    const index = this.#waiting.indexOf(sequence);
    for (const other of this.#waiting.slice(0, index)) if (other.priority >= sequence.priority) other.overtaken++;
    this.#waiting.splice(index, 1);
    sequence.status = 'running';
    this.#running.push(sequence);
    return true;
  }

  /** Retracts the least important running sequence if this one is important enough; false when that makes no room in this step. */
  #preempt(sequence: Sequence): boolean {
    const victim = this.#victim();
    // What leaves already makes room.
    if (this.#leaving.size > 0 || !victim || sequence.priority - victim.priority <= (this.#options.preemptionThreshold ?? Infinity))
      return false;
    this.#retract(victim);
    return victim.status === 'waiting';
  }

  /** The sequence that goes first when room is short: the youngest of the lowest priority. */
  #victim(): Sequence | undefined {
    const running = this.#running.filter(({ status }) => status === 'running');
    const lowest = Math.min(...running.map(({ priority }) => priority));
    return running.findLast(({ priority }) => priority === lowest);
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
    sequence.again = 0;
    sequence.hasSampled = false;
    this.#waiting.unshift(sequence);
  }

  #release(sequence: Sequence): void {
    this.#leaving.delete(sequence);
    this.#cache.publish(sequence);
    this.#cache.release(sequence);
  }
}
