/** The scheduler with a fake runner: whatever it does, every sequence must get the tokens it would get alone. */
import { expect } from 'vitest';
import { BlockTable } from '../../engine/cache/block-table.ts';
import { PagePool } from '../../engine/cache/page-pool.ts';
import type { StepResult } from '../../engine/runner/model-runner.ts';
import type { Batch } from '../../engine/scheduler/batch.ts';
import { Scheduler } from '../../engine/scheduler/scheduler.ts';
import type { SchedulerOptions } from '../../engine/scheduler/scheduler.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { GREEDY_SAMPLING as GREEDY } from '../../engine/sampling.ts';
import { FakeRunner, expectedTokens, hashModel } from './fake-runner.ts';
import type { FakeModel } from './fake-runner.ts';

export const PAGE = 4;

export interface RigOptions extends Partial<SchedulerOptions> {
  readonly pages?: number;
  readonly model?: FakeModel;
  /** Submit a step before the one before is complete. */
  readonly overlap?: boolean;
}

/** A scheduler, the fake runner it feeds, and the engine's loop around them. */
export class Rig {
  readonly pool: PagePool;
  readonly scheduler: Scheduler;
  readonly model: FakeModel;
  readonly runner: FakeRunner;
  readonly #overlap: boolean;
  #submitted: { batch: Batch; result: StepResult } | undefined;
  #ids = 0;

  constructor({ pages = 64, model = hashModel, overlap = true, ...options }: RigOptions = {}) {
    this.pool = new PagePool(pages);
    this.model = model;
    this.runner = new FakeRunner(model, PAGE, options.windows?.window, options.promptsApart);
    this.#overlap = overlap;
    const settings = { pageSize: PAGE, maxRunning: 8, prefillChunk: 16, maxQueued: 100, ...options };
    this.scheduler = new Scheduler(
      this.pool,
      new BlockTable(settings.maxRunning, pages, { windows: options.windows !== undefined }),
      settings,
    );
  }

  sequence(promptLength: number, maxTokens: number): Sequence {
    return this.ranked(0, promptLength, maxTokens);
  }

  /** A sequence of a priority. */
  ranked(priority: number, promptLength: number, maxTokens: number): Sequence {
    const id = this.#ids++;
    const promptTokens = Array.from({ length: promptLength }, (_, i) => (id * 31 + i * 7) % 500);
    return new Sequence({ id, promptTokens, maxTokens, sampling: GREEDY, choice: 0, priority });
  }

  /** A sequence whose prompt is `shared` tokens that depend on `family` only, then its own. */
  related(family: number, shared: number, own: number, maxTokens: number, salt = ''): Sequence {
    const id = this.#ids++;
    const prefix = Array.from({ length: shared }, (_, i) => 1000 * (family + 1) + i);
    const promptTokens = [...prefix, ...Array.from({ length: own }, (_, i) => (id * 31 + i * 7) % 500)];
    return new Sequence({ id, promptTokens, maxTokens, sampling: GREEDY, choice: 0, salt });
  }

  /** What comes after the first `length` tokens of another sequence: three of its own. */
  continued({ tokens }: Sequence, length: number, maxTokens: number): Sequence {
    return new Sequence({ id: this.#ids++, promptTokens: [...tokens.slice(0, length), 1, 2, 3], maxTokens, sampling: GREEDY, choice: 0 });
  }

  /** One round of the engine's loop: submit the next step, then take the one before. False when nothing was left to do. */
  async step(): Promise<boolean> {
    const batch = this.scheduler.next();
    const current = batch && { batch, result: this.runner.run(batch) };
    const previous = this.#submitted;
    this.#submitted = current;
    if (previous) await this.#complete(previous);
    if (current && !this.#overlap) {
      await this.#complete(current);
      this.#submitted = undefined;
    }
    return previous !== undefined || current !== undefined;
  }

  async #complete({ batch, result }: { batch: Batch; result: StepResult }): Promise<void> {
    const take = (sequence: Sequence): void => {
      if (generated(sequence).length >= sequence.maxTokens) this.scheduler.finish(sequence);
    };
    this.scheduler.complete(batch, await result.tokens(), take, await result.headDrafts?.());
  }

  async drain(limit = 10000): Promise<void> {
    for (let i = 0; i < limit; i++) if (!(await this.step())) return;
    throw new Error(`still busy after ${limit} steps: ${this.scheduler.numRunning} running, ${this.scheduler.numWaiting} waiting`);
  }
}

/** Tokens a sequence has beyond its prompt. */
export const generated = (sequence: Sequence): number[] => sequence.tokens.slice(sequence.numPrompt);
/** The tokens it would have by itself. */
export const alone = (sequence: Sequence, model: FakeModel): number[] =>
  expectedTokens(model, sequence.tokens.slice(0, sequence.numPrompt), generated(sequence).length);

/** Every sequence has all its tokens, and they are those of a run alone; nothing is held any more. */
export function expectDone(rig: Rig, sequences: readonly Sequence[]): void {
  for (const sequence of sequences) {
    expect(generated(sequence)).toEqual(alone(sequence, rig.model));
    expect(generated(sequence)).toHaveLength(sequence.maxTokens);
  }
  expect([rig.scheduler.numPagesHeld, rig.scheduler.numWindowPagesHeld]).toEqual([0, 0]);
  expect([rig.scheduler.numRunning, rig.scheduler.numWaiting]).toEqual([0, 0]);
  rig.scheduler.checkIntegrity();
}
