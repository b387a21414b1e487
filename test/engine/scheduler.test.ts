import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { LPM, MAX_OVERTAKEN } from '../../engine/scheduler/policy.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { createRng } from '../../engine/util/rng.ts';
import { GREEDY_SAMPLING as GREEDY } from '../../engine/sampling.ts';
import { PAGE, Rig, alone, expectDone, generated } from '../support/scheduler-rig.ts';

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
    expect(chunks.map(({ start, count, samples }) => [start, count, samples])).toEqual([[0, 10, 0], [10, 10, 0], [20, 10, 0], [30, 5, 1]]); // prettier-ignore
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
    expect(generated(aborted)).toEqual(alone(aborted, rig.model));
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

  test('refuses more sequences of a request than it ever has room for, and not as a full queue, which a client would try again', () => {
    const rig = new Rig({ maxRunning: 1, maxQueued: 2 });
    const sequences = Array.from({ length: 4 }, () => rig.sequence(1, 2));
    const why = "'n' asks for 4 answers; at most 3 run and wait at once";
    expect(() => rig.scheduler.add(sequences)).toThrow(expect.objectContaining({ code: 'invalid_request', param: 'n', message: why }));
    rig.scheduler.add(sequences.slice(1));
    expect(rig.scheduler.numWaiting).toBe(3);
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
        expect(generated(victim!)).toEqual(alone(victim!, rig.model));
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

test('a short prompt that arrives behind a long one starts in the next step', async () => {
  const rig = new Rig({ pages: 200, prefillChunk: 16 });
  const long = rig.sequence(300, 2);
  rig.scheduler.add([long]);
  await rig.step();
  const short = rig.sequence(4, 3);
  rig.scheduler.add([short]);
  await rig.step();
  expect(rig.runner.batches.at(-1)!.prefills.map(({ sequence, count }) => [sequence.id, count])).toEqual([
    [long.id, 12],
    [short.id, 4],
  ]);
  await rig.drain();
  expectDone(rig, [long, short]);
});

describe('Scheduler with a prefix cache', () => {
  const on = { prefixCache: true, policy: LPM };

  test('computes a shared prefix once and reports it as cached', async () => {
    const rig = new Rig(on);
    const first = rig.related(0, 40, 2, 3);
    rig.scheduler.add([first]);
    await rig.drain();
    const computed = rig.runner.computed;
    const second = rig.related(0, 40, 3, 3);
    rig.scheduler.add([second]);
    await rig.drain();
    expectDone(rig, [first, second]);
    expect([first.cached, second.cached]).toEqual([0, 40]);
    expect(rig.runner.computed - computed).toBe(3 + 2);
  });

  test('the answer is cached too: the next turn of a conversation computes only what is new', async () => {
    const rig = new Rig(on);
    const first = rig.related(0, 10, 0, 9);
    rig.scheduler.add([first]);
    await rig.drain();
    const turn = new Sequence({ id: 99, promptTokens: [...first.tokens, 1, 2, 3], maxTokens: 2, sampling: GREEDY, choice: 0 });
    rig.scheduler.add([turn]);
    await rig.drain();
    expectDone(rig, [first, turn]);
    // 18 of the 19 tokens of the first turn were computed: the last was never an input.
    expect(turn.cached).toBe(16);
  });

  test('of requests that arrive together only one computes the common prefix', async () => {
    const rig = new Rig({ ...on, prefillChunk: 1000 });
    const sequences = Array.from({ length: 5 }, () => rig.related(0, 48, 3, 4));
    rig.scheduler.add(sequences);
    await rig.drain();
    expectDone(rig, sequences);
    expect(sequences.map(({ cached }) => cached)).toEqual([0, 48, 48, 48, 48]);
  });

  test('nobody waits for a prefix that is not computed any further, because its reader is behind', async () => {
    const rig = new Rig(on);
    const [behind, other] = [rig.related(0, 48, 3, 4), rig.related(0, 48, 3, 4)];
    rig.scheduler.add([behind]);
    await rig.step();
    behind.paused = true;
    rig.scheduler.add([other]);
    await rig.drain();
    expect([behind, other].map(({ status }) => status)).toEqual(['running', 'finished']);
    behind.paused = false;
    await rig.drain();
    expectDone(rig, [behind, other]);
  });

  test('what a sequence finds of its own, where it lost its place within its prompt, is no hit', async () => {
    const rig = new Rig({ ...on, maxRunning: 1, preemptionThreshold: 0 });
    const [low, high] = [rig.ranked(0, 60, 3), rig.ranked(1, 5, 3)];
    rig.scheduler.add([low]);
    await rig.step();
    await rig.step();
    rig.scheduler.add([high]);
    await rig.drain();
    expectDone(rig, [low, high]);
    expect(rig.runner.batches.filter(({ prefills }) => prefills.some(({ sequence }) => sequence === low))).toHaveLength(4);
    expect(low.cached).toBe(0);
  });

  test('a namespace shares with itself only', async () => {
    const rig = new Rig(on);
    for (const [salt, cached] of [['a', 0], ['b', 0], ['a', 40]] as const) {
      const sequence = rig.related(0, 40, 1, 2, salt);
      rig.scheduler.add([sequence]);
      await rig.drain();
      expectDone(rig, [sequence]);
      expect(sequence.cached).toBe(cached);
    }
  }); // prettier-ignore

  test('prompts that are wholly cached still compute their last token', async () => {
    const rig = new Rig(on);
    for (let i = 0; i < 2; i++) {
      const sequence = rig.related(0, 40, 0, 3);
      rig.scheduler.add([sequence]);
      await rig.drain();
      expectDone(rig, [sequence]);
      expect(sequence.cached).toBe(i === 0 ? 0 : 36);
    }
  });

  test('cached prefixes give way to running sequences, least recently used first', async () => {
    const rig = new Rig({ ...on, pages: 20 });
    const cold = rig.related(0, 30, 1, 2);
    const warm = rig.related(1, 30, 1, 2);
    for (const sequence of [cold, warm]) {
      rig.scheduler.add([sequence]);
      await rig.drain();
    }
    const large = rig.related(2, 36, 1, 2);
    rig.scheduler.add([large]);
    await rig.drain();
    const again = rig.related(1, 30, 1, 2);
    rig.scheduler.add([again]);
    await rig.drain();
    expectDone(rig, [cold, warm, large, again]);
    expect(again.cached).toBe(28);
  });

  test('longest prefix first, but nobody is overtaken for ever', async () => {
    const rig = new Rig({ ...on, maxRunning: 1, prefillChunk: 1000 });
    const seed = rig.related(0, 40, 1, 1);
    rig.scheduler.add([seed]);
    await rig.drain();
    const cold = rig.related(1, 40, 1, 1);
    rig.scheduler.add([rig.related(0, 40, 1, 30), cold]);
    await rig.step();
    const warm: Sequence[] = [];
    for (let i = 0; i < 40; i++) warm.push(rig.related(0, 40, 1, 1));
    rig.scheduler.add(warm);
    await rig.drain();
    expect(cold.overtaken).toBe(MAX_OVERTAKEN);
    expectDone(rig, [cold, ...warm]);
  });

  test('flushing forgets what nobody reads', async () => {
    const rig = new Rig(on);
    rig.scheduler.add([rig.related(0, 40, 1, 1)]);
    await rig.drain();
    expect(rig.pool.numUsed).toBeGreaterThan(0);
    rig.scheduler.flushCache();
    expect(rig.pool.numUsed).toBe(0);
    rig.scheduler.checkIntegrity();
  });

  test.each([1, 2, 3, 4, 5, 6])('random arrivals, families, aborts and shortage give everyone its own tokens (seed %i)', async (seed) => {
    const rng = createRng(seed);
    const rig = new Rig({ ...on, pages: 24 + rng.integer(40), maxRunning: 1 + rng.integer(8), prefillChunk: 4 + rng.integer(60) });
    const kept: Sequence[] = [];
    let aborted: Sequence[] = [];
    for (let round = 0; round < 400; round++) {
      if (rng.uniform() < 0.25) {
        const sequence = rig.related(rng.integer(3), rng.integer(50), 1 + rng.integer(8), 1 + rng.integer(20), rng.integer(4) ? '' : 'x');
        rig.scheduler.add([sequence]);
        (rng.uniform() < 0.2 ? aborted : kept).push(sequence);
      }
      if (rng.uniform() < 0.1) {
        aborted.forEach((sequence) => rig.scheduler.finish(sequence));
        aborted = [];
      }
      if (rng.uniform() < 0.02) rig.scheduler.flushCache();
      await rig.step();
    }
    aborted.forEach((sequence) => rig.scheduler.finish(sequence));
    await rig.drain();
    expectDone(rig, kept);
  });
});
