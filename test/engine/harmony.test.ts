/** Answers in Harmony, and what a request makes of a template that writes it. */
import { describe, expect, test } from 'vitest';
import type { ChatMessage, ChatRequest } from '../../engine/api.ts';
import { ChatChoice } from '../../engine/tasks/chat-choice.ts';
import { constraintOf, encodePrompt, parserOptions } from '../../engine/tasks/chat-request.ts';
import { HERMES } from '../../engine/text/call-forms.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';
import { HarmonyParser } from '../../engine/text/harmony.ts';
import type { HarmonyOptions } from '../../engine/text/harmony.ts';
import type { LongTexts } from '../../engine/text/long-texts.ts';
import type { OutputEvent } from '../../engine/text/output-parser.ts';
import type { Tokenizer } from '../../engine/text/tokenizer.ts';
import { createRng } from '../../engine/util/rng.ts';

interface Parsed {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: { name: string; arguments: string }[];
}

/** Feeds the pieces and adds the events up as a client does. */
function parse(pieces: readonly string[], options: Partial<HarmonyOptions>): Parsed {
  const parser = new HarmonyParser({ prompt: '<|start|>assistant', separate: true, tools: [], ...options });
  const events: OutputEvent[] = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()];
  const parsed = { content: '', reasoning: '', calls: [] as { name: string; arguments: string }[] };
  for (const event of events) {
    if (event.type === 'call') parsed.calls[event.index] = { name: event.name, arguments: '' };
    else if (event.type === 'arguments') parsed.calls[event.index]!.arguments += event.text;
    else parsed[event.type] += event.text;
  }
  expect(parser.calls).toBe(parsed.calls.length);
  return parsed;
}

const TOOLS = { tools: ['weather', 'time'] };
const ANALYSIS = '<|channel|>analysis<|message|>Think.<|end|>';
const FINAL = '<|start|>assistant<|channel|>final<|message|>';

const cases: [string, string, Partial<HarmonyOptions>, Parsed][] = [
  ['reasoning and an answer', `${ANALYSIS}${FINAL}Yes, a < b <|return|>`, {}, { content: 'Yes, a < b ', reasoning: 'Think.', calls: [] }],
  ['an answer whose end the engine has taken', `${ANALYSIS}${FINAL}Yes`, {}, { content: 'Yes', reasoning: 'Think.', calls: [] }],
  ['an answer alone', '<|channel|>final<|message|>Yes', {}, { content: 'Yes', reasoning: '', calls: [] }],
  ['reasoning that is not told apart', `${ANALYSIS}${FINAL}Yes`, { separate: false }, { content: 'Think.\n\nYes', reasoning: '', calls: [] }],
  [
    'a call, named behind its channel',
    `${ANALYSIS}<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Perth"}<|call|>`,
    TOOLS,
    { content: '', reasoning: 'Think.', calls: [{ name: 'weather', arguments: '{"city": "Perth"}' }] },
  ],
  [
    'a call, named with the role that the prompt ends with',
    ' to=functions.time<|channel|>commentary json<|message|>{"at": "<|"}',
    TOOLS,
    { content: '', reasoning: '', calls: [{ name: 'time', arguments: '{"at": "<|"}' }] },
  ],
  [
    'words before two calls, one without arguments',
    '<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.time<|channel|>commentary<|message|><|end|><|start|>assistant<|channel|>commentary to=functions.weather<|message|>{}<|call|>',
    TOOLS,
    { content: 'I look.', reasoning: '', calls: [{ name: 'time', arguments: '{}' }, { name: 'weather', arguments: '{}' }] },
  ],
  ['a call as Python would have it', " to=functions.weather<|channel|>commentary json<|message|>{'city': 'Perth', 'now': True,}<|call|>", TOOLS, { content: '', reasoning: '', calls: [{ name: 'weather', arguments: '{"city": "Perth", "now": true}' }] }],
  ['a call whose end was forgotten', ' to=functions.weather<|channel|>commentary json<|message|>{"city": "Perth"<|call|>', TOOLS, { content: '', reasoning: '', calls: [{ name: 'weather', arguments: '{"city": "Perth"}' }] }],
  ['a call that was cut', ' to=functions.weather<|channel|>commentary json<|message|>{"days": 1', TOOLS, { content: '', reasoning: '', calls: [{ name: 'weather', arguments: '{"days": 1' }] }],
  ['a call whose arguments are no JSON', ' to=functions.weather<|channel|>commentary<|message|>city = Perth<|call|>', TOOLS, { content: '', reasoning: '', calls: [{ name: 'weather', arguments: 'city = Perth' }] }],
  ['a call of an unknown tool', '<|channel|>commentary to=functions.rm<|message|>{"a": 1}', TOOLS, { content: '{"a": 1}', reasoning: '', calls: [] }],
  ['a tool of the model’s own, in its thoughts', '<|channel|>analysis to=python<|message|>1 + 1<|end|>', TOOLS, { content: '', reasoning: '1 + 1', calls: [] }],
  ['two thoughts', `${ANALYSIS}<|start|>assistant${ANALYSIS}${FINAL}Yes`, {}, { content: 'Yes', reasoning: 'Think.\n\nThink.', calls: [] }],
  ['a message that begins where another has not ended', '<|channel|>analysis<|message|>Hm<|channel|>final<|message|>Yes', {}, { content: 'Yes', reasoning: 'Hm', calls: [] }],
  ['a cut header', `${ANALYSIS}<|start|>assistant<|channel|>fi`, {}, { content: '', reasoning: 'Think.', calls: [] }],
  ['a cut message, with what may begin a tag', `${FINAL}a <|e`, {}, { content: 'a <|e', reasoning: '', calls: [] }],
  ['no message at all', 'Hello <|x', {}, { content: 'Hello <|x', reasoning: '', calls: [] }],
  ['a header without an end', `<|channel|>${'x'.repeat(600)}`, {}, { content: `<|channel|>${'x'.repeat(600)}`, reasoning: '', calls: [] }],
  ['a message that the prompt has begun', ' and no.<|return|>', { prompt: `<|start|>user<|message|>?<|end|>${FINAL}Yes` }, { content: ' and no.', reasoning: '', calls: [] }],
]; // prettier-ignore

