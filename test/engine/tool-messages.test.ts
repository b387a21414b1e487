/** Conversations with calls and results, as templates of published models take them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import type { ChatMessage } from '../../engine/api.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatChoice } from '../../engine/tasks/chat-choice.ts';
import { encodePrompt } from '../../engine/tasks/chat-request.ts';
import { HERMES } from '../../engine/text/call-forms.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';
import type { LongTexts } from '../../engine/text/long-texts.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const call = (id: string, name: string, args: string) => ({ id, type: 'function', function: { name, arguments: args } });
const TALK: ChatMessage[] = [
  { role: 'user', content: 'Weather?' },
  { role: 'assistant', content: null, tool_calls: [call('call_0123456789abcdef01234567', 'weather', '{"city": "Perth"}'), call('b', 'time', '')] },
  { role: 'tool', tool_call_id: 'call_0123456789abcdef01234567', content: '{"degrees": 20}' },
  { role: 'tool', tool_call_id: 'b', content: 'noon' },
  { role: 'user', content: 'So?' },
]; // prettier-ignore

/** Roles and texts, as a template of the plainest kind writes them. */
const EACH = '{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}';

describe('tool messages', () => {
  test('a template that knows no tools gets calls as the model writes them, and results from the user', () => {
    const said = [
      '[user]Weather?[assistant]<tool_call>\n{"name": "weather", "arguments": {"city":"Perth"}}\n</tool_call>',
      '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>[user]<tool_response>\n{"degrees": 20}\n</tool_response>',
      '<tool_response>\nnoon\n</tool_response>',
      'So?',
    ];
    expect(new ChatTemplate(EACH).render(TALK)).toBe(said.join('\n'));
    const last = [...TALK.slice(0, -1), { role: 'assistant', content: 'Warm.' }, { role: 'user', content: 'Oh.' }] as ChatMessage[];
    expect(new ChatTemplate(EACH).render(last)).toBe(`${said.slice(0, 3).join('\n')}[assistant]Warm.[user]Oh.`);
  });

  test("a template that shows no tools, as DeepSeek's distilled models have it, gets calls as they were asked for, though it has a form", () => {
    const distilled =
      "{% for m in messages %}{% if m['role'] == 'assistant' and m['tool_calls'] %}{% for c in m['tool_calls'] %}{{ '```json' + c['function']['arguments'] + '```' }}{% endfor %}{% endif %}{% if m['role'] == 'tool' %}<output>{% endif %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}";
    expect(new ChatTemplate(distilled).render(TALK)).toBe(new ChatTemplate(EACH).render(TALK));
  });

  test('a template that shows tools and results, but no calls, gets them in its own form', () => {
    const lfm2 = `{{ tools | tojson }}{% for m in messages %}{% if m.role == "tool" %}(tool){% endif %}{{ m.content }}{% endfor %}`;
    const template = new ChatTemplate(lfm2, {}, (token) => token === '<|tool_call_start|>');
    const [talk] = [{ ...TALK[1]!, content: 'I look.' } as ChatMessage];
    expect(template.render([TALK[0]!, talk, TALK[2]!], { tools: [] })).toBe(
      '[]Weather?I look.\n<|tool_call_start|>[{"name": "weather", "arguments": {"city":"Perth"}}, {"name": "time", "arguments": {}}]<|tool_call_end|>(tool){"degrees": 20}',
    );
  });

  test.each<[what: string, written: string, read: string, shown: string]>([
    ['as JSON', '{"a": [1]}', '{"a": [1]}', '{"a": [1]}'],
    ['blank', ' ', '{}', '{}'],
    ['as Python prints them', "{'a': True,}", '{"a": true}', '{"a": true}'],
    ['as JSON of their JSON', '"{\\"a\\": 1}"', '{"a": 1}', '{"a": 1}'],
    ['as JSON of what is none', '"{\\"a\\": [1, "', '{}', '{"a": [1, '],
    ['quoted in quotes', '{"a": "b "c""}', '{}', '{"a": "b "c""}'],
    ['cut', '{"a": [1, ', '{}', '{"a": [1, '],
    ['a list', '[1]', '{}', '[1]'],
    ['null', 'null', '{}', 'null'],
    ['no JSON', 'Perth', '{}', 'Perth'],
  ])('arguments %s are an object to a template; what is none is shown where texts are printed', (_, written, read, shown) => {
    const talk: ChatMessage[] = [{ role: 'assistant', content: null, tool_calls: [call('a', 'f', written)] }];
    const each = (print: string): string =>
      `{# tools #}{% for m in messages %}{% for c in m.tool_calls %}{% set a = c.function.arguments %}${print}{% endfor %}{% endfor %}`;
    const printed = each('{{ a | tojson }}');
    expect(new ChatTemplate(printed).render(talk)).toBe(read);
    const walked = each('{% for key, value in a.items() %}{{ key }}={{ value | tojson }};{% endfor %}');
    expect(new ChatTemplate(walked).render(talk)).toBe(Object.entries(JSON.parse(read)).map(([key, value]) => `${key}=${JSON.stringify(value)};`).join('')); // prettier-ignore
    for (const texts of ['c.function.arguments is string', "c['function']['arguments'] is string"]) {
      const either = each(`{% if ${texts} %}{{ a }}{% else %}{{ a | tojson }}{% endif %}`);
      expect(new ChatTemplate(either).render(talk)).toBe(shown);
    }
    const said = shown === read ? JSON.stringify(JSON.parse(read)) : shown;
    expect(new ChatTemplate(EACH).render(talk)).toBe(`[assistant]<tool_call>\n{"name": "f", "arguments": ${said}}\n</tool_call>`);
  });

  test('what is mended of a conversation is bounded', () => {
    const printed =
      '{# tools #}{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson | length }} {% endfor %}{% endfor %}';
    const long = (length: number) => call('a', 'f', `{'a': '${'x'.repeat(length)}'}`);
    const talk: ChatMessage[] = [{ role: 'assistant', content: null, tool_calls: [long(1_000_000), long(100_000), long(9)] }];
    expect(new ChatTemplate(printed).render(talk)).toBe('1000009 2 2 ');
  });

  test('arguments that are none, or nothing, by the ten thousand take no time', () => {
    const answer = (args: readonly string[]): ChatMessage[] => [
      { role: 'assistant', content: null, tool_calls: args.map((text) => call('a', 'f', text)) },
    ];
    const parse = vi.spyOn(JSON, 'parse');
    const written = new ChatTemplate(EACH).render(answer([...Array<string>(20_000).fill(''), '{"a": 1}']));
    expect(parse).toHaveBeenCalledTimes(1);
    expect(written).toContain('{"name": "f", "arguments": {"a":1}}');
    parse.mockClear();
    new ChatTemplate(EACH).render(answer(Array<string>(20_000).fill('{a:')));
    expect(parse.mock.calls.length).toBeLessThan(5000);
    parse.mockRestore();
  });

  test("Mistral's templates get ids of nine letters and digits, the same for a call and its result", () => {
    const mistral =
      "{# tools #}{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('length 9!') }}{% endif %}[TOOL_CALLS]{{ c.id }}{% endfor %}{% if m.role == 'tool' %}({{ m.tool_call_id }}){% endif %}{% endfor %}";
    expect(new ChatTemplate(mistral).render(TALK)).toBe('[TOOL_CALLS]f01234567[TOOL_CALLS]00000000b(f01234567)(00000000b)');
  });

  test('an empty list of calls, as clients send it beside a text, is none', () => {
    const llama =
      "{# tools tool_calls #}{% for m in messages %}{% if 'tool_calls' in m %}{{ raise_exception('one call!') }}{% endif %}{{ m.content }}{% endfor %}";
    const talk: ChatMessage[] = [
      { role: 'user', content: 'Hi.' },
      { role: 'assistant', content: 'Yes?', tool_calls: [] },
    ];
    for (const source of [llama, llama.replace('# tools tool_calls #', '# #')])
      expect(new ChatTemplate(source).render(talk)).toBe('Hi.Yes?');
  });

  test("Llama 3's templates get one call a message, and its results behind it", () => {
    const llama =
      "{# tools tool_calls 'tool' #}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% if 'tool_calls' in m %}{% if m.tool_calls|length != 1 %}{{ raise_exception('This model only supports single tool-calls at once!') }}{% endif %}{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}";
    const stray: ChatMessage = { role: 'tool', tool_call_id: 'c', content: 'stray' };
    const [asked, called, degrees, noon, next] = TALK as [ChatMessage, ChatMessage, ChatMessage, ChatMessage, ChatMessage];
    expect(new ChatTemplate(llama).render([asked, { ...called, content: 'I look.' }, stray, noon, degrees, next])).toBe(
      '[user]Weather?[assistant]I look.weather[tool]{"degrees": 20}[assistant]time[tool]stray[tool]noon[user]So?',
    );
  });

  test('tools go into the instructions that are there, of either role, also in parts', async () => {
    const gemma = `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('one!') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}`;
    const texts = { encode: () => Promise.resolve([]) } as unknown as LongTexts;
    const tools = [{ name: 'time' }];
    for (const first of [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'Be brief.' },
      {
        role: 'system',
        content: [
          { type: 'text', text: 'Be ' },
          { type: 'text', text: 'brief.' },
        ],
      },
    ] satisfies ChatMessage[]) {
      const request = { messages: [first, TALK[0]!], sampling: {}, tools };
      const { text } = await encodePrompt({ texts, template: new ChatTemplate(gemma), vocabulary: 1 }, request, () => undefined);
      expect(text).toMatch(/^\[system\]Be brief\.\n\nYou may call functions\.[^]*\[user\]Weather\?$/);
    }
  });

  test("Gemma 4's first template gets results, and the answer to them, within the message that called", () => {
    const gemma =
      "{# tools #}{% for m in messages %}[{{ m['role'] }}]{% for c in m['tool_calls'] or [] %}call:{{ c.function.name }};{% endfor %}{% for r in m['tool_responses'] or [] %}{{ r | tojson }};{% endfor %}{{ m['content'] }}{% endfor %}";
    const answered: ChatMessage[] = [...TALK.slice(0, 4), { role: 'assistant', content: 'Warm.' }];
    expect(new ChatTemplate(gemma).render(answered)).toBe(
      '[user]Weather?[assistant]call:weather;call:time;{"name": "weather", "response": {"degrees": 20}};{"name": "time", "response": "noon"};Warm.',
    );
    // A later one takes them as they are.
    const later = gemma.replace('{% for m in', "{# role == 'tool' #}{% for m in");
    expect(new ChatTemplate(later).render(answered)).toContain('[tool]noon[assistant]Warm.');
  });

  test('a template that refuses instructions gets them in front of what the user says', () => {
    const gemma2 = `{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}${EACH}`;
    const system: ChatMessage = { role: 'system', content: 'Be brief.' };
    expect(new ChatTemplate(gemma2).render([system, TALK[0]!])).toBe('[user]Be brief.\n\nWeather?');
    expect(new ChatTemplate(EACH).render([system, TALK[0]!])).toBe('[system]Be brief.[user]Weather?');
  });

  test("Phi-4-mini's template gets tools with a system message, SmolLM3's by another name", async () => {
    const phi = "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}<|system|>{{ message['content'] }}<|tool|>{{ message['tools'] }}<|/tool|>{% else %}<|{{ message['role'] }}|>{{ message['content'] }}{% endif %}<|end|>{% endfor %}"; // prettier-ignore
    const texts = { encode: () => Promise.resolve([]) } as unknown as LongTexts;
    const tools = [{ name: 'time', strict: true }];
    const promptOf = async (messages: ChatMessage[]): Promise<string> =>
      (await encodePrompt({ texts, template: new ChatTemplate(phi), vocabulary: 1 }, { messages, sampling: {}, tools }, () => undefined))
        .text;
    const rest = '<|tool|>[{"name":"time"}]<|/tool|><|end|><|user|>Weather?<|end|>';
    expect(await promptOf([TALK[0]!])).toBe(`<|system|>You are a helpful assistant with some tools.${rest}`);
    const smol = '{% for tool in xml_tools[:] %}{{ (tool | string) ~ "\n" }}{% endfor %}';
    const request = { messages: [TALK[0]!], sampling: {}, tools };
    expect((await encodePrompt({ texts, template: new ChatTemplate(smol), vocabulary: 1 }, request, () => undefined)).text).toBe(
      '{"name":"time"}\n',
    );
    expect(await promptOf([{ role: 'system', content: 'Be brief.' }, TALK[0]!])).toBe(`<|system|>Be brief.${rest}`);
  });

  test('arguments that nothing can walk are refused as what the caller sent', () => {
    const deep = call('a', 'weather', `{"a": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
    const render = (): string => new ChatTemplate(EACH).render([{ role: 'assistant', content: null, tool_calls: [deep] }]);
    expect(render).toThrow(expect.objectContaining({ code: 'invalid_request', param: 'messages' }));
  });

  test('tags of calls that are special tokens are text where they are read', async () => {
    const folder = await openModelFolder(
      createNodePlatform(),
      join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat'),
    );
    const tokenizer = await Tokenizer.load(folder);
    const ids = tokenizer.encode('<|im_start|>fox<|im_end|>');
    const keep = new Set([ids.at(-1)]);
    expect(tokenizer.decode(ids)).toBe('fox');
    expect(tokenizer.decode(ids, { keep })).toBe('fox<|im_end|>');
    expect(tokenizer.decode(ids.slice(0, -1), { keep })).toBe('fox');
    expect(tokenizer.decode(ids, { skipSpecialTokens: false, keep })).toBe('<|im_start|>fox<|im_end|>');
    const form = { ...HERMES, tags: [{ ...HERMES.tags[0], open: '<|im_start|>', close: '<|im_end|>' }] as const };
    const parser = { tools: ['time'], form, tokens: ['<|im_start|>', '<|im_end|>'] };
    const choice = new ChatChoice(tokenizer, { index: 0, stop: [], skipSpecialTokens: true, parser, matcher: undefined });
    const written = tokenizer.encode('Well. <|im_start|>{"name": "time", "arguments": {"at": 3}}<|im_end|>');
    const deltas = written.flatMap((token) => choice.take(token, { silent: false, last: false, logprobs: undefined }).deltas);
    expect(deltas.map(({ text }) => text).join('')).toBe('Well. ');
    const calls = deltas.flatMap(({ toolCalls = [] }) => toolCalls);
    expect(calls.map((piece) => piece.name ?? piece.arguments).join('')).toBe('time{"at": 3}');
  });
});
