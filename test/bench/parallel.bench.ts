/**
 * What splitting a chat model costs and gives: a reduction's bytes and milliseconds, the share of a step spent on them, and tokens a second of
 * prompts and answers, for one rank and two, on one adapter and on two. `npm run bench -- parallel [exchange|models [hidden size]]`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resolveConfig, splitOf } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import { GroupMemory } from '../../engine/parallel/group-memory.ts';
import type { GroupSizes } from '../../engine/parallel/group-memory.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { LAVAPIPE, SWIFTSHADER } from '../support/drivers.ts';
import { writeRandomCheckpoint } from '../support/random-checkpoint.ts';
import type { RandomShape } from '../support/random-checkpoint.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';
import type { ExchangeTask, ExchangeTimes } from './parallel/exchange-rank.ts';
import { runRequest } from './serving/load.ts';

const platform = createNodePlatform({ log: () => undefined });
const EXCHANGE_BYTES = [1024, 16 * 1024, 64 * 1024, 256 * 1024];
const ROUNDS = 300;
const PROMPT = 64;
/** Answer tokens, and rounds that count; fewer of the largest. */
const LENGTHS = { usual: { answer: 16, turns: 4 }, large: { answer: 6, turns: 1 } } as const;
/** Fewer layers the larger they are, so that a software adapter gets through. */
const SHAPES: readonly RandomShape[] = [
  { hidden: 256, intermediate: 768, layers: 4, heads: 4, kvHeads: 2 },
  { hidden: 1024, intermediate: 3072, layers: 2, heads: 16, kvHeads: 4 },
  { hidden: 4096, intermediate: 1024, layers: 2, heads: 16, kvHeads: 4 },
].map((shape) => ({ ...shape, headDim: 64, vocabulary: 1024, maxPositions: 512 }));

interface Variant {
  readonly name: string;
  readonly adapters: readonly string[];
  readonly config: Partial<EngineConfig>;
}

/** One adapter and, where there are two, both. */
async function variants(): Promise<readonly Variant[]> {
  const names = (await platform.adapters!()).map(({ name }) => name);
  const [first = '', second = names.find((name) => name !== first)] = names.filter((name) => name.startsWith('llvmpipe'));
  const one = first || names[0]!;
  const both = second === undefined || second === one ? [] : [one, second];
  const split = (tpSize: number, ppSize: number, adapters: readonly string[]): Partial<EngineConfig> => ({ tpSize, ppSize, adapters });
  return [
    { name: 'one rank', adapters: [one], config: { adapter: one } },
    { name: 'tp 2, one adapter', adapters: [one, one], config: split(2, 1, [one, one]) },
    { name: 'pp 2, one adapter', adapters: [one, one], config: split(1, 2, [one, one]) },
    ...(both.length === 0
      ? []
      : [
          { name: 'tp 2, two adapters', adapters: both, config: split(2, 1, both) },
          { name: 'pp 2, two adapters', adapters: both, config: split(1, 2, both) },
        ]),
  ];
}

/** Two threads that do nothing but reduce; the slower rank's times. */
async function exchangeTimes(adapters: readonly string[], bytes: readonly number[], rounds = ROUNDS): Promise<ExchangeTimes[]> {
  const limits = { maxRunning: 4, prefillChunk: 60, draftRows: 0, columns: 32, hasWindows: false, context: 512, vocabulary: 1024 };
  const sizes: GroupSizes = { tpSize: 2, ppSize: 1, limits, hidden: Math.max(...bytes) / 4 / 64 };
  const buffer = new SharedArrayBuffer(GroupMemory.bytes(sizes));
  const workers = adapters.map((adapter, rank) => {
    const worker = platform.startWorker!(new URL('./parallel/exchange-rank.ts', import.meta.url));
    const times = new Promise<ExchangeTimes[]>((resolve, reject) => {
      worker.onMessage((message) => resolve(message as ExchangeTimes[]));
      worker.onExit((why) => reject(new Error(`rank ${rank} ended: ${why}`)));
    });
    worker.post({ rank, adapter, sizes, buffer, bytes, rounds } satisfies ExchangeTask);
    return { worker, times };
  });
  const results = await Promise.all(workers.map(({ times }) => times));
  await Promise.all(workers.map(({ worker }) => worker.terminate()));
  return bytes.map((_, i) => results.map((times) => times[i]!).sort((a, b) => b.total - a.total)[0]!);
}

