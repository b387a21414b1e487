/** The whole server as a process (with a fake engine in its engine process): start, drain, signals, exit codes. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { JSON_TYPE, postJson, send, until } from '../support/listeners.ts';
import { TSX_ARGV } from '../../server/tsx.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import type { Running, Spawned } from '../support/server-process.ts';

const FAKE = new URL('../support/serve-fake.ts', import.meta.url);

function spawnServer(argv: readonly string[]): Spawned {
  const server = spawnAt(FAKE, argv);
  onTestFinished(() => void server.child.kill('SIGKILL'));
  return server;
}

const startServer = (...argv: string[]): Promise<Running> => whenReady(spawnServer(argv));

const CHAT = { model: 'parley-chat', messages: [{ role: 'user', content: 'Hi' }] };

/** An answer that comes in pieces: resolves at its first byte. */
async function openStream(url: string, body: object): Promise<{ readonly end: Promise<string> }> {
  const request = httpRequest(url, { method: 'POST', headers: JSON_TYPE });
  request.end(JSON.stringify(body));
  const [response] = await once(request, 'response');
  let text = '';
  response.on('error', () => {});
  response.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return { end: new Promise((resolve) => response.on('close', () => resolve(text))) };
}

test('it says where it listens, answers on three ports, and Ctrl-C ends it with 0, idle connections or not', async () => {
  const { child, exit, urls, lines } = await startServer();
  expect(lines[0]).toBe('adapter        fake adapter (software: runs on the CPU)');
  expect(lines.find((line) => line.startsWith('chat'))).toMatch(/\/v1 {2}parley-chat \(llama, 0.0 M parameters, context 1024\)$/);
  expect(Object.keys(urls)).toEqual(['chat', 'speech', 'transcription']);
  for (const url of Object.values(urls)) expect((await send(`${url}/health`)).status).toBe(200);
  expect((await postJson(`${urls['chat']}/chat/completions`, CHAT)).json.choices[0]!.message.content).toBe('Hello there!');
  // Idle keep-alive connections and one that never asked anything must not hold it.
  const idle = connect(Number(new URL(urls['chat']!).port), '127.0.0.1');
  idle.on('error', () => {});
  const started = performance.now();
  child.kill('SIGINT');
  expect(await exit).toBe(0);
  // A bound here would test the machine's load; the figure is for whoever reads the log.
  console.log(`left after ${(performance.now() - started).toFixed(0)} ms`);
});

