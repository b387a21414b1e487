/** A model that one device's memory does not hold runs on two, and is refused on one with that advice. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { Device } from '../../engine/gpu/device.ts';
import { testDevice } from '../support/device.ts';
import { refuseMemory } from '../support/refused-memory.ts';
import { answer, greedy, withChat } from '../support/split-chat.ts';
import type { Answer } from '../support/split-chat.ts';

const BUNDLED = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));
/** The weights in f32 take 21 MiB. */
const TIGHT = { deviceMemory: 18 * 2 ** 20, memFractionStatic: 1 };
const SPLITS = [
  { tpSize: 2, ppSize: 1 },
  { tpSize: 1, ppSize: 2 },
] as const;
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

test.each(SPLITS)('runs split $tpSize x $ppSize, every rank within the memory', async (split) => {
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

const penalized = { ...request, sampling: { temperature: 0, presencePenalty: 1 } };

test.each(SPLITS)('split $tpSize x $ppSize, the plan of a rank has all that it takes, logit processing included', async (split) => {
  await withChat(device, BUNDLED, { ...split, maxRunningRequests: 64 }, async (engine) => {
    const before = engine.deviceStats.map(({ bufferBytes }) => bufferBytes);
    await answer(engine, penalized);
    for (const [rank, { bufferBytes }] of engine.deviceStats.entries()) {
      const { weightBytes, activationBytes, kvBytes } = engine.info.ranks![rank]!.memory;
      // Of pages a software adapter takes so much at first.
      const pages = device.caps.software ? 2 ** 21 : kvBytes;
      expect(Math.abs(weightBytes + activationBytes + pages - bufferBytes)).toBeLessThan(2 ** 19);
      const samples = split.tpSize > 1 || rank === 1;
      expect(bufferBytes - before[rank]! > 2 ** 20).toBe(samples);
    }
  });
});

test.each(SPLITS)('split $tpSize x $ppSize, a rank without memory for logit processing refuses that, and nothing else', async (split) => {
  const devices: Device[] = [];
  const create = Device.create.bind(Device);
  const spy = vi.spyOn(Device, 'create').mockImplementation(async (...given) => {
    devices.push(await create(...given));
    return devices.at(-1)!;
  });
  onTestFinished(() => spy.mockRestore());
  await withChat(device, BUNDLED, { ...split, rankThreads: false }, async (engine) => {
    const plain = (await answer(engine, request)).text;
    const refusal = refuseMemory(devices.at(-1)!, (label) => label === 'token counts');
    try {
      const [refused, other] = await Promise.allSettled([answer(engine, penalized), answer(engine, request)]);
      expect(refused).toMatchObject({ reason: { code: 'out_of_memory' } });
      expect(other).toMatchObject({ value: { text: plain } });
    } finally {
      refusal.restore();
    }
    expect(await answer(engine, penalized)).toMatchObject({ finish: 'length' });
  });
});
