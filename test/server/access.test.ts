/** Who may use the listeners: request ids, keys, hosts, origins, interfaces. */
import { networkInterfaces } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import { ROUTES, eachOf, errorBody } from '../support/each-listener.ts';
import { GOOD_CHAT as GOOD } from '../support/chat-body.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { postJson, send, startListeners } from '../support/listeners.ts';

describe('request ids and keys', () => {
  test('an id of the client is returned, a bad one replaced', async () => {
    const { chat } = await startListeners();
    expect((await send(`${chat}/health`, { headers: { 'x-request-id': 'abc-123' } })).headers['x-request-id']).toBe('abc-123');
    for (const id of ['x'.repeat(129), 'with space']) {
      expect((await send(`${chat}/health`, { headers: { 'x-request-id': id } })).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
    expect((await postJson(`${chat}/nothing`, {})).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('any key is fine when none is set; the right one is needed when one is', async () => {
    const open = await startListeners();
    expect((await postJson(open.chat + ROUTES.chat, GOOD, { authorization: 'Bearer anything' })).status).toBe(200);
    const started = await startListeners({}, { apiKey: 'sesame' });
    await eachOf(started, async (base, route) => {
      for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: 'sesame' }] as Record<string, string>[]) {
        for (const path of [route, route.replace('/v1', ''), '/v1/models', '/models']) {
          const {
            status,
            json,
            headers: answered,
          } = await send(base + path, { method: path.endsWith('models') ? 'GET' : 'POST', headers });
          expect(status).toBe(401);
          expect(answered['www-authenticate']).toMatch(/^Bearer realm="parley"/);
          expect(json).toEqual(errorBody('invalid_api_key', 'authentication_error'));
        }
      }
      for (const path of ['/health', '/v1/health', '/livez']) expect((await send(base + path)).status).toBe(200);
      for (const scheme of ['Bearer', 'bearer', 'BEARER '])
        expect((await send(`${base}/v1/models`, { headers: { authorization: `${scheme} sesame` } })).status).toBe(200);
      for (const path of ['/get_server_info', '/server_info']) {
        expect((await send(base + path)).status).toBe(401);
        const { status, text } = await send(base + path, { headers: { authorization: 'Bearer sesame' } });
        expect(status).toBe(200);
        expect(text).not.toContain('sesame');
      }
    });
  });

  test('metrics are open to collectors, and name no folder', async () => {
    const folder = '/srv/secret-project/weights';
    const { chat } = await startListeners({}, { apiKey: 'k', settings: { 'chat-model': folder } });
    await postJson(`${chat}/v1/models${folder}`, {});
    await postJson(chat + ROUTES.chat, { ...GOOD, model: folder }, { authorization: 'Bearer k' });
    const { status, text } = await send(`${chat}/metrics`);
    expect(status).toBe(200);
    expect(text).not.toMatch(/secret|srv/);
  });
});

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
test.skipIf(!hasIpv6)('the default interface is IPv6 too (needs a machine that has it)', async () => {
  const app = createChatApp({ engine: new FakeEngine(), modelId: 'parley-chat' });
  const listener = await listen(app, { host: '0.0.0.0', port: 0 });
  onTestFinished(() => listener.destroy());
  for (const host of ['127.0.0.1', '[::1]']) expect((await send(`http://${host}:${listener.port}/health`)).status).toBe(200);
  await expect(listen(app, { host: '0.0.0.0', port: listener.port })).rejects.toMatchObject({ code: 'EADDRINUSE', address: '0.0.0.0' });
  const only = await listen(app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => only.destroy());
  await expect(send(`http://[::1]:${only.port}/health`)).rejects.toThrow('ECONNREFUSED');
});

describe('hosts and origins', () => {
  const allowed = ['http://localhost:5173', 'http://127.0.0.1:3000', 'http://[::1]:8080'];

  test('a preflight echoes the asked-for headers for an allowed origin', async () => {
    await eachOf(await startListeners(), async (base, route) => {
      for (const origin of allowed) {
        const asked = 'authorization,content-type,x-stainless-os,x-stainless-retry-count';
        const { status, headers } = await send(base + route, {
          method: 'OPTIONS',
          headers: {
            origin,
            'access-control-request-method': 'POST',
            'access-control-request-headers': asked,
            'access-control-request-private-network': 'true',
          },
        });
        expect(status).toBe(204);
        expect(headers).toMatchObject({
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'GET,POST,OPTIONS',
          'access-control-allow-headers': asked,
          'access-control-allow-private-network': 'true',
          'access-control-max-age': '600',
        });
      }
    });
  });

  test('answers to an allowed origin carry the headers, errors too; strangers get none, and may not write', async () => {
    const { chat, engine } = await startListeners();
    const good = await postJson(chat + ROUTES.chat, GOOD, { origin: 'http://localhost:5173' });
    expect(good.headers['access-control-allow-origin']).toBe('http://localhost:5173');
    expect(good.headers['access-control-expose-headers']).toContain('x-request-id');
    const bad = await postJson(chat + ROUTES.chat, {}, { origin: 'http://localhost:5173' });
    expect([bad.status, bad.headers['access-control-allow-origin']]).toEqual([400, 'http://localhost:5173']);
    engine.chats.length = 0;
    for (const origin of [
      'https://evil.example',
      'null',
      'http://localhost.evil.example',
      'file://',
      'http://127.0.0.1.evil.com',
      'http://127.evil.com',
      'http://127.1.evil.com:3000',
      'http://evil.com#.localhost',
      'http://evil.com:80:80',
      'http://localhost@evil.com',
      'http://evil.com/.localhost',
      'http://evil.com?.localhost',
      'http://evil.com\\\\.localhost',
      'http://[::1].evil.com',
      'ftp://localhost',
    ]) {
      const { status, headers, json } = await postJson(chat + ROUTES.chat, GOOD, { origin });
      expect(status).toBe(403);
      expect(json).toEqual(errorBody('origin_not_allowed', 'permission_error'));
      expect(headers['access-control-allow-origin']).toBeUndefined();
      const preflight = await send(chat + ROUTES.chat, { method: 'OPTIONS', headers: { origin } });
      expect(preflight.headers['access-control-allow-origin']).toBeUndefined();
    }
    expect(engine.chats).toHaveLength(0);
  });

  test('a page of the same host may use another port; configured origins may too', async () => {
    const { chat } = await startListeners({}, { origins: { corsOrigins: ['https://app.example'], allowedHosts: [] } });
    const from = (origin: string, host: string) => postJson(chat + ROUTES.chat, GOOD, { origin, host });
    expect((await from('http://192.168.1.5:3000', '192.168.1.5:3001')).status).toBe(200);
    expect((await from('http://192.168.1.6:3000', '192.168.1.5:3001')).status).toBe(403);
    expect((await from('https://app.example', 'localhost')).status).toBe(200);
  });

  test.each([
    ['localhost:3000', 200],
    ['127.0.0.1', 200],
    ['[::1]:3000', 200],
    ['chat.localhost', 200],
    ['gpu-box', 200],
    ['parley.default.svc', 200],
    ['parley.default.svc.cluster.local', 200],
    ['host.docker.internal:3000', 200],
    ['Host.Containers.Internal', 200],
    ['evil.docker.internal', 403],
    ['host.docker.internal.evil.com', 403],
    ['evil.example', 403],
    ['localhost.evil.example', 403],
    ['[::ffff:10.0.0.1]:3000', 200],
    ['127.0.0.1.evil.com', 403],
    ['evil.com:80:80', 403],
    ['evil.com#.localhost', 403],
    ['evil.com/.localhost', 403],
    ['evil.com@localhost', 403],
    ['evil.com,localhost', 403],
    ['[evil.com]', 403],
    ['[::1]evil.com', 403],
    ['[::1', 403],
    ['localhost:99999', 403],
    ['localhost:x', 403],
    ['1.2.3.4.5', 403],
    ['999.1.1.1', 403],
  ])('host %s -> %i', async (host, status) => {
    const { chat } = await startListeners();
    const answer = await send(`${chat}/v1/models`, { headers: { host } });
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.json).toEqual(errorBody('host_not_allowed', 'permission_error'));
  });

  test('a host that is refused is named, with what would let it in', async () => {
    const { chat } = await startListeners();
    const messageOf = async (host: string) => (await send(`${chat}/v1/models`, { headers: { host } })).json.error.message;
    expect(await messageOf('AI.example:3000')).toBe("'ai.example' is not a host name of this server; --allowed-hosts ai.example allows it");
    expect(await messageOf('a.example/page')).toBe("'a.example/page' is no host name");
    expect((await messageOf(`${'a'.repeat(500)}.example`)).length).toBeLessThan(300);
    expect((await messageOf(`${'/'.repeat(500)}.example`)).length).toBeLessThan(150);
  });

  test('other hosts are fine when configured; a key does not switch the check off', async () => {
    const named = await startListeners({}, { apiKey: 'k', origins: { corsOrigins: [], allowedHosts: ['ai.example'] } });
    expect((await send(`${named.chat}/health`, { headers: { host: 'ai.example:3000' } })).status).toBe(200);
    const keyed = await startListeners({}, { apiKey: 'k' });
    const headers = { host: 'ai.example', authorization: 'Bearer k' };
    expect((await send(`${keyed.chat}/v1/models`, { headers })).json).toEqual(errorBody('host_not_allowed', 'permission_error'));
    const any = await startListeners({}, { origins: { corsOrigins: [], allowedHosts: ['*'] } });
    expect((await send(`${any.chat}/health`, { headers: { host: 'ai.example' } })).status).toBe(200);
  });
});
