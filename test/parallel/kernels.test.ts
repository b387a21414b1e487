/** Ranks of a split model do with kernels what one device does: what fails on one of them is replaced on all, and on GPUs the first of a kind measures for the others. */
import { beforeAll, describe, expect, test } from 'vitest';
import { placeOf } from '../../engine/ops/weight-place.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { testDevice } from '../support/device.ts';
import { SPOILED_SUMS, once, spoiled } from '../support/spoiled-shaders.ts';
import { startedChat } from '../support/started-chat.ts';
import { firstOf } from '../support/thorough.ts';

/** Of the ranks alone: the engine's own device computes nothing. */
describe('kernels that give wrong results', () => {
  const lines: string[] = [];
  const platform = createNodePlatform({ log: (line) => void lines.push(line) });
  let right: string;
  let alone: number;
  let inTextures: boolean;
  beforeAll(async () => {
    const device = await testDevice();
    inTextures = placeOf(device.caps, 'f16', Infinity) === 'texture';
    device.close();
    const { info, answer } = await startedChat(platform);
    right = answer;
    alone = info.kernels!.tested;
  });

  test('are looked for by each rank, and the report counts what all of them tested', async () => {
    const { info } = await startedChat(platform, { tpSize: 2, rankThreads: false });
    expect(info.kernels?.replaced).toEqual([]);
    // Each rank has nearly all of the model's kernels, the engine's own device none.
    expect(info.kernels?.tested).toBeGreaterThan(alone);
  });

  const splits = [
    ['in one thread, cut by tensors', { tpSize: 2, rankThreads: false }],
    ['in one thread, cut by layers', { ppSize: 2, rankThreads: false }],
  ] as const;
  test.each(firstOf(1, splits))('are replaced on all ranks, %s', async (_, split) => {
    const { info, answer } = await startedChat(spoiled(platform, SPOILED_SUMS), split);
    expect(info.kernels?.replaced.map(({ kernel }) => kernel)).toEqual(expect.arrayContaining(['linear_rows', 'reduce_lanes']));
    expect(answer).toBe(right);
  });

  test('are replaced on all ranks, in threads of which one has a driver that spoils them', async () => {
    let ranks = 0;
    const url = new URL('../support/spoiled-rank.ts', import.meta.url);
    const threads: Platform = { ...platform, startWorker: (own) => platform.startWorker!(ranks++ === 1 ? url : own) };
    const { info, answer } = await startedChat(threads, { tpSize: 2 });
    // Where weights lie in textures their reading may be at fault before the kernel is, and the ranks that begin again find nothing more.
    const second = inTextures ? 'floats_texture' : 'linear_normed';
    expect(info.kernels?.replaced.map(({ kernel }) => kernel)).toEqual(expect.arrayContaining(['linear_rows', second]));
    // Two ranks that began, and two that began again, whose drivers are right.
    expect(ranks).toBe(4);
    expect(answer).toBe(right);
  });

  test('refuse the start in one line, where nothing can take their place', async () => {
    const wrong = (text: string): string => once(text, 'select(total[i * SUMS + j] / total_sum[i],', 'select(total[i * SUMS + j],');
    const spoil = { 'attention/paged_attention.wgsl': wrong };
    const starting = startedChat(spoiled(platform, spoil), { tpSize: 2, rankThreads: false });
    await expect(starting).rejects.toThrow(/cannot run Parley: kernel paged_attention .* gives wrong results/);
  });
});

/** A platform whose adapter does not say that it is made of software. */
function asGPU(lines: string[]): Platform {
  const platform = createNodePlatform({ log: (line) => void lines.push(line) });
  return {
    ...platform,
    deviceCreated: () => platform.deviceCreated(true),
    async requestAdapter(request) {
      const adapter = await platform.requestAdapter(request);
      const { vendor, subgroupMinSize, subgroupMaxSize } = adapter.info;
      const info = {
        vendor,
        architecture: '',
        device: '',
        description: 'a GPU',
        subgroupMinSize,
        subgroupMaxSize,
        isFallbackAdapter: false,
      };
      return new Proxy(adapter, {
        get(target, key) {
          if (key === 'info') return info;
          const value: unknown = Reflect.get(target, key, target);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

test('the first rank of a kind measures, the others take what it chose', async () => {
  const lines: string[] = [];
  const { answer } = await startedChat(asGPU(lines), { tpSize: 2, rankThreads: false });
  const said = lines.filter((line) => line.startsWith('autotune: ')).map((line) => line.match(/\d+/g)!.map(Number));
  const [first, second] = said as [number[], number[]];
  expect(said).toHaveLength(2);
  expect(first[0]).toBeGreaterThan(0);
  // Shapes measured, that gain, that were known: all of the first one's. What it had no time for, on a slow adapter, the second measures.
  expect(second[2]).toBe(first[0]! + first[2]!);
  const alone = await startedChat(asGPU([]), { autotune: false });
  expect(answer).toBe(alone.answer);
});
