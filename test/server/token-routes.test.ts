/** /tokenize, /detokenize, /flush_cache and /abort_request. */
import { describe, expect, test } from 'vitest';
import { CHAT_PATH, GOOD_CHAT } from '../support/chat-body.ts';
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
    expect((await postJson(`${chat}/v1/detokenize`, { tokens: [72, 105] })).json).toEqual({ prompt: 'Hi', text: 'Hi' });
    expect((await postJson(`${chat}/detokenize`, { tokens: [[72], [105]] })).json).toEqual({ prompt: ['H', 'i'], text: ['H', 'i'] });
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
    expect((await send(`${chat}/flush_cache`)).status).toBe(405);
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
});
