/** Requests whose engine dies: those that were not answered yet are made again, once; the others fail. Fake engines in real processes. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import type { ChatEvent } from '../../engine/api.ts';
import { DEFAULT_ENGINE_CONFIG } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import { superviseEngine } from '../../server/engine/supervisor.ts';
import type { EngineSupervisor } from '../../server/engine/supervisor.ts';
import type { SupervisorOptions } from '../../server/engine/supervisor.ts';
import { createLog } from '../../server/log.ts';
import { replayed } from '../../server/engine/replay.ts';
import { until } from '../support/listeners.ts';

const never = new AbortController().signal;
const CHAT = { messages: [{ role: 'user' as const, content: 'Hi' }], sampling: {} };
const TYPES = ['start', 'delta', 'delta', 'delta', 'finish'];
const cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A supervisor whose engines behave as `first` and then as `later`, when it is ready. */
async function start(first: string, later: string, options: Partial<SupervisorOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-replay-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const lives = join(folder, 'lives');
  const supervisor = superviseEngine({
    start: { config: { ...DEFAULT_ENGINE_CONFIG, adapter: `${first}>${later}:${lives}` }, toggles: 'default' },
    log: createLog('silent'),
    onGiveUp: () => {},
    entry: new URL('../support/fake-engine-process.ts', import.meta.url),
    ...options,
  });
  cleanups.push(() => supervisor.close());
  await supervisor.ready;
  return { supervisor, lives: () => (existsSync(lives) ? readFileSync(lives, 'utf8').length : 0) };
}

/** Reads a call to its end beside the test. */
function reading<T extends { readonly type: string }>(events: AsyncIterable<T>): { all: T[]; end: Promise<EngineError | undefined> } {
  const all: T[] = [];
  const read = async (): Promise<undefined> => {
    for await (const event of events) all.push(event);
  };
  return { all, end: read().catch((error: EngineError) => error) };
}

const types = (events: readonly { readonly type: string }[]): string[] => events.map(({ type }) => type);
const kill = (supervisor: EngineSupervisor): void => void process.kill(supervisor.pid!, 'SIGKILL');
const whenRunning = (supervisor: EngineSupervisor, count = 1) => until(() => supervisor.status().running === count);

test('chats that heard nothing, or only that they began, are answered by the next engine as if nothing had been', async () => {
  const { supervisor, lives } = await start('started', 'ok');
  const begun = reading(supervisor.chat(CHAT, never));
  await until(() => begun.all.length === 1);
  const others = Array.from({ length: 5 }, () => reading(supervisor.chat(CHAT, never)));
  await whenRunning(supervisor, 6);
  kill(supervisor);
  for (const { all, end } of [begun, ...others]) {
    expect(await end).toBeUndefined();
    expect(types(all)).toEqual(TYPES);
  }
  expect(lives()).toBe(2);
  expect(supervisor.status().state).toBe('ready');
});

test('transcriptions too, and speech with the seed that was announced', async () => {
  const { supervisor } = await start('started', 'ok');
  const heard = reading(supervisor.transcribe({ samples: new Float32Array(16000) }, never));
  const folder = mkdtempSync(join(tmpdir(), 'replay-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = { path: join(folder, 'samples'), encoding: 's16', length: 24000 } as const;
  writeFileSync(file.path, new Uint8Array(2 * file.length));
  const read = reading(supervisor.transcribe({ samples: file }, never));
  const spoken = reading(supervisor.synthesize({ text: 'Hello.', voice: 'nona' }, never));
  await until(() => heard.all.length === 1 && read.all.length === 1 && spoken.all.length === 1);
  const direct = reading(supervisor.synthesize({ text: 'Hello.', voice: 'nona', seed: 7 }, never));
  kill(supervisor);
  expect([await heard.end, await read.end, await spoken.end, await direct.end]).toEqual([undefined, undefined, undefined, undefined]);
  expect(heard.all.at(-1)).toMatchObject({ text: 'Heard 1.00 seconds.' });
  expect(read.all.at(-1)).toMatchObject({ text: 'Heard 1.50 seconds.' });
  expect(types(spoken.all)).toEqual(['start', 'audio', 'finish']);
  expect(spoken.all).toEqual(direct.all);
});

test('a chat that has streamed fails with device_lost and is not made again', async () => {
  const { supervisor } = await start('half', 'ok');
  const { all, end } = reading(supervisor.chat(CHAT, never));
  await until(() => all.length === 2);
  kill(supervisor);
  expect(await end).toMatchObject({ code: 'device_lost' });
  expect(types(all)).toEqual(['start', 'delta']);
  await until(() => supervisor.status().state === 'ready');
  expect(supervisor.status().running).toBe(0);
});

test('a request that two engines died with is not tried a third time', async () => {
  const { supervisor, lives } = await start('slow', 'slow');
  const { all, end } = reading(supervisor.chat(CHAT, never));
  for (let life = 1; life <= 2; life++) {
    await until(() => lives() === life && supervisor.status().state === 'ready');
    await whenRunning(supervisor);
    kill(supervisor);
  }
  expect(await end).toMatchObject({ code: 'device_lost' });
  expect(all).toEqual([]);
  await until(() => supervisor.status().state === 'ready');
  expect(lives()).toBe(3);
  expect(supervisor.status().running).toBe(0);
});

test('the caller may go away, the wait may end, and the server may close while there is no engine', async () => {
  const gone = new AbortController();
  const { supervisor } = await start('slow', 'crash', { replayWaitMs: 1500 });
  const left = reading(supervisor.chat(CHAT, gone.signal));
  const late = reading(supervisor.chat(CHAT, never));
  await whenRunning(supervisor, 2);
  kill(supervisor);
  await until(() => supervisor.status().state === 'lost');
  gone.abort(new EngineError('aborted', 'the client hung up'));
  expect(await left.end).toMatchObject({ code: 'aborted', message: 'the client hung up' });
  expect(await late.end).toMatchObject({ code: 'device_lost' });

  const other = await start('slow', 'crash');
  const waiting = reading(other.supervisor.chat(CHAT, never));
  await whenRunning(other.supervisor);
  kill(other.supervisor);
  await until(() => other.supervisor.status().state === 'lost');
  await other.supervisor.close();
  expect(await waiting.end).toMatchObject({ code: 'device_lost' });
});

test('an error of the request itself is not a death', async () => {
  async function* refused(): AsyncGenerator<ChatEvent> {
    yield* [];
    throw new EngineError('invalid_request', 'no');
  }
  let calls = 0;
  const events = replayed<number, ChatEvent>({ run: 1, call: () => (calls++, refused()), next: async () => 2, signal: never });
  expect(await reading(events).end).toMatchObject({ code: 'invalid_request' });
  expect(calls).toBe(1);
});
