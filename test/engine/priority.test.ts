import { describe, expect, test } from 'vitest';
import { LPM, MAX_OVERTAKEN } from '../../engine/scheduler/policy.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { createRng } from '../../engine/util/rng.ts';
import { Rig, expectDone, generated } from '../support/scheduler-rig.ts';

describe('priorities', () => {
  test('the higher goes first, then the policy decides', async () => {
    const rig = new Rig({ maxRunning: 1 });
    const sequences = [0, 5, -3, 5, 0].map((priority) => rig.ranked(priority, 4, 2));
    rig.scheduler.add(sequences);
    const order: number[] = [];
    while (await rig.step()) for (const { sequence } of rig.runner.batches.at(-1)!.prefills) order.push(sequence.id);
    expect([...new Set(order)]).toEqual([1, 3, 0, 4, 2]);
    expectDone(rig, sequences);
  });

  test('being overtaken by a higher one is no claim to be first', async () => {
    const rig = new Rig({ maxRunning: 1, policy: LPM, prefixCache: true });
    const low = rig.ranked(0, 6, 2);
    const high = Array.from({ length: 2 * MAX_OVERTAKEN }, () => rig.ranked(1, 6, 2));
    rig.scheduler.add([low, ...high]);
    await rig.drain();
    expect(low.overtaken).toBe(0);
    expectDone(rig, [low, ...high]);
    const last = rig.runner.batches.flatMap(({ prefills }) => prefills).at(-1)!;
    expect(last.sequence).toBe(low);
  });

  test.each([true, false])(
    'takes the place of the least important, which goes on later to the same tokens (look-ahead %s)',
    async (overlap) => {
      const rig = new Rig({ maxRunning: 3, preemptionThreshold: 10, overlap });
      const running = [4, 1, 1].map((priority) => rig.ranked(priority, 5, 12));
      rig.scheduler.add(running);
      for (let step = 0; step < 4; step++) await rig.step();
      const [near, far] = [rig.ranked(11, 5, 4), rig.ranked(12, 5, 4)];
      rig.scheduler.add([near]);
      await rig.step();
      expect(near.status).toBe('waiting'); // 10 more than the lowest is not more than the threshold.
      rig.scheduler.add([far]);
      await rig.step();
      await rig.step();
      expect([far, ...running].map(({ status }) => status)).toEqual(['running', 'running', 'running', 'waiting']);
      await rig.drain();
      expectDone(rig, [near, far, ...running]);
    },
  );

  test('one that a grammar holds and that lost its place is computed again only once its mask is there', async () => {
    const rig = new Rig({ maxRunning: 1, preemptionThreshold: 0 });
    const { sampling, ...low } = rig.ranked(0, 6, 4);
    const logits = { repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, bias: [], logprobs: undefined, constrained: true, minTokens: 0, endTokens: [] }; // prettier-ignore
    const held = new Sequence({ ...low, promptTokens: low.tokens, sampling: { ...sampling, logits } });
    const mask = (held.mask = new Int32Array(1).fill(-1));
    rig.scheduler.add([held]);
    await rig.step();
    await rig.step();
    expect(generated(held)).toHaveLength(1);
    // What follows its first token is not known yet.
    held.mask = undefined;
    const high = rig.ranked(1, 6, 2);
    const plain = rig.ranked(0, 6, 2);
    rig.scheduler.add([high, plain]);
    await rig.drain();
    expect([held, high, plain].map(({ status }) => status)).toEqual(['waiting', 'finished', 'finished']);
    expect(generated(held)).toHaveLength(1);
    held.mask = mask;
    await rig.drain();
    expectDone(rig, [held, high, plain]);
  });

  test('where pages run out the least important is retracted', async () => {
    const rig = new Rig({ pages: 10, maxRunning: 4 });
    const [low, high] = [rig.ranked(0, 8, 20), rig.ranked(1, 8, 20)];
    rig.scheduler.add([low, high]);
    await rig.drain();
    expectDone(rig, [low, high]);
    const begun = (sequence: Sequence): number =>
      rig.runner.batches.flatMap(({ prefills }) => prefills).filter((item) => item.sequence === sequence && item.start === 0).length;
    expect(begun(low)).toBeGreaterThan(1);
    expect(begun(high)).toBe(1);
  });

  test.each([1, 2, 3, 4])('random priorities and arrivals give everyone its own tokens (seed %i)', async (seed) => {
    const rng = createRng(seed);
    const rig = new Rig({
      pages: 24 + rng.integer(30),
      maxRunning: 1 + rng.integer(4),
      preemptionThreshold: rng.integer(4),
      overlap: seed % 2 === 0,
      prefixCache: seed > 2,
      maxQueued: 1000,
    });
    const sequences: Sequence[] = [];
    for (let round = 0; round < 300; round++) {
      if (rng.uniform() < 0.2) {
        const sequence = rig.ranked(rng.integer(10), 1 + rng.integer(30), 1 + rng.integer(20));
        rig.scheduler.add([sequence]);
        sequences.push(sequence);
      }
      await rig.step();
    }
    await rig.drain();
    expectDone(rig, sequences);
  });
});