describe('Harmony', () => {
  test.each(cases)('%s', (_, text, options, expected) => {
    expect(parse([text], options)).toEqual(expected);
  });

  test.each(cases)('%s, whatever the cuts', (_, text, options, expected) => {
    // A header that is too long is known as one at its last character; before, none of it is given away.
    expect(parse([...text], options)).toEqual(expected);
    const rng = createRng(text.length);
    for (let round = 0; round < 20; round++) {
      const pieces: string[] = [];
      for (let at = 0; at < text.length;) {
        const size = 1 + rng.integer(9);
        pieces.push(text.slice(at, at + size));
        at += size;
      }
      expect(parse(pieces, options)).toEqual(expected);
    }
  });
});

/** What gpt-oss's own does with messages, in a few lines. */
const TEMPLATE = new ChatTemplate(
  [
    "{%- for tool in tools or [] -%}// {{ tool.function.description + '\\n' }}type {{ tool.function.name }}{%- endfor -%}",
    '{%- for message in messages -%}',
    "{%- if message.tool_calls -%}{%- if message.content and message.thinking -%}{{ raise_exception('both') }}{%- endif -%}",
    '<|start|>assistant<|channel|>analysis<|message|>{{ message.thinking or message.content }}<|end|><|start|>assistant to=functions.{{ message.tool_calls[0].function.name }}<|channel|>commentary json<|message|>{{ message.tool_calls[0].function.arguments | tojson }}<|call|>',
    "{%- elif message.role == 'assistant' -%}<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|end|>",
    '{%- else -%}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{%- endif -%}',
    '{%- endfor -%}{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}',
  ].join(''),
);
const texts = { encode: (text: string) => Promise.resolve([...new TextEncoder().encode(text)]) } as unknown as LongTexts;
const USER: ChatMessage = { role: 'user', content: '?' };
const WEATHER = { name: 'weather', parameters: { type: 'object', properties: {} } };

/** The prompt of a request, and how its answer is taken apart. */
async function understood(
  request: Partial<ChatRequest>,
): Promise<{ readonly text: string; readonly options: ReturnType<typeof parserOptions> }> {
  const whole: ChatRequest = { messages: [USER], sampling: {}, ...request };
  const constraint = constraintOf(whole, TEMPLATE);
  const { text } = await encodePrompt({ texts, template: TEMPLATE, vocabulary: 256 }, whole, () => undefined, constraint);
  return { text, options: parserOptions(whole, text, TEMPLATE, constraint) };
}

test('a request to a model of Harmony', async () => {
  const { text, options } = await understood({ tools: [WEATHER] });
  expect(text).toBe('// \ntype weather<|start|>user<|message|>?<|end|><|start|>assistant');
  expect(options).toEqual({ harmony: { prompt: text, separate: true, tools: ['weather'] } });
  expect((await understood({ tools: [WEATHER], toolChoice: 'none', separateReasoning: false })).options).toMatchObject({ harmony: { separate: false, tools: [] } }); // prettier-ignore
  const open = await understood({ messages: [USER, { role: 'assistant', content: 'It is' }], continueFinalMessage: true });
  expect(open.text).toBe('<|start|>user<|message|>?<|end|><|start|>assistant<|channel|>final<|message|>It is');
  expect(parse([' so.'], (open.options as { harmony: HarmonyOptions }).harmony).content).toBe(' so.');
});

