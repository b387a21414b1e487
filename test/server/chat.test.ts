import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { JSON_TYPE, postJson, send, startListeners, until } from '../support/listeners.ts';

const PATH = '/v1/chat/completions';
const GOOD = { model: 'parley-chat', messages: [{ role: 'user', content: 'Hi' }] };
interface Chunk {
  readonly id: string;
  readonly created: number;
  readonly system_fingerprint: string;
  readonly choices: readonly { readonly index: number }[];
  readonly usage: { readonly completion_tokens: number } | null;
}

const frames = (text: string): Chunk[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)) as Chunk);

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
      sampling: { temperature: 0.5, topP: 0, topK: -1, minP: 0.1, seed: 42 },
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
    [9007199254740993, 'a number beyond 2^53'],
    [1e300, 'a huge number'],
    [-5, 'a negative one'],
  ])('takes %d as a seed', async (seed) => {
    const { chat, engine } = await startListeners();
    expect((await postJson(chat + PATH, { ...GOOD, seed })).status).toBe(200);
    expect(Number.isSafeInteger(engine.chats[0]!.sampling.seed)).toBe(true);
  });

  test('takes seed -1 as random, null as absent, a string as one stop, and the path without /v1', async () => {
    const { chat, engine } = await startListeners();
    const { status } = await postJson(`${chat}/chat/completions`, { ...GOOD, seed: -1, temperature: null, stop: 'x', stream: null });
    expect(status).toBe(200);
    expect(engine.chats[0]).toEqual({ messages: GOOD.messages, sampling: {}, stop: ['x'] });
  });
});

