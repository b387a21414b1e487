/** Everything that the scheduler can do at once: priorities, guesses, states, windows, prompts apart, readers that are behind and sequences that go, with pages that are short. */
import { expect, test } from 'vitest';
import { FCFS, LPM } from '../../engine/scheduler/policy.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { GREEDY_SAMPLING } from '../../engine/sampling.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { repeatingModel } from '../support/fake-runner.ts';
import { Rig, alone, generated } from '../support/scheduler-rig.ts';
import type { RigOptions } from '../support/scheduler-rig.ts';

function anyOptions(rng: Rng): RigOptions {
  const is = (share: number): boolean => rng.uniform() < share;
  const maxRunning = 1 + rng.integer(6);
  const [states, windows] = [is(0.4), is(0.4)];
  const guesses = rng.integer(3);
  const each = guesses > 0 ? 2 : 1;
  return {
    prefixCache: is(0.85),
    policy: is(0.7) ? LPM : FCFS,
    promptsApart: is(0.4),
    maxRunning,
    overlap: is(0.7),
    pages: 20 + rng.integer(40),
    prefillChunk: 3 + rng.integer(40),
    ...(is(0.5) && { preemptionThreshold: rng.integer(2) }),
    ...(guesses === 1 && { promptLookup: { draftTokens: 5, minMatch: 1, maxMatch: 3 }, draftRows: 20, model: repeatingModel }),
    ...(guesses === 2 && { headDrafts: 3, draftRows: 12, model: repeatingModel }),
    ...(states && { stateSlots: each * maxRunning + 1 + rng.integer(8) }),
    ...(windows && { windows: { window: 5 + rng.integer(12), pages: 14 + 8 * maxRunning + rng.integer(30) } }),
  };
}

/** A prompt that may go on from what another sequence has by now, running or not. */
function anyPrompt(rng: Rng, others: readonly Sequence[]): number[] {
  const base = others.length > 0 && rng.uniform() < 0.5 ? others[rng.integer(others.length)] : undefined;
  const begun = base
    ? base.tokens.slice(0, 1 + rng.integer(base.tokens.length))
    : Array.from({ length: rng.integer(30) }, (_, i) => 1000 * rng.integer(2) + i);
  const prompt = [...begun.slice(0, 40), ...Array.from({ length: rng.integer(6) }, () => rng.integer(5))];
  return prompt.length > 0 ? prompt : [7];
}

// Of these the last ones once went wrong: places in a step that were taken anew, and guesses behind a state that was computed again in part.
const SEEDS = [...Array.from({ length: 24 }, (_, seed) => seed), 1098, 1341, 5561, 6016, 6626, 10625];

test.each(SEEDS)('everyone gets the tokens of a run alone, and nothing is held in the end (seed %i)', async (seed) => {
  const rng = createRng(seed);
  const is = (share: number): boolean => rng.uniform() < share;
  const options = anyOptions(rng);
  const rig = new Rig(options);
  const all: Sequence[] = [];
  const gone = new Set<Sequence>();
  for (let round = 0; round < 250; round++) {
    if (is(0.25)) {
      const promptTokens = anyPrompt(rng, all);
      const maxTokens = 1 + rng.integer(20);
      const priority = options.preemptionThreshold === undefined ? 0 : rng.integer(4);
      const salt = is(0.1) ? 'x' : '';
      const sequence = new Sequence({ id: all.length, promptTokens, maxTokens, sampling: GREEDY_SAMPLING, choice: 0, priority, salt });
      rig.scheduler.add([sequence]);
      all.push(sequence);
    }
    const live = all.filter(({ status }) => status !== 'finished');
    if (is(0.07) && live.length > 0) {
      const leaving = live[rng.integer(live.length)]!;
      gone.add(leaving);
      rig.scheduler.finish(leaving);
    }
    if (is(0.1) && live.length > 0) live[rng.integer(live.length)]!.paused = is(0.5);
    if (is(0.02)) rig.scheduler.flushCache();
    await rig.step();
  }
  for (const sequence of all) sequence.paused = false;
  await rig.drain();
  for (const sequence of all) {
    expect(generated(sequence)).toEqual(alone(sequence, rig.model));
    if (!gone.has(sequence)) expect(generated(sequence)).toHaveLength(sequence.maxTokens);
  }
  const { numPagesHeld, numWindowPagesHeld, numRunning, numWaiting } = rig.scheduler;
  expect([numPagesHeld, numWindowPagesHeld, numRunning, numWaiting]).toEqual([0, 0, 0, 0]);
  rig.scheduler.checkIntegrity();
});