test('an answer that is held to a grammar has its header written for it, and no other messages', async () => {
  const json = await understood({ responseFormat: { type: 'json_object' } });
  expect(json.text).toMatch(/<\|start\|>assistant<\|channel\|>final<\|message\|>$/);
  expect(json.options).not.toHaveProperty('harmony');
  const call = await understood({ tools: [WEATHER], toolChoice: 'required' });
  expect(call.text).toMatch(/<\|start\|>assistant<\|channel\|>commentary<\|message\|>$/);
  expect(call.options).toEqual({
    reasoning: undefined,
    tools: ['weather'],
    parameters: [WEATHER.parameters],
    form: HERMES,
    tokens: HERMES.tokens,
    forced: true,
    held: false,
    continued: false,
    single: false,
  });
});

test('earlier reasoning goes to the template, beside a call only where there is no content', async () => {
  const call = { id: '1', type: 'function', function: { name: 'weather', arguments: '{"a":1}' } } as const;
  const turn = (content: string): ChatMessage => ({ role: 'assistant', content, reasoning_content: 'Hm.', tool_calls: [call] });
  const called = '<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{"a": 1}<|call|>';
  expect((await understood({ messages: [USER, turn('')] })).text).toContain(`<|channel|>analysis<|message|>Hm.<|end|>${called}`);
  expect((await understood({ messages: [USER, turn('I look.')] })).text).toContain(`<|channel|>analysis<|message|>I look.<|end|>${called}`);
});

test('one call ends an answer that is to have no more', async () => {
  const { options } = await understood({ tools: [WEATHER], parallelToolCalls: false });
  expect(options).toMatchObject({ harmony: { single: true } });
  const one = '<|channel|>commentary to=functions.weather<|message|>{"a": 1}<|end|>';
  const text = `${ANALYSIS}<|start|>assistant${one}<|start|>assistant${one}`;
  for (const pieces of [[text], Array.from(text)]) {
    const { calls, content } = parse(pieces, { ...TOOLS, single: true });
    expect({ calls, content }).toEqual({ calls: [{ name: 'weather', arguments: '{"a": 1}' }], content: '' });
    expect(parse(pieces, TOOLS).calls).toHaveLength(2);
  }
});

test('tags are special tokens, and are read all the same', () => {
  const words = ['<|channel|>', 'analysis', '<|message|>', 'Hm', '<|end|>', '<|start|>', 'assistant', 'final', 'Yes'];
  const decode = (ids: readonly number[], { skipSpecialTokens = true } = {}): string => ids.map((id) => (skipSpecialTokens && words[id]!.startsWith('<|') ? '' : words[id]!)).join(''); // prettier-ignore
  const tokenizer = { decode, tokenId: () => undefined, isSilent: () => false } as unknown as Tokenizer;
  const parser = { harmony: { prompt: '<|start|>assistant', separate: true, tools: [] } };
  const choice = new ChatChoice(tokenizer, { index: 0, stop: [], skipSpecialTokens: true, parser, matcher: undefined });
  const answer = [0, 1, 2, 3, 4, 5, 6, 0, 7, 2, 8];
  const deltas = answer.flatMap(
    (token, i) => choice.take(token, { silent: false, last: i === answer.length - 1, logprobs: undefined }).deltas,
  );
  expect(deltas.map(({ reasoning = '' }) => reasoning).join('')).toBe('Hm');
  expect(deltas.map(({ text }) => text).join('')).toBe('Yes');
  // Every token is counted once.
  expect(deltas.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(answer.length);
});

describe('the token that closes a call', () => {
  const words = ['<|call|>', '<|return|>', ' to=functions.time', '<|message|>', '{', '"a": 1', '}'];
  const tokenizer = { decode: (ids: readonly number[]) => ids.map((id) => words[id]!).join(''), tokenId: (word: string) => words.indexOf(word), isSilent: () => false } as unknown as Tokenizer; // prettier-ignore
  /** The arguments of an answer that a token ends, or the limit of tokens. */
  function called(tokens: readonly number[], end?: number): string {
    const parser = { harmony: { prompt: '<|start|>assistant', separate: true, tools: ['time'] } };
    const choice = new ChatChoice(tokenizer, { index: 0, stop: [], skipSpecialTokens: true, parser, matcher: undefined });
    const answer = [2, 3, ...tokens, ...(end === undefined ? [] : [end])];
    const deltas = answer.flatMap((token, i) => {
      const last = i === answer.length - 1;
      return choice.take(token, { silent: last && end !== undefined, last, logprobs: undefined }).deltas;
    });
    return deltas.flatMap(({ toolCalls = [] }) => toolCalls.map((call) => ('arguments' in call ? call.arguments : ''))).join('');
  }

  test.each([0, 1])('ends the answer, so that nobody reads it, and what it closes is whole all the same', (end) => {
    expect(called([4, 5, 6], end)).toBe('{"a": 1}');
    expect(called([4, 5], end)).toBe('{"a": 1}');
    expect(called([], end)).toBe('{}');
  });

  test('is missing where the answer was cut', () => {
    expect(called([4, 5])).toBe('{"a": 1');
    expect(called([])).toBe('');
  });
});
