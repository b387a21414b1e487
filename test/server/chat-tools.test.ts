/** Tools, formats, thoughts and log-probabilities: how they reach the engine and how they come back. */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { GOOD_CHAT as GOOD, CHAT_PATH as PATH, framesOf as frames } from '../support/chat-body.ts';
import { postJson, startListeners } from '../support/listeners.ts';

describe('what shapes the answer', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  const tools = ['weather', 'time'].map((name) => ({ type: 'function', function: { name, description: 'd', parameters, strict: true } }));
  const definitions = ['weather', 'time'].map((name) => ({ name, description: 'd', parameters, strict: true }));

  test.each([
    [{ tools }, { tools: definitions }],
    [
      { tools, tool_choice: 'required', parallel_tool_calls: false },
      { tools: definitions, toolChoice: 'required', parallelToolCalls: false },
    ],
    [
      { tools, tool_choice: { type: 'function', function: { name: 'time' } } },
      { tools: definitions, toolChoice: { name: 'time' } },
    ],
    [
      {
        tools,
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'time' } }] },
        },
      },
      { tools: [definitions[1]], toolChoice: 'required' },
    ],
    [
      { functions: [{ name: 'f', strict: false }], function_call: { name: 'f' } },
      { tools: [{ name: 'f' }], toolChoice: { name: 'f' }, parallelToolCalls: false },
    ],
    [{ tools: [], tool_choice: 'none' }, {}],
    [{ response_format: { type: 'json_object' } }, { responseFormat: { type: 'json_object' } }],
    [{ response_format: { type: 'json_object', schema: parameters } }, { responseFormat: { type: 'json_schema', schema: parameters } }],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: parameters, strict: false } } },
      { responseFormat: { type: 'json_schema', schema: parameters } },
    ],
    [{ logprobs: true }, { logprobs: 0 }],
    [{ logprobs: true, top_logprobs: 5 }, { logprobs: 5 }],
    [
      { repetition_penalty: 1.1, presence_penalty: 0.5, frequency_penalty: -0.5, logit_bias: { 5: -100 } },
      { sampling: { repetitionPenalty: 1.1, presencePenalty: 0.5, frequencyPenalty: -0.5, logitBias: { 5: -100 } } },
    ],
    [
      { min_tokens: 3, skip_special_tokens: false },
      { minTokens: 3, skipSpecialTokens: false },
    ],
    [
      { cache_salt: 'a', separate_reasoning: false, priority: -4 },
      { cacheSalt: 'a', separateReasoning: false, priority: -4 },
    ],
  ])('%j reaches the engine', async (fields, expected) => {
    const { chat, engine } = await startListeners();
    expect((await postJson(chat + PATH, { ...GOOD, ...fields })).status).toBe(200);
    expect(engine.chats[0]).toEqual({ messages: GOOD.messages, sampling: {}, ...expected });
  });

  test.each([
    [{ tools }, 'tools[1].function.parameters'],
    [{ functions: definitions, function_call: 'auto' }, 'functions[1].parameters'],
  ])('a schema that the engine refuses is named where it stands: %#', async (fields, param) => {
    const failWith = new EngineError('invalid_json_schema', 'no', { param: 'tools[1].parameters' });
    const { chat } = await startListeners({ failAfter: 0, failWith });
    expect((await postJson(chat + PATH, { ...GOOD, ...fields })).json.error).toMatchObject({ code: 'invalid_json_schema', param });
  });

  test('with all that the engine says of it', async () => {
    const failWith = new EngineError('unsupported', 'no', {
      param: 'tools[0]',
      details: { promptTokens: 9, contextLength: 8 },
      remedies: [{ does: 'take it', settings: [{ name: 'contextLength', value: 9 }] }],
    });
    const { chat } = await startListeners({ failAfter: 0, failWith });
    expect((await postJson(chat + PATH, { ...GOOD, tools })).json.error).toMatchObject({
      message: expect.stringContaining('--context-length 9'),
      param: 'tools[0]',
      n_prompt_tokens: 9,
      n_ctx: 8,
    });
  });

  test('also where only some of the tools are offered', async () => {
    const failWith = new EngineError('invalid_json_schema', 'no', { param: 'tools[0].parameters' });
    const { chat } = await startListeners({ failAfter: 0, failWith });
    const allowed_tools = { mode: 'required', tools: [{ type: 'function', function: { name: 'time' } }] };
    const { json } = await postJson(chat + PATH, { ...GOOD, tools, tool_choice: { type: 'allowed_tools', allowed_tools } });
    expect(json.error.param).toBe('tools[1].function.parameters');
  });

  test('older calls and their results reach the engine in the current form', async () => {
    const { chat, engine } = await startListeners();
    const called = { name: 'weather', arguments: '{"city":"Rome"}' };
    const messages = [
      ...GOOD.messages,
      { role: 'assistant', content: null, function_call: called },
      { role: 'function', name: 'weather', content: '21' },
      { role: 'assistant', content: 'Warm.', function_call: null, tool_calls: null },
    ];
    expect((await postJson(chat + PATH, { ...GOOD, messages })).status).toBe(200);
    expect(engine.chats[0]!.messages.slice(1)).toEqual([
      { role: 'assistant', content: null, tool_calls: [{ id: 'weather', type: 'function', function: called }] },
      { role: 'tool', name: 'weather', tool_call_id: 'weather', content: '21' },
      { role: 'assistant', content: 'Warm.' },
    ]);
  });

  test('calls that were cut, or never were JSON, reach the engine as they were sent back', async () => {
    const { chat, engine } = await startListeners();
    const calls = ['{"city": "Ro', "{'city': 'Rome'}", 'Rome', ''].map((args, i) => ({ id: `c${i}`, type: 'function', function: { name: 'weather', arguments: args } })); // prettier-ignore
    const called = { role: 'assistant', content: null, tool_calls: calls };
    expect((await postJson(chat + PATH, { ...GOOD, messages: [...GOOD.messages, called] })).status).toBe(200);
    expect(engine.chats[0]!.messages[1]).toEqual(called);
  });

  test.each([{}, { arguments: null }, { arguments: '' }])('a call without arguments, %j, is one', async (args) => {
    const { chat, engine } = await startListeners();
    const call = { id: 'c0', type: 'function', function: { name: 'time', ...args } };
    const messages = [...GOOD.messages, { role: 'assistant', content: null, tool_calls: [call] }];
    expect((await postJson(chat + PATH, { ...GOOD, messages })).status).toBe(200);
    expect(engine.chats[0]!.messages[1]!.tool_calls).toEqual([{ ...call, function: { name: 'time', arguments: '' } }]);
  });

  test('the last message is gone on with', async () => {
    const { chat, engine } = await startListeners();
    const messages = [...GOOD.messages, { role: 'assistant', content: 'I am' }];
    expect((await postJson(chat + PATH, { ...GOOD, messages, continue_final_message: true })).status).toBe(200);
    expect(engine.chats[0]).toEqual({ messages, sampling: {}, continueFinalMessage: true });
  });

  test.each([
    [
      'marked as a prefix, the last message is gone on with',
      [GOOD.messages[0]!, { role: 'assistant', content: 'I am', prefix: true }],
      {},
      true,
    ],
    [
      'not when the request says otherwise',
      [GOOD.messages[0]!, { role: 'assistant', content: 'I am', prefix: true }],
      { continue_final_message: false },
      false,
    ],
    [
      'nor when the mark is left from an earlier request',
      [{ role: 'assistant', content: 'I am', prefix: true }, GOOD.messages[0]!],
      {},
      undefined,
    ],
  ])('%s', async (_, messages, fields, continued) => {
    const { chat, engine } = await startListeners();
    expect((await postJson(chat + PATH, { ...GOOD, messages, ...fields })).status).toBe(200);
    expect(engine.chats[0]!.continueFinalMessage).toBe(continued);
    expect(engine.chats[0]!.messages).toEqual(messages.map(({ role, content }) => ({ role, content })));
  });

  const deltas = [
    { reasoning: 'Hm' },
    { reasoning: '.' },
    { toolCalls: [{ call: 0, name: 'weather' }] },
    { toolCalls: [{ call: 0, arguments: '{"city":' }] },
    { toolCalls: [{ call: 0, arguments: '"Rome"}' }] },
    { toolCalls: [{ call: 1, name: 'time' }] },
    { toolCalls: [{ call: 1, arguments: '{}' }] },
  ];

  test('tool calls and thoughts come back whole', async () => {
    const { chat } = await startListeners({ deltas });
    const { json } = await postJson(chat + PATH, { ...GOOD, tools });
    const id = expect.stringMatching(/^call_[0-9a-z]{24}$/);
    expect(json.choices[0]).toEqual({
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        refusal: null,
        reasoning_content: 'Hm.',
        tool_calls: [
          { id, type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
          { id, type: 'function', function: { name: 'time', arguments: '{}' } },
        ],
      },
      logprobs: null,
      finish_reason: 'tool_calls',
      stop_reason: null,
    });
    expect(json.usage).toMatchObject({ completion_tokens: 7, completion_tokens_details: { reasoning_tokens: 2 } });
  });

  test('in pieces, id, type and name come once', async () => {
    const { chat } = await startListeners({ deltas });
    const { text } = await postJson(chat + PATH, { ...GOOD, tools, stream: true });
    const pieces = frames(text).map(({ choices }) => choices[0]!.delta);
    const id = expect.stringMatching(/^call_[0-9a-z]{24}$/);
    expect(pieces).toEqual([
      { role: 'assistant', content: '' },
      { reasoning_content: 'Hm' },
      { reasoning_content: '.' },
      { tool_calls: [{ index: 0, id, type: 'function', function: { name: 'weather', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
      { tool_calls: [{ index: 1, id, type: 'function', function: { name: 'time', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
      {},
    ]);
  });

  test('the older form of a request is answered in both forms, with one call', async () => {
    const id = expect.stringMatching(/^call_[0-9a-z]{24}$/);
    const { chat } = await startListeners({ deltas: deltas.slice(0, 5) });
    const functions = [{ name: 'weather', parameters }];
    const { json } = await postJson(chat + PATH, { ...GOOD, functions });
    const called = { name: 'weather', arguments: '{"city":"Rome"}' };
    const message = { content: null, function_call: called, tool_calls: [{ id, type: 'function', function: called }] };
    expect(json.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message });
    const { text } = await postJson(chat + PATH, { ...GOOD, functions, stream: true });
    const choices = frames(text).map((frame) => frame.choices[0]!);
    expect(choices.slice(3).map(({ delta }) => delta)).toEqual([
      {
        tool_calls: [{ index: 0, id, type: 'function', function: { name: 'weather', arguments: '' } }],
        function_call: { name: 'weather', arguments: '' },
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }], function_call: { arguments: '{"city":' } },
      { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }], function_call: { arguments: '"Rome"}' } },
      {},
    ]);
    expect(choices.at(-1)).toMatchObject({ finish_reason: 'tool_calls' });
  });

  test("the official client's own assembly gets the same calls", async () => {
    const { chat } = await startListeners({ deltas });
    const openai = new OpenAI({ baseURL: `${chat}/v1`, apiKey: 'unused' });
    const stream = openai.chat.completions.stream({
      model: 'parley-chat',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: { name: 'weather', parameters } }],
    });
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]!.message.tool_calls).toMatchObject([
      { type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
      { type: 'function', function: { name: 'time', arguments: '{}' } },
    ]);
  });

  test.each([
    ['reasoning', { reasoning: 'Hm' }],
    ['both', { reasoning_content: 'Hm', reasoning: 'Hm' }],
  ] as const)('thoughts go to the field that is configured: %s', async (reasoningField, expected) => {
    const { chat } = await startListeners({ deltas: [{ reasoning: 'Hm' }, { text: 'Yes.' }] }, { reasoningField });
    const { json } = await postJson(chat + PATH, GOOD);
    expect(json.choices[0]!.message).toEqual({ role: 'assistant', content: 'Yes.', refusal: null, ...expected });
  });

  test('log-probabilities ride on the chunk of their tokens, each once; minus infinity is -9999', async () => {
    const one = {
      token: 'a',
      bytes: [97],
      logprob: -0.5,
      top: [
        { token: 'a', bytes: [97], logprob: -0.5 },
        { token: 'b', bytes: [98], logprob: -Infinity },
      ],
    };
    const fake = {
      deltas: [
        { text: 'a', logprobs: [one] },
        { text: 'aa', logprobs: [one, one] },
      ],
    };
    const shown = {
      token: 'a',
      logprob: -0.5,
      bytes: [97],
      top_logprobs: [
        { token: 'a', logprob: -0.5, bytes: [97] },
        { token: 'b', logprob: -9999, bytes: [98] },
      ],
    };
    const { chat } = await startListeners(fake);
    const body = { ...GOOD, logprobs: true, top_logprobs: 2 };
    expect((await postJson(chat + PATH, body)).json.choices[0]).toMatchObject({
      logprobs: { content: [shown, shown, shown], refusal: null },
    });
    const { text } = await postJson(chat + PATH, { ...body, stream: true });
    expect(frames(text).map(({ choices }) => choices[0]!.logprobs)).toEqual([
      null,
      { content: [shown], refusal: null },
      { content: [shown, shown], refusal: null },
      null,
    ]);
  });
});
