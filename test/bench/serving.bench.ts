/**
 * Chat under load, without HTTP: latencies, tokens a second and cache hits by the number of clients, with each part of serving switched
 * off in turn, then the claims of test/bench/SPEED.md. `npm run bench -- serving [table|checks|lookup|long]` runs a part.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';
import { manyStreams, prefixReuse, throughputRatio } from './serving/checks.ts';
import { closedLoop, percentile, runRequest } from './serving/load.ts';
import type { LoadResult } from './serving/load.ts';
import { promptLookup } from './serving/lookup.ts';
import { longPrompt } from './serving/long-prompt.ts';
import { SCENARIOS } from './serving/scenarios.ts';

const FOLDER = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
const MAX_TOKENS = 16;
/** Clients, requests of each one after the other, and the seconds after which what is left is cut off: the table has 60 cells. */
const LOADS = [
  { clients: 1, turns: 4, limit: 4 },
  { clients: 8, turns: 4, limit: 4 },
  { clients: 32, turns: 2, limit: 4 },
  { clients: 128, turns: 2, limit: 8 },
];

const VARIANTS: readonly { readonly name: string; readonly config: Partial<EngineConfig> }[] = [
  { name: 'everything on', config: {} },
  { name: 'no radix cache', config: { disableRadixCache: true } },
  { name: 'no chunking', config: { chunkedPrefillSize: 8192 } },
  { name: 'no batching', config: { maxRunningRequests: 1 } },
  { name: 'no look-ahead', config: { disableOverlapSchedule: true } },
];

async function load(device: Device, config: Partial<EngineConfig>): Promise<ChatEngine> {
  return ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: FOLDER }, resolveConfig(config));
}

function row(label: readonly string[], { samples, seconds }: LoadResult): string[] {
  const sum = (of: 'tokens' | 'promptTokens' | 'cachedTokens'): number => samples.reduce((total, sample) => total + sample[of], 0);
  const firsts = samples.map(({ firstToken }) => firstToken);
  const gaps = samples.flatMap((sample) => sample.gaps);
  const times = [firsts, gaps].flatMap((values) => [0.5, 0.95].map((share) => fixed(percentile(values, share), 0)));
  const done = samples.filter(({ finished }) => finished).length;
  const hits = sum('promptTokens') > 0 ? `${fixed((100 * sum('cachedTokens')) / sum('promptTokens'), 0)} %` : '-';
  return [...label, ...times, fixed(sum('tokens') / seconds, 0), hits, `${done}`, `${samples.length - done}`, loadText()];
}

/** Every scenario with every number of clients, on an engine of its own for each variant. */
async function table(): Promise<void> {
  const header = ['', 'scenario', 'clients', 'first ms p50', 'p95', 'gap ms p50', 'p95', 'tokens/s', 'cached', 'done', 'cut off', 'load'];
  for (const { name, config } of VARIANTS) {
    const device = await benchDevice('default');
    const engine = await load(device, { maxQueuedRequests: 512, ...config });
    const rows: string[][] = [];
    for (const { name: scenario, script } of SCENARIOS) {
      for (const { clients, turns, limit } of LOADS) {
        // Waits for the steps of the requests that were cut off before.
        await runRequest(engine, { messages: [], prompt: [1], sampling: {}, maxTokens: 1 });
        engine.flushCache();
        const result = await closedLoop(engine, script, { clients, turns, maxTokens: MAX_TOKENS, limitMs: 1000 * limit });
        rows.push(row([name, scenario, String(clients)], result));
      }
    }
    printTable(header, rows);
    await engine.close();
    device.close();
  }
}

async function checks(): Promise<void> {
  const device = await benchDevice('default');
  const engine = await load(device, {});
  await throughputRatio(engine);
  await manyStreams(engine);
  await prefixReuse(engine);
  await engine.close();
  device.close();
}

/** Two engines on one device: their own pages, the same weights twice. */
async function lookup(): Promise<void> {
  const device = await benchDevice('default');
  const [plain, guessing] = [await load(device, {}), await load(device, { speculativeNgram: true })];
  await promptLookup(plain, guessing);
  await plain.close();
  await guessing.close();
  device.close();
}

const parts = { table, checks, lookup, long: longPrompt };
const asked = process.argv[2];
const device = await benchDevice('default');
printMachine(device);
device.close();
for (const [name, part] of Object.entries(parts)) if (asked === undefined || asked === name) await part();
process.exit(0);
