/** Keys of a file, and what each may use. */
import { describe, expect, test } from 'vitest';
import { KeyRing, digestOf, parseKeys } from '../../server/access/keys.ts';
import { KeyUse } from '../../server/access/limits.ts';
import { HttpError } from '../../server/http/errors.ts';
import { ROUTES } from '../support/each-listener.ts';
import { GOOD_CHAT as GOOD } from '../support/chat-body.ts';
import { postJson, send, startListeners, until } from '../support/listeners.ts';

const FILE = {
  keys: [
    { name: 'alice', key: 'sk-alice', requests_per_minute: 2 },
    { name: 'bob', key_sha256: digestOf('sk-bob').toString('hex'), tokens_per_minute: 30, concurrent: 1 },
  ],
};
const as = (key: string) => ({ authorization: `Bearer ${key}` });

describe('a file of keys', () => {
  test('gives rows with digests, and limits where there are any', () => {
    expect(parseKeys(JSON.stringify(FILE))).toEqual([
      { name: 'alice', digest: digestOf('sk-alice'), requestsPerMinute: 2 },
      { name: 'bob', digest: digestOf('sk-bob'), tokensPerMinute: 30, concurrent: 1 },
    ]);
  });

  test.each([
    ['no JSON', '{"keys": [{"key": "sk-secret"', /^it is not valid JSON$/],
    ['no keys', '{"keys": []}', /^'keys': /],
    ['no name', '{"keys": [{"key": "sk-secret"}]}', /^'keys.0.name': /],
    ['neither key nor digest', '{"keys": [{"name": "a"}]}', /^'keys.0': expected 'key' or 'key_sha256', and not both$/],
    ['a digest that is none', '{"keys": [{"name": "a", "key_sha256": "sk-secret"}]}', /^'keys.0.key_sha256': expected 64 hexadecimal/],
    ['a limit that is none', '{"keys": [{"name": "a", "key": "sk-secret", "concurrent": 0}]}', /^'keys.0.concurrent': /],
    ['a limit of another name', '{"keys": [{"name": "a", "key": "sk-secret", "rpm": 3}]}', /^'keys.0': .*rpm/],
    [
      'one key twice',
      '{"keys": [{"name": "a", "key": "sk-secret"}, {"name": "b", "key": "sk-secret"}]}',
      /^'keys.1': 'b' has the name or the key of 'a'/,
    ],
  ])('with %s is refused in a sentence that quotes no key', (_, text, message) => {
    let caught: unknown;
    try {
      parseKeys(text);
    } catch (error) {
      caught = error;
    }
    expect(String((caught as Error).message)).toMatch(message);
    expect(String((caught as Error).message)).not.toContain('sk-secret');
  });
});

