/** The official clients, TypeScript and Python, against a chat listener with the bundled model behind it. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Engine } from '../../engine/protocol.ts';
import { resolveConfig } from '../../engine/config.ts';
import { createEngine } from '../../engine/index.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import type { Listener } from '../../server/listener/listen.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PYTHON = process.env['PARLEY_PYTHON'] ?? 'python3';
const hasClient = spawnSync(PYTHON, ['-c', 'import openai']).status === 0;

describe('the official clients', () => {
  let engine: Engine;
  let listener: Listener;
  let openai: OpenAI;
  beforeAll(async () => {
    const chat = { path: join(ROOT, 'models', 'parley-chat') };
    engine = await createEngine(createNodePlatform({ log: () => undefined }), resolveConfig({ chat, maxRunningRequests: 8 }));
    listener = await listen(createChatApp({ engine, modelId: 'parley-chat' }), { host: '127.0.0.1', port: 0 });
    openai = new OpenAI({ baseURL: `http://127.0.0.1:${listener.port}/v1`, apiKey: 'unused', maxRetries: 0 });
  });
  afterAll(async () => {
    listener.destroy();
    await listener.drain();
    await engine.close();
  });

  const common = {
    model: 'parley-chat',
    messages: [{ role: 'user' as const, content: 'Tell me a short story about a fox.' }],
    temperature: 0,
  };
  const fox = z.object({ brave: z.boolean() });

  test('TypeScript: whole, streamed and through the stream helper the text is the same', async () => {
    const whole = await openai.chat.completions.create({ ...common, max_tokens: 12 });
    const text = whole.choices[0]!.message.content;
    expect(text).toMatch(/\w+ \w+/);
    let streamed = '';
    for await (const { choices } of await openai.chat.completions.create({ ...common, max_tokens: 12, stream: true })) {
      streamed += choices[0]?.delta.content ?? '';
    }
    expect(streamed).toBe(text);
    expect(await openai.chat.completions.stream({ ...common, max_tokens: 12 }).finalContent()).toBe(text);
  });

  test.each<[string, unknown, RegExp]>([
    ['a contradiction', { type: 'string', minLength: 5, maxLength: 2 }, /'minLength' 5 is above 'maxLength' 2/],
    ['a wrong value', { type: 'array', maxItems: '3' }, /'maxItems' is a whole number/],
    ['a NUL character', { enum: ['\0'] }, /NUL/],
    [
      'too many properties',
      { type: 'object', properties: Object.fromEntries(Array.from({ length: 401 }, (_, i) => [`p${i}`, {}])) },
      /401 .* 256/,
    ],
  ])('TypeScript: a schema with %s is refused with the reason', async (_, schema, message) => {
    const asked = openai.chat.completions.create({
      ...common,
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: schema as Record<string, unknown> } },
    });
    await expect(asked).rejects.toMatchObject({
      status: 400,
      code: 'invalid_json_schema',
      param: 'response_format.json_schema.schema',
      message: expect.stringMatching(message),
    });
  });

  test('TypeScript: the parse helper gets an object of its schema, and a call of its tool', async () => {
    const answer = await openai.chat.completions.parse({ ...common, max_tokens: 200, response_format: zodResponseFormat(fox, 'fox') });
    expect(fox.safeParse(answer.choices[0]!.message.parsed).success).toBe(true);
    const item = z.object({
      price: z.number().min(1).max(99).multipleOf(0.5),
      stock: z.number().int().positive(),
      note: z.string().max(8).nullable(),
    });
    const bounded = await openai.chat.completions.parse({ ...common, max_tokens: 200, response_format: zodResponseFormat(item, 'item') });
    expect(item.safeParse(bounded.choices[0]!.message.parsed).error).toBeUndefined();
    const forced = { tools: [zodFunction({ name: 'see', parameters: fox })], tool_choice: 'required' as const, parallel_tool_calls: false };
    const call = await openai.chat.completions.parse({ ...common, max_tokens: 200, ...forced });
    expect(call.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } });
    expect(fox.safeParse(call.choices[0]!.message.tool_calls?.[0]?.function.parsed_arguments).success).toBe(true);
    const names: string[] = [];
    const stream = openai.chat.completions.stream({ ...common, max_tokens: 200, ...forced });
    stream.on('tool_calls.function.arguments.done', ({ name }) => names.push(name));
    const streamed = await stream.finalChatCompletion();
    expect(names[0]).toBe('see');
    expect(streamed.choices[0]!.message.tool_calls?.map((one) => one.function.arguments)).toEqual(
      call.choices[0]!.message.tool_calls?.map((one) => one.function.arguments),
    );
  });

  test.each([false, true])('TypeScript: a loop of tools runs, streamed %s', async (stream) => {
    const seen: unknown[] = [];
    const see = zodFunction({ name: 'see', parameters: fox, function: (args) => (seen.push(args), 'A fox.') });
    const asked = { ...common, max_tokens: 60, tools: [see], tool_choice: 'required' as const, parallel_tool_calls: false };
    const options = { maxChatCompletions: 2 };
    const runner = stream
      ? openai.chat.completions.runTools({ ...asked, stream: true }, options)
      : openai.chat.completions.runTools(asked, options);
    await runner.done();
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool']);
    expect(seen.map((args) => fox.safeParse(args).success)).toEqual([true, true]);
    expect(runner.messages[2]).toMatchObject({ content: 'A fox.' });
  });

  test('TypeScript: a conversation goes on behind a call that was cut', async () => {
    const text = { type: 'string', minLength: 400 };
    const parameters = { type: 'object', properties: { text }, required: ['text'], additionalProperties: false };
    const tools = [{ type: 'function' as const, function: { name: 'note', parameters } }];
    const asked = { ...common, tools, tool_choice: 'required' as const };
    const { choices } = await openai.chat.completions.create({ ...asked, max_tokens: 60 });
    const [{ message, finish_reason: reason }] = choices as [OpenAI.ChatCompletion.Choice];
    const [call] = message.tool_calls as [OpenAI.ChatCompletionMessageFunctionToolCall];
    expect(reason).toBe('length');
    expect(call.function.arguments).toMatch(/^\{"text": "[^"]+$/);
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      ...common.messages,
      message,
      { role: 'tool', tool_call_id: call.id, content: [{ type: 'text', text: 'These arguments are no JSON.' }] },
    ];
    const next = await openai.chat.completions.create({ ...asked, messages, max_tokens: 4 });
    expect(next.usage?.completion_tokens).toBe(4);
  });

  test('TypeScript: log-probabilities, three choices', async () => {
    const reported = await openai.chat.completions.create({ ...common, max_tokens: 3, logprobs: true, top_logprobs: 2 });
    const content = reported.choices[0]!.logprobs!.content!;
    expect(content.map(({ token, top_logprobs }) => top_logprobs[0]!.token === token && top_logprobs.length === 2)).toEqual([
      true,
      true,
      true,
    ]);
    expect(
      content
        .map(({ bytes }) => Buffer.from(bytes!).toString())
        .join('')
        .trim(),
    ).toBe(reported.choices[0]!.message.content!.trim());
    const many = await openai.chat.completions.create({ ...common, temperature: 1, max_tokens: 8, n: 3, seed: 5 });
    expect(many.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(new Set(many.choices.map(({ message }) => message.content)).size).toBeGreaterThan(1);
  });

  test.each([
    [OpenAI.NotFoundError, 'model_not_found', { model: 'gpt-4' }],
    [OpenAI.BadRequestError, 'invalid_value', { temperature: 9 }],
    [OpenAI.BadRequestError, 'context_length_exceeded', { max_tokens: 1e6 }],
  ])('TypeScript: %o is raised for %s', async (kind, code, change) => {
    const error: unknown = await openai.chat.completions.create({ ...common, ...change }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code, type: 'invalid_request_error' });
  });

  test.skipIf(!hasClient)(`Python${hasClient ? '' : ` (skipped: ${PYTHON} has no module openai; see PARLEY_PYTHON)`}`, async () => {
    const script = join(ROOT, 'test', 'tools', 'openai_client.py');
    const { stdout } = await promisify(execFile)(PYTHON, [script, `http://127.0.0.1:${listener.port}/v1`, 'parley-chat']);
    expect(stdout.trim().split(/\r?\n/)).toEqual([
      'plain',
      'stream',
      'stream helper',
      'tools',
      'parse',
      'logprobs',
      'n=3',
      'completions',
      'errors',
    ]);
  });
});
