/** The scheduler of a model with layers that see a window only. The fake runner checks every position of every window, and that all are written before they are read. */
import { describe, expect, test } from 'vitest';
import { PagePool } from '../../engine/cache/page-pool.ts';
import { RadixCache } from '../../engine/cache/radix-cache.ts';
import { LPM } from '../../engine/scheduler/policy.ts';
import type { Sequence } from '../../engine/scheduler/sequence.ts';
import { mostWindowPages, pagesBefore } from '../../engine/scheduler/sequence-windows.ts';
import { createRng } from '../../engine/util/rng.ts';
import { repeatingModel } from '../support/fake-runner.ts';
import { PAGE, Rig, expectDone } from '../support/scheduler-rig.ts';

const on = { prefixCache: true, policy: LPM };

async function run(rig: Rig, ...sequences: Sequence[]): Promise<void> {
  rig.scheduler.add(sequences);
  await rig.drain();
  expectDone(rig, sequences);
}

describe('RadixCache with windows', () => {
  const tokens = Array.from({ length: 24 }, (_, i) => i);
  const made = (window: number) => {
    const pool = new PagePool(8);
    const tree = new RadixCache(PAGE, undefined, { pool, pages: pagesBefore(window, PAGE) });
    return { pool, tree };
  };

  test('a prefix is of use where the window before its end is whole', () => {
    const { pool, tree } = made(6);
    const pages = pool.allocate(3)!;
    // Of six pages the fourth to the last; two of them before a position are its window.
    tree.insert(tokens, [0, 1, 2, 3, 4, 5], '', { first: 3, pages });
    pool.release(pages);
    expect(pool.numIdle).toBe(3);
    expect(tree.match(tokens)).toMatchObject({ length: 24, windows: pages.slice(1), known: 24 });
    expect(tree.match(tokens, '', 23)).toMatchObject({ length: 20, windows: pages.slice(0, 2), pages: [0, 1, 2, 3, 4], known: 20 });
    expect(tree.match(tokens, '', 19)).toMatchObject({ length: 0, windows: [], known: 16 });
    expect([24, 23, 19].map((limit) => tree.peek(tokens, '', limit))).toEqual([24, 20, 0]);
    tree.checkIntegrity();
    pool.checkIntegrity();
  });

  test('a window of one position needs nothing before it', () => {
    const { tree } = made(1);
    tree.insert(tokens, [0, 1, 2, 3, 4, 5], '', { first: 6, pages: [] });
    expect(tree.match(tokens)).toMatchObject({ length: 24, windows: [] });
  });

  test('what a path lacks it gets from the next that computes it; pages that nobody reads go first to last, the least recently used path first', () => {
    const { pool, tree } = made(9);
    const early = pool.allocate(2)!;
    tree.insert(tokens.slice(0, 16), [0, 1, 2, 3], '', { first: 0, pages: early });
    const late = pool.allocate(3)!;
    // It has a page of its own for the second, which the tree has already.
    tree.insert(tokens.slice(0, 20), [0, 1, 2, 3, 4], '', { first: 1, pages: late });
    expect(tree.windowPages()).toEqual([...early, late[1], late[2]]);
    tree.insert(tokens.slice(0, 4).map((token) => token + 100), [9], '', { first: 0, pages: [late[0]!] }); // prettier-ignore
    pool.release([...early, ...late]);
    expect([pool.numIdle, pool.numFree]).toEqual([5, 3]);
    tree.match(tokens);
    tree.dropWindows(1);
    expect(tree.windowPages()).toEqual([...early, late[1], late[2]]);
    tree.dropWindows(2);
    expect(tree.windowPages()).toEqual([late[1], late[2]]);
    // The window before the fifth page is whole still.
    expect(tree.match(tokens.slice(0, 17))).toMatchObject({ length: 16, windows: [late[1], late[2]] });
    tree.checkIntegrity();
    pool.checkIntegrity();
  });

  test('pages take those of windows along', () => {
    const { pool, tree } = made(5);
    const pages = pool.allocate(4)!;
    tree.insert(tokens.slice(0, 16), [0, 1, 2, 3], '', { first: 0, pages });
    pool.release(pages);
    expect(tree.evict(4)).toHaveLength(4);
    expect([pool.numIdle, pool.numFree]).toEqual([0, 8]);
  });
});

