/** The scheduler of a model with recurrent layers: a cached prefix is of use where the state behind it was kept. The fake runner checks every state that is read. */
import { describe, expect, test } from 'vitest';
import { PagePool } from '../../engine/cache/page-pool.ts';
import { RadixCache } from '../../engine/cache/radix-cache.ts';
import { LPM } from '../../engine/scheduler/policy.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import { GREEDY_SAMPLING as GREEDY } from '../../engine/sampling.ts';
import { createRng } from '../../engine/util/rng.ts';
import { repeatingModel } from '../support/fake-runner.ts';
import { PAGE, Rig, expectDone } from '../support/scheduler-rig.ts';

const on = { prefixCache: true, policy: LPM, stateSlots: 17 };

async function run(rig: Rig, ...sequences: Sequence[]): Promise<void> {
  rig.scheduler.add(sequences);
  await rig.drain();
  expectDone(rig, sequences);
}

describe('RadixCache with states', () => {
  const tokens = Array.from({ length: 16 }, (_, i) => i);

  test('a prefix goes no further than the last state on its path, and says how far its pages go', () => {
    const slots = new PagePool(4);
    const tree = new RadixCache(PAGE, slots);
    const { node } = tree.insert(tokens.slice(0, 8), [0, 1]);
    tree.insert(tokens, [0, 1, 2, 3]);
    expect(tree.match(tokens)).toMatchObject({ pages: [], length: 0, known: 16, state: undefined });
    const [slot] = slots.allocate(1)!;
    tree.keep(node, slot!);
    expect(tree.match(tokens)).toMatchObject({ pages: [0, 1], length: 8, known: 16, state: slot });
    expect(tree.peek(tokens)).toBe(8);
    expect(tree.match(tokens.slice(0, 7))).toMatchObject({ length: 0, known: 4 });
    expect(tree.peek(tokens.slice(0, 7))).toBe(0);
    tree.checkIntegrity();
  });

  test('states that somebody reads stay, the least recently used of the others goes first, and pages take theirs along', () => {
    const slots = new PagePool(4);
    const tree = new RadixCache(PAGE, slots);
    const kept = [1, 2, 3].map((count) => {
      const start = 100 * count;
      const { node } = tree.insert(tokens.slice(0, 4).map((token) => start + token), [count]); // prettier-ignore
      const [slot] = slots.allocate(1)!;
      tree.keep(node, slot!);
      // A holder of its own is not needed any more.
      if (count !== 2) slots.release([slot!]);
      return slot!;
    });
    expect(tree.numIdleStates).toBe(2);
    tree.match(tokens.slice(0, 4).map((token) => 100 + token)); // prettier-ignore
    expect(tree.dropState()).toBe(true);
    expect(new Set(tree.states())).toEqual(new Set([kept[0], kept[1]]));
    expect(tree.dropState()).toBe(true);
    expect(tree.dropState()).toBe(false);
    expect(slots.holders(kept[1]!)).toBe(2);
    tree.evict(3);
    expect(slots.holders(kept[1]!)).toBe(1);
    expect(tree.states()).toEqual([]);
  });
});