describe('the use of a key', () => {
  const clock = () => {
    const at = { now: 0 };
    return { at, now: () => at.now };
  };
  const refusalOf = (use: KeyUse): HttpError => {
    try {
      use.enter();
    } catch (error) {
      if (error instanceof HttpError) return error;
    }
    throw new Error('it was let in');
  };
  const row = { name: 'a', digest: digestOf('k') };

  test('requests come back evenly over a minute, and the refusal says when', () => {
    const { at, now } = clock();
    const use = new KeyUse({ ...row, requestsPerMinute: 2 }, now);
    use.enter()();
    use.enter()();
    const { status, code, type, headers } = refusalOf(use);
    expect({ status, code, type, headers }).toEqual({
      status: 429,
      code: 'rate_limit_exceeded',
      type: 'requests',
      headers: {
        'x-ratelimit-limit-requests': '2',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '1m0s',
        'retry-after': '30',
        'retry-after-ms': '30000',
      },
    });
    at.now = 29_999;
    expect(refusalOf(use).headers).toMatchObject({ 'retry-after': '1', 'retry-after-ms': '1' });
    at.now = 30_000;
    use.enter()();
    expect(refusalOf(use).status).toBe(429);
  });

  test('tokens beyond the limit are owed', () => {
    const { at, now } = clock();
    const use = new KeyUse({ ...row, tokensPerMinute: 60 }, now);
    use.enter()();
    use.charge(90);
    expect(use.headers()).toEqual({
      'x-ratelimit-limit-tokens': '60',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '1m30s',
    });
    expect(refusalOf(use)).toMatchObject({ type: 'tokens', headers: { 'retry-after': '31' } });
    at.now = 31_000;
    use.enter()();
    // A minute has no 60 seconds beside it.
    at.now = 31_300;
    use.charge(61);
    expect(use.headers()).toMatchObject({ 'x-ratelimit-reset-tokens': '2m0s' });
  });

  test('requests at once: a place is free when one is over, and only once', () => {
    const use = new KeyUse({ ...row, concurrent: 1 });
    const leave = use.enter();
    expect(refusalOf(use)).toMatchObject({ type: 'requests', headers: { 'retry-after': '1' } });
    leave();
    leave();
    use.enter();
    expect(refusalOf(use).status).toBe(429);
  });

  test('another file keeps what a name has used, and takes its new key and limit', () => {
    const ring = new KeyRing(parseKeys(JSON.stringify(FILE)));
    const alice = ring.find('sk-alice')!;
    alice.enter();
    alice.enter();
    ring.replace(parseKeys(JSON.stringify({ keys: [{ name: 'alice', key: 'sk-new', requests_per_minute: 3 }] })));
    expect([ring.find('sk-alice'), ring.find('sk-bob')]).toEqual([undefined, undefined]);
    expect(ring.find('sk-new')).toBe(alice);
    alice.enter();
    expect(refusalOf(alice).headers).toMatchObject({ 'x-ratelimit-limit-requests': '3' });
  });

  test('a lower limit holds from now on: what was used under the higher one is not owed', () => {
    const at = { now: 0 };
    const use = new KeyUse({ ...row, requestsPerMinute: 6000 }, () => at.now);
    for (let i = 0; i < 3000; i++) use.enter()();
    use.allow({ ...row, requestsPerMinute: 60 });
    expect(use.headers()).toMatchObject({ 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': '60' });
    for (let i = 0; i < 60; i++) use.enter()();
    expect(refusalOf(use).headers).toMatchObject({ 'retry-after': '1' });
  });
});

describe('the listeners', () => {
  const keys = () => new KeyRing(parseKeys(JSON.stringify(FILE)));

  test('let each key in by its limits, which all of them share, and say what is left', async () => {
    const { chat, speech, engine } = await startListeners({}, { keys: keys() });
    expect((await postJson(chat + ROUTES.chat, GOOD)).status).toBe(401);
    expect((await postJson(chat + ROUTES.chat, GOOD, as('sk-nobody'))).status).toBe(401);
    expect((await send(`${chat}/v1/models`, { headers: as('sk-alice') })).status).toBe(200);
    const first = await postJson(chat + ROUTES.chat, GOOD, as('sk-alice'));
    expect([first.status, first.headers['x-ratelimit-limit-requests'], first.headers['x-ratelimit-remaining-requests']]).toEqual([
      200,
      '2',
      '1',
    ]);
    expect((await postJson(speech + ROUTES.speech, { model: 'tts-1', input: 'Hi.', voice: 'oni' }, as('sk-alice'))).status).toBe(200);
    const third = await postJson(chat + ROUTES.chat, GOOD, as('sk-alice'));
    expect([third.status, third.json.error]).toMatchObject([429, { type: 'requests', code: 'rate_limit_exceeded', param: null }]);
    expect(Number(third.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(engine.chats).toHaveLength(1);
    expect((await postJson(chat + ROUTES.chat, GOOD, as('sk-bob'))).status).toBe(200);
  });

  test('charge what a chat took, prompt and answer', async () => {
    const { chat } = await startListeners({}, { keys: keys() });
    // 10 of the prompt and 3 of the answer.
    expect((await postJson(chat + ROUTES.chat, GOOD, as('sk-bob'))).headers['x-ratelimit-remaining-tokens']).toBe('30');
    const again = await postJson(chat + ROUTES.chat, { ...GOOD, n: 2 }, as('sk-bob'));
    expect(again.headers['x-ratelimit-remaining-tokens']).toBe('17');
    expect((await postJson(chat + ROUTES.chat, GOOD, as('sk-bob'))).headers['x-ratelimit-remaining-tokens']).toBe('1');
    const last = await postJson(chat + ROUTES.chat, GOOD, as('sk-bob'));
    expect([last.status, last.json.error.type]).toEqual([429, 'tokens']);
  });

  test('count a request that runs until it is over', async () => {
    const { chat, engine } = await startListeners({ delay: 1e6 }, { keys: keys(), adminKey: 'root' });
    const running = postJson(chat + ROUTES.chat, GOOD, { ...as('sk-bob'), 'x-request-id': 'a' });
    await until(() => engine.chats.length === 1);
    expect((await postJson(chat + ROUTES.chat, GOOD, as('sk-bob'))).status).toBe(429);
    await postJson(`${chat}/abort_request`, { rid: 'a' }, as('root'));
    expect((await running).status).toBe(400);
    engine.options = {};
    expect((await postJson(chat + ROUTES.chat, GOOD, as('sk-bob'))).status).toBe(200);
  });

  test('keys of a file administer nothing', async () => {
    const { chat } = await startListeners({}, { keys: keys(), adminKey: 'root', settings: { 'chat-model': '/srv/secret' } });
    for (const path of ['/flush_cache', '/abort_request']) {
      expect((await postJson(chat + path, { abort_all: true }, as('sk-alice'))).status).toBe(401);
      expect((await postJson(chat + path, { abort_all: true }, as('root'))).status).toBe(200);
    }
    const { status, text } = await send(`${chat}/server_info`, { headers: as('sk-alice') });
    expect([status, text.includes('secret')]).toEqual([200, false]);
    // Without an admin key this machine may, but nobody through a proxy.
    const alone = await startListeners({}, { keys: keys(), settings: { 'chat-model': '/srv/secret' } });
    const forwarded = { ...as('sk-alice'), 'x-forwarded-for': '192.0.2.1' };
    expect((await send(`${alone.chat}/server_info`, { headers: forwarded })).text).not.toContain('secret');
    expect((await send(`${alone.chat}/flush_cache`, { method: 'POST', headers: forwarded })).status).toBe(403);
  });
});