async function exchange(all: readonly Variant[]): Promise<void> {
  const rows: string[][] = [];
  for (const { name, adapters, config } of all) {
    if (config.tpSize !== 2) continue;
    for (const { bytes, readback, sum, upload, total } of await exchangeTimes(adapters, EXCHANGE_BYTES)) {
      rows.push([name, `${bytes / 1024} KiB`, ...[readback, sum, upload, total].map((ms) => fixed(ms, 3)), loadText()]);
    }
  }
  console.log(`A reduction: medians of ${ROUNDS}, milliseconds, of the slower of two ranks`);
  printTable(['', 'bytes', 'readback', 'sum', 'upload', 'all', 'load'], rows);
}

interface Speed {
  readonly prefill: number;
  readonly decode: number;
}

/** Tokens a second of one chat's prompt and answer, on every engine in turn; best of some rounds, because the machine is shared. */
async function speedsOf(engines: readonly ChatEngine[], { hidden, vocabulary }: RandomShape): Promise<readonly Speed[]> {
  const { answer, turns } = hidden < 4096 ? LENGTHS.usual : LENGTHS.large;
  const best = engines.map(() => ({ prefill: 0, decode: 0 }));
  for (let round = 0; round <= turns; round++) {
    const prompt = Array.from({ length: PROMPT }, (_, i) => (i * 37 + round * 101) % vocabulary);
    const request = { messages: [], prompt, sampling: { temperature: 0 }, maxTokens: answer, ignoreEos: true };
    for (const [i, engine] of engines.entries()) {
      const { firstToken, gaps } = await runRequest(engine, request);
      const seconds = gaps.reduce((sum, gap) => sum + gap, 0) / 1000;
      // The first round compiles what warming up did not.
      if (round === 0) continue;
      best[i]!.prefill = Math.max(best[i]!.prefill, PROMPT / (firstToken / 1000));
      best[i]!.decode = Math.max(best[i]!.decode, gaps.length / seconds);
    }
  }
  return best;
}

/** Reductions of a step: after the embedding, twice a layer, and the samplers' exchange; a layer split hands over once. */
function exchangesOf({ layers }: RandomShape, config: Partial<EngineConfig>): number {
  const { tpSize, ppSize } = splitOf(resolveConfig(config));
  return tpSize > 1 ? 2 + 2 * layers : ppSize - 1;
}

async function models(all: readonly Variant[], hidden: string | undefined): Promise<void> {
  const rows: string[][] = [];
  for (const shape of SHAPES) {
    if (hidden !== undefined && hidden !== `${shape.hidden}`) continue;
    const folder = mkdtempSync(join(tmpdir(), 'parley-bench-'));
    try {
      writeRandomCheckpoint(folder, shape);
      const device = await benchDevice('default');
      const limits = { contextLength: 256, maxRunningRequests: 4, chunkedPrefillSize: PROMPT, disableRadixCache: true };
      const engines: ChatEngine[] = [];
      for (const { config } of all) {
        engines.push(await ChatEngine.load(device, platform, { path: folder, id: 'bench' }, resolveConfig({ ...limits, ...config })));
      }
      const speeds = await speedsOf(engines, shape);
      for (const engine of engines) await engine.close();
      device.close();
      for (const [i, { name, adapters, config }] of all.entries()) {
        const { prefill, decode } = speeds[i]!;
        const count = exchangesOf(shape, config);
        const [times] = count === 0 ? [] : await exchangeTimes(adapters, [shape.hidden * 4], 100);
        const share = times ? `${fixed((100 * count * times.total * decode) / 1000, 0)} %` : '-';
        rows.push([`${shape.hidden} x ${shape.layers}`, name, fixed(prefill, 0), fixed(decode, 1), `${count}`, share, loadText()]);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  console.log(`One chat, ${PROMPT} prompt tokens, ${LENGTHS.usual.answer} answer tokens; random weights, f16`);
  printTable(['hidden x layers', '', 'prefill/s', 'tokens/s', 'exchanges a token', 'share of a step', 'load'], rows);
}

if (process.env['VK_DRIVER_FILES'] === undefined && LAVAPIPE && SWIFTSHADER) process.env['VK_DRIVER_FILES'] = `${LAVAPIPE}:${SWIFTSHADER}`;
process.env['PARLEY_ADAPTER'] ??= (await variants())[0]!.adapters[0]!;
const machine = await benchDevice('default');
printMachine(machine);
machine.close();
const part = process.argv[2];
if (part === undefined || part === 'exchange') await exchange(await variants());
if (part === undefined || part === 'models') await models(await variants(), process.argv[3]);
process.exit(0);
