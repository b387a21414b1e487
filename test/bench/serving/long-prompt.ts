/** A prompt of 32,000 tokens in chunks of 4096 while 8 chats stream, on a random checkpoint made for it. */
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
import { runRequest } from './load.ts';
import type { Sample } from './load.ts';

const VOCABULARY = 512;
const LENGTH = 32_000;
const CHUNK = 4096;
const CHATS = 8;
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
      for await (const event of engine.generate(request, stop.signal)) {
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

/** Measures the last chunk by itself (the dearest: it attends to all before it), then the chats' worst gap beside the whole prompt. */
export async function longPrompt(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-long-'));
  writeRandomCheckpoint(folder, SHAPE);
  const device = await benchDevice('default');
  const config = resolveConfig({ chunkedPrefillSize: CHUNK, maxRunningRequests: 2 * CHATS });
  const engine = await ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path: folder }, config);
  const rng = createRng(5);
  const prompt = Array.from({ length: LENGTH }, () => rng.integer(VOCABULARY));
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
  await engine.close();
  device.close();
  rmSync(folder, { recursive: true });
}
