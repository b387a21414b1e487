/** A model that one device's memory does not hold runs on two, and is refused on one with that advice. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { answer, greedy, withChat } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';

const BUNDLED = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));
/** The weights in f32 take 21 MiB. */
const TIGHT = { deviceMemory: 18 * 2 ** 20, memFractionStatic: 1 };
const request = greedy('What is the capital of France?');

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const ask = (config: Parameters<typeof withChat>[2]): Promise<Answer> =>
  withChat(device, BUNDLED, config, (engine) => answer(engine, request));

test('refused on one device, with what is missing and the advice to split', async () => {
  const before = device.stats.bufferBytes;
  await expect(ask(TIGHT)).rejects.toMatchObject({
    code: 'out_of_memory',
    message: expect.stringMatching(/does not fit/) as string,
    remedies: expect.arrayContaining([
      expect.objectContaining({
        settings: [
          { name: 'tpSize', value: 2 },
          { name: 'ppSize', value: 2 },
        ],
      }),
    ]) as unknown,
  });
  expect(device.stats.bufferBytes).toBe(before);
});

test.each([
  { tpSize: 2, ppSize: 1 },
  { tpSize: 1, ppSize: 2 },
])('runs split $tpSize x $ppSize, every rank within the memory', async (split) => {
  const expected = await ask({});
  const actual = await withChat(device, BUNDLED, { ...TIGHT, ...split }, async (engine) => {
    const result = await answer(engine, request);
    for (const { bufferBytes } of engine.deviceStats) expect(bufferBytes).toBeLessThan(TIGHT.deviceMemory);
    expect(engine.info.memory).toMatchObject({ deviceBytes: TIGHT.deviceMemory });
    return result;
  });
  expect(actual).toEqual(expected);
});

test('refused on two devices that are too small as well', async () => {
  await expect(ask({ ...TIGHT, deviceMemory: 8 * 2 ** 20, tpSize: 2 })).rejects.toMatchObject({ code: 'out_of_memory' });
});
