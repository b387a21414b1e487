/** Sentences that are spoken together have the bits that they have alone, with the kernels of every kind of adapter. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { parseKokoroConfig } from '../../engine/models/kokoro/config.ts';
import { loadKokoro } from '../../engine/models/kokoro/model.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { KokoroRunner } from '../../engine/runner/kokoro-runner.ts';
import type { SpeechPiece } from '../../engine/runner/kokoro-runner.ts';
import { createRng } from '../../engine/util/rng.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { testDevice } from '../support/device.ts';
import { FLAVOURS } from '../support/kernel-case.ts';
import { firstOf } from '../support/thorough.ts';

/** The kernels that GPUs get take minutes to compile on a software adapter. */
const CHOSEN = firstOf(2, FLAVOURS);

const FOLDER = join(new URL('../../', import.meta.url).pathname, 'test/fixtures/kokoro-tiny-random');
const LIMITS = { maxTokens: 128, maxFrames: 256 };
const never = new AbortController().signal;

/** Pieces of different lengths, voices and speeds. */
function pieces(styleDim: number, symbols: number, lengths: readonly number[]): SpeechPiece[] {
  const rng = createRng(5);
  return lengths.map((length, i) => ({
    ids: Array.from({ length }, () => 1 + rng.integer(symbols - 1)),
    voice: { rows: 1, values: Float32Array.from({ length: 2 * styleDim }, () => 0.3 * rng.normal()) },
    speed: [1, 1.3, 0.8][i % 3]!,
    seed: i,
    firstSample: 1000 * (i % 4),
  }));
}

describe.each(CHOSEN.map(({ title, disable }) => [title, disable] as const))('%s', (_, disable) => {
  let device: Device;
  let runner: KokoroRunner;
  let all: SpeechPiece[];
  let make: () => KokoroRunner;
  beforeAll(async () => {
    device = await testDevice();
    device.pretend(disable);
    const folder = await openModelFolder(createNodePlatform(), FOLDER);
    const config = parseKokoroConfig(await folder.json('config.json'));
    const weights = await withWeights(folder, (checkpoint) => loadKokoro(device, checkpoint, config, floatStorage('f32')));
    make = () => new KokoroRunner(device, config, weights, LIMITS);
    runner = make();
    all = pieces(config.styleDim, config.symbols, [6, 3, 9, 1, 5, 4]);
  }, 600_000);
  afterAll(() => device.close());

  test('alone and together are equal to the bit, and together takes fewer steps', async () => {
    const alone = [];
    for (const piece of all) alone.push(await runner.run(piece, never));
    const before = device.stats.submits;
    const together = await Promise.all(all.map((piece) => runner.run(piece, never)));
    // The text, and four steps of the frames.
    expect((device.stats.submits - before) % 4).toBe(0);
    expect(device.stats.submits - before).toBeLessThan(4 * all.length);
    alone.forEach((spoken, i) => {
      expect(together[i]!.frames).toBe(spoken!.frames);
      expect(together[i]!.samples).toEqual(spoken!.samples);
      expect(spoken!.samples.some((sample) => sample !== 0)).toBe(true);
    });
    expect(device.errors).toEqual([]);
  }, 600_000);

  test('who goes away leaves the others as they are', async () => {
    const [first, second] = all as [SpeechPiece, SpeechPiece];
    const alone = await runner.run(first, never);
    const controller = new AbortController();
    const staying = runner.run(first, never);
    const leaving = runner.run(second, controller.signal);
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'aborted' });
    expect((await staying)!.samples).toEqual(alone!.samples);
  }, 600_000);

  test('without memory for a longer batch each is spoken alone, and without any they are refused until there is some', async () => {
    const long = pieces(runner.config.styleDim, runner.config.symbols, [12, 11, 10]);
    const alone = [];
    for (const piece of long) alone.push(await runner.run(piece, never));
    const short = make();
    const { buffers, bufferBytes } = device.stats;
    const pop = device.gpu.popErrorScope.bind(device.gpu);
    const refusals = { left: Infinity };
    const outOfMemory = vi.spyOn(device.gpu, 'popErrorScope').mockImplementation(async () => {
      const error = await pop();
      return refusals.left-- > 0 ? { message: 'full' } : error;
    });
    const together = (): Promise<unknown>[] => long.map((piece) => short.run(piece, never));
    try {
      for (const _ of ['no room from now on', 'nor for the next']) {
        const refused = (await Promise.allSettled(together())) as PromiseRejectedResult[];
        for (const { reason } of refused) expect(reason).toMatchObject({ code: 'out_of_memory' });
      }
      // What was refused is given back.
      expect(device.stats.buffers).toBeLessThan(buffers);
      refusals.left = 1;
      expect(await Promise.all(together())).toEqual(alone);
      expect(device.stats.buffers).toBe(buffers);
      expect(device.stats.bufferBytes).toBeGreaterThanOrEqual(bufferBytes);
    } finally {
      outOfMemory.mockRestore();
    }
    expect(device.errors).toEqual([]);
  }, 600_000);
});
