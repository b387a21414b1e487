/**
 * The scheduler where prompts are computed with other bits than answers (docs/numerics.md): the fake runner checks that every position that is read was computed by the
 * kernels that it would have had alone, whatever was cached, preempted or guessed.
 */
import { describe, expect, test } from 'vitest';
import { isOfPrompt } from '../../engine/scheduler/batch.ts';
import { LPM } from '../../engine/scheduler/policy.ts';
import type { Sequence } from '../../engine/scheduler/sequence.ts';
import { createRng } from '../../engine/util/rng.ts';
import { repeatingModel } from '../support/fake-runner.ts';
import { Rig, expectDone } from '../support/scheduler-rig.ts';

const on = { prefixCache: true, policy: LPM, promptsApart: true };

async function run(rig: Rig, ...sequences: Sequence[]): Promise<void> {
  rig.scheduler.add(sequences);
  await rig.drain();
  expectDone(rig, sequences);
}

describe('prompts apart', () => {
  test('are shared, and answers are not: the next turn of a conversation computes the answer before it once, as a part of its prompt', async () => {
    const rig = new Rig(on);
    const first = rig.related(0, 10, 0, 9);
    await run(rig, first);
    const turn = rig.continued(first, first.tokens.length, 2);
    await run(rig, turn);
    const again = rig.continued(first, first.tokens.length, 2);
    await run(rig, again);
    expect([turn.cached, again.cached]).toEqual([8, 20]);
  });

  test('a sequence that lost its place computes its prompt and its answer in steps of their own, to the same tokens', async () => {
    const rig = new Rig({ ...on, maxRunning: 1, preemptionThreshold: 0 });
    const low = rig.ranked(0, 6, 12);
    rig.scheduler.add([low]);
    for (let i = 0; i < 6; i++) await rig.step();
    const high = rig.ranked(1, 5, 2);
    rig.scheduler.add([high]);
    await rig.drain();
    expectDone(rig, [low, high]);
    const items = rig.runner.batches.flatMap(({ prefills }) => prefills).filter(({ sequence }) => sequence === low);
    // Its first page comes from the cache.
    expect(items.map(({ start, count, samples }) => [start, count, samples])).toEqual([[0, 6, 1], [4, 2, 0], [6, expect.any(Number) as number, 1]]); // prettier-ignore
  });

  test('a sequence that lost its place takes nothing of its answer from one whose prompt says the same', async () => {
    const rig = new Rig({ ...on, maxRunning: 2, preemptionThreshold: 0 });
    const low = rig.ranked(0, 6, 30);
    rig.scheduler.add([low]);
    for (let i = 0; i < 14; i++) await rig.step();
    const turn = rig.continued(low, 14, 2);
    rig.scheduler.add([turn]);
    for (let i = 0; i < 4; i++) await rig.step();
    const high = [rig.ranked(1, 5, 3), rig.ranked(1, 5, 3)];
    rig.scheduler.add(high);
    await rig.drain();
    expectDone(rig, [low, turn, ...high]);
  });

  test('an answer that is computed again comes before the prompts of a step', async () => {
    const rig = new Rig({ ...on, maxRunning: 2, preemptionThreshold: 0, prefillChunk: 12 });
    const [low, other] = [rig.ranked(0, 6, 12), rig.ranked(2, 6, 10)];
    rig.scheduler.add([low, other]);
    for (let i = 0; i < 8; i++) await rig.step();
    // While somebody waits, a long prompt leaves a part of each step to the others.
    const [high, last] = [rig.ranked(1, 90, 2), rig.ranked(-1, 6, 2)];
    rig.scheduler.add([high, last]);
    await rig.drain();
    expectDone(rig, [low, other, high, last]);
    const mixed = rig.runner.batches.map(({ prefills }) => prefills.map(isOfPrompt)).filter((kinds) => new Set(kinds).size > 1);
    expect(mixed.length).toBeGreaterThan(0);
    expect(mixed.every((kinds) => !kinds[0] && kinds[1])).toBe(true);
  });

  test('the last token of a prompt that is cached is one of the prompt', async () => {
    const rig = new Rig(on);
    await run(rig, rig.related(0, 41, 0, 3));
    const again = rig.related(0, 41, 0, 3);
    await run(rig, again);
    expect(again.cached).toBe(40);
    const [item] = rig.runner.batches.flatMap(({ decodes, prefills }) => [...decodes, ...prefills]).filter(({ sequence }) => sequence === again); // prettier-ignore
    expect(item).toMatchObject({ start: 40, count: 1, samples: 1 });
    expect(rig.runner.batches.every(({ decodes }) => !decodes.some(isOfPrompt))).toBe(true);
  });

  test.each(Array.from({ length: 16 }, (_, seed) => seed))(
    'random arrivals, families, turns, aborts, guesses, priorities and shortage give everyone its own tokens by its own kernels (seed %i)',
    async (seed) => {
      const rng = createRng(seed);
      const guesses = seed % 2 === 1 && {
        promptLookup: { draftTokens: 5, minMatch: 1, maxMatch: 3 },
        draftRows: 20,
        model: repeatingModel,
      };
      const maxRunning = 1 + rng.integer(8);
      const kinds = [
        {},
        { stateSlots: 2 * maxRunning + 1 + rng.integer(8) },
        { windows: { window: 9, pages: 12 + 6 * maxRunning + rng.integer(30) } },
        { preemptionThreshold: 0 },
      ];
      const rig = new Rig({ ...on, ...guesses, ...kinds[(seed >> 1) % 4], maxRunning, overlap: seed % 3 > 0, pages: 24 + rng.integer(40), prefillChunk: 4 + rng.integer(40) }); // prettier-ignore
      const kept: Sequence[] = [];
      let aborted: Sequence[] = [];
      for (let round = 0; round < 300; round++) {
        if (rng.uniform() < 0.25) {
          const done = kept.filter(({ status }) => status === 'finished');
          const turn = done.length > 0 && rng.uniform() < 0.4 ? done[rng.integer(done.length)]! : undefined;
          const sequence =
            turn && turn.tokens.length < 50
              ? rig.continued(turn, turn.tokens.length, 1 + rng.integer(20))
              : rig.related(rng.integer(3), rng.integer(40), 1 + rng.integer(8), 1 + rng.integer(20));
          rig.scheduler.add([sequence]);
          (rng.uniform() < 0.2 ? aborted : kept).push(sequence);
        }
        if (rng.uniform() < 0.1) {
          aborted.forEach((sequence) => rig.scheduler.finish(sequence));
          aborted = [];
        }
        await rig.step();
      }
      aborted.forEach((sequence) => rig.scheduler.finish(sequence));
      await rig.drain();
      expectDone(rig, kept);
      expect(kept.some(({ cached }) => cached > 0)).toBe(true);
    },
  );
});