test('it warns of a misspelt setting in the environment, and starts', async () => {
  const server = spawnAt(FAKE, [], { [`PARLEY_${'CHAT_MODLE'}`]: 'secret' });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const { urls, lines } = await whenReady(server);
  expect(Object.keys(urls)).toHaveLength(3);
  const isWarning = (line: string): boolean => line.includes('CHAT_MODLE (is PARLEY_CHAT_MODEL meant?)');
  await until(() => lines.some(isWarning));
  expect(lines.filter(isWarning)).toEqual([expect.stringMatching(/^\{"level":40,/)]);
  expect(lines.join('\n')).not.toContain('secret');
});

/** Asks until nobody listens there any more; returns what it was told then. */
async function untilRefused(url: string): Promise<string> {
  for (;;) {
    const refusal = await send(`${url}/health`).then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (refusal !== undefined) return refusal;
  }
}

/** A server whose parent holds the other end of a channel; `environment` says what for. */
async function withChannel(environment: Readonly<Record<string, string>>): Promise<Running> {
  const server = spawnAt(FAKE, [], environment, 'ipc');
  onTestFinished(() => void server.child.kill('SIGKILL'));
  return whenReady(server);
}

test('it drains when the process that started it for `npm start` is gone, and outlives any other', async () => {
  const [started, forked] = [await withChannel({ PARLEY_STARTED: '1' }), await withChannel({})];
  // Of a child whose channel was closed on this side, Node tells the exit and no `close`.
  const exit = once(started.child, 'exit');
  for (const { child } of [started, forked]) child.disconnect();
  expect(await exit).toEqual([0, null]);
  expect((await send(`${forked.urls['chat']}/health`)).status).toBe(200);
});

test('a drain lets a running stream finish, refuses new work, and ends with 0', async () => {
  const { child, exit, urls, lines } = await startServer('--adapter', 'steady');
  const stream = await openStream(`${urls['chat']}/chat/completions`, { ...CHAT, stream: true });
  child.kill('SIGTERM');
  // Reset: the socket was still in the backlog when the listener closed.
  expect(await untilRefused(urls['speech']!)).toMatch(/ECONNREFUSED|ECONNRESET/);
  expect((await stream.end).endsWith('data: [DONE]\n\n')).toBe(true);
  expect(await exit).toBe(0);
  expect(lines.filter((line) => line.includes('"level":50'))).toEqual([]);
});

test('at the drain deadline a stream gets a typed error and the exit code says so', async () => {
  const { child, exit, urls } = await startServer('--adapter', 'endless', '--drain-timeout', '0.3');
  const stream = await openStream(`${urls['chat']}/chat/completions`, { ...CHAT, stream: true });
  child.kill('SIGTERM');
  expect(await stream.end).toMatch(
    /data: \{"error":\{"message":"the server is shutting down",[^\n]*"code":"shutting_down"\}\}\n\ndata: \[DONE\]\n\n$/,
  );
  expect(await exit).toBe(75);
});

test('with --drain-delay readiness goes first while work is still taken', async () => {
  const { child, exit, urls } = await startServer('--drain-delay', '3');
  child.kill('SIGTERM');
  let health = await send(`${urls['chat']}/health`);
  while (health.status === 200) health = await send(`${urls['chat']}/health`);
  expect(health.json.error.code).toBe('shutting_down');
  expect(health.headers.connection).toBe('close');
  expect((await postJson(`${urls['chat']}/chat/completions`, CHAT)).status).toBe(200);
  expect(await exit).toBe(0);
});

/** A body that is asked for and never comes whole; resolves to the status and the code of its answer. */
async function openBody(url: string, type: string, id: string): Promise<{ readonly answer: Promise<unknown> }> {
  const headers = { 'content-type': type, 'content-length': 100_000, 'x-request-id': id, expect: '100-continue' };
  const request = httpRequest(url, { method: 'POST', headers });
  // The answer comes before the body's end, at which the connection breaks.
  request.on('error', () => {});
  request.flushHeaders();
  await once(request, 'continue');
  request.write('--x\r\n');
  const answer = once(request, 'response').then(async ([response]) => {
    const [text] = await once(response, 'data');
    return [response.statusCode, (JSON.parse(String(text)) as { error: { code: string } }).error.code];
  });
  return { answer };
}

test('a body that still comes is answered when its request is aborted, and at the drain deadline', async () => {
  const { child, exit, urls } = await startServer('--drain-timeout', '0.3');
  const chat = (id: string) => openBody(`${urls['chat']}/chat/completions`, 'application/json', id);
  const aborted = await chat('one');
  await postJson(`${urls['chat']}/abort_request`, { rid: 'one' });
  expect(await aborted.answer).toEqual([400, 'request_aborted']);
  const form = 'multipart/form-data; boundary=x';
  const coming = [await chat('two'), await openBody(`${urls['transcription']}/audio/transcriptions`, form, 'three')];
  child.kill('SIGTERM');
  for (const { answer } of coming) expect(await answer).toEqual([503, 'shutting_down']);
  expect(await exit).toBe(75);
});

test('a second signal ends it at once', async () => {
  const { child, exit, urls } = await startServer('--adapter', 'endless');
  await openStream(`${urls['chat']}/chat/completions`, { ...CHAT, stream: true });
  // Those of the first half second count as one.
  await until(() => (child.kill('SIGTERM'), child.exitCode !== null));
  expect(await exit).toBe(130);
});

test.each([
  ['a setting that is none', ['--colour=red'], 2, /^--colour: there is no such setting/],
  ['a setting out of range', ['--tp-size=0'], 2, /^--tp-size 0: must be auto or from 1 to 99/],
  ['no adapter', ['--adapter=fail'], 78, /^the engine cannot run: no adapter is called that/],
])('%s ends it with a line and its code', async (_, argv, code, message) => {
  const { exit, lines, ready } = spawnServer(argv);
  expect(await exit).toBe(code);
  await ready;
  expect(lines.filter((line) => message.test(line))).toHaveLength(1);
});

test('a wrong token or address of a hub is no matter to a server that fetches nothing', async () => {
  const server = spawnAt(FAKE, [], { HF_TOKEN: 'a b', HF_ENDPOINT: 'ftp://hub.example' });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const { urls } = await whenReady(server);
  expect((await send(`${urls['chat']}/health`)).status).toBe(200);
});

test('a model that cannot be loaded ends it with 2 and one line, without what drivers say beside it', async () => {
  const { exit, lines } = spawnServer(['--adapter=refuse']);
  expect(await exit).toBe(2);
  expect(lines).toEqual(['the engine cannot run: config.json: hidden_act is "gelu", expected "silu"']);
});

test('a port in use ends it with a line that says what to do', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { child, exit, lines } = spawnServer([`--port=${port}`]);
  let told = '';
  child.stdout!.on('data', (data: Buffer) => (told += data.toString()));
  expect(await exit).toBe(1);
  expect(told).not.toContain('in use');
  expect(lines).toContain(`127.0.0.1:${port} is in use; choose other ports with --port, --speech-port and --transcription-port`);
});

