import { describe, expect, test } from 'vitest';
import { FROM_HEAD } from '../../engine/scheduler/batch.ts';
import { LPM } from '../../engine/scheduler/policy.ts';
import { draftTokens } from '../../engine/scheduler/prompt-lookup.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { createRng } from '../../engine/util/rng.ts';
import { repeatingModel } from '../support/fake-runner.ts';
import { GREEDY_SAMPLING as GREEDY } from '../../engine/sampling.ts';
import { Rig, expectDone, generated } from '../support/scheduler-rig.ts';

describe('prompt lookup', () => {
  const LOOKUP = { draftTokens: 4, minMatch: 2, maxMatch: 3 };
  const repeating = { model: repeatingModel, promptLookup: LOOKUP, draftRows: 12 };

  test.each([
    { tokens: [1, 2, 3, 9, 1, 2, 3], count: 2, drafts: [9, 1] },
    { tokens: [5, 2, 3, 7, 1, 2, 3, 8, 5, 2, 3], count: 1, drafts: [7] }, // The longest match wins, not the latest,
    { tokens: [2, 3, 7, 4, 2, 3, 8, 4, 2, 3], count: 1, drafts: [8] }, // of equal ones the latest.
    { tokens: [0, 1, 2, 3, 9, 1, 2, 3, 8, 0, 1, 2, 3], count: 1, drafts: [8] }, // Three tokens are compared, no more.
    { tokens: [4, 4, 4], count: 4, drafts: [4, 4, 4, 4] },
    { tokens: [6, 7, 6, 7], count: 3, drafts: [6, 7, 6] },
    { tokens: [1, 3, 2, 3], count: 4, drafts: [] },
    { tokens: [3], count: 4, drafts: [] },
  ])('after $tokens guesses $drafts', ({ tokens, count, drafts }) => {
    expect(draftTokens(tokens, LOOKUP, count)).toEqual(drafts);
  });

  test('a token alone is no occurrence of itself', () => {
    expect(draftTokens([3], { ...LOOKUP, minMatch: 1 }, 4)).toEqual([]);
  });

  test.each([true, false])('gives the same tokens in fewer steps (look-ahead %s)', async (overlap) => {
    const rig = new Rig({ ...repeating, overlap });
    const sequence = rig.sequence(5, 80);
    rig.scheduler.add([sequence]);
    await rig.drain();
    expectDone(rig, [sequence]);
    const { drafted, accepted } = rig.scheduler.draftCounts;
    expect(accepted).toBeGreaterThan(20);
    expect(accepted).toBeLessThan(drafted);
    // The step that ends a prompt gives the first token; every other gives one and the guesses that were right.
    expect(rig.runner.batches).toHaveLength(80 - accepted);
  });

  test('stops where the sequence is finished, among guesses that were right too', async () => {
    const rig = new Rig({ ...repeating, model: () => 7, overlap: false });
    const sequence = rig.sequence(3, 100);
    rig.scheduler.add([sequence]);
    for (let step = 0; step < 3; step++) await rig.step();
    const before = generated(sequence).length;
    const batch = rig.scheduler.next()!;
    const tokens = await rig.runner.run(batch).tokens();
    expect(tokens).toHaveLength(5);
    rig.scheduler.complete(batch, tokens, (taken) => {
      if (generated(taken).length === before + 2) rig.scheduler.finish(taken);
    });
    expect(generated(sequence)).toHaveLength(before + 2);
    expect(sequence.pages).toEqual([]);
    rig.scheduler.checkIntegrity();
  });

  test('leaves alone what needs each token before the next', async () => {
    const rig = new Rig({ ...repeating, model: () => 7 });
    const logits = { repetitionPenalty: 1.2, presencePenalty: 0, frequencyPenalty: 0, bias: [], logprobs: undefined, constrained: false, minTokens: 0, endTokens: [] }; // prettier-ignore
    const penalized = new Sequence({ id: 50, promptTokens: [7, 7, 7], maxTokens: 20, sampling: { ...GREEDY, logits }, choice: 0 });
    rig.scheduler.add([penalized]);
    await rig.drain();
    expectDone(rig, [penalized]);
    expect(rig.scheduler.draftCounts.drafted).toBe(0);
  });

  test.each([1, 2, 3, 4, 5, 6])(
    'random arrivals, aborts, shortages and look-ahead give everyone its own tokens (seed %i)',
    async (seed) => {
      const rng = createRng(seed);
      const pages = 24 + rng.integer(40);
      const rig = new Rig({
        ...repeating,
        overlap: seed % 3 > 0,
        pages,
        maxRunning: 1 + rng.integer(8),
        prefillChunk: 4 + rng.integer(40),
        draftRows: rng.integer(20),
        prefixCache: seed % 2 === 0,
        policy: LPM,
        maxQueued: 1000,
      });
      const kept: Sequence[] = [];
      let aborted: Sequence[] = [];
      for (let round = 0; round < 300; round++) {
        if (rng.uniform() < 0.3) {
          const sequence = rig.related(rng.integer(3), rng.integer(50), 1 + rng.integer(8), 1 + rng.integer(60));
          rig.scheduler.add([sequence]);
          (rng.uniform() < 0.2 ? aborted : kept).push(sequence);
        }
        if (rng.uniform() < 0.1) {
          aborted.forEach((sequence) => rig.scheduler.finish(sequence));
          aborted = [];
        }
        if (rng.uniform() < 0.02) rig.scheduler.flushCache();
        await rig.step();
        rig.pool.checkIntegrity();
      }
      aborted.forEach((sequence) => rig.scheduler.finish(sequence));
      await rig.drain();
      expectDone(rig, kept);
      expect(rig.scheduler.draftCounts.accepted).toBeGreaterThan(0);
    },
  );
});

describe('guesses of a head', () => {
  const guessing = { headDrafts: 3, draftRows: 12 };

  test.each([true, false])('the same tokens in fewer steps, the first as soon as one is sampled (look-ahead %s)', async (overlap) => {
    const rig = new Rig({ ...guessing, overlap });
    const sequence = rig.sequence(5, 60);
    rig.scheduler.add([sequence]);
    await rig.drain();
    expectDone(rig, [sequence]);
    const { drafted, accepted } = rig.scheduler.draftCounts;
    // Guesses at every fifth position are wrong.
    expect(accepted).toBeGreaterThan(drafted / 2);
    expect(accepted).toBeLessThan(drafted);
    expect(rig.runner.batches).toHaveLength(60 - accepted);
    expect(rig.runner.batches[1]!.prefills[0]!.drafts).toEqual([FROM_HEAD, FROM_HEAD, FROM_HEAD]);
  });

  test('nothing is guessed from a cached prefix before a step has computed something behind it', async () => {
    const rig = new Rig({ ...guessing, prefixCache: true, policy: LPM });
    const first = rig.related(0, 9, 0, 4);
    rig.scheduler.add([first]);
    await rig.drain();
    const again = rig.related(0, 9, 0, 20);
    rig.scheduler.add([again]);
    const before = rig.runner.batches.length;
    await rig.drain();
    expectDone(rig, [again]);
    expect(again.cached).toBe(8);
    expect(rig.runner.batches[before]!.prefills[0]).toMatchObject({ count: 1, drafts: [] });
    expect(rig.runner.batches[before + 1]!.prefills[0]!.drafts).toHaveLength(3);
  });
});