describe('Scheduler with windows', () => {
  test.each([
    [40, 16],
    [13, 30],
    [1, 4],
  ])('a long sequence holds the pages of a window of %i and of a chunk of %i, and no more', async (window, prefillChunk) => {
    for (const prefixCache of [false, true]) {
      const rig = new Rig({ policy: LPM, prefixCache, windows: { window, pages: 300 }, pages: 300, prefillChunk });
      const sequence = rig.related(0, 600, 0, 400);
      rig.scheduler.add([sequence]);
      const most = mostWindowPages(window, PAGE, prefillChunk, 1000);
      let held = 0;
      for (let more = true; more;) {
        more = await rig.step();
        held = Math.max(held, sequence.windows.length);
        expect(rig.scheduler.numWindowPagesHeld).toBeLessThanOrEqual(most);
      }
      // All positions of all other layers are there to the end.
      expect(rig.scheduler.numWaiting + rig.scheduler.numRunning).toBe(0);
      expect(held).toBeLessThanOrEqual(most);
      expect(held).toBeGreaterThanOrEqual(pagesBefore(window, PAGE));
      expectDone(rig, [sequence]);
    }
  });

  test('while it decodes, a sequence holds its window, and of all others layers everything', async () => {
    const rig = new Rig({ windows: { window: 10, pages: 40 }, pages: 300, prefillChunk: 40 });
    const sequence = rig.related(0, 200, 0, 50);
    rig.scheduler.add([sequence]);
    for (let i = 0; i < 40; i++) await rig.step();
    expect(sequence.pages.length).toBeGreaterThan(200 / PAGE);
    expect(sequence.windows.length).toBeLessThanOrEqual(pagesBefore(10, PAGE) + 1);
    await rig.drain();
    expectDone(rig, [sequence]);
  });

  test('as many pages of windows as one sequence needs are enough for all', async () => {
    const windows = { window: 20, pages: mostWindowPages(20, PAGE, 16, 10000) };
    const rig = new Rig({ ...on, windows, pages: 400, prefillChunk: 16 });
    await run(rig, ...Array.from({ length: 5 }, (_, i) => rig.related(i % 2, 100, 9 * i, 30)));
  });

  test('a prompt of which the tree has everything computes at most one page, and one that parts from it in the middle what is its own', async () => {
    const rig = new Rig({ ...on, windows: { window: 30, pages: 400 }, pages: 400, prefillChunk: 48 });
    await run(rig, rig.related(0, 300, 0, 60));
    const again = [rig.related(0, 300, 0, 3), rig.related(0, 150, 5, 3)];
    await run(rig, ...again);
    expect(again.map(({ cached }) => cached)).toEqual([296, 148]);
  });

  test('the next turn of a conversation begins where the answer ended, though its beginning has left the window', async () => {
    const rig = new Rig({ ...on, windows: { window: 12, pages: 100 }, pages: 200 });
    const first = rig.related(0, 10, 0, 81);
    await run(rig, first);
    const inside = rig.continued(first, 50, 2);
    const turn = rig.continued(first, first.tokens.length, 2);
    await run(rig, inside, turn);
    // In the middle of the answer no window was kept, but behind the prompt.
    expect([inside.cached, turn.cached]).toEqual([8, 88]);
  });

  test.each(Array.from({ length: 12 }, (_, i) => i))(
    'random arrivals, families, aborts, guesses and shortage of pages of both kinds give everyone its own tokens (seed %i)',
    async (seed) => {
      const rng = createRng(seed);
      const window = 1 + rng.integer(30);
      const prefillChunk = 8 + rng.integer(60);
      const least = mostWindowPages(window, PAGE, prefillChunk, 200);
      const promptLookup =
        seed % 3 === 2 ? { promptLookup: { draftTokens: 5, minMatch: 1, maxMatch: 3 }, draftRows: 20, model: repeatingModel } : {};
      const rig = new Rig({
        ...on, ...promptLookup, prefillChunk, windows: { window, pages: least + rng.integer(2 * least) }, maxRunning: 1 + rng.integer(8),
        prefixCache: seed % 4 !== 3, preemptionThreshold: rng.integer(2) ? 0 : undefined, overlap: seed % 2 === 0, pages: 24 + rng.integer(40),
      }); // prettier-ignore
      const kept: Sequence[] = [];
      let aborted: Sequence[] = [];
      for (let round = 0; round < 400; round++) {
        if (rng.uniform() < 0.25) {
          const sequence = rig.related(rng.integer(3), rng.integer(50), rng.integer(8) + 1, 1 + rng.integer(30), rng.integer(4) ? '' : 'x');
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
      expect(kept.some(({ cached }) => cached > 0)).toBe(seed % 4 !== 3);
    },
  );
});
