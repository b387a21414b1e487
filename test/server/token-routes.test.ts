/** /tokenize, /detokenize, and what administers: /flush_cache and /abort_request. */
import { networkInterfaces } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import { CHAT_PATH, GOOD_CHAT } from '../support/chat-body.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { postJson, send, startListeners, until } from '../support/listeners.ts';

describe('tokens', () => {
  test('of a prompt, of several, and of a conversation', async () => {
    const { chat } = await startListeners();
    const ask = async (body: object) => (await postJson(`${chat}/tokenize`, body)).json;
    expect(await ask({ model: 'parley-chat', prompt: 'Hi' })).toEqual({ tokens: [1, 72, 105], count: 3, max_model_len: 1024 });
    expect(await ask({ prompt: 'Hi', add_special_tokens: false })).toEqual({ tokens: [72, 105], count: 2, max_model_len: 1024 });
    expect(await ask({ prompt: ['H', ''] })).toEqual({ tokens: [[1, 72], [1]], count: [2, 1], max_model_len: 1024 });
    expect(await ask({ messages: GOOD_CHAT.messages })).toEqual({ tokens: [72, 105], count: 2, max_model_len: 1024 });
  });

  test('become text again', async () => {
    const { chat } = await startListeners();
    const info = { bos_token: '\u0001', eos_token: null, chat_template: '{{ messages[0].content }}' };
    for (const path of ['/tokenizer_info', '/v1/tokenizer_info']) expect(await (await fetch(chat + path)).json()).toEqual(info);
    expect((await postJson(`${chat}/v1/detokenize`, { tokens: [72, 105] })).json).toEqual({ prompt: 'Hi', text: 'Hi' });
    expect((await postJson(`${chat}/detokenize`, { tokens: [[72], [105]] })).json).toEqual({ prompt: ['H', 'i'], text: ['H', 'i'] });
  });

  test('of a long list leave the engine to others in between, and end with their client', async () => {
    const { chat, engine } = await startListeners();
    const asked: (() => void)[] = [];
    engine.tokenize = () => new Promise((resolve) => asked.push(() => resolve([1])));
    engine.detokenize = () => new Promise((resolve) => asked.push(() => resolve('a')));
    for (const [path, body] of [
      ['/tokenize', { prompt: Array<string>(100).fill('x'.repeat(4096)) }],
      ['/detokenize', { tokens: Array<number[]>(10_000).fill([1]) }],
    ] as const) {
      asked.length = 0;
      const ended = postJson(chat + path, body, { 'x-request-id': 'list' }).then(({ status }) => status);
      await until(() => asked.length > 0);
      const first = asked.length;
      expect(first).toBeLessThan(100);
      for (const answer of asked) answer();
      await until(() => asked.length > first);
      await postJson(`${chat}/abort_request`, { rid: 'list' });
      const second = asked.length;
      for (const answer of asked) answer();
      expect(await ended).toBe(400);
      expect(asked.length).toBe(second);
    }
  });

  test.each([
    ['/tokenize', {}, 'missing_required_parameter', 'prompt'],
    ['/tokenize', { prompt: 'a', messages: GOOD_CHAT.messages }, 'invalid_value', 'messages'],
    ['/tokenize', { prompt: 5 }, 'invalid_type', 'prompt'],
    ['/tokenize', { messages: [{ role: 'user' }] }, 'missing_required_parameter', 'messages[0].content'],
    ['/tokenize', { prompt: 'a', add_special_tokens: 'no' }, 'invalid_type', 'add_special_tokens'],
    ['/detokenize', {}, 'missing_required_parameter', 'tokens'],
    ['/detokenize', { tokens: [-1] }, 'invalid_value', 'tokens[0]'],
    ['/detokenize', { tokens: [1e9] }, 'invalid_value', 'tokens'],
    ['/abort_request', {}, 'missing_required_parameter', 'rid'],
    ['/abort_request', { rid: 5 }, 'invalid_type', 'rid'],
  ])('%s %j is refused by name', async (path, body, code, param) => {
    const { chat } = await startListeners();
    const { status, json } = await postJson(chat + path, body);
    expect({ status, ...json.error }, JSON.stringify(json)).toMatchObject({ status: 400, code, param });
  });

  test('of another model are not there', async () => {
    const { chat } = await startListeners();
    expect((await postJson(`${chat}/tokenize`, { model: 'gpt-4', prompt: 'a' })).status).toBe(404);
  });
});