test('output that nobody reads to its end (--help | head) is no error', async () => {
  const { child, exit, lines } = spawnServer(['--help']);
  child.stdout!.destroy();
  expect(await exit).toBe(0);
  expect(lines).toEqual([]);
});

test('--help prints the settings and ends with 0', async () => {
  const { exit, lines } = spawnServer(['--help']);
  expect(await exit).toBe(0);
  expect(lines[0]).toMatch(/^Usage: npm start/);
});

test.each([
  ['--log-level', 'trace'],
  ['--log-requests', '--log-level', 'silent'],
])('logs carry counts and codes, never content: %s', async (...flags) => {
  const { child, exit, urls, lines } = await startServer(...flags);
  const secret = 'canary-4711';
  await postJson(`${urls['chat']}/chat/completions`, { ...CHAT, messages: [{ role: 'user', content: secret }], user: secret });
  await postJson(`${urls['chat']}/chat/completions`, { ...CHAT, model: secret });
  await postJson(`${urls['speech']}/audio/speech`, { model: 'tts-1', input: secret, voice: 'oni' }, { authorization: `Bearer ${secret}` });
  await send(`${urls['chat']}/${secret}?q=${secret}`);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
  const text = lines.join('\n');
  expect(text).not.toContain(secret);
  expect(text).toMatch(/"route":"\/chat\/completions","status":200,.*"prompt_tokens":10/);
  expect(text).toMatch(/"status":404,.*"code":"model_not_found"/);
  expect(text).toMatch(/"route":"unmatched","status":404/);
  expect(text).toMatch(/"route":"\/audio\/speech","status":200,.*"characters":11/);
});

test('--log-requests is one line a request, without those that are asked every few seconds', async () => {
  const { child, exit, urls, lines } = await startServer('--log-requests');
  const root = urls['chat']!.replace(/\/v1$/, '');
  for (const path of ['/health', '/readyz', '/live', '/metrics', '/v1/loads', '/get_load', '/v1/models']) await send(root + path);
  await postJson(`${urls['chat']}/chat/completions`, CHAT);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
  const routes = lines.flatMap((line) => (line.startsWith('{') ? [(JSON.parse(line) as { readonly route?: string }).route] : []));
  expect(routes).toEqual(['/models', '/chat/completions']);
});

