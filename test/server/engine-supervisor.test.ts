/** A real child process with a fake engine in it: what happens to callers and listeners when it dies, hangs or cannot start. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { DEFAULT_ENGINE_CONFIG } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { replayed } from '../../server/engine/replay.ts';
import { superviseEngine } from '../../server/engine/supervisor.ts';
import type { SupervisorOptions } from '../../server/engine/supervisor.ts';
import { listen } from '../../server/listener/listen.ts';
import { createLog } from '../../server/log.ts';
import { exitCodeOf } from '../../server/serve.ts';
import { collect } from '../support/collect.ts';
import { postJson, send, until } from '../support/listeners.ts';

const never = new AbortController().signal;
const CHAT = { messages: [{ role: 'user' as const, content: 'Hi' }], sampling: {} };
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function start(behaviour: string, watchdogMs = 60_000, options: Partial<SupervisorOptions> = {}) {
  const failures: EngineError[] = [];
  const supervisor = superviseEngine({
    start: { config: { ...DEFAULT_ENGINE_CONFIG, adapter: behaviour }, toggles: 'default' },
    log: createLog('silent'),
    watchdogMs,
    onGiveUp: (error) => failures.push(error),
    entry: new URL('../support/fake-engine-process.ts', import.meta.url),
    ...options,
  });
  cleanups.push(() => supervisor.close());
  return { supervisor, failures };
}

test('a call that nobody reads is not made', async () => {
  let calls = 0;
  const answer = async function* () {
    yield { type: 'finish' };
  };
  const events = replayed({ run: 1, call: () => (calls++, answer()), next: async () => undefined, signal: never });
  expect(calls).toBe(0);
  expect(await collect(events)).toEqual([{ type: 'finish' }]);
  expect(calls).toBe(1);
});

test('it answers through the process, samples and audio included', async () => {
  const { supervisor } = start('ok');
  expect(supervisor.status().state).toBe('loading');
  expect(() => supervisor.info()).toThrow(EngineError);
  await supervisor.ready;
  expect(supervisor.status().state).toBe('ready');
  expect((await collect(supervisor.chat(CHAT, never))).at(-1)).toMatchObject({ type: 'finish' });
  const samples = Float32Array.from({ length: 1_000_000 }, (_, i) => i);
  expect((await collect(supervisor.transcribe({ samples }, never))).at(-1)).toMatchObject({ text: 'Heard 62.50 seconds.' });
  const [, audio] = await collect(supervisor.synthesize({ text: 'Hello.', voice: 'nona' }, never));
  expect(audio).toMatchObject({ type: 'audio', samples: expect.any(Float32Array) });
});

test('killed with -9, it is replaced; listeners answer 503 device_lost meanwhile; a request that two of them died with fails', async () => {
  const { supervisor } = start('slow');
  const app = createChatApp({ engine: supervisor, modelId: 'parley-chat' });
  const listener = await listen(app, { host: '127.0.0.1', port: 0 });
  cleanups.push(async () => {
    listener.destroy();
    await listener.drain();
  });
  const base = `http://127.0.0.1:${listener.port}`;
  const body = { model: 'parley-chat', messages: CHAT.messages };

  const loading = await postJson(`${base}/v1/chat/completions`, body);
  expect(loading.status).toBe(503);
  expect(loading.json.error).toMatchObject({ type: 'server_error', code: 'model_loading' });
  expect(loading.headers['retry-after']).toMatch(/^\d+$/);
  expect((await send(`${base}/v1/models`)).json.data[0]).toMatchObject({ id: 'parley-chat', meta: null });
  await supervisor.ready;
  expect((await send(`${base}/health`)).status).toBe(200);

  const running = postJson(`${base}/v1/chat/completions`, body);
  await until(() => supervisor.status().running === 1);
  const first = supervisor.pid!;
  process.kill(first, 'SIGKILL');
  await until(() => supervisor.status().state === 'lost');
  const down = await postJson(`${base}/v1/chat/completions`, body);
  expect(down.status).toBe(503);
  expect(down.json.error).toMatchObject({ type: 'server_error', code: 'device_lost', param: null });
  expect(down.headers['retry-after']).toMatch(/^\d+$/);
  expect((await send(`${base}/health`)).json.error.code).toBe('device_lost');
  expect((await send(`${base}/livez`)).status).toBe(200);
  expect((await send(`${base}/v1/models`)).status).toBe(200);

  await until(() => supervisor.status().state === 'ready');
  expect(supervisor.restarts).toBe(1);
  expect(supervisor.pid).not.toBe(first);
  expect((await send(`${base}/health`)).status).toBe(200);
  await until(() => supervisor.status().running === 1);
  process.kill(supervisor.pid!, 'SIGKILL');
  expect(await running).toMatchObject({ status: 503, json: { error: { code: 'device_lost' } } });
  await until(() => supervisor.status().state === 'ready');
  expect(supervisor.restarts).toBe(2);
});

test.each([
  ['stall', 'GPU work does not finish', 0],
  ['hang', 'its event loop is blocked', 0],
  ['lose', 'the device is lost', 2],
])('%s: it is killed and started again when %s, and once more with the request that was made again', async (behaviour, _, devicesLost) => {
  const { supervisor } = start(behaviour, 2500);
  await supervisor.ready;
  await expect(collect(supervisor.chat(CHAT, never))).rejects.toMatchObject({ code: 'device_lost' });
  await until(() => supervisor.status().state === 'ready');
  expect([supervisor.restarts, supervisor.devicesLost]).toEqual([2, devicesLost]);
});

test('how long GPU work has stood still is known before the watchdog acts', async () => {
  const { supervisor } = start('stall');
  await supervisor.ready;
  await until(() => supervisor.stalledMs < 1000);
  const running = collect(supervisor.chat(CHAT, never)).catch(() => {});
  await until(() => supervisor.stalledMs > 1500);
  await supervisor.close();
  await running;
});

test('a mistake in the configuration is given up at once, with its error', async () => {
  const { supervisor, failures } = start('fail');
  await until(() => failures.length === 1);
  expect(failures[0]).toMatchObject({ code: 'no_adapter', message: 'no adapter is called that' });
  expect(supervisor.restarts).toBe(0);
});

test('a crash at start is tried again, a few times', async () => {
  const { supervisor, failures } = start('crash');
  await until(() => supervisor.restarts === 1);
  expect(supervisor.status().state).toBe('loading');
  await until(() => failures.length === 1);
  expect([supervisor.restarts, supervisor.devicesLost]).toEqual([2, 0]);
  expect(failures[0]).toMatchObject({ code: 'device_lost', message: expect.stringContaining('signal SIGKILL') });
});

test('so is a GPU that is lost while the models are loaded; in the end its own words are told', async () => {
  const { supervisor, failures } = start('reset');
  await until(() => failures.length === 1);
  expect([supervisor.restarts, supervisor.devicesLost]).toEqual([2, 3]);
  expect(failures[0]).toMatchObject({ code: 'device_lost', message: 'llvmpipe was lost' });
});

test('an engine that ran once and has died ten times since is given up as lost, whatever the last one lacked: another start may help', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-lives-'));
  cleanups.push(async () => rmSync(folder, { recursive: true }));
  const lives = join(folder, 'lives');
  const { supervisor, failures } = start(`ok>fail:${lives}`, 60_000, { delayMs: 1 });
  await supervisor.ready;
  process.kill(supervisor.pid!, 'SIGKILL');
  await until(() => failures.length === 1);
  const message = 'the engine process died 10 times in a row; the last time: no adapter is called that';
  expect(failures[0]).toMatchObject({ code: 'device_lost', message });
  expect(exitCodeOf(failures[0]!)).toBe(1);
  expect(readFileSync(lives, 'utf8')).toHaveLength(10);
});

test('deaths after a life that was long enough are not counted', async () => {
  const { supervisor, failures } = start('ok', 60_000, { delayMs: 1, livedMs: -1 });
  await supervisor.ready;
  for (let deaths = 0; deaths < 11; deaths++) {
    const { pid } = supervisor;
    process.kill(pid!, 'SIGKILL');
    await until(() => supervisor.pid !== pid && supervisor.status().state === 'ready');
  }
  expect(failures).toEqual([]);
  expect(supervisor.restarts).toBe(11);
});

test('a process that closes its connection before it ends is said to have ended as it did', async () => {
  const { failures } = start('leave');
  await until(() => failures.length === 1);
  expect(failures[0]).toMatchObject({ code: 'device_lost', message: expect.stringContaining('exit code 3') });
});

test('a start after the first that never gets ready is ended, and tried again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-lives-'));
  cleanups.push(async () => rmSync(folder, { recursive: true }));
  const { supervisor } = start(`ok>load:${join(folder, 'lives')}`, 60_000, { reloadMs: 1500 });
  await supervisor.ready;
  process.kill(supervisor.pid!, 'SIGKILL');
  await until(() => supervisor.restarts >= 2);
  expect(supervisor.status().state).toBe('lost');
});

test('close() ends the process, also while it loads', async () => {
  for (const wait of [true, false]) {
    const { supervisor } = start('ok');
    if (wait) await supervisor.ready;
    const pid = supervisor.pid!;
    await supervisor.close();
    expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
    expect(supervisor.status().state).toBe('closing');
  }
});