describe('administration', () => {
  test('flushes the cache', async () => {
    const { chat, engine } = await startListeners();
    expect((await send(`${chat}/flush_cache`, { method: 'POST' })).json).toEqual({ status: 'ok' });
    expect(engine.flushes).toBe(1);
    expect((await send(`${chat}/flush_cache`)).status).toBe(200);
    expect(engine.flushes).toBe(2);
    // A GET can be made by a picture in a page of another site.
    const picture = await send(`${chat}/flush_cache`, { headers: { 'sec-fetch-site': 'cross-site' } });
    expect([picture.status, picture.json.error.code]).toEqual([403, 'origin_not_allowed']);
    expect((await send(`${chat}/flush_cache`, { method: 'DELETE' })).headers['allow']).toBe('GET, HEAD, POST, OPTIONS');
    expect(engine.flushes).toBe(2);
  });

  test('flushes nothing while a request runs, and waits for its end where it may', async () => {
    const { chat, engine } = await startListeners({ delay: 1e6 });
    const running = postJson(chat + CHAT_PATH, GOOD_CHAT, { 'x-request-id': 'a' });
    await until(() => engine.chats.length === 1);
    const { status, json } = await postJson(`${chat}/flush_cache`, {});
    expect([status, json.error.code]).toEqual([400, 'requests_running']);
    expect((await postJson(`${chat}/flush_cache?timeout=soon`, {})).json.error.param).toBe('timeout');
    const waiting = postJson(`${chat}/flush_cache?timeout=600`, {});
    expect((await postJson(`${chat}/abort_request`, { rid: 'a' })).json).toEqual({ aborted: 1 });
    expect((await waiting).status).toBe(200);
    expect([(await running).status, engine.flushes]).toEqual([400, 1]);
  });

  test('ends one running request by its id, and then all', async () => {
    const { chat, engine } = await startListeners({ delay: 1e6 });
    const start = (id: string) => postJson(chat + CHAT_PATH, GOOD_CHAT, { 'x-request-id': id });
    const running = ['a', 'b', 'c'].map(start);
    await until(() => engine.chats.length === 3);
    expect((await postJson(`${chat}/abort_request`, { rid: 'nobody' })).json).toEqual({ aborted: 0 });
    expect((await postJson(`${chat}/abort_request`, { rid: 'b' })).json).toEqual({ aborted: 1 });
    expect(await running[1]).toMatchObject({ status: 400, json: { error: { code: 'request_aborted' } } });
    expect(engine.aborted).toBe(1);
    expect((await postJson(`${chat}/abort_request`, { abort_all: true })).json).toEqual({ aborted: 2 });
    for (const answer of await Promise.all(running)) expect(answer.json.error.code).toBe('request_aborted');
    expect((await postJson(`${chat}/abort_request`, { abort_all: true })).json).toEqual({ aborted: 0 });
  });

  test('a stream that is ended says so in its last frame', async () => {
    const { chat, engine } = await startListeners({ words: Array<string>(1000).fill('x'), delay: 5 });
    const answer = postJson(chat + CHAT_PATH, { ...GOOD_CHAT, stream: true }, { 'x-request-id': 's' });
    await until(() => engine.handedOut > 3);
    await postJson(`${chat}/abort_request`, { rid: 's' });
    const { status, text } = await answer;
    expect(status).toBe(200);
    expect(text).toMatch(/"code":"request_aborted"[^\n]*\n\ndata: \[DONE\]\n\n$/);
  });

  test('needs the key where one is set', async () => {
    const { chat, engine } = await startListeners({}, { apiKey: 'k' });
    for (const path of ['/tokenize', '/detokenize', '/flush_cache', '/abort_request', '/v1/completions']) {
      expect((await postJson(chat + path, { rid: 'x', prompt: 'a', tokens: [1] })).status, path).toBe(401);
    }
    expect(engine.flushes).toBe(0);
    expect((await postJson(`${chat}/flush_cache`, {}, { authorization: 'Bearer k' })).status).toBe(200);
  });

  test('has a key of its own where that is set, which the rest does not need', async () => {
    const { chat, engine } = await startListeners({}, { apiKey: 'k', adminKey: 'root' });
    const [one, other] = [{ authorization: 'Bearer k' }, { authorization: 'bearer root' }];
    for (const base of [chat, `${chat}/v1`]) {
      expect((await postJson(`${base}/flush_cache`, {}, one)).status).toBe(401);
      expect((await postJson(`${base}/abort_request`, { abort_all: true }, one)).status).toBe(401);
      expect((await postJson(`${base}/flush_cache`, {}, other)).status).toBe(200);
      expect((await postJson(`${base}/abort_request`, { abort_all: true }, other)).json).toEqual({ aborted: 0 });
      expect((await postJson(`${base}/tokenize`, { prompt: 'a' }, one)).status).toBe(200);
      expect((await postJson(`${base}/tokenize`, { prompt: 'a' })).status).toBe(401);
    }
    expect(engine.flushes).toBe(2);
    const alone = await startListeners({}, { adminKey: 'root' });
    expect((await postJson(`${alone.chat}/flush_cache`, {})).status).toBe(401);
    expect((await postJson(`${alone.chat}/tokenize`, { prompt: 'a' })).status).toBe(200);
  });

  test('without any key answers this machine only, and nobody through a proxy', async () => {
    const { chat, engine } = await startListeners();
    for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'x-forwarded-proto']) {
      for (const path of ['/flush_cache', '/v1/flush_cache', '/abort_request']) {
        const { status, json } = await postJson(chat + path, { abort_all: true }, { [header]: '127.0.0.1' });
        expect([status, json.error]).toMatchObject([403, { type: 'permission_error', code: 'loopback_only' }]);
      }
    }
    expect(engine.flushes).toBe(0);
    expect((await postJson(`${chat}/flush_cache`, {})).status).toBe(200);
  });

  const outside = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal, scopeid }) => !internal && !scopeid);
  test.skipIf(!outside)('nor another machine (needs a network interface besides loopback)', async () => {
    const engine = new FakeEngine();
    const listener = await listen(createChatApp({ engine, modelId: 'm' }), { host: '0.0.0.0', port: 0 });
    onTestFinished(() => listener.destroy());
    const { address, family } = outside!;
    const there = `http://${family === 'IPv6' ? `[${address}]` : address}:${listener.port}`;
    expect((await postJson(`${there}/flush_cache`, {})).json.error.code).toBe('loopback_only');
    expect((await send(`${there}/get_server_info`)).status).toBe(200);
    // Through the socket of both families, this is ::ffff:127.0.0.1.
    expect((await postJson(`http://127.0.0.1:${listener.port}/flush_cache`, {})).status).toBe(200);
    expect(engine.flushes).toBe(1);
  });
});
