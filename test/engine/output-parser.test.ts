import { describe, expect, test } from 'vitest';
import { OutputParser } from '../../engine/text/output-parser.ts';
import type { OutputEvent, OutputParserOptions } from '../../engine/text/output-parser.ts';
import { createRng } from '../../engine/util/rng.ts';

interface Parsed {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: { name: string; arguments: string }[];
}

/** Feeds the pieces and adds the events up as a client does. */
function parse(pieces: readonly string[], options: OutputParserOptions): Parsed {
  const parser = new OutputParser(options);
  const events: OutputEvent[] = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()];
  const calls: { name: string; arguments: string }[] = [];
  let content = '';
  let reasoning = '';
  for (const event of events) {
    if (event.type === 'content') content += event.text;
    else if (event.type === 'reasoning') reasoning += event.text;
    else if (event.type === 'call') calls[event.index] = { name: event.name, arguments: '' };
    else calls[event.index]!.arguments += event.text;
  }
  return { content, reasoning, calls };
}

const TOOLS = { tools: ['weather', 'time'] };
const call = (name: string, args: string): string => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

const cases: [string, string, OutputParserOptions, Parsed][] = [
  ['plain text', 'a < b and <b>', TOOLS, { content: 'a < b and <b>', reasoning: '', calls: [] }],
  ['text without parsing', '<think>x</think><tool_call>', {}, { content: '<think>x</think><tool_call>', reasoning: '', calls: [] }],
  ['reasoning', '<think>\nhm</think>\n\nYes.', { reasoning: { opened: false } }, { content: 'Yes.', reasoning: 'hm', calls: [] }],
  ['reasoning opened by the prompt', 'hm</think>Yes.', { reasoning: { opened: true } }, { content: 'Yes.', reasoning: 'hm', calls: [] }],
  ['reasoning that never ends', '<think>hm', { reasoning: { opened: false } }, { content: '', reasoning: 'hm', calls: [] }],
  ['one call', call('weather', '{"city": "Perth"}'), TOOLS, { content: '', reasoning: '', calls: [{ name: 'weather', arguments: '{"city": "Perth"}' }] }],
  [
    'text, then two calls',
    `Let me see.\n${call('weather', '{"a": [1, {"b": "}"}]}')}\n${call('time', '{}')}`,
    TOOLS,
    { content: 'Let me see.\n', reasoning: '', calls: [{ name: 'weather', arguments: '{"a": [1, {"b": "}"}]}' }, { name: 'time', arguments: '{}' }] },
  ],
  ['a call of an unknown tool', call('rm', '{}'), TOOLS, { content: call('rm', '{}'), reasoning: '', calls: [] }],
  ['broken JSON in a call', '<tool_call>weather(1)</tool_call>.', TOOLS, { content: '<tool_call>weather(1)</tool_call>.', reasoning: '', calls: [] }],
  ['a call cut by the length limit', '<tool_call>\n{"name": "weather", "arguments": {"ci', TOOLS, { content: '', reasoning: '', calls: [{ name: 'weather', arguments: '{"ci' }] }],
  ['a call cut before its name', '<tool_call>\n{"na', TOOLS, { content: '<tool_call>\n{"na', reasoning: '', calls: [] }],
  ['an escaped quote in a string', call('time', '{"q": "a \\" } b"}'), TOOLS, { content: '', reasoning: '', calls: [{ name: 'time', arguments: '{"q": "a \\" } b"}' }] }],
]; // prettier-ignore

describe('output parser', () => {
  test.each(cases)('%s', (_, text, options, expected) => {
    expect(parse([text], options)).toEqual(expected);
  });

  test.each(cases)('%s, whatever the cuts', (_, text, options, expected) => {
    expect(parse([...text], options)).toEqual(expected);
    const rng = createRng(text.length);
    for (let round = 0; round < 50; round++) {
      const pieces: string[] = [];
      for (let at = 0; at < text.length;) {
        const length = 1 + rng.integer(9);
        pieces.push(text.slice(at, at + length));
        at += length;
      }
      expect(parse(pieces, options)).toEqual(expected);
    }
  });

  test('where only calls can come, the beginning of one is no content; text is', () => {
    const whole = call('weather', '{}');
    for (let length = 1; length < whole.indexOf('"arguments"'); length++) {
      const cut = whole.slice(0, length);
      expect(parse([cut], { ...TOOLS, forced: true }), cut).toEqual(parse([], TOOLS));
      expect(parse([cut], TOOLS).content, cut).toBe(cut);
    }
    expect(parse(['<b'], { ...TOOLS, forced: true }).content).toBe('<b');
    expect(parse([whole, '\n<tool_'], { ...TOOLS, forced: true })).toEqual(parse([whole], TOOLS));
  });

  test('content is passed on at once, but for what may begin a tag', () => {
    const parser = new OutputParser(TOOLS);
    expect(parser.push('Hello <tool')).toEqual([{ type: 'content', text: 'Hello ' }]);
    expect(parser.push('box>')).toEqual([{ type: 'content', text: '<toolbox>' }]);
  });
});
