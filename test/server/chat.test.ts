import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { GOOD_CHAT as GOOD, CHAT_PATH as PATH, framesOf as frames } from '../support/chat-body.ts';
import { JSON_TYPE, postJson, send, startListeners, until } from '../support/listeners.ts';

describe('a good request', () => {
  test('gets a chat completion', async () => {
    const { chat, engine } = await startListeners();
    const { status, headers, json } = await postJson(chat + PATH, GOOD);
    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(json).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'parley-chat',
      system_fingerprint: expect.stringMatching(/^fp_[0-9a-f]{12}$/),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello there!', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
          stop_reason: null,
        },
      ],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 3,
        total_tokens: 13,
        prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
      },
    });
    expect(engine.chats).toEqual([{ messages: [{ role: 'user', content: 'Hi' }], sampling: {} }]);
  });

  test('reaches the engine with every field it carries', async () => {
    const { chat, engine } = await startListeners();
    const body = {
      ...GOOD,
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Be ' },
            { type: 'text', text: 'brief.' },
          ],
        },
        { role: 'user', content: 'Hi', name: 'Ann' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
          reasoning: 'hm',
        },
        { role: 'tool', content: '42', tool_call_id: 'c1' },
      ],
      max_tokens: 5,
      max_completion_tokens: 2,
      temperature: 0.5,
      top_p: 0,
      top_k: -1,
      min_p: 0.1,
      seed: 42,
      stop: ['END'],
      stop_token_ids: [7],
      ignore_eos: true,
      n: 2,
      reasoning_effort: 'none',
      chat_template_kwargs: { custom: 1 },
      user: 'u',
      metadata: { a: 'b' },
      logprobs: false,
      presence_penalty: 0,
      response_format: { type: 'text' },
      tools: null,
      unknown_field: true,
    };
    const { json } = await postJson(chat + PATH, body);
    expect(engine.chats[0]).toEqual({
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Be ' },
            { type: 'text', text: 'brief.' },
          ],
        },
        { role: 'user', content: 'Hi', name: 'Ann' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
          reasoning_content: 'hm',
        },
        { role: 'tool', content: '42', tool_call_id: 'c1' },
      ],
      sampling: { temperature: 0.5, topP: 0, topK: -1, minP: 0.1, seed: 42, presencePenalty: 0 },
      maxTokens: 2,
      stop: ['END'],
      stopTokenIds: [7],
      ignoreEos: true,
      n: 2,
      templateKwargs: { enable_thinking: false, thinking: false, custom: 1 },
    });
    expect(json.choices.map((choice) => [choice.index, choice.message.content, choice.finish_reason])).toEqual([
      [0, 'Hello there', 'length'],
      [1, 'Hello there', 'length'],
    ]);
    expect(json.usage).toMatchObject({ prompt_tokens: 40, completion_tokens: 4, total_tokens: 44 });
  });

  test.each([
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['-9007199254740991', Number.MIN_SAFE_INTEGER],
    ['-5', -5],
    ['9007199254740993', 2 ** 53],
    ['-9007199254740995', -(2 ** 53) - 4],
    ['9223372036854775807', 2 ** 63],
    ['-9223372036854775808', -(2 ** 63)],
    ['9223372036854777856', undefined],
    ['-9223372036854777856', undefined],
    ['1e300', undefined],
  ])('keeps the seed %s as a double, or refuses it', async (digits, kept) => {
    const { chat, engine } = await startListeners();
    const body = JSON.stringify({ ...GOOD, seed: 0 }).replace('"seed":0', `"seed":${digits}`);
    const { status, json } = await send(chat + PATH, { body, headers: JSON_TYPE });
    if (kept === undefined) expect([status, json.error]).toMatchObject([400, { code: 'invalid_value', param: 'seed' }]);
    else expect([status, engine.chats[0]?.sampling.seed]).toEqual([200, kept]);
  });

  test('takes seed -1 as random, null as absent, a string as one stop, and the path without /v1', async () => {
    const { chat, engine } = await startListeners();
    const { status } = await postJson(`${chat}/chat/completions`, { ...GOOD, seed: -1, temperature: null, stop: 'x', stream: null });
    expect(status).toBe(200);
    expect(engine.chats[0]).toEqual({ messages: GOOD.messages, sampling: {}, stop: ['x'] });
  });
});