test('a bug in the engine is a 500 to the client and a stack in the log', async () => {
  const { child, exit, urls, lines } = await startServer('--adapter', 'buggy');
  const { status, json, headers } = await postJson(`${urls['chat']}/chat/completions`, CHAT);
  expect([status, json.error.code]).toEqual([500, 'internal_error']);
  expect(json.error.message).not.toContain('x is not');
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
  const text = lines.join('\n');
  expect(text).toMatch(/"source":"engine","msg":"engine bug in chat: TypeError: x is not a function\\n +at /);
  expect(text).toContain(String(headers['x-request-id']));
});

test.skipIf(!existsSync('/dev/full'))('a log that cannot be written, as on a full disk, ends nothing and holds up nothing', async () => {
  const full = openSync('/dev/full', 'w');
  const argv = ['--port=0', '--speech-model=none', '--transcription-model=none', '--host=127.0.0.1', '--log-requests'];
  const child = spawn(process.execPath, [...TSX_ARGV, fileURLToPath(FAKE), ...argv], { stdio: ['ignore', 'pipe', full] });
  closeSync(full);
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  let url = '';
  for await (const line of createInterface(child.stdout!)) {
    url ||= /^chat\s+(\S+)/.exec(line)?.[1] ?? '';
    if (line.startsWith('ready after')) break;
  }
  for (let i = 0; i < 3; i++) expect((await postJson(`${url}/chat/completions`, CHAT)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
});

test.skipIf(!existsSync('/dev/full'))(
  'what a server says of itself cannot be written, as on a full disk: it serves all the same',
  async () => {
    const full = openSync('/dev/full', 'w');
    const argv = ['--port=0', '--speech-model=none', '--transcription-model=none', '--host=127.0.0.1', '--log-level=info'];
    const child = spawn(process.execPath, [...TSX_ARGV, fileURLToPath(FAKE), ...argv], { stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    onTestFinished(() => void child.kill('SIGKILL'));
    const exit = once(child, 'exit');
    for await (const line of createInterface(child.stderr!)) if (line.includes('"engine ready"')) break;
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  },
);

/** Process id of a server's engine. */
function engineOf(server: number): number {
  const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ');
  return Number(children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('engine-process')));
}

/** Without it a test cannot limit the files of a process. */
const HAS_PRLIMIT = process.platform === 'linux' && spawnSync('prlimit', ['--version']).status === 0;

/** Waits until the engine of a listener has been started again once, and is ready. */
async function untilRestarted(url: string): Promise<void> {
  const metrics = new URL('/metrics', url).href;
  await expect.poll(async () => (await send(metrics)).text, { timeout: 60_000 }).toMatch(/^parley_engine_restarts_total\S* 1$/m);
  await expect.poll(async () => (await send(`${url}/health`)).status, { timeout: 60_000 }).toBe(200);
}

// Windows deletes no folder that a process is in, and macOS has no /proc to find the engine in.
test.skipIf(process.platform !== 'linux').each([
  ['has been deleted', () => undefined],
  ['has been replaced by another', (folder: string) => mkdirSync(folder)],
])('an engine that dies is started again where the current folder %s', async (_, then) => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-current-'));
  const server = spawnAt(FAKE, [], {}, undefined, ['sh', '-c', 'cd "$0" && exec "$@"', folder]);
  onTestFinished(() => {
    server.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const { child, lines, urls } = await whenReady(server);
  rmSync(folder, { recursive: true });
  then(folder);
  process.kill(engineOf(child.pid!), 'SIGKILL');
  await untilRestarted(urls['chat']!);
  expect(lines.filter((line) => line.includes('uv_cwd'))).toEqual([]);
});

test.skipIf(!HAS_PRLIMIT)('as many connections as there may be files leave the other listeners and a new engine theirs', async () => {
  const server = spawnAt(FAKE, [], {}, undefined, ['prlimit', '--nofile=256']);
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const { child, lines, urls } = await whenReady(server);
  const { port } = new URL(urls['chat']!);
  const held = Array.from({ length: 256 }, () => connect(Number(port), '127.0.0.1').on('error', () => {}));
  onTestFinished(() => held.forEach((socket) => socket.destroy()));
  await Promise.race(held.map((socket) => once(socket, 'close')));
  expect((await send(`${urls['speech']}/health`)).status).toBe(200);
  process.kill(engineOf(child.pid!), 'SIGKILL');
  await untilRestarted(urls['speech']!);
  expect(lines.filter((line) => line.includes('could not be run'))).toEqual([]);
});

test.skipIf(!HAS_PRLIMIT)('an engine that dies while no file can be opened is started again later; the listeners stay', async () => {
  const { child, lines, urls } = await startServer();
  const limit = (files: number) => execFileSync('prlimit', ['--pid', String(child.pid), `--nofile=${files}:`]);
  limit(readdirSync(`/proc/${child.pid}/fd`).length - 8);
  process.kill(engineOf(child.pid!), 'SIGKILL');
  await until(() => lines.some((line) => line.includes('could not be run')) || child.exitCode !== null);
  expect(child.exitCode).toBe(null);
  limit(1024);
  await expect.poll(async () => (await send(`${urls['chat']}/health`)).status, { timeout: 60_000 }).toBe(200);
});