describe('a bad field', () => {
  const message = (fields: object): object => ({ ...GOOD, messages: [{ role: 'user', content: 'Hi' }, fields] });
  const CASES: readonly (readonly [string, object, string, string])[] = [
    ['no model', { messages: GOOD.messages }, 'missing_required_parameter', 'model'],
    ['no messages', { model: 'parley-chat' }, 'missing_required_parameter', 'messages'],
    ['null messages', { ...GOOD, messages: null }, 'missing_required_parameter', 'messages'],
    ['empty messages', { ...GOOD, messages: [] }, 'invalid_value', 'messages'],
    ['messages of a wrong type', { ...GOOD, messages: 'Hi' }, 'invalid_type', 'messages'],
    ['a model of a wrong type', { ...GOOD, model: 3 }, 'invalid_type', 'model'],
    ['a message that is none', { ...GOOD, messages: ['Hi'] }, 'invalid_type', 'messages[0]'],
    ['no role', message({ content: 'x' }), 'invalid_value', 'messages[1].role'],
    ['an unknown role', message({ role: 'robot', content: 'x' }), 'invalid_value', 'messages[1].role'],
    ['content of a wrong type', message({ role: 'user', content: 5 }), 'invalid_type', 'messages[1].content'],
    ['no content', message({ role: 'user' }), 'missing_required_parameter', 'messages[1].content'],
    ['an assistant with neither', message({ role: 'assistant' }), 'missing_required_parameter', 'messages[1].content'],
    [
      'an image',
      message({ role: 'user', content: [{ type: 'image_url', image_url: {} }] }),
      'unsupported_value',
      'messages[1].content[0].type',
    ],
    [
      'a part without text',
      message({ role: 'user', content: [{ type: 'text' }] }),
      'missing_required_parameter',
      'messages[1].content[0].text',
    ],
    ['a tool result without id', message({ role: 'tool', content: 'x' }), 'missing_required_parameter', 'messages[1].tool_call_id'],
    ['temperature above 2', { ...GOOD, temperature: 2.1 }, 'invalid_value', 'temperature'],
    ['a negative temperature', { ...GOOD, temperature: -1 }, 'invalid_value', 'temperature'],
    ['temperature as text', { ...GOOD, temperature: '1' }, 'invalid_type', 'temperature'],
    ['top_p above 1', { ...GOOD, top_p: 1.5 }, 'invalid_value', 'top_p'],
    ['top_k below -1', { ...GOOD, top_k: -2 }, 'invalid_value', 'top_k'],
    ['a fractional top_k', { ...GOOD, top_k: 1.5 }, 'invalid_value', 'top_k'],
    ['min_p above 1', { ...GOOD, min_p: 2 }, 'invalid_value', 'min_p'],
    ['no tokens', { ...GOOD, max_tokens: 0 }, 'invalid_value', 'max_tokens'],
    ['negative tokens', { ...GOOD, max_completion_tokens: -1 }, 'invalid_value', 'max_completion_tokens'],
    ['a fractional seed', { ...GOOD, seed: 1.5 }, 'invalid_value', 'seed'],
    ['a seed as text', { ...GOOD, seed: '1' }, 'invalid_type', 'seed'],
    ['an empty stop string', { ...GOOD, stop: '' }, 'invalid_value', 'stop'],
    ['an empty stop string in a list', { ...GOOD, stop: ['a', ''] }, 'invalid_value', 'stop[1]'],
    ['too many stop strings', { ...GOOD, stop: Array(17).fill('a') }, 'invalid_value', 'stop'],
    ['stop of a wrong type', { ...GOOD, stop: 5 }, 'invalid_type', 'stop'],
    ['no choices', { ...GOOD, n: 0 }, 'invalid_value', 'n'],
    ['129 choices', { ...GOOD, n: 129 }, 'invalid_value', 'n'],
    ['stream as text', { ...GOOD, stream: 'true' }, 'invalid_type', 'stream'],
    ['stream options without stream', { ...GOOD, stream_options: { include_usage: true } }, 'invalid_value', 'stream_options'],
    ['top_logprobs without logprobs', { ...GOOD, top_logprobs: 3 }, 'invalid_value', 'top_logprobs'],
    ['an unknown effort', { ...GOOD, reasoning_effort: 'extreme' }, 'invalid_value', 'reasoning_effort'],
    ['template variables that are none', { ...GOOD, chat_template_kwargs: [] }, 'invalid_type', 'chat_template_kwargs'],
    ['a penalty out of range', { ...GOOD, presence_penalty: 3 }, 'invalid_value', 'presence_penalty'],
    ['a bias out of range', { ...GOOD, logit_bias: { 5: 101 } }, 'invalid_value', 'logit_bias.5'],
    ['logprobs', { ...GOOD, logprobs: true }, 'unsupported_parameter', 'logprobs'],
    ['a penalty', { ...GOOD, frequency_penalty: 0.5 }, 'unsupported_parameter', 'frequency_penalty'],
    ['a repetition penalty', { ...GOOD, repetition_penalty: 1.1 }, 'unsupported_parameter', 'repetition_penalty'],
    ['a bias', { ...GOOD, logit_bias: { 5: 1 } }, 'unsupported_parameter', 'logit_bias'],
    ['JSON mode', { ...GOOD, response_format: { type: 'json_object' } }, 'unsupported_parameter', 'response_format'],
    ['tools', { ...GOOD, tools: [{ type: 'function', function: { name: 'f' } }] }, 'unsupported_parameter', 'tools'],
    ['functions', { ...GOOD, functions: [{ name: 'f' }] }, 'unsupported_parameter', 'functions'],
    ['a salt', { ...GOOD, cache_salt: 'x' }, 'unsupported_parameter', 'cache_salt'],
    ['audio', { ...GOOD, modalities: ['text', 'audio'] }, 'unsupported_value', 'modalities'],
    ['web search', { ...GOOD, web_search_options: {} }, 'unsupported_parameter', 'web_search_options'],
    [
      'a prototype',
      JSON.parse('{"__proto__": {"model": "parley-chat", "messages": []}}') as object,
      'missing_required_parameter',
      'messages',
    ],
  ];

  test('is named, and the next good request works', async () => {
    const { chat, engine } = await startListeners();
    for (const [what, body, code, param] of CASES) {
      const { status, json } = await postJson(chat + PATH, body);
      expect({ what, status, ...json.error }, json.error.message).toEqual({
        what,
        status: 400,
        type: 'invalid_request_error',
        code,
        param,
        message: expect.stringMatching(/\w+/),
      });
    }
    expect(engine.chats).toHaveLength(0);
    expect((await postJson(chat + PATH, GOOD)).status).toBe(200);
  });

  test('`n` may not exceed what runs at once', async () => {
    const { chat } = await startListeners({}, { maxRunningRequests: 4 });
    expect((await postJson(chat + PATH, { ...GOOD, n: 4 })).status).toBe(200);
    expect((await postJson(chat + PATH, { ...GOOD, n: 5 })).json.error).toMatchObject({ code: 'invalid_value', param: 'n' });
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
    const failWith = new EngineError('context_length_exceeded', 'too long', { details: { n_prompt_tokens: 2000, n_ctx: 1024 } });
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
