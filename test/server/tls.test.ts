/** HTTPS by files: served, asked for a client's certificate, renewed, and drained like HTTP. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import type { RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { Renewal } from '../../server/access/renewal.ts';
import { readTls, validityProblem } from '../../server/access/tls.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import type { Listener } from '../../server/listener/listen.ts';
import type { Logger } from '../../server/log.ts';
import { parseServerConfig } from '../../server/settings/config.ts';
import { calledAs } from '../../server/settings/read.ts';
import { CHAT_PATH, GOOD_CHAT } from '../support/chat-body.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { JSON_TYPE, until } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';

const FOLDER = new URL('../fixtures/tls/', import.meta.url);
/** Nothing was given in another place than the command line. */
const called = calledAs(new Map());
const fixture = (name: string): string => new URL(name, FOLDER).pathname;
const read = (path: string): string => readFileSync(path, 'utf8');
const ca = read(fixture('ca.pem'));
const filesOf = (name: string) => ({ cert: fixture(`${name}.pem`), key: fixture(`${name}.key`) });

/** Status, body and whose certificate it was. */
async function ask(port: number, path: string, { body, ...options }: RequestOptions & { readonly body?: string } = {}) {
  const request = httpsRequest({
    host: '127.0.0.1',
    port,
    path,
    ca,
    agent: false,
    method: body === undefined ? 'GET' : 'POST',
    ...options,
  });
  request.end(body);
  const [response] = await once(request, 'response');
  const subject = (response.socket as TLSSocket).getPeerCertificate().subject.CN;
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode as number, text, subject };
}

async function serve(engine: FakeEngine, clientCa?: string): Promise<Listener> {
  const tls = readTls({ ...filesOf('server'), ...(clientCa !== undefined && { clientCa }) }, read, called);
  const listener = await listen(createChatApp({ engine, modelId: 'parley-chat' }), { host: '127.0.0.1', port: 0, tls });
  onTestFinished(() => listener.destroy());
  return listener;
}

test('a certificate that clients refuse for its dates is told by them', () => {
  const cert = read(fixture('server.pem'));
  const at = (date: string): string | undefined => validityProblem({ cert: `A text may stand here.\n${cert}${ca}` }, Date.parse(date));
  expect(at('2026-12-01')).toBeUndefined();
  expect(at('2126-11-01')).toMatch(/^the certificate expired on Oct 31 .* 2126 GMT; clients refuse it$/);
  expect(at('2026-11-01')).toMatch(/^the certificate is not valid before Nov 24 .* 2026 GMT; clients refuse it$/);
});

test('answers HTTPS, and takes another certificate for new connections', async () => {
  const listener = await serve(new FakeEngine());
  expect(await ask(listener.port, '/health')).toEqual({ status: 200, text: '{"status":"ok"}', subject: 'server' });
  listener.renewTls(readTls(filesOf('renewed'), read, called));
  expect((await ask(listener.port, '/health')).subject).toBe('renewed');
});

test('with a list of signers lets in clients with a certificate of theirs only', async () => {
  const listener = await serve(new FakeEngine(), fixture('ca.pem'));
  await expect(ask(listener.port, '/health')).rejects.toThrow();
  const { cert, key } = filesOf('client');
  expect((await ask(listener.port, '/health', { cert: read(cert), key: read(key) })).status).toBe(200);
});

test('a file that is empty, cut off or no certificate is refused: Node would let in whom any public authority signed, or nobody', () => {
  const good = read(fixture('ca.pem'));
  const files = { ...filesOf('server'), clientCa: 'ca' };
  const withSigners = (text: string) => () => readTls(files, (path) => (path === 'ca' ? text : read(path)), called);
  expect(withSigners('\n')).toThrow(/^--tls-client-ca ca: it is empty$/);
  expect(withSigners('nothing')).toThrow(/^--tls-client-ca ca: there is no certificate in it \(PEM\)$/);
  expect(withSigners(good.slice(0, 300))).toThrow(/^--tls-client-ca ca: certificate 1 of 1 cannot be read$/);
  expect(withSigners(`${good}${good.slice(0, 300)}`)).toThrow(/^--tls-client-ca ca: certificate 2 of 2 cannot be read$/);
  expect(withSigners(`A comment\r\n${good.replaceAll('\n', '\r\n')}${good}`)().ca).toContain('A comment');
  for (const [flag, empty] of [
    ['cert', files.cert],
    ['key', files.key],
  ] as const)
    // prettier-ignore
    expect(() => readTls(files, (path) => (path === empty ? '' : good), called)).toThrow(`--tls-${flag} ${empty}: it is empty`);
});

test('a drain lets an answer end, closes what is idle, and what has never asked', async () => {
  const engine = new FakeEngine({ delay: 1e6 });
  const listener = await serve(engine);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  expect((await ask(listener.port, '/health', { agent })).status).toBe(200);
  const answer = ask(listener.port, CHAT_PATH, { agent, headers: JSON_TYPE, body: JSON.stringify(GOOD_CHAT) });
  await until(() => engine.chats.length === 1);
  const drained = listener.drain();
  const ended = ask(listener.port, '/health').then(() => 'answered', () => 'refused'); // prettier-ignore
  expect(await ended).toBe('refused');
  engine.release();
  expect((await answer).status).toBe(200);
  await drained;
});

