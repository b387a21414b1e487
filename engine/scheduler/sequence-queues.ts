/** Which sequences wait and which run: they are admitted when there are rows and pages for them, and retracted when pages run short. */
import { EngineError } from '../errors.ts';
import type { CacheManager } from './cache-manager.ts';
import { FCFS } from './policy.ts';
import type { SchedulePolicy } from './policy.ts';
import type { Sequence } from './sequence.ts';

export interface QueueOptions {
  /** Most sequences that run at a time. */
  readonly maxRunning: number;
  readonly maxQueued: number;
  readonly policy?: SchedulePolicy;
  /** A waiting sequence preempts a running one whose priority is lower by more than this; default never. */
  readonly preemptionThreshold?: number | undefined;
}

/** The waiting and the running queue of a scheduler. A finished or retracted sequence keeps its pages until no submitted step uses them. */
export class SequenceQueues {
  readonly #cache: CacheManager;
  readonly #options: QueueOptions;
  readonly #policy: SchedulePolicy;
  /** Order of arrival, retracted sequences first. */
  #waiting: Sequence[] = [];
  /** Order of admission: the last is the youngest. */
  #running: Sequence[] = [];
  /** Finished or retracted sequences whose pages a submitted step still uses. */
  readonly #leaving = new Set<Sequence>();

  constructor(cache: CacheManager, options: QueueOptions) {
    this.#cache = cache;
    this.#options = options;
    this.#policy = options.policy ?? FCFS;
  }

  /** Waiting sequences in order of arrival, retracted ones first. */
  get waiting(): readonly Sequence[] {
    return this.#waiting;
  }

  /** Running sequences in order of admission. */
  get running(): readonly Sequence[] {
    return this.#running;
  }

  /** Queues the sequences of one request, all or none; throws EngineError: 'queue_full', or 'invalid_request' where even an empty queue has no room for them. */
  add(sequences: readonly Sequence[]): void {
    const { maxQueued, maxRunning } = this.#options;
    const most = maxQueued + maxRunning;
    const waiting = this.#waiting.length;
    if (sequences.length > most) {
      const why = `'n' asks for ${sequences.length} answers; at most ${most} run and wait at once`;
      throw new EngineError('invalid_request', why, { param: 'n' });
    }
    if (waiting + sequences.length > Math.max(maxQueued, most - this.#running.length))
      throw new EngineError('queue_full', `${waiting} requests are waiting; try again later`);
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

  /** Releases or requeues a finished or retracted sequence, now that no submitted step uses it. */
  stepsDone(sequence: Sequence): void {
    if (sequence.status === 'finished') this.#release(sequence);
    else if (sequence.status === 'retracted') this.#requeue(sequence);
  }

  /** Waiting sequences that may be admitted, best first: by priority, then by policy. */
  candidates(): readonly Sequence[] {
    const { maxRunning, preemptionThreshold } = this.#options;
    // Ordering the queue costs time, and no sequence can be admitted here.
    if (this.#running.length >= maxRunning && preemptionThreshold === undefined) return [];
    const byPolicy = this.#policy.order([...this.#waiting], (sequence) => this.#cache.cachedTokens(sequence));
    return [...byPolicy].sort((a, b) => b.priority - a.priority);
  }

  /** Admits a waiting sequence, if need be by preempting a running one; false when there is no room in this step. */
  admit(sequence: Sequence): boolean {
    return this.#takeIn(sequence) || (this.#preempt(sequence) && this.#takeIn(sequence));
  }

  /**
   * Allocates room for `count` more positions, retracting sequences of lower priority, then younger ones, while pages are short; false when
   * the sequence cannot run in this step.
   */
  grow(sequence: Sequence, count: number): boolean {
    // The last token that may be generated is never computed.
    if (!sequence.canGrow) return false;
    while (!this.#cache.grow(sequence, count)) {
      // It is better to wait a step for pages that submitted steps give back than to retract a sequence.
      if (this.#cache.canGrowAfter(sequence, count, [...this.#leaving])) return false;
      const victim = this.#victim()!;
      this.#retract(victim);
      if (victim === sequence) return false;
    }
    return true;
  }

  /** Admits a waiting sequence if a row is free and there are pages for all its tokens, beside one page for each running sequence. */
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

  /** Retracts the victim if this sequence's priority is higher by more than the threshold; false when that makes no room in this step. */
  #preempt(sequence: Sequence): boolean {
    const victim = this.#victim();
    // Sequences that are leaving already make room.
    if (this.#leaving.size > 0 || !victim || sequence.priority - victim.priority <= (this.#options.preemptionThreshold ?? Infinity))
      return false;
    this.#retract(victim);
    return victim.status === 'waiting';
  }

  /** The running sequence to retract when pages are short: the youngest of the lowest priority. */
  #victim(): Sequence | undefined {
    const running = this.#running.filter(({ status }) => status === 'running');
    const lowest = Math.min(...running.map(({ priority }) => priority));
    return running.findLast(({ priority }) => priority === lowest);
  }

  /** Takes a running sequence's pages away; later it is computed again from its tokens. */
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
