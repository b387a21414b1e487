/** The scheduler with a fake runner: whatever it does, every sequence must get the tokens it would get alone. */
import { describe, expect, test } from 'vitest';
import { BlockTable } from '../../engine/cache/block-table.ts';
import { PagePool } from '../../engine/cache/page-pool.ts';
import { EngineError } from '../../engine/errors.ts';
import type { StepResult } from '../../engine/runner/model-runner.ts';
import type { Batch } from '../../engine/scheduler/batch.ts';
import { Scheduler } from '../../engine/scheduler/scheduler.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { createRng } from '../../engine/util/rng.ts';
import { FakeRunner, expectedTokens, hashModel } from '../support/fake-runner.ts';

const PAGE = 4;
const GREEDY = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 0 };

class Rig {
  readonly pool: PagePool;
  readonly scheduler: Scheduler;
  readonly runner = new FakeRunner(hashModel, PAGE);
  #submitted: { batch: Batch; result: StepResult } | undefined;
  #ids = 0;

  constructor({ pages = 64, maxRunning = 8, prefillChunk = 16, maxQueued = 100 } = {}) {
    this.pool = new PagePool(pages);
    const table = new BlockTable(maxRunning, pages);
    this.scheduler = new Scheduler(this.pool, table, { pageSize: PAGE, maxRunning, prefillChunk, maxQueued });
  }

  sequence(promptLength: number, maxTokens: number): Sequence {
    const id = this.#ids++;
    const promptTokens = Array.from({ length: promptLength }, (_, i) => (id * 31 + i * 7) % 500);
    return new Sequence({ id, promptTokens, maxTokens, sampling: GREEDY, choice: 0 });
  }

  /** One round of the engine's loop: submit the next step, then take the one before. False when nothing was left to do. */
  async step(): Promise<boolean> {
    const batch = this.scheduler.next();
    const current = batch && { batch, result: this.runner.run(batch) };
    const previous = this.#submitted;
    this.#submitted = current;
    if (previous) {
      const wanted = this.scheduler.complete(previous.batch, await previous.result.tokens());
      for (const { sequence } of wanted) if (generated(sequence).length >= sequence.maxTokens) this.scheduler.finish(sequence);
    }
    return previous !== undefined || current !== undefined;
  }

  async drain(limit = 10000): Promise<void> {
    for (let i = 0; i < limit; i++) if (!(await this.step())) return;
    throw new Error(`still busy after ${limit} steps: ${this.scheduler.numRunning} running, ${this.scheduler.numWaiting} waiting`);
  }
}

const generated = (sequence: Sequence): number[] => sequence.tokens.slice(sequence.numPrompt);
const alone = (sequence: Sequence): number[] =>
  expectedTokens(hashModel, sequence.tokens.slice(0, sequence.numPrompt), generated(sequence).length);

/** Every sequence has all its tokens, and they are those of a run alone; nothing is held any more. */
function expectDone(rig: Rig, sequences: readonly Sequence[]): void {
  for (const sequence of sequences) {
    expect(generated(sequence)).toEqual(alone(sequence));
    expect(generated(sequence)).toHaveLength(sequence.maxTokens);
  }
  expect(rig.pool.numUsed).toBe(0);
  expect([rig.scheduler.numRunning, rig.scheduler.numWaiting]).toEqual([0, 0]);
  rig.scheduler.checkIntegrity();
}