test('settings that do not fit are refused in one sentence', () => {
  const config =
    (...argv: string[]) =>
    () =>
      parseServerConfig(argv, {});
  expect(config('--tls-cert', fixture('server.pem'))).toThrow(/^TLS needs both --tls-cert and --tls-key$/);
  expect(config('--tls-cert', fixture('server.pem'), '--tls-key', fixture('client.key'))).toThrow(/cannot be used together/);
  expect(config('--tls-cert', fixture('none.pem'), '--tls-key', fixture('client.key'))).toThrow(/^--tls-cert .*none.pem: /);
  expect(config('--api-keys', fixture('server.pem'))).toThrow(/^--api-keys .*server.pem: it is not valid JSON$/);
  expect(parseServerConfig(['--admin-api-key', 'root'], {}).adminKey).toBe('root');
  expect(parseServerConfig([], { PARLEY_ADMIN_API_KEY: 'root' }).adminKey).toBe('root');
});

test('files that have changed are read again by themselves, once, and a broken one leaves what there was', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-renewal-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // As Kubernetes exchanges a Secret: the files lie behind a link that comes to show elsewhere.
  const put = (version: string, text: string): void => {
    mkdirSync(join(folder, version));
    for (const name of ['cert', 'key']) writeFileSync(join(folder, version, name), text);
    symlinkSync(version, join(folder, 'next'));
    renameSync(join(folder, 'next'), join(folder, 'now'));
  };
  const paths = ['cert', 'key'].map((name) => join(folder, 'now', name));
  const taken: string[] = [];
  const said: string[] = [];
  const log = { warn: (text: string) => said.push(text), error: (_: object, text: string) => said.push(text) } as unknown as Logger;
  const take = (): void => {
    const text = read(paths[0]!);
    if (text === 'broken') throw new Error('it is broken');
    taken.push(text);
  };
  put('1', 'first');
  const renewal = new Renewal([{ what: 'certificates', paths, take }], log);
  onTestFinished(() => renewal.close());
  void renewal.watch(1);
  // What was read before anybody looked may have changed since: it is taken without a word.
  await until(() => taken.length === 1);
  put('2', 'second');
  await until(() => taken.length === 2);
  put('3', 'broken');
  await until(() => said.length === 2);
  await renewal.now();
  put('4', 'fourth');
  await until(() => taken.length === 3);
  expect(taken).toEqual(['first', 'second', 'fourth']);
  const changed = 'the files of certificates have changed and were read again';
  const refused = 'a file of certificates is not taken; the one before stays';
  expect(said).toEqual([changed, refused, refused, changed]);
});

// Windows has no pipes in folders.
test.skipIf(process.platform === 'win32')('a pipe, which was read at the start, is not waited for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-pipe-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [pipe, cert] = [join(folder, 'pipe'), join(folder, 'cert')];
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
  writeFileSync(cert, 'first');
  const taken: string[] = [];
  const log = { warn: () => undefined, error: () => undefined } as unknown as Logger;
  const files = [pipe, cert].map((path) => ({ what: path, paths: [path], take: () => void taken.push(path) }));
  const renewal = new Renewal(files, log);
  onTestFinished(() => renewal.close());
  void renewal.watch(1);
  await until(() => taken.length === 1);
  // At one go: half of a file would be a change of its own.
  writeFileSync(join(folder, 'next'), 'second');
  renameSync(join(folder, 'next'), cert);
  await until(() => taken.length === 2);
  expect(taken).toEqual([cert, cert]);
  await renewal.now();
  expect(taken).toEqual([cert, cert, pipe, cert]);
});

test('SIGHUP reads keys and certificates again; a broken file changes nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [cert, key, keys] = ['server.pem', 'server.key', 'keys.json'].map((name) => join(folder, name)) as [string, string, string];
  const put = (name: string, secret: string): void => {
    copyFileSync(fixture(`${name}.pem`), cert);
    copyFileSync(fixture(`${name}.key`), key);
    writeFileSync(keys, JSON.stringify({ keys: [{ name: 'alice', key: secret }] }));
  };
  put('server', 'old');
  const argv = ['--tls-cert', cert, '--tls-key', key, '--api-keys', keys];
  const spawned = spawnAt(new URL('../support/serve-fake.ts', import.meta.url), argv);
  onTestFinished(() => void spawned.child.kill('SIGKILL'));
  await whenReady(spawned);
  const { child, lines } = spawned;
  const port = Number(/^chat\s+https:\/\/[^:]+:(\d+)\/v1/.exec(lines.find((line) => line.startsWith('chat')) ?? '')?.[1]);
  const models = (secret: string) => ask(port, '/v1/models', { headers: { authorization: `Bearer ${secret}` } });
  expect(await models('old')).toMatchObject({ status: 200, subject: 'server' });
  const renewed = async (word: string): Promise<void> => {
    const before = lines.filter((line) => line.includes(word)).length;
    child.kill('SIGHUP');
    await until(() => lines.filter((line) => line.includes(word)).length > before);
  };
  put('renewed', 'new');
  await renewed('were read again');
  expect(await models('new')).toMatchObject({ status: 200, subject: 'renewed' });
  expect((await models('old')).status).toBe(401);
  // Neither waits until the other is mended.
  put('server', 'none');
  writeFileSync(keys, '{');
  await renewed('were read again');
  expect(lines.filter((line) => line.includes('a file of keys is not taken'))).toHaveLength(1);
  expect(await models('new')).toMatchObject({ status: 200, subject: 'server' });
  put('renewed', 'newest');
  writeFileSync(cert, '');
  await renewed('is not taken');
  expect(await models('newest')).toMatchObject({ status: 200, subject: 'server' });
  child.kill('SIGTERM');
  expect(await spawned.exit).toBe(0);
});