describe('Scheduler with states', () => {
  test.each([1, 15, 16, 17, 1500, 1501, 1504])('the same prompt of %i tokens again computes at most one page', async (length) => {
    const rig = new Rig({ ...on, pages: 2000, prefillChunk: 300 });
    await run(rig, rig.related(0, length, 0, 3));
    const computed = rig.runner.computed;
    const again = rig.related(0, length, 0, 1);
    await run(rig, again);
    expect(rig.runner.computed - computed).toBeLessThanOrEqual(PAGE);
    expect(again.cached).toBe(Math.floor((length - 1) / PAGE) * PAGE);
  });

  test('the next turn of a conversation computes only what is new', async () => {
    const rig = new Rig(on);
    const first = rig.related(0, 10, 0, 9);
    await run(rig, first);
    const turn = new Sequence({ id: 99, promptTokens: [...first.tokens, 1, 2, 3], maxTokens: 2, sampling: GREEDY, choice: 0 });
    await run(rig, turn);
    expect(turn.cached).toBe(16);
  });

  test('where prompts part, the second leaves a state for the third', async () => {
    const rig = new Rig({ ...on, prefillChunk: 100 });
    const sequences = [9, 6, 5].map((own) => rig.related(0, 40, own, 2));
    for (const sequence of sequences) await run(rig, sequence);
    expect(sequences.map(({ cached }) => cached)).toEqual([0, 0, 40]);
  });

  test('the copy behind a prompt is not lost to the first of its answer', async () => {
    const rig = new Rig(on);
    // The first decode passes the end of a page.
    await run(rig, rig.related(0, 4 * PAGE - 1, 0, 6));
    const again = rig.related(0, 4 * PAGE - 1, 0, 1);
    await run(rig, again);
    expect(again.cached).toBe(3 * PAGE);
  });

  test('of equal prompts that arrive together one is computed, others that only share a prefix do not wait for it', async () => {
    const rig = new Rig({ ...on, prefillChunk: 1000 });
    const equal = Array.from({ length: 3 }, () => rig.related(0, 50, 0, 4));
    const other = rig.related(0, 44, 9, 4);
    await run(rig, ...equal, other);
    expect(equal.map(({ cached }) => cached)).toEqual([0, 48, 48]);
    expect(rig.runner.batches[0]!.prefills.map(({ sequence }) => sequence.id)).toEqual([equal[0]!.id, other.id]);
  });

  test('with a slot more than sequences may run, all of them run at once', async () => {
    const rig = new Rig({ ...on, stateSlots: 9, maxRunning: 8, pages: 200, prefillChunk: 1000 });
    const sequences = Array.from({ length: 8 }, (_, i) => rig.related(i, 20, 2, 12));
    rig.scheduler.add(sequences);
    await rig.step();
    await rig.step();
    expect(rig.scheduler.numRunning).toBe(8);
    await rig.drain();
    expectDone(rig, sequences);
  });

  test('copies of running sequences leave a slot for each that may still come', async () => {
    const rig = new Rig({ ...on, stateSlots: 4, maxRunning: 3 });
    const sequences = [0, 1].map((family) => rig.related(family, 6, 0, 40));
    rig.scheduler.add(sequences);
    for (let i = 0; i < 12; i++) await rig.step();
    const late = rig.related(2, 6, 0, 4);
    rig.scheduler.add([late]);
    await rig.step();
    expect(rig.scheduler.numRunning).toBe(3);
    await rig.drain();
    expectDone(rig, [...sequences, late]);
  });

  test('a copy behind a token that nobody has seen is not published', async () => {
    const rig = new Rig(on);
    const gone = rig.related(0, 14, 0, 9);
    rig.scheduler.add([gone]);
    const steps = Array.from({ length: 3 }, () => {
      const batch = rig.scheduler.next()!;
      return { batch, result: rig.runner.run(batch) };
    });
    expect(steps.at(-1)!.batch.decodes[0]!.state!.keep).toBeDefined();
    rig.scheduler.finish(gone);
    for (const { batch, result } of steps) rig.scheduler.complete(batch, await result.tokens(), () => undefined);
    await run(rig, rig.related(0, 14, 0, 9));
  });

  test('without a prefix cache no state is kept', async () => {
    const rig = new Rig({ stateSlots: 9 });
    await run(rig, rig.related(0, 40, 3, 9));
    expect(rig.runner.batches.flatMap(({ decodes, prefills }) => [...decodes, ...prefills]).map(({ state }) => state?.keep)).not.toContainEqual(expect.anything()); // prettier-ignore
    const again = rig.related(0, 40, 3, 2);
    await run(rig, again);
    expect(again.cached).toBe(0);
  });

  describe('with guesses', () => {
    const guessing = { ...on, promptLookup: { draftTokens: 4, minMatch: 1, maxMatch: 3 }, draftRows: 12, maxRunning: 3 };
    /** Tokens of the model at these positions are others than the one that all others are. */
    const sevenBut = (...positions: number[]) => ({ model: (tokens: readonly number[]) => (positions.includes(tokens.length) ? 9 : 7) });
    const counts = (rig: Rig): readonly (readonly [count: number, drafts: number])[] =>
      rig.runner.batches.flatMap(({ decodes, prefills }) => [...decodes, ...prefills]).map(({ count, drafts }) => [count, drafts.length]);

    test('where all are right the state behind them is the next one begins with', async () => {
      const rig = new Rig({ ...guessing, ...sevenBut(), overlap: false });
      await run(rig, rig.related(1, 3, 0, 20));
      const { drafted, accepted } = rig.scheduler.draftCounts;
      expect(accepted).toBeGreaterThan(8);
      expect(accepted).toBe(drafted);
      // Nothing is computed twice: the last token of an answer is no input.
      expect(rig.runner.computed).toBe(3 + 20 - 1);
    });

    test('where one is wrong, those before it are computed again with the next guesses', async () => {
      const rig = new Rig({ ...guessing, ...sevenBut(12, 20, 27, 33), overlap: false });
      await run(rig, rig.related(1, 3, 0, 40));
      const { drafted, accepted } = rig.scheduler.draftCounts;
      expect(accepted).toBeLessThan(drafted);
      expect(counts(rig).some(([count, drafts]) => count > 1 + drafts && drafts > 0)).toBe(true);
    });

    test('what is computed again beside guesses keeps within the tokens of a step', async () => {
      const rig = new Rig({ ...guessing, ...sevenBut(11, 14, 17, 22, 23, 28), draftRows: 100, prefillChunk: 3 });
      await run(rig, ...[0, 1, 2].map(() => rig.sequence(4, 40)));
      for (const { decodes, prefills } of rig.runner.batches)
        expect([...decodes, ...prefills].reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(3 + 3);
      expect(rig.scheduler.draftCounts.accepted).toBeGreaterThan(10);
    });

    test('the next turn finds the state behind the last page of an answer that was guessed', async () => {
      const rig = new Rig({ ...guessing, ...sevenBut() });
      const first = rig.related(0, 10, 0, 31);
      await run(rig, first);
      expect(rig.scheduler.draftCounts.accepted).toBeGreaterThan(15);
      const turn = new Sequence({ id: 99, promptTokens: [...first.tokens, 1, 2, 3], maxTokens: 2, sampling: GREEDY, choice: 0 });
      await run(rig, turn);
      expect(turn.cached).toBe(40);
    });
  });

  test.each(Array.from({ length: 24 }, (_, i) => i + 1))(
    'random arrivals, families, aborts, guesses and shortage of pages and slots give everyone its own tokens (seed %i)',
    async (seed) => {
      const rng = createRng(seed);
      const maxRunning = 1 + rng.integer(8);
      const guesses = seed > 8;
      // One copy alone is hardly ever where another prompt parts.
      const stateSlots = (guesses ? 2 * maxRunning + 2 : maxRunning + 1) + rng.integer(2 * maxRunning);
      const preemptionThreshold = rng.integer(2) ? 0 : undefined;
      const [draftTokens, draftRows] = [1 + rng.integer(5), 1 + rng.integer(20)];
      const lookup = { promptLookup: { draftTokens, minMatch: 1, maxMatch: 3 }, draftRows, model: repeatingModel };
      const ofHead = { headDrafts: draftTokens, draftRows };
      const rig = new Rig({ ...on, ...(guesses && (seed > 16 ? ofHead : lookup)), stateSlots, maxRunning, preemptionThreshold, overlap: seed % 2 === 0, pages: 24 + rng.integer(40), prefillChunk: 4 + rng.integer(60) }); // prettier-ignore
      const kept: Sequence[] = [];
      let aborted: Sequence[] = [];
      for (let round = 0; round < 400; round++) {
        if (rng.uniform() < 0.25) {
          const sequence = rig.related(rng.integer(3), rng.integer(50), rng.integer(8) + 1, 1 + rng.integer(20), rng.integer(4) ? '' : 'x');
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
      expect(kept.some(({ cached }) => cached > 0)).toBe(true);
      expect(rig.scheduler.draftCounts.accepted > 0).toBe(guesses);
    },
  );
});
