/** Steps take as many prompt tokens as the device computes in a moment. */
import { expect, test } from 'vitest';
import { PrefillPace, firstChunk } from '../../engine/scheduler/prefill-pace.ts';
import { Rig } from '../support/scheduler-rig.ts';

test('a fast device gets more at a time, twice as many a step at most', () => {
  const pace = new PrefillPace(256, 4096);
  const chunks = Array.from({ length: 6 }, () => {
    pace.took(pace.chunk, pace.chunk / 100);
    return pace.chunk;
  });
  expect(chunks).toEqual([512, 1024, 2048, 4096, 4096, 4096]);
});

test('a slow one gets at once what takes 200 ms, and never less than is worth reading the weights for', () => {
  const pace = new PrefillPace(256, 4096);
  pace.took(256, 400);
  expect(pace.chunk).toBe(128);
  pace.took(128, 10_000);
  expect(pace.chunk).toBe(64);
  // What compiled in that step is not its pace.
  pace.took(64, 50);
  expect(pace.chunk).toBe(128);
});

test('the larger a model, the fewer tokens there are before anything is known', () => {
  expect([5e6, 494e6, 1.24e9, 8e9, 70e9].map((parameters) => firstChunk(parameters, 256))).toEqual([256, 256, 201, 64, 64]);
  expect(firstChunk(8e9, 40)).toBe(40);
});

test('steps of a few tokens say nothing', () => {
  const pace = new PrefillPace(256, 4096);
  pace.took(8, 1000);
  expect(pace.chunk).toBe(256);
  expect(new PrefillPace(256, 40).chunk).toBe(40);
});

test('the scheduler fills its steps to the pace, decodes beside it, and gives every sequence its tokens', async () => {
  const pace = new PrefillPace(64, 1000);
  const rig = new Rig({ prefillChunk: 1000, pace, pages: 512, overlap: false });
  const [long, short] = [rig.sequence(500, 4), rig.sequence(3, 8)];
  rig.scheduler.add([short, long]);
  const first = rig.scheduler.next()!;
  expect(first.prefills.map(({ count }) => count)).toEqual([3, 61]);
  rig.scheduler.took(first, 64 / 10);
  expect(pace.chunk).toBe(128);
  const tokens = (await rig.runner.run(first).tokens()) as ArrayLike<number>;
  rig.scheduler.complete(first, tokens, (sequence) => void sequence);
  const second = rig.scheduler.next()!;
  expect([second.decodes.length, second.prefills.map(({ count }) => count)]).toEqual([1, [128]]);
});
