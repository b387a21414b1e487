/** Every field of a chat request that can be wrong, and the error that names it. */
import { describe, expect, test } from 'vitest';
import { SAMPLING, SAMPLING_NAMES, samplingField } from '../../engine/sampling.ts';
import { GOOD_CHAT as GOOD, CHAT_PATH as PATH } from '../support/chat-body.ts';
import { parseChatBody } from '../../server/chat/schema.ts';
import { postJson, startListeners } from '../support/listeners.ts';

describe('a bad field', () => {
  const message = (fields: object): object => ({ ...GOOD, messages: [{ role: 'user', content: 'Hi' }, fields] });
  const tool = (name: string): object => ({ type: 'function', function: { name } });
  const CASES: readonly (readonly [string, object, string, string])[] = [
    ['no model', { messages: GOOD.messages }, 'missing_required_parameter', 'model'],
    ['no messages', { model: 'parley-chat' }, 'missing_required_parameter', 'messages'],
    ['null messages', { ...GOOD, messages: null }, 'missing_required_parameter', 'messages'],
    ['empty messages', { ...GOOD, messages: [] }, 'invalid_value', 'messages'],
    ['messages of a wrong type', { ...GOOD, messages: 'Hi' }, 'invalid_type', 'messages'],
    ['a model of a wrong type', { ...GOOD, model: 3 }, 'invalid_type', 'model'],
    ['a message that is none', { ...GOOD, messages: ['Hi'] }, 'invalid_type', 'messages[0]'],
    ['no role', message({ content: 'x' }), 'missing_required_parameter', 'messages[1].role'],
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
    ['a stop string that is too long', { ...GOOD, stop: ['a'.repeat(1025)] }, 'invalid_value', 'stop[0]'],
    ['stop of a wrong type', { ...GOOD, stop: 5 }, 'invalid_type', 'stop'],
    ['no choices', { ...GOOD, n: 0 }, 'invalid_value', 'n'],
    ['129 choices', { ...GOOD, n: 129 }, 'invalid_value', 'n'],
    ['stream as text', { ...GOOD, stream: 'true' }, 'invalid_type', 'stream'],
    ['stream options without stream', { ...GOOD, stream_options: { include_usage: true } }, 'invalid_value', 'stream_options'],
    ['top_logprobs without logprobs', { ...GOOD, top_logprobs: 3 }, 'invalid_value', 'top_logprobs'],
    ['an unknown effort', { ...GOOD, reasoning_effort: 'extreme' }, 'invalid_value', 'reasoning_effort'],
    [
      'more template variables than are copied in a moment',
      { ...GOOD, chat_template_kwargs: { documents: new Array(10_001).fill({}) } },
      'invalid_value',
      'chat_template_kwargs',
    ],
    ['template variables that are none', { ...GOOD, chat_template_kwargs: [] }, 'invalid_type', 'chat_template_kwargs'],
    ['a penalty out of range', { ...GOOD, presence_penalty: 3 }, 'invalid_value', 'presence_penalty'],
    ['a bias out of range', { ...GOOD, logit_bias: { 5: 101 } }, 'invalid_value', 'logit_bias.5'],
    ['a bias that is no token', { ...GOOD, logit_bias: { word: 1 } }, 'invalid_value', 'logit_bias.word'],
    [
      'too many biases',
      { ...GOOD, logit_bias: Object.fromEntries(Array.from({ length: 1025 }, (_, i) => [i, 1])) },
      'invalid_value',
      'logit_bias',
    ],
    ['no repetition penalty', { ...GOOD, repetition_penalty: 0 }, 'invalid_value', 'repetition_penalty'],
    ['21 alternatives', { ...GOOD, logprobs: true, top_logprobs: 21 }, 'invalid_value', 'top_logprobs'],
    ['at least more than at most', { ...GOOD, min_tokens: 5, max_tokens: 4 }, 'invalid_value', 'min_tokens'],
    ['a special wish', { ...GOOD, skip_special_tokens: 'no' }, 'invalid_type', 'skip_special_tokens'],
    ['an unknown format', { ...GOOD, response_format: { type: 'xml' } }, 'invalid_value', 'response_format.type'],
    [
      'no schema',
      { ...GOOD, response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'invalid_json_schema',
      'response_format.json_schema.schema',
    ],
    [
      'a schema without name',
      { ...GOOD, response_format: { type: 'json_schema', json_schema: { schema: {} } } },
      'missing_required_parameter',
      'response_format.json_schema.name',
    ],
    ['a custom tool', { ...GOOD, tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'unsupported_value', 'tools[0].type'],
    ['a tool without function', { ...GOOD, tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].function'],
    ['a tool with a bad name', { ...GOOD, tools: [tool('f g')] }, 'invalid_value', 'tools[0].function.name'],
    ['two tools of a name', { ...GOOD, tools: [tool('f'), tool('g'), tool('f')] }, 'invalid_value', 'tools[2].function.name'],
    ['129 tools', { ...GOOD, tools: Array.from({ length: 129 }, (_, i) => tool(`f${i}`)) }, 'invalid_value', 'tools'],
    ['a choice without tools', { ...GOOD, tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
    ['an unknown choice', { ...GOOD, tools: [tool('f')], tool_choice: 'maybe' }, 'invalid_value', 'tool_choice'],
    [
      'a choice that is no tool',
      { ...GOOD, tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'g' } } },
      'invalid_value',
      'tool_choice',
    ],
    [
      'an old choice that is no function',
      { ...GOOD, functions: [{ name: 'f' }], function_call: { name: 'g' } },
      'invalid_value',
      'function_call',
    ],
    [
      'arguments that are a list',
      { ...GOOD, messages: [...GOOD.messages, { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: [] } }] }] },
      'invalid_type',
      'messages[1].tool_calls[0].function.arguments',
    ],
    [
      'older arguments that are a number',
      { ...GOOD, messages: [{ role: 'assistant', function_call: { name: 'f', arguments: 1 } }] },
      'invalid_type',
      'messages[0].function_call.arguments',
    ],
    [
      'a result without a name',
      { ...GOOD, messages: [{ role: 'function', content: 'x' }] },
      'missing_required_parameter',
      'messages[0].name',
    ],
    [
      'an older call of a user',
      { ...GOOD, messages: [{ role: 'user', function_call: { name: 'f', arguments: '{}' } }] },
      'missing_required_parameter',
      'messages[0].content',
    ],
    ['a priority in words', { ...GOOD, priority: 'high' }, 'invalid_type', 'priority'],
    ['a long cache key', { ...GOOD, prompt_cache_key: 'x'.repeat(257) }, 'invalid_value', 'prompt_cache_key'],
    ['an empty salt', { ...GOOD, cache_salt: '' }, 'invalid_value', 'cache_salt'],
    ['going on with a question', { ...GOOD, continue_final_message: true }, 'invalid_value', 'continue_final_message'],
    ['audio', { ...GOOD, modalities: ['text', 'audio'] }, 'unsupported_parameter', 'modalities'],
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

  test.each<[string, object, string]>([
    [
      'the kinds there are',
      { response_format: { type: 'xml' } },
      "'response_format.type': must be one of 'text', 'json_object', 'json_schema'",
    ],
    ['what a key is', { logit_bias: { word: 1 } }, "'logit_bias.word': keys are token ids"],
    ['a number that is none', { temperature: Infinity }, "'temperature' must be a number, got Infinity"],
  ])('the message says %s', (_, wrong, message) => {
    expect(() => parseChatBody({ ...GOOD, ...wrong }, { modelOptional: false, maxRunningRequests: 8 })).toThrow(message);
  });

  test.each([
    [{ temperature: 2.1 }, "'temperature' must be at most 2, got 2.1"],
    [{ top_k: -2 }, "'top_k' must be at least -1, got -2"],
    [{ repetition_penalty: 0 }, "'repetition_penalty' must be more than 0, got 0"],
    [{ reasoning_effort: 'huge' }, `'reasoning_effort' must be one of none, minimal, low, medium, high, xhigh, max, got "huge"`],
    [{ tools: [tool('a')], tool_choice: 1 }, "'tool_choice' must be a string or object, got number"],
    [{ tools: [tool('a')], tool_choice: 'any' }, `'tool_choice' must be one of none, auto, required, got "any"`],
    // As the Responses API has it.
    [{ tools: [tool('a')], tool_choice: { type: 'function', name: 'a' } }, "'tool_choice.function' is required"],
    [{ tools: [tool('a')], tool_choice: { type: 'allowed_tools', mode: 'auto' } }, "'tool_choice.allowed_tools' is required"],
    [{ logit_bias: [] }, "'logit_bias' must be an object, got array"],
    [{ stop_token_ids: new Array(1025).fill(1) }, "'stop_token_ids' must have at most 1024 entries, got 1025"],
  ])('%j is told what is allowed, and what was found', (fields, text) => {
    expect(() => parseChatBody({ ...GOOD, ...fields }, { modelOptional: false, maxRunningRequests: 8 })).toThrow(text);
  });

  test('`n` may not exceed what runs at once', async () => {
    const { chat } = await startListeners({}, { capacity: { maxRunningRequests: 4, maxQueuedRequests: 20, ppSize: 1 } });
    expect((await postJson(chat + PATH, { ...GOOD, n: 4 })).status).toBe(200);
    expect((await postJson(chat + PATH, { ...GOOD, n: 5 })).json.error).toMatchObject({ code: 'invalid_value', param: 'n' });
  });
});

describe('a field of as many mistakes as a body may have elements', () => {
  const MANY = 190_000;
  const many = (value: object) => Array(MANY).fill(value) as object[];
  const numbered = (value: unknown) => Object.fromEntries(Array.from({ length: MANY }, (_, i) => [`k${i}`, value]));
  const named = { type: 'function', function: { name: 'f' } };
  const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: many({}) } };

  test.each<[what: string, path: string, fields: object, param: string]>([
    ['messages', PATH, { messages: many({}) }, 'messages[0].role'],
    ['parts of a message', PATH, { messages: [{ role: 'user', content: many({ type: 'x' }) }] }, 'messages[0].content[0].type'],
    ['calls', PATH, { messages: [{ role: 'assistant', tool_calls: many({}) }] }, 'messages[0].tool_calls[0].id'],
    ['biases', PATH, { logit_bias: numbered(1) }, 'logit_bias'],
    ['variables', PATH, { chat_template_kwargs: numbered(1) }, 'chat_template_kwargs'],
    ['tools to choose from', PATH, { tools: [named], tool_choice: allowed }, 'tool_choice.type'],
    ['prompts', '/v1/completions', { prompt: many({}) }, 'prompt[0]'],
    ['tokens', '/v1/detokenize', { tokens: many({}) }, 'tokens[0]'],
  ])('is answered with the first: %s', async (_, path, fields, param) => {
    const { chat } = await startListeners();
    const { status, json } = await postJson(chat + path, { ...(path === PATH ? GOOD : { model: GOOD.model }), ...fields });
    expect({ status, param: json.error.param }).toEqual({ status: 400, param });
  });
});