describe('streaming', () => {
  test('is framed byte by byte as the contract says', async () => {
    const { chat } = await startListeners({ words: ['Hé', '\n"x"'] });
    const { status, headers, text } = await postJson(chat + PATH, { ...GOOD, stream: true });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    expect(headers['content-length']).toBeUndefined();
    const first = frames(text)[0]!;
    const head = `"id":"${first.id}","created":${first.created},"model":"parley-chat","system_fingerprint":"${first.system_fingerprint}","object":"chat.completion.chunk"`;
    const choice = (rest: string): string => `data: {${head},"choices":[{"index":0,${rest}}]}\n\n`;
    expect(text).toBe(
      choice('"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null') +
        choice('"delta":{"content":"Hé"},"logprobs":null,"finish_reason":null') +
        choice('"delta":{"content":"\\n\\"x\\""},"logprobs":null,"finish_reason":null') +
        choice('"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null') +
        'data: [DONE]\n\n',
    );
  });

  test('has one usage chunk at the end if asked, and usage null before it', async () => {
    const { chat } = await startListeners();
    const { text } = await postJson(chat + PATH, { ...GOOD, n: 2, stream: true, stream_options: { include_usage: true } });
    const chunks = frames(text);
    expect(chunks.map((chunk) => chunk.choices[0]?.index ?? 'usage')).toEqual([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 'usage']);
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 6, total_tokens: 16 } });
    const without = await postJson(chat + PATH, { ...GOOD, stream: true, stream_options: {} });
    expect(without.text).not.toContain('usage');
  });

  test('counts as it goes with continuous_usage_stats', async () => {
    const { chat } = await startListeners();
    const options = { include_usage: true, continuous_usage_stats: true };
    const { text } = await postJson(chat + PATH, { ...GOOD, stream: true, stream_options: options });
    expect(frames(text).map((chunk) => chunk.usage?.completion_tokens)).toEqual([0, 1, 2, 3, 3, 3]);
  });

  test('a failure before the first byte is a plain error', async () => {
    const failWith = new EngineError('context_length_exceeded', 'too long', { details: { promptTokens: 2000, contextLength: 1024 } });
    const { chat } = await startListeners({ failAfter: 0, failWith });
    const { status, headers, json } = await postJson(chat + PATH, { ...GOOD, stream: true });
    expect(status).toBe(400);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(json.error).toEqual({
      message: 'too long',
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
      n_prompt_tokens: 2000,
      n_ctx: 1024,
    });
  });

  test('a failure after it is an error frame and [DONE], never a made-up end', async () => {
    const { chat } = await startListeners({ failAfter: 2, failWith: new EngineError('device_lost', 'the GPU is gone') });
    const { status, text } = await postJson(chat + PATH, { ...GOOD, stream: true });
    expect(status).toBe(200);
    expect(
      text.endsWith(
        'data: {"error":{"message":"the GPU is gone","type":"server_error","param":null,"code":"device_lost"}}\n\ndata: [DONE]\n\n',
      ),
    ).toBe(true);
    expect(text).not.toContain('"finish_reason":"stop"');
  });

  test('a client that does not read pauses the engine, and gets everything once it reads', async () => {
    // More than the socket buffers of a kernel hold.
    const words = Array.from({ length: 20_000 }, (_, i) => `${i} `.repeat(400));
    const { chat, engine } = await startListeners({ words });
    const body = JSON.stringify({ ...GOOD, stream: true });
    const { port } = new URL(chat);
    const socket = connect(Number(port), '127.0.0.1');
    socket.pause();
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => engine.handedOut > 100);
    // The engine's count stands still once the buffers of both sides are full.
    let before = -1;
    while (before !== engine.handedOut) {
      before = engine.handedOut;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(engine.handedOut).toBeLessThan(words.length);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.resume();
    await new Promise((resolve) => socket.on('end', resolve));
    expect(engine.handedOut).toBe(words.length + 2);
    expect(Buffer.concat(chunks).toString()).toContain('data: [DONE]');
  });
});

