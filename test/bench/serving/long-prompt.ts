/** Long prompts beside chats that stream and short prompts that arrive, on a random checkpoint made for it. */
import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChatRequest } from '../../../engine/api.ts';
import { resolveConfig } from '../../../engine/config.ts';
import { createNodePlatform } from '../../../engine/platform/node.ts';
import { ChatEngine } from '../../../engine/tasks/chat-engine.ts';
import { createRng } from '../../../engine/util/rng.ts';
import { writeRandomCheckpoint } from '../../support/random-checkpoint.ts';
import { benchDevice, fixed } from '../harness.ts';
import { report } from './checks.ts';
import { percentile, runRequest } from './load.ts';
import type { Sample } from './load.ts';

const VOCABULARY = 512;
const LENGTH = 32_000;
const CHUNK = 4096;
const CHATS = 8;
/** For short prompts behind a long one: its length, the chunk, milliseconds between two short ones. */
const BEHIND = { length: 16_000, chunk: 512, interval: 250 };
const SHAPE = { hidden: 64, intermediate: 128, layers: 2, heads: 2, kvHeads: 1, headDim: 16, vocabulary: VOCABULARY, maxPositions: 32_768 };
const GREEDY = { messages: [], sampling: { temperature: 0 }, ignoreEos: true } as const;

/** Gaps of chats that stream while `work` runs, which begins when each has its first token. */
async function chatBeside<T>(
  engine: ChatEngine,
  work: () => Promise<T>,
): Promise<{ readonly gaps: readonly number[][]; readonly result: T }> {
  const stop = new AbortController();
  setMaxListeners(CHATS, stop.signal);
  const gaps: number[][] = Array.from({ length: CHATS }, () => []);
  const stream = async (index: number, begun: () => void): Promise<void> => {
    const request: ChatRequest = { ...GREEDY, prompt: [1 + index, 2, 3], maxTokens: 20_000 };
    let last: number | undefined;
    try {
      for await (const event of engine.chat(request, stop.signal)) {
        if (event.type !== 'delta') continue;
        const now = performance.now();
        if (last === undefined) begun();
        else gaps[index]!.push(now - last);
        last = now;
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
  };
  const streams: Promise<void>[] = [];
  await Promise.all(gaps.map((_, index) => new Promise<void>((begun) => streams.push(stream(index, begun)))));
  const result = await work();
  stop.abort();
  await Promise.all(streams);
  return { gaps, result };
}

/** Loads the checkpoint, runs `measure`, and leaves nothing behind. */
async function withEngine(chunkedPrefillSize: number, measure: (engine: ChatEngine) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-long-'));
  writeRandomCheckpoint(folder, SHAPE);
  const device = await benchDevice('default');
  const config = resolveConfig({ chunkedPrefillSize, maxRunningRequests: 4 * CHATS });
  const engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: folder }, config);
  await measure(engine);
  await engine.close();
  device.close();
  rmSync(folder, { recursive: true });
}

const randomPrompt = (length: number, seed: number): number[] => {
  const rng = createRng(seed);
  return Array.from({ length }, () => rng.integer(VOCABULARY));
};

/** Measures the last chunk by itself (the dearest: it attends to all before it), then the chats' worst gap beside the whole prompt. */
async function chatsBesideLong(engine: ChatEngine): Promise<void> {
  const prompt = randomPrompt(LENGTH, 5);
  const ask = (length: number): Promise<Sample> => runRequest(engine, { ...GREEDY, prompt: prompt.slice(0, length), maxTokens: 1 });
  const alone = await ask(LENGTH - CHUNK);
  const chunk = await ask(LENGTH);
  engine.flushCache();
  const { gaps, result: long } = await chatBeside(engine, () => ask(LENGTH));
  const worst = Math.max(...gaps.flat());
  const enough = gaps.every((list) => list.length >= LENGTH / CHUNK);
  const counts = `${chunk.promptTokens - chunk.cachedTokens} tokens of the last chunk take ${fixed(chunk.firstToken / 1000)} s`;
  const measured = `alone ${fixed((alone.firstToken + chunk.firstToken) / 1000, 1)} s, beside ${CHATS} chats ${fixed(long.firstToken / 1000, 1)} s; ${counts}, worst gap ${fixed(worst / 1000)} s`;
  report(
    `${LENGTH} tokens in chunks of ${CHUNK} leave chats a gap below 2 chunks`,
    enough && long.cachedTokens === 0 && worst < 2 * chunk.firstToken,
    measured,
  );
}

/** What short prompts wait that arrive while a long one is computed. */
async function shortBehindLong(engine: ChatEngine): Promise<void> {
  const { length, chunk, interval } = BEHIND;
  const { result } = await chatBeside(engine, async () => {
    let done = false;
    const long = runRequest(engine, { ...GREEDY, prompt: randomPrompt(length, 6), maxTokens: 1 }).finally(() => (done = true));
    const shorts: Promise<Sample>[] = [];
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, interval));
      if (done) break;
      shorts.push(runRequest(engine, { ...GREEDY, prompt: randomPrompt(100, 100 + shorts.length), maxTokens: 4 }));
    }
    return { long: await long, waits: (await Promise.all(shorts)).map(({ firstToken }) => firstToken) };
  });
  const { long, waits } = result;
  const [middle, most] = [percentile(waits, 0.5), Math.max(...waits)];
  report(
    `short prompts behind ${length} tokens in chunks of ${chunk} wait less than a quarter of their time`,
    waits.length > 4 && middle < long.firstToken / 4,
    `long ${fixed(long.firstToken / 1000, 1)} s; ${waits.length} short, first token after ${fixed(middle / 1000)} s (median), ${fixed(most / 1000)} s (last)`,
  );
}

/** Both measurements. */
export async function longPrompt(): Promise<void> {
  await withEngine(CHUNK, chatsBesideLong);
  await withEngine(BEHIND.chunk, shortBehindLong);
}
