/** A rank that dies or loses its device in the middle of work: nothing hangs, every request hears of it, and so does whoever asks later. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform, PlatformWorker } from '../../engine/platform/platform.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import type { Fate, FateMessage } from '../support/fragile-rank.ts';
import { until } from '../support/listeners.ts';
import { noting } from '../support/noted-devices.ts';
import { answer, greedy } from '../support/split-chat.ts';
import { firstOf } from '../support/thorough.ts';

const BUNDLED = fileURLToPath(new URL('../../models/parley-chat', import.meta.url));

/** A platform whose ranks' threads can be told to go (test/support/fragile-rank.ts), and whose devices can be taken away. */
function fragile(): { platform: Platform; threads: PlatformWorker[]; devices: GPUDevice[] } {
  const base = createNodePlatform({ log: () => undefined });
  const threads: PlatformWorker[] = [];
  const devices: GPUDevice[] = [];
  const platform: Platform = {
    ...noting(base, (device) => devices.push(device)),
    startWorker() {
      const worker = base.startWorker!(new URL('../support/fragile-rank.ts', import.meta.url));
      threads.push(worker);
      return worker;
    },
  };
  return { platform, threads, devices };
}

interface Loss {
  readonly tpSize: number;
  readonly ppSize: number;
  readonly fate: Fate | 'lose its device, all in one thread';
  /** Ranks that meet it: the one that samples, and one that does not. */
  readonly victims: readonly number[];
}

const LOSSES: readonly Loss[] = [
  { tpSize: 2, ppSize: 1, fate: 'lose its device', victims: [0, 1] },
  { tpSize: 1, ppSize: 2, fate: 'lose its device', victims: [1, 0] },
  { tpSize: 2, ppSize: 1, fate: 'fail', victims: [1, 0] },
  { tpSize: 1, ppSize: 2, fate: 'fail', victims: [0, 1] },
  { tpSize: 2, ppSize: 1, fate: 'lose its device, all in one thread', victims: [0, 1] },
  { tpSize: 1, ppSize: 2, fate: 'lose its device, all in one thread', victims: [1, 0] },
];

describe.each(LOSSES)('split $tpSize x $ppSize', ({ tpSize, ppSize, fate, victims }) => {
  const rankThreads = fate !== 'lose its device, all in one thread';
  test.each(firstOf(1, victims))(`rank %i is made to ${fate}`, { timeout: 60_000 }, async (victim) => {
    const { platform, threads, devices } = fragile();
    const device = await Device.create(platform);
    const config = resolveConfig({ maxRunningRequests: 4, contextLength: 256, tpSize, ppSize, rankThreads });
    const engine = await ChatEngine.load(device, platform, { path: BUNDLED }, config);
    const requests = [1, 2, 3].map((i) => answer(engine, greedy(`Tell me story number ${i}.`, 200)));
    const outcomes = Promise.allSettled(requests);
    await until(() => engine.status().running === requests.length);
    if (rankThreads) threads[victim]!.post({ fate } satisfies FateMessage);
    // The first device is the engine's own.
    else devices[1 + victim]!.destroy();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'device_lost' } });
    expect(await engine.lost).toContain(`rank ${victim}`);
    await expect(answer(engine, greedy('Hello!'))).rejects.toMatchObject({ code: 'device_lost' });
    await engine.close();
    device.close();
  });
});