describe('a client that goes away', () => {
  test.each([true, false])('aborts its request in the engine (stream: %s)', async (stream) => {
    const { chat, engine } = await startListeners({ words: Array(1000).fill('x'), delay: 20 });
    const request = httpRequest(chat + PATH, { method: 'POST', headers: JSON_TYPE });
    request.on('error', () => {});
    request.end(JSON.stringify({ ...GOOD, stream }));
    await until(() => engine.handedOut > 0);
    request.destroy();
    await until(() => engine.aborted === 1);
    expect(engine.status().running).toBe(0);
    expect((await send(`${chat}/metrics`)).text).toMatch(/num_aborted_requests_total\{model_name="parley-chat"\} 1/);
  });

  test('aborts what it sent behind a request that still runs, too', async () => {
    const { chat, engine, lifecycle } = await startListeners({ words: Array(1000).fill('x'), delay: 20 });
    const { hostname, port } = new URL(chat);
    const socket = connect(Number(port), hostname);
    const body = JSON.stringify({ ...GOOD, stream: true });
    const request = `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    socket.write(request.repeat(3));
    await until(() => engine.chats.length === 3 && engine.handedOut > 9);
    socket.destroy();
    await until(() => engine.aborted === 3);
    await until(() => lifecycle.inFlight === 0);
    expect((await send(`${chat}/metrics`)).text).toMatch(/num_aborted_requests_total\{model_name="parley-chat"\} 3/);
  });

  test('is sent nothing in the middle of an answer where it goes on with what is no request', async () => {
    const { chat, engine } = await startListeners({ words: Array(1000).fill('x'), delay: 20 });
    const { hostname, port } = new URL(chat);
    const socket = connect(Number(port), hostname);
    let answer = '';
    socket.on('data', (chunk) => {
      if (answer === '') socket.write('no request\r\n\r\n');
      answer += chunk.toString();
    });
    const body = JSON.stringify({ ...GOOD, stream: true });
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => socket.on('close', resolve));
    expect(answer).toContain('HTTP/1.1 200 OK');
    expect(answer).not.toContain('HTTP/1.1 400');
    await until(() => engine.aborted === 1);
  });

  test('gets the answers to requests that it sent one behind the other', async () => {
    const { chat, engine } = await startListeners({ delay: 5 });
    const { hostname, port } = new URL(chat);
    const socket = connect(Number(port), hostname);
    let answers = '';
    socket.on('data', (chunk) => (answers += chunk.toString()));
    const body = JSON.stringify({ ...GOOD, stream: true });
    const request = (last: boolean): string =>
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${last ? 'connection: close\r\n' : ''}\r\n${body}`;
    socket.write(request(false) + request(true));
    await new Promise((resolve) => socket.on('close', resolve));
    expect(answers.match(/data: \[DONE\]/g)).toHaveLength(2);
    expect(engine.aborted).toBe(0);
    expect((await send(`${chat}/metrics`)).text).toMatch(/num_aborted_requests_total\{model_name="parley-chat"\} 0/);
  });
});

describe('the official client', () => {
  const clientOf = (base: string): OpenAI => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'unused' });

  test('completes and streams', async () => {
    const { chat } = await startListeners();
    const openai = clientOf(chat);
    const whole = await openai.chat.completions.create({ model: 'parley-chat', messages: [{ role: 'user', content: 'Hi' }] });
    expect(whole.choices[0]!.message.content).toBe('Hello there!');
    expect(whole._request_id).toMatch(/^[0-9a-f-]{36}$/);
    const stream = openai.chat.completions.stream({
      model: 'parley-chat',
      messages: [{ role: 'user', content: 'Hi' }],
      stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello there!' } });
    expect(final.usage?.total_tokens).toBe(13);
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(['parley-chat']);
    expect((await openai.models.retrieve('parley-chat')).object).toBe('model');
  });

  test('tries again when the queue was full', async () => {
    const { chat, engine } = await startListeners({ failAfter: 0, failWith: new EngineError('queue_full', 'full') });
    const answer = clientOf(chat).chat.completions.create({ model: 'parley-chat', messages: [{ role: 'user', content: 'Hi' }] });
    await until(() => engine.chats.length === 1);
    engine.options = {};
    expect((await answer).choices[0]!.message.content).toBe('Hello there!');
    expect(engine.chats).toHaveLength(2);
  });

  test('reads errors, also those inside a stream, and does not retry what cannot succeed', async () => {
    const { chat, engine } = await startListeners({ failAfter: 2 });
    const openai = clientOf(chat);
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    await expect(openai.chat.completions.create({ model: 'gpt-4', messages })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    });
    const stream = await openai.chat.completions.create({ model: 'parley-chat', messages, stream: true });
    const reading = (async () => {
      for await (const _ of stream);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'internal_error' });
    engine.chats.length = 0;
    await expect(openai.chat.completions.create({ model: 'parley-chat', messages })).rejects.toMatchObject({ status: 500 });
    expect(engine.chats).toHaveLength(1);
  });
});
