/** What all three listeners do alike: errors for every path and method, limits, health, models, metrics. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import type { EngineErrorCode } from '../../engine/errors.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import { ROUTES, eachOf, errorBody } from '../support/each-listener.ts';
import { FAKE_INFO, FakeEngine } from '../support/fake-engine.ts';
import { GOOD_CHAT } from '../support/chat-body.ts';
import { JSON_TYPE, postJson, send, startListeners } from '../support/listeners.ts';

describe('paths and methods', () => {
  test('an unknown path is a JSON 404, whatever the method', async () => {
    await eachOf(await startListeners(), async (base) => {
      for (const [method, path] of [
        ['GET', '/'],
        ['GET', '/nothing'],
        ['POST', '/v1/embeddings'],
        ['DELETE', '/v1'],
        ['GET', '/v1/%E0%A4%A'],
        ['PATCH', '/v1/chat/completions/extra'],
      ] as const) {
        const { status, headers, json } = await send(base + path, { method });
        expect([path, status]).toEqual([path, 404]);
        expect(headers['content-type']).toMatch(/^application\/json/);
        expect(json).toEqual(errorBody('unknown_url'));
      }
    });
  });

  test("another listener's route is unknown here", async () => {
    const { chat, speech } = await startListeners();
    expect((await postJson(chat + ROUTES.speech, {})).status).toBe(404);
    expect((await postJson(speech + ROUTES.chat, GOOD_CHAT)).status).toBe(404);
  });

  test('a wrong method is a JSON 405 that says what is allowed', async () => {
    await eachOf(await startListeners(), async (base, route) => {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
        const { status, headers, json } = await send(base + route, { method });
        expect(status).toBe(405);
        expect(headers['allow']).toBe('POST, OPTIONS');
        expect(json).toEqual(errorBody('method_not_allowed'));
      }
      expect((await send(`${base}/v1/models`, { method: 'POST' })).headers['allow']).toBe('GET, HEAD, OPTIONS');
      expect((await send(`${base}/health`, { method: 'HEAD' })).status).toBe(200);
    });
  });
});

describe('bodies', () => {
  const long = (depth: number): string => `{"model":"parley-chat","messages":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  test.each([
    ['broken JSON', '{"model": ', JSON_TYPE, 400, 'invalid_json'],
    ['no body', '', JSON_TYPE, 400, 'invalid_json'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), JSON_TYPE, 400, 'invalid_json'],
    ['an array', '[]', JSON_TYPE, 400, 'invalid_type'],
    ['a string', '"hello"', JSON_TYPE, 400, 'invalid_type'],
    ['null', 'null', JSON_TYPE, 400, 'invalid_type'],
    ['200,000 levels', long(200_000), JSON_TYPE, 400, 'invalid_json'],
    ['a million elements', `[${'0,'.repeat(1_000_000)}0]`, JSON_TYPE, 400, 'invalid_json'],
    ['17 MiB', ' '.repeat(17 << 20), JSON_TYPE, 413, 'request_too_large'],
    ['text', 'hello', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['no type', '{}', {}, 415, 'unsupported_media_type'],
    ['a form', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported_media_type'],
    ['a type that only begins like JSON', '{}', { 'content-type': 'application/json5' }, 415, 'unsupported_media_type'],
    ['compression', '{}', { ...JSON_TYPE, 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
    ['compression of the transfer', '{}', { ...JSON_TYPE, 'transfer-encoding': 'gzip, chunked' }, 415, 'unsupported_media_type'],
  ] as const)('%s', async (_, body, headers, status, code) => {
    const { chat, speech } = await startListeners();
    for (const url of [chat + ROUTES.chat, speech + ROUTES.speech]) {
      const answer = await send(url, { body, headers });
      expect(answer.status).toBe(status);
      expect(answer.json).toEqual(errorBody(code));
    }
    expect((await postJson(chat + ROUTES.chat, GOOD_CHAT)).status).toBe(200);
  });

  test('JSON with a charset, brackets in strings and chunked encoding is fine', async () => {
    const { chat } = await startListeners();
    const body = JSON.stringify({ ...GOOD_CHAT, messages: [{ role: 'user', content: '[{"\\'.repeat(1000) }] });
    const headers = { 'content-type': 'application/json; charset=utf-8', 'transfer-encoding': 'chunked', 'content-encoding': 'Identity' };
    expect((await send(chat + ROUTES.chat, { body, headers })).status).toBe(200);
  });

  test('what is no HTTP, or ambiguous HTTP, gets a JSON 400', async () => {
    const { chat } = await startListeners();
    const talk = (text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(new URL(chat).port), '127.0.0.1', () => socket.write(text));
        let answer = '';
        socket.on('data', (chunk) => (answer += chunk.toString()));
        socket.on('end', () => resolve(answer));
        socket.on('error', reject);
      });
    for (const text of [
      'hello\r\n\r\n',
      `POST ${ROUTES.chat} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n`,
    ]) {
      const [head = '', body = ''] = (await talk(text)).split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1.1 400 Bad Request\r\n(.*\r\n)*x-request-id: \S+/);
      expect(JSON.parse(body)).toEqual(errorBody('invalid_value'));
    }
    // Node hands a CONNECT to nobody.
    const [connectHead, connectBody = ''] = (await talk('CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\n\r\n')).split('\r\n\r\n');
    expect(connectHead).toMatch(/^HTTP\/1.1 405 Method Not Allowed\r\n(.*\r\n)*allow: /);
    expect(JSON.parse(connectBody)).toEqual(errorBody('method_not_allowed'));
    expect(await talk(`GET /health HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431 /);
  });

  test.each([
    ['an expectation nobody knows', 'host: localhost\r\nexpect: foo', 417, 'expectation_failed'],
    ['no Host', 'x: y', 400, 'invalid_value'],
    ['two Hosts', 'host: localhost\r\nhost: evil.example', 400, 'invalid_value'],
    ['100-continue', 'host: localhost\r\nexpect: 100-Continue', 200, undefined],
  ])('%s gets an answer with a body', async (_, head, status, code) => {
    const { chat } = await startListeners();
    const socket = connect(Number(new URL(chat).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.write(`GET /health HTTP/1.1\r\n${head}\r\nconnection: close\r\n\r\n`);
    await once(socket, 'close');
    const [top = '', body = ''] = answer.replace('HTTP/1.1 100 Continue\r\n\r\n', '').split('\r\n\r\n');
    expect(top).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(body)).toEqual(code === undefined ? { status: 'ok' } : errorBody(code));
  });

  test.each<[string, 'chat' | 'transcription', string, string, string[]]>([
    ['a body that is wanted', 'chat', '/v1/chat/completions', 'application/json', ['100 Continue', '200 OK']],
    [
      'a form that is wanted',
      'transcription',
      '/v1/audio/transcriptions',
      'multipart/form-data; boundary=x',
      ['100 Continue', '400 Bad Request'],
    ],
    ['a body that is too large', 'chat', '/v1/chat/completions', 'application/json', ['413 Payload Too Large']],
    ['a form that is too large', 'transcription', '/v1/audio/transcriptions', 'multipart/form-data; boundary=x', ['413 Payload Too Large']],
    ['a body of another type', 'chat', '/v1/chat/completions', 'text/plain', ['415 Unsupported Media Type']],
    ['a body for no route', 'chat', '/v1/nothing', 'application/json', ['404 Not Found']],
  ])('Expect: 100-continue with %s', async (what, listener, path, type, statuses) => {
    const started = await startListeners();
    const socket = connect(Number(new URL(started[listener]).port), '127.0.0.1');
    const body = listener === 'chat' ? JSON.stringify(GOOD_CHAT) : '--x--\r\n';
    const length = what.includes('too large') ? 2 ** 30 : body.length;
    let answer = '';
    const answered = new Promise<void>((resolve) =>
      socket.on('data', (chunk) => {
        answer += chunk.toString();
        if (answer.startsWith('HTTP/1.1 100 Continue\r\n\r\n') && answer.length === 25) socket.write(body);
        else resolve();
      }),
    );
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`,
    );
    await answered;
    socket.destroy();
    expect([...answer.matchAll(/HTTP\/1\.1 (.+)\r\n/g)].map(([, status]) => status)).toEqual(statuses);
  });

  test('HTTP/1.0 needs no Host: probes of proxies send none', async () => {
    const { chat } = await startListeners();
    const socket = connect(Number(new URL(chat).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.write('GET /health HTTP/1.0\r\n\r\n');
    await once(socket, 'close');
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  });
});

test('a request that does not arrive in time gets a JSON 408', async () => {
  const app = createChatApp({ engine: new FakeEngine(), modelId: 'parley-chat' });
  const listener = await listen(app, { host: '127.0.0.1', port: 0, requestTimeoutMs: 200 });
  onTestFinished(() => listener.destroy());
  const socket = connect(listener.port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  socket.write(`POST ${ROUTES.chat} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"model":`);
  await once(socket, 'close');
  expect(answer).toMatch(/^HTTP\/1.1 408 Request Timeout/);
  expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual(errorBody('request_timeout', 'timeout_error'));
});

test('the end of an answer of which a client takes nothing for a minute is given up, and a connection that has it all is kept', async () => {
  const sockets: Socket[] = [];
  const answer = (_request: IncomingMessage, response: ServerResponse): void => {
    sockets.push(response.socket!);
    response.end(Buffer.alloc(16 << 20));
  };
  const listener = await listen(answer, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.destroy());
  const client = connect(listener.port, '127.0.0.1').pause();
  client.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await vi.waitFor(() => expect(sockets[0]?.timeout).toBe(60_000));
  client.resume();
  await vi.waitFor(() => expect(sockets[0]!.timeout).toBeGreaterThan(75_000 - 1));
});

test('connections beyond the limit are closed, and a flood of them is two lines of the log', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const warn = vi.fn<(fields: object, text: string) => void>();
  const app = createChatApp({ engine: new FakeEngine(), modelId: 'parley-chat' });
  const listener = await listen(app, { host: '127.0.0.1', port: 0, maxConnections: 1, log: { warn } });
  onTestFinished(() => listener.destroy());
  const { port } = listener;
  const held = connect(port, '127.0.0.1');
  await once(held, 'connect');
  onTestFinished(() => void held.destroy());
  for (let i = 0; i < 4; i++)
    await once(
      connect(port, '127.0.0.1').on('error', () => {}),
      'close',
    );
  const text = 'connections were closed: as many as there may be are open';
  expect(warn.mock.calls).toEqual([[{ port, refused: 1, connections: 1 }, text]]);
  vi.advanceTimersByTime(60_000);
  expect(warn.mock.calls.slice(1)).toEqual([[{ port, refused: 3, connections: 1 }, text]]);
});

describe('errors of the engine', () => {
  const TABLE: readonly (readonly [EngineErrorCode, number, string, string])[] = [
    ['invalid_request', 400, 'invalid_request_error', 'invalid_value'],
    ['context_length_exceeded', 400, 'invalid_request_error', 'context_length_exceeded'],
    ['invalid_audio', 400, 'invalid_request_error', 'invalid_audio'],
    ['unsupported', 400, 'invalid_request_error', 'unsupported_value'],
    ['queue_full', 503, 'server_error', 'queue_full'],
    ['out_of_memory', 503, 'server_error', 'out_of_memory'],
    ['device_lost', 503, 'server_error', 'device_lost'],
    ['shutting_down', 503, 'server_error', 'shutting_down'],
    ['internal', 500, 'server_error', 'internal_error'],
    ['aborted', 500, 'server_error', 'internal_error'],
  ];
  test.each(TABLE)('%s -> %i %s %s', async (code, status, type, slug) => {
    const { chat } = await startListeners({ failAfter: 0, failWith: new EngineError(code, 'secret prompt text') });
    const { status: got, json, headers } = await postJson(chat + ROUTES.chat, GOOD_CHAT);
    expect([got, json.error.type, json.error.code]).toEqual([status, type, slug]);
    expect(Object.keys(json.error)).toEqual(['message', 'type', 'param', 'code']);
    if (status === 503) expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    if (status === 500) {
      expect(headers['x-should-retry']).toBe('false');
      expect(json.error.message).not.toContain('secret');
    }
  });

  test('a bug keeps its text inside', async () => {
    const { chat } = await startListeners({ failAfter: 0, failWith: new TypeError('secret prompt text') });
    const { status, text } = await postJson(chat + ROUTES.chat, GOOD_CHAT);
    expect(status).toBe(500);
    expect(text).not.toContain('secret');
  });
});

describe('neighbours', () => {
  test('health follows the engine', async () => {
    const started = await startListeners();
    for (const [state, status, code] of [
      ['ready', 200, undefined],
      ['loading', 503, 'model_loading'],
      ['lost', 503, 'device_lost'],
      ['closing', 503, 'shutting_down'],
    ] as const) {
      started.engine.state = state;
      await eachOf(started, async (base, route) => {
        for (const path of ['/health', '/healthz', '/v1/health']) {
          const answer = await send(base + path);
          expect(answer.status).toBe(status);
          expect(answer.json).toEqual(code ? errorBody(code, 'server_error') : { status: 'ok' });
        }
        expect((await send(`${base}/livez`)).status).toBe(200);
        expect((await send(`${base}/v1/models`)).status).toBe(200);
        if (code) expect((await postJson(base + route, {})).json).toEqual(errorBody(code, 'server_error'));
      });
    }
  });

  test('probes say no while GPU work does not move, but work is taken', async () => {
    const { chat } = await startListeners({}, { vitals: () => ({ restarts: 3, devicesLost: 2, stalledMs: 21_000 }) });
    const { status, json } = await send(`${chat}/health`);
    expect([status, json.error.code]).toEqual([503, 'device_lost']);
    expect((await postJson(chat + ROUTES.chat, GOOD_CHAT)).status).toBe(200);
    const { text } = await send(`${chat}/metrics`);
    expect(text).toContain('parley_engine_restarts_total{model_name="parley-chat"} 3');
    expect(text).toContain('parley_gpu_device_lost_total{model_name="parley-chat"} 2');
  });

  test('health_generate has the idle model compute the least it can, not twice within 5 s, and leaves a busy one to its work', async () => {
    const started = await startListeners();
    const { engine, speech } = started;
    for (let i = 0; i < 2; i++)
      await eachOf(started, async (base) => expect((await send(`${base}/health_generate`)).json).toEqual({ status: 'ok' }));
    expect(engine.chats).toMatchObject([{ maxTokens: 1 }]);
    expect(engine.speeches).toMatchObject([{ voice: 'aus-female-1' }]);
    expect(engine.transcriptions).toMatchObject([{ vad: false }]);
    const other = await startListeners({ delay: 1e6 });
    const answer = postJson(other.chat + ROUTES.chat, GOOD_CHAT, { 'x-request-id': 'a' });
    await expect.poll(() => other.engine.chats.length).toBe(1);
    expect((await send(`${other.chat}/health_generate`)).status).toBe(200);
    expect(other.engine.chats).toHaveLength(1);
    await postJson(`${other.chat}/abort_request`, { rid: 'a' });
    await answer;
    other.engine.options = { failAfter: 0, failWith: new EngineError('internal', 'no') };
    expect((await send(`${other.chat}/health_generate`)).json).toEqual(errorBody('device_lost', 'server_error'));
    expect((await send(`${other.chat}/health`)).status).toBe(200);
    expect((await send(`${speech}/health`)).status).toBe(200);
  });

  test("models lists this listener's model and its aliases only", async () => {
    const { chat, speech, transcription } = await startListeners();
    const ids = async (base: string) => (await send(`${base}/v1/models`)).json.data.map(({ id }: { id: string }) => id);
    expect(await ids(chat)).toEqual(['parley-chat']);
    expect(await ids(speech)).toEqual(['parley-speech', 'tts-1', 'tts-1-hd']);
    expect(await ids(transcription)).toEqual(['parley-transcribe', 'whisper-1']);
    // A folder may be called as an alias is.
    const named = await startListeners({}, { aliases: ['parley-chat', 'bot', 'bot'] });
    expect(await ids(named.chat)).toEqual(['parley-chat', 'bot']);
    const described = await send(`${chat}/models/parley-chat`);
    expect((await send(`${chat}/v1/models/parley-chat/`)).json).toEqual(described.json);
    expect(described.json).toEqual({
      id: 'parley-chat',
      object: 'model',
      created: expect.any(Number),
      owned_by: 'sglang',
      root: 'parley-chat',
      parent: null,
      max_model_len: 1024,
      meta: { architecture: 'llama', parameters: 1000, weight_bytes: 4000 },
    });
    const unknown = await send(`${chat}/v1/models/org/other-model`);
    expect(unknown.status).toBe(404);
    expect(unknown.json.error).toMatchObject({ code: 'model_not_found', param: 'model' });
  });

  test('metrics are Prometheus text with one series a gauge', async () => {
    const { chat, speech } = await startListeners();
    await postJson(chat + ROUTES.chat, GOOD_CHAT);
    await postJson(chat + ROUTES.chat, {});
    await postJson(speech + ROUTES.speech, { model: 'tts-1', input: 'Hello. World.', voice: 'oni' });
    const { headers, text } = await send(`${chat}/metrics`);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(text).toContain('parley_requests_total{route="/chat/completions",status="200"} 1');
    expect(text).toContain('parley_requests_total{route="/chat/completions",status="400"} 1');
    for (const name of ['num_running_reqs', 'num_queue_reqs', 'token_usage', 'cache_hit_rate', 'num_pages', 'gen_throughput']) {
      expect(text.match(new RegExp(`^sglang:${name}\\{.*$`, 'gm'))).toEqual([
        expect.stringMatching(/\{model_name="parley-chat"\} [\d.]+$/),
      ]);
    }
    // What the fake engine handed out: 5 events of the chat and 4 of the speech.
    expect(text).toContain('sglang:generation_tokens_total{model_name="parley-chat"} 9');
    expect(text).toContain('sglang:time_to_first_token_seconds_count{model_name="parley-chat"} 1');
    expect((await send(`${speech}/metrics`)).text).toContain('parley_audio_seconds_total{model_name="parley-speech"} 0.2');
  });

  test('server info shows settings and adapter', async () => {
    const { chat } = await startListeners({}, { settings: { 'context-length': 32768 } });
    expect((await send(`${chat}/get_server_info`)).json).toMatchObject({
      served_model_name: 'parley-chat',
      state: 'ready',
      'context-length': 32768,
      adapter: { name: 'fake adapter' },
      status: { running: 0 },
    });
  });

  test('server info shows the adapter of the task where that is another', async () => {
    const { engine, chat, speech } = await startListeners();
    const own = { ...FAKE_INFO.adapter, name: 'second adapter' };
    const models = FAKE_INFO.models.map((model) => (model.task === 'speech' ? { ...model, adapter: own } : model));
    engine.info = () => ({ ...FAKE_INFO, models });
    expect((await send(`${chat}/get_server_info`)).json).toMatchObject({ adapter: { name: 'fake adapter' } });
    expect((await send(`${speech}/get_server_info`)).json).toMatchObject({ adapter: { name: 'second adapter' } });
  });
});
