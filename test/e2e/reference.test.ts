/** deploy/reference.json: exactly the interface document's settings, and a server that runs with them and reports them. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { parseServerConfig } from '../../server/settings/config.ts';
import { postJson, send } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';

const FILE = fileURLToPath(new URL('../../deploy/reference.json', import.meta.url));
const DOCUMENT = new URL('../../../shared/spec/interface.md', import.meta.url);
const reference = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string | number | boolean>;

/** The document's words for a setting. */
const WORDS: Readonly<Record<string, string>> = {
  'Maximum concurrently running requests': 'max-running-requests',
  'Context length': 'context-length',
  'Chunked prefill size': 'chunked-prefill-size',
  'Static memory fraction': 'mem-fraction-static',
  'Tensor parallel degree': 'tp-size',
  'Scheduling policy': 'schedule-policy',
  'Listening port': 'port',
  'Listening interface': 'host',
};

test.skipIf(!existsSync(DOCUMENT))("has every row of the interface document's table (skipped where the document is not at hand)", () => {
  const text = readFileSync(DOCUMENT, 'utf8');
  const table = text.slice(text.indexOf('## Limits'), text.indexOf('## Versioning'));
  const rows = [...table.matchAll(/^\| (?!Setting|---)([^|]+?) \| ([^|]+?) \|/gm)].map(([, name, value]) => [WORDS[name!], value === 'all interfaces' ? '0.0.0.0' : value]); // prettier-ignore
  const { 'trust-remote-code': code, 'attention-backend': backend, 'graph-capture': capture, ...listed } = reference;
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(Object.entries(listed).map(([name, value]) => [name, String(value)])));
  expect(table).toMatch(/remote model code enabled.*backend named `triton` and piecewise graph capture are enabled/s);
  expect([code, backend, capture]).toEqual([true, 'triton', 'piecewise']);
});

test('is what the engine is told', () => {
  const { engine, listeners, host } = parseServerConfig(['--config', FILE], {});
  expect(engine).toMatchObject({
    maxRunningRequests: 128,
    contextLength: 32768,
    chunkedPrefillSize: 4096,
    memFractionStatic: 0.8,
    tpSize: 2,
    schedulePolicy: 'lpm',
    trustRemoteCode: true,
  });
  expect([host, listeners[0]!.port]).toEqual(['0.0.0.0', 3000]);
});

test('a server runs with it, says so and answers', { timeout: 300_000 }, async () => {
  // Free ports on the loopback interface, for a test: the only values that are not the file's.
  const adapter = process.env['PARLEY_ADAPTER'];
  const argv = [
    '--config',
    FILE,
    '--speech-model=none',
    '--transcription-model=none',
    ...(adapter === undefined ? [] : ['--adapter', adapter]),
  ];
  const { urls, child } = await whenReady(spawnAt(new URL('../../server/main.ts', import.meta.url), argv));
  onTestFinished(() => void child.kill('SIGKILL'));
  const info = JSON.parse((await send(`${urls['chat']!.replace(/\/v1$/, '')}/get_server_info`)).text) as Record<string, unknown>;
  const { port: _, host: __, ...rest } = reference;
  for (const [name, value] of Object.entries(rest)) expect([name, String(info[name])]).toEqual([name, String(value)]);
  const messages = [{ role: 'user', content: 'What is the capital of France?' }];
  const { status, json } = await postJson(`${urls['chat']}/chat/completions`, {
    model: 'parley-chat',
    messages,
    temperature: 0,
    max_tokens: 16,
  });
  expect([status, json.choices[0]!.message.content]).toEqual([200, expect.stringMatching(/Paris/)]);
});