describe('a sampling number', () => {
  test.each(SAMPLING_NAMES)('%s reaches the engine from each end of its range, and is refused beyond them', async (name) => {
    const { chat, engine } = await startListeners();
    const { wire, min, max, aboveMin, integer } = samplingField(name);
    const good = [...(aboveMin ? [min + 0.5] : [min]), ...(max === undefined ? [7] : [max])];
    for (const value of good) expect((await postJson(chat + PATH, { ...GOOD, [wire]: value })).status, `${value}`).toBe(200);
    expect(engine.chats.map(({ sampling }) => sampling)).toEqual(good.map((value) => ({ [name]: value })));
    // Beside a bound of 64 bits there is no double half a step away.
    const beyond = (bound: number, by: number): number => (bound + by === bound ? 2 * bound : bound + by);
    const bad = [aboveMin ? min : beyond(min, -1), ...(max === undefined ? [] : [beyond(max, 0.5)]), ...(integer ? [0.5] : [])];
    for (const value of bad) {
      const { status, json } = await postJson(chat + PATH, { ...GOOD, [wire]: value });
      expect({ value, status, param: json.error.param }).toEqual({ value, status: 400, param: wire });
    }
    expect((await postJson(chat + PATH, { ...GOOD, [wire]: 'much' })).json.error).toMatchObject({ code: 'invalid_type', param: wire });
  });

  test('that is absent or a random seed is left to the model', async () => {
    const { chat, engine } = await startListeners();
    await postJson(chat + PATH, { ...GOOD, [SAMPLING.seed.wire]: -1 });
    expect(engine.chats[0]!.sampling).toEqual({});
  });

  test('stands in /openapi.json with its range and its meaning', async () => {
    const { chat } = await startListeners();
    const document = (await (await fetch(`${chat}/openapi.json`)).json()) as Document;
    const { properties } = document.paths[PATH]!.post.requestBody.content['application/json'].schema;
    for (const name of SAMPLING_NAMES) {
      const { wire, meaning, min, aboveMin } = samplingField(name);
      expect(JSON.stringify(properties[wire])).toContain(JSON.stringify(meaning));
      expect(JSON.stringify(properties[wire])).toContain(`"${aboveMin ? 'exclusiveMinimum' : 'minimum'}":${min}`);
    }
  });
});

interface Document {
  readonly paths: Record<
    string,
    {
      readonly post: {
        readonly requestBody: {
          readonly content: { readonly 'application/json': { readonly schema: { readonly properties: Record<string, unknown> } } };
        };
      };
    }
  >;
}
