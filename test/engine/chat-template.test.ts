import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { ChatMessage } from '../../engine/api.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatTemplate } from '../../engine/text/chat-template.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const user = (content: ChatMessage['content']): ChatMessage => ({ role: 'user', content });

describe('ChatTemplate', () => {
  test('the bundled model gets the prompt and the ids it was trained on', async () => {
    const folder = await openModelFolder(createNodePlatform(), join(ROOT, 'models', 'parley-chat'));
    const tokenizer = await Tokenizer.load(folder);
    const template = await ChatTemplate.load(folder, tokenizer);
    const golden = JSON.parse(readFileSync(join(ROOT, 'test', 'fixtures', 'parley-chat', 'golden.json'), 'utf8')) as {
      messages: ChatMessage[];
      prompt: string;
      prompt_ids: number[];
    };
    const prompt = template.render(golden.messages);
    expect(prompt).toBe(golden.prompt);
    expect(tokenizer.encode(prompt)).toEqual(golden.prompt_ids);
  });

  test('templates see tokens, extra variables, joined parts, parsed tool arguments and tojson with indent', () => {
    const template = new ChatTemplate(
      '{# tools #}{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson(indent=2) }}{% endfor %}{% endfor %}{{ mood }}',
      { bos_token: '<s>' },
    );
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
    const messages: ChatMessage[] = [
      user([
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ]),
      { role: 'assistant', content: null, tool_calls: [call] },
    ];
    expect(template.render(messages, { mood: 'calm' })).toBe('<s>[user]ab[assistant]{\n  "x": 1\n}calm');
  });

  test('a call whose arguments are empty has none', () => {
    const template = new ChatTemplate('{# tools #}{{ messages[0].tool_calls[0].function.arguments | tojson }}');
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '' } };
    expect(template.render([{ role: 'assistant', content: null, tool_calls: [call] }])).toBe('{}');
  });

  test('Seed-OSS thinks in tags of its own, and results of its calls keep their role, which the template prints without naming it', () => {
    const source = "{% set begin = '<seed:tool_call>' %}{% for message in messages %}{{ '<' + message.role + '>' + message.content }}{% for c in message.tool_calls or [] %}{{ begin + c.function.name }}{% endfor %}{% endfor %}{{ tools }}"; // prettier-ignore
    const template = new ChatTemplate(source, {}, (token) => token === '<seed:think>');
    expect(template.thoughts).toEqual({ open: '<seed:think>', close: '</seed:think>', tokens: ['<seed:think>', '</seed:think>'] });
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages: ChatMessage[] = [{ role: 'assistant', content: '', tool_calls: [call] }, { role: 'tool', content: '12', tool_call_id: 'a' }]; // prettier-ignore
    expect(template.render(messages)).toBe('<assistant><seed:tool_call>f<tool>12');
  });

  test('Apertus thinks in tags of its own, though its vocabulary has those of others, and its calls and their results stand in the answer', () => {
    const source = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}{{ '<|tools_prefix|>[' }}{% for c in m.tool_calls %}{{- '{\"' + c.function.name + '\": ' + c.function.arguments + '}' }}{% endfor %}{{ ']<|tools_suffix|>' }}{% endif %}{% if m.role == 'tool' %} is a result{% endif %}{% endfor %}{% if tools %}tools{% endif %}"; // prettier-ignore
    const template = new ChatTemplate(source, {}, (token) => ['<think>', '<|inner_prefix|>'].includes(token));
    expect(template.thoughts).toMatchObject({ open: '<|inner_prefix|>', close: '<|inner_suffix|>' });
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"city": "Perth"}' } };
    const messages: ChatMessage[] = [{ role: 'assistant', content: '', tool_calls: [call] }, { role: 'tool', content: '12', tool_call_id: 'a' }]; // prettier-ignore
    expect(template.render(messages)).toBe('<|tools_prefix|>[{"f": {"city": "Perth"}}]<|tools_suffix|>12 is a result');
    const written = (text: string): string => template.render([{ role: 'assistant', content: '', tool_calls: [{ ...call, function: { name: 'f', arguments: text } }] }]); // prettier-ignore
    expect(written('{"n":1.0}')).toContain('{"f": {"n":1.0}}');
    expect(written("{'city': 'Perth',}")).toContain('{"f": {"city":"Perth"}}');
    expect(written('nobody reads this')).toContain('{"f": nobody reads this}');
    expect(written('')).toContain('{"f": {}}');
  });

  test.each<[string, ChatMessage['content'], string]>([
    ['a text', 'The fox', 'The fox'],
    ['a text that ends in blanks', ' The fox \n', ' The fox'],
    ['parts', [{ type: 'text', text: 'The' }, { type: 'text', text: ' fox' }], 'The fox'], // prettier-ignore
    ['what the template also writes behind it', '<', '<'],
    ['nothing yet', '', ''],
  ])('the prompt for an answer that goes on ends in %s', (_, content, end) => {
    const template = new ChatTemplate("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"); // prettier-ignore
    expect(template.renderOpen([user('<'), { role: 'assistant', content }])).toBe(`<|user|><<|end|>\n<|assistant|>${end}`);
  });

  test('developer is system for templates that do not know it', () => {
    const developer: ChatMessage = { role: 'developer', content: 'x' };
    expect(new ChatTemplate('{{ messages[0].role }}').render([developer])).toBe('system');
    expect(new ChatTemplate('{# developer #}{{ messages[0].role }}').render([developer])).toBe('developer');
  });

  test("a refusal is the caller's error and says why", () => {
    const template = new ChatTemplate("{{ raise_exception('roles must alternate') }}");
    expect(() => template.render([user('a')])).toThrow(/refuses these messages: .*roles must alternate/);
  });

  test('strftime_now gives a date', () => {
    expect(new ChatTemplate("{{ strftime_now('%Y') }}").render([])).toMatch(/^20\d\d$/);
  });

  test('a template that does not parse is a broken model, a base model gets plain text', () => {
    expect(() => new ChatTemplate('{% for %}')).toThrow(/chat template does not parse/);
    const plain = new ChatTemplate(undefined);
    expect(plain.isPlain).toBe(true);
    expect(plain.render([user('one'), user('two')])).toBe('one\ntwo');
  });
});