describe('Scheduler', () => {
  test('runs one sequence to its end, with one step for each token after the prompt', async () => {
    const rig = new Rig();
    const sequence = rig.sequence(5, 6);
    rig.scheduler.add([sequence]);
    await rig.drain();
    expectDone(rig, [sequence]);
    expect(rig.runner.batches.map(({ decodes, prefills }) => [decodes.length, prefills.length])).toEqual([[0, 1], ...Array.from({ length: 5 }, () => [1, 0])]); // prettier-ignore
    expect(rig.runner.batches[1]!.decodes[0]!.fromDevice).toBe(true);
  });

  test('cuts a long prompt into chunks, of which only the last samples, and decodes others beside them', async () => {
    const rig = new Rig({ prefillChunk: 10 });
    const [short, long] = [rig.sequence(3, 20), rig.sequence(35, 3)];
    rig.scheduler.add([short]);
    await rig.step();
    rig.scheduler.add([long]);
    await rig.drain();
    expectDone(rig, [short, long]);
    const chunks = rig.runner.batches.flatMap(({ prefills }) => prefills.filter(({ sequence }) => sequence === long));
    expect(chunks.map(({ start, count, samples }) => [start, count, samples])).toEqual([[0, 10, false], [10, 10, false], [20, 10, false], [30, 5, true]]); // prettier-ignore
    const mixed = rig.runner.batches.filter(({ decodes, prefills }) => decodes.length > 0 && prefills.length > 0);
    expect(mixed).toHaveLength(4);
  });

  test('admits in order of arrival, at most maxRunning at a time', async () => {
    const rig = new Rig({ maxRunning: 2 });
    const sequences = [4, 4, 4, 4].map((length) => rig.sequence(length, 3));
    rig.scheduler.add(sequences);
    const firstSeen: number[] = [];
    do {
      expect(rig.scheduler.numRunning).toBeLessThanOrEqual(2);
      for (const { prefills } of rig.runner.batches.slice(-1)) for (const { sequence } of prefills) firstSeen.push(sequence.id);
    } while (await rig.step());
    expect([...new Set(firstSeen)]).toEqual([0, 1, 2, 3]);
    expectDone(rig, sequences);
  });

  test('retracts the youngest when pages run out and computes it again to the same tokens', async () => {
    // 10 pages hold 40 tokens; each of the two needs 28.
    const rig = new Rig({ pages: 10, maxRunning: 4 });
    const sequences = [rig.sequence(8, 20), rig.sequence(8, 20)];
    rig.scheduler.add(sequences);
    await rig.drain();
    expectDone(rig, sequences);
    const again = rig.runner.batches
      .flatMap(({ prefills }) => prefills)
      .filter(({ sequence, start }) => sequence === sequences[1] && start === 0);
    expect(again.length).toBeGreaterThan(1);
    const first = rig.runner.batches.flatMap(({ prefills }) => prefills).filter(({ sequence }) => sequence === sequences[0]);
    expect(first).toHaveLength(1);
  });

  test('an abort frees the pages within a step, also while the sequence is in a submitted step', async () => {
    const rig = new Rig();
    const [aborted, other, queued] = [rig.sequence(9, 50), rig.sequence(9, 10), rig.sequence(9, 50)];
    rig.scheduler.add([aborted, other, queued]);
    for (let i = 0; i < 4; i++) await rig.step();
    rig.scheduler.finish(aborted);
    rig.scheduler.finish(queued);
    await rig.step();
    expect(aborted.pages).toEqual([]);
    expect(queued.pages).toEqual([]);
    await rig.drain();
    expectDone(rig, [other]);
    expect(generated(aborted)).toEqual(alone(aborted));
  });

  test('refuses sequences beyond the queue, all of a request or none', async () => {
    const rig = new Rig({ maxRunning: 1, maxQueued: 2 });
    rig.scheduler.add([rig.sequence(1, 2), rig.sequence(1, 2)]);
    await rig.step();
    const error = (() => {
      try {
        rig.scheduler.add([rig.sequence(1, 2), rig.sequence(1, 2)]);
        return undefined;
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(EngineError);
    expect((error as EngineError).code).toBe('queue_full');
    expect(rig.scheduler.numWaiting).toBe(1);
    rig.scheduler.add([rig.sequence(1, 2)]);
    await rig.drain();
    expect(rig.pool.numUsed).toBe(0);
  });

  test.each([1, 2, 3, 4, 5, 6])('random arrivals, aborts and shortages (seed %i)', async (seed) => {
    const rng = createRng(seed);
    const pages = 12 + rng.integer(40);
    const rig = new Rig({ pages, maxRunning: 1 + rng.integer(8), prefillChunk: 1 + rng.integer(20), maxQueued: 1000 });
    const finished: Sequence[] = [];
    const live: Sequence[] = [];
    for (let round = 0; round < 150; round++) {
      if (rng.uniform() < 0.4) {
        const promptLength = 1 + rng.integer(pages * 2);
        const sequence = rig.sequence(promptLength, 1 + rng.integer(pages * PAGE - promptLength));
        rig.scheduler.add([sequence]);
        live.push(sequence);
      }
      if (rng.uniform() < 0.1 && live.length > 0) {
        const [victim] = live.splice(rng.integer(live.length), 1);
        rig.scheduler.finish(victim!);
        expect(generated(victim!)).toEqual(alone(victim!));
      }
      await rig.step();
      rig.pool.checkIntegrity();
      for (const sequence of live.filter(({ status }) => status === 'finished')) {
        finished.push(sequence);
        live.splice(live.indexOf(sequence), 1);
      }
    }
    await rig.drain();
    expectDone(rig, [...finished, ...live]);
    expect(finished.length + live.length).toBeGreaterThan(20);
  });
});
