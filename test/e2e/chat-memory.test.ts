/** The chat server's memory: what it says, what it refuses, and that requests of all kinds leave nothing behind. */
import { expect, onTestFinished, test } from 'vitest';
import type { EngineStatus, MemoryPlan, MemoryUse } from '../../engine/api.ts';
import { soak } from '../bench/serving/soak.ts';
import { postJson, send } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import type { Running } from '../support/server-process.ts';
import { THOROUGH } from '../support/thorough.ts';

const MAIN = new URL('../../server/main.ts', import.meta.url);
const GIB = 2 ** 30;

async function start(...argv: readonly string[]): Promise<Running> {
  const adapter = process.env['PARLEY_ADAPTER'];
  const chosen = adapter === undefined ? [] : ['--adapter', adapter];
  const server = await whenReady(spawnAt(MAIN, ['--speech-model=none', '--transcription-model=none', ...chosen, ...argv]));
  onTestFinished(() => void server.child.kill('SIGKILL'));
  return server;
}

test('int8 pages within a given memory: printed, reported, and they answer', async () => {
  const { urls, lines } = await start('--kv-cache-dtype=int8', '--device-memory=0.1', '--mem-fraction-static=0.4');
  const plan = lines.filter((text) => text.startsWith('memory'));
  expect(plan).toEqual([
    expect.stringMatching(/^memory +parley-chat: weights .* KV pages of 16 tokens \(int8\) /),
    expect.stringMatching(/^memory +4\d\.\d MiB in all, of 0\.4 x 102\.4 MiB \(as set\) = 41\.0 MiB$/),
  ]);
  const base = urls['chat']!.replace(/\/v1$/, '');
  const info = JSON.parse((await send(`${base}/get_server_info`)).text) as {
    memory: MemoryUse;
    memory_plan: readonly MemoryPlan[];
    status: EngineStatus;
  };
  const { deviceBytes, weightBytes, activationBytes, kvBytes, kvPages, kvCacheDtype } = info.memory;
  expect([deviceBytes, kvCacheDtype]).toEqual([0.1 * GIB, 'int8']);
  expect(kvPages).toBe(info.status.kvPagesTotal);
  expect(info.memory_plan).toMatchObject([{ models: [{ task: 'chat', weightBytes, activationBytes, pages: info.memory }] }]);
  const taken = weightBytes + activationBytes + kvBytes;
  expect(taken).toBeLessThanOrEqual(0.4 * deviceBytes);
  expect(taken).toBeGreaterThan(0.4 * deviceBytes - kvBytes / kvPages);
  const messages = [{ role: 'user', content: 'What is the capital of France?' }];
  const { status, json } = await postJson(`${base}/v1/chat/completions`, {
    model: 'parley-chat',
    messages,
    temperature: 0,
    max_tokens: 16,
  });
  expect([status, json.choices[0]!.message.content]).toEqual([200, expect.stringMatching(/Paris/)]);
});

test('a model that does not fit ends the start with the numbers and the ways out', async () => {
  const { exit, lines } = await start('--device-memory=0.1', '--mem-fraction-static=0.1');
  expect(await exit).toBe(2);
  expect(lines.join('\n')).toMatch(
    /parley-chat does not fit: it needs .* 0\.1 x 102\.4 MiB \(as set\) = 10\.2 MiB may be taken\. Ways out: .*--tp-size 2/,
  );
});

const REQUESTS = THOROUGH ? 300 : 100;

test(`${REQUESTS} requests of all kinds, a third of which go away, leave no buffer and no page behind`, async () => {
  const { urls, child } = await start();
  const { before, after, counts, problems } = await soak({ url: urls['chat']!, pid: child.pid!, requests: REQUESTS, warm: 60 });
  expect(problems).toEqual([]);
  expect(counts['went away']).toBeGreaterThan(REQUESTS / 4);
  expect([before.kvPagesUsed, after.kvPagesUsed]).toEqual([0, 0]);
  // Staging buffers come with the largest batch so far. Resident memory needs thousands of requests to say anything: `npm run bench -- soak`.
  expect(after.gpuBuffers - before.gpuBuffers).toBeLessThanOrEqual(2);
});
