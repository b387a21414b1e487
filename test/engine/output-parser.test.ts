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

const perth = '{"city": "Perth"}';
const bare = (name: string, args: string, key = 'arguments'): string => `{"name": "${name}", "${key}": ${args}}`;
const CALLED = { content: '', reasoning: '', calls: [{ name: 'weather', arguments: perth }] };
const BOTH = { ...CALLED, calls: [...CALLED.calls, { name: 'time', arguments: '{}' }] };

/** Calls without tags, as models write them whose templates ask for tags, or for none. */
const untagged: [string, string, Parsed, OutputParserOptions?][] = [
  ['an object', bare('weather', perth), CALLED],
  ['a fence', `\`\`\`json\n${bare('weather', perth)}\n\`\`\``, CALLED],
  ['a fence without a language, white space around', `\n\`\`\`\n${bare('weather', perth)}\n\`\`\`\n`, CALLED],
  ['a fence that is not closed', `\`\`\`json\n${bare('weather', perth)}\n`, CALLED],
  ['lines and spaces', `{\n  "name" : "weather",\n  "arguments" : ${perth}\n}`, CALLED],
  ['parameters', bare('weather', perth, 'parameters'), CALLED],
  ['a type', `{"type": "function", "name": "weather", "parameters": ${perth}}`, CALLED],
  ['the name last', `{"arguments": ${perth}, "name": "weather"}`, CALLED],
  ['a list', `[${bare('weather', perth)}, ${bare('time', '{}')}]`, BOTH],
  ['a line each', `${bare('weather', perth)}\n${bare('time', '{}')}`, BOTH],
  ['semicolons', `${bare('weather', perth, 'parameters')}; ${bare('time', '{}', 'parameters')}`, BOTH],
  ['two fences', `\`\`\`json\n${bare('weather', perth)}\n\`\`\`\n\n\`\`\`json\n${bare('time', '{}')}\n\`\`\``, BOTH],
  ['brackets and quotes in arguments', bare('weather', '{"a": ["}\\"", {"b": "]"}]}'), { ...CALLED, calls: [{ name: 'weather', arguments: '{"a": ["}\\"", {"b": "]"}]}' }] }],
  ['after thoughts', `<think>hm</think>\n${bare('weather', perth)}`, { ...CALLED, reasoning: 'hm' }, { ...TOOLS, reasoning: { opened: false } }],
]; // prettier-ignore

const SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string' }, days: { type: 'integer' }, exact: { type: 'boolean' }, code: { anyOf: [{ type: 'string' }, { type: 'null' }] }, at: { type: 'array' }, kind: { enum: ['a', '1'] }, more: { $ref: '#/$defs/more' },
  },
}; // prettier-ignore
const xml = (...pairs: [string, string][]): string =>
  `<tool_call>\n<function=weather>\n${pairs.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join('')}</function>\n</tool_call>`;

/** Calls whose values are text: what is written, and the arguments. */
const xmlCalls: [string, string, string][] = [
  ['a text', xml(['city', 'Perth']), '{"city": "Perth"}'],
  ['no parameter', xml(), '{}'],
  ['a number, a boolean and a list', xml(['days', '3'], ['exact', 'True'], ['at', '[1, "b"]']), '{"days": 3, "exact": true, "at": [1, "b"]}'],
  ['lines, quotes and tags in a text', xml(['city', '\n if a < "b":\n  <p>\n']), '{"city": "\\n if a < \\"b\\":\\n  <p>\\n"}'],
  ['text that is a number elsewhere', xml(['city', '12'], ['kind', '1']), '{"city": "12", "kind": "1"}'],
  ['null where it may be', xml(['code', 'null'], ['city', 'null']), '{"code": null, "city": "null"}'],
  ['what is no number', xml(['days', 'three']), '{"days": "three"}'],
  ['values as Python prints them', xml(['more', "{'a': [True, None]}"], ['at', "['b',]"]), '{"more": {"a": [true, null]}, "at": ["b"]}'],
  ['an object by reference, and a parameter that no schema has', xml(['more', '{"a": 1}'], ['other', 'x']), '{"more": {"a": 1}, "other": "x"}'],
  ['all on one line', '<tool_call><function=weather><parameter=city>Perth</parameter></function></tool_call>', '{"city": "Perth"}'],
  ['ends that were forgotten', '<tool_call>\n<function=weather>\n<parameter=city>\nPerth\n</function>\n</tool_call>', '{"city": "Perth"}'],
  ['no end of the function', '<tool_call>\n<function=weather>\n<parameter=city>\nPerth\n</parameter>\n</tool_call>', '{"city": "Perth"}'],
]; // prettier-ignore

const noCalls: [string, string][] = [
  ['another tool', bare('rm', '{}')],
  ['text behind', `${bare('weather', perth)} That is it.`],
  ['text behind a fence', `\`\`\`json\n${bare('weather', perth)}\n\`\`\`\nThat is it.`],
  ['text before', `Well: ${bare('weather', perth)}`],
  ['another key', `{"name": "weather", "city": "Perth"}`],
  ['arguments that are no object', bare('weather', '"Perth"')],
  ['arguments that nobody can read', bare('weather', '{"city": Perth}')],
  ['no arguments', '{"name": "weather"}'],
  ['no name', `{"arguments": ${perth}}`],
  ['a number for a name', `{"name": 7, "arguments": ${perth}}`],
  ['another language', '```python\nprint(1)\n```'],
  ['a fence and nothing in it', '```json\n```'],
  ['cut', bare('weather', perth).slice(0, -2)],
  ['a second one that was cut', `${bare('weather', perth)}\n{"name": "ti`],
  ['a list of other things', '[1, 2]'],
  ['white space', ' \n'],
  ['an empty object', '{}'],
];

describe('output parser', () => {
  test.each(untagged)('calls without tags: %s, whatever the cuts', (_, text, expected, options = TOOLS) => {
    for (const pieces of [[text], [...text], [text.slice(0, 9), text.slice(9)]]) expect(parse(pieces, options)).toEqual(expected);
    if (!options.reasoning) expect(parse([text], {}), 'without tools').toEqual({ content: text, reasoning: '', calls: [] });
  });

  test('JSON that a grammar holds may say what looks like a call', () => {
    const options = { ...TOOLS, held: true };
    for (const text of [`{"a": ${JSON.stringify(call('weather', '{}'))}}`, bare('weather', perth)]) {
      for (const pieces of [[text], [...text]]) expect(parse(pieces, options)).toEqual({ content: text, reasoning: '', calls: [] });
    }
    const both = `${call('weather', perth)}\n${call('time', '{}')}`;
    for (const pieces of [[both], [...both]]) expect(parse(pieces, options)).toEqual(BOTH);
  });

  test('an answer that goes on from a text keeps the white space in front of it', () => {
    const reasoning = { opened: false };
    expect(parse([' jumped', ' over'], { reasoning }).content).toBe('jumped over');
    expect(parse([' jumped', ' over'], { reasoning, continued: true }).content).toBe(' jumped over');
    expect(parse(['\nHm.\n</think>\n\nYes'], { reasoning: { opened: true }, continued: true })).toMatchObject({
      content: 'Yes',
      reasoning: 'Hm.\n',
    });
  });

  test('one call ends an answer that is to have no more', () => {
    const options = { ...TOOLS, single: true };
    for (const text of [`Well.\n${call('weather', perth)}\n${call('time', '{}')}`, `${call('weather', perth)} and more`]) {
      for (const pieces of [[text], [...text]]) expect(parse(pieces, options).calls).toEqual(CALLED.calls);
      const parser = new OutputParser(options);
      const end = text.indexOf('</tool_call>') + '</tool_call>'.length;
      parser.push(text.slice(0, end - 1));
      expect(parser.done).toBe(false);
      parser.push(text.slice(end - 1, end));
      expect(parser.done).toBe(true);
    }
    expect(parse([`[${bare('weather', perth)}, ${bare('time', '{}')}]`], options)).toEqual(CALLED);
    const talk = new OutputParser(options);
    talk.push('Well.');
    expect(talk.done).toBe(false);
  });

  test.each(xmlCalls)('a call whose values are text: %s', (_, text, args) => {
    const options = { ...TOOLS, parameters: [SCHEMA] };
    const expected = { content: 'Well.\n', reasoning: '', calls: [{ name: 'weather', arguments: args }, { name: 'time', arguments: '{}' }] }; // prettier-ignore
    const whole = `Well.\n${text}\n${call('time', '{}')}`;
    for (const pieces of [[whole], [...whole], whole.split(/(?<=\n)/)]) expect(parse(pieces, options)).toEqual(expected);
    expect(JSON.parse(args)).toBeTypeOf('object');
  });

  test('such a call comes parameter by parameter; of another tool it is text, and so is an empty one', () => {
    const parser = new OutputParser({ ...TOOLS, parameters: [SCHEMA] });
    const [first = '', second = ''] = xml(['city', 'Perth'], ['days', '2']).split(/(?<=parameter>\n)(?=<parameter=days)/);
    expect(parser.push(first)).toEqual([
      { type: 'call', index: 0, name: 'weather' },
      { type: 'arguments', index: 0, text: '{"city": "Perth"' },
    ]);
    expect(parser.push(second)).toEqual([{ type: 'arguments', index: 0, text: ', "days": 2}' }]);
    for (const text of [xml(['city', 'x']).replace('weather', 'rm'), '<tool_call></tool_call>', '<tool_call>', '<tool_call>\n<func']) {
      for (const pieces of [[text], [...text]]) expect(parse(pieces, TOOLS)).toEqual({ content: text, reasoning: '', calls: [] });
    }
    for (const text of ['<tool_call>', '<tool_call>\n<function=wea'])
      expect(parse([text], { ...TOOLS, forced: true })).toEqual({ content: '', reasoning: '', calls: [] });
  });

  test.each(noCalls)('no call: %s, and nothing of it is lost', (_, text) => {
    for (const pieces of [[text], [...text], [text.slice(0, 9), text.slice(9)]]) {
      expect(parse(pieces, TOOLS)).toEqual({ content: text, reasoning: '', calls: [] });
    }
  });

  test.each([
    ['{"name": "wea', 'r'],
    ['{"na', 'v'],
    ['[', '1'],
    ['```js', 'x'],
    ['{"name": "weather", "arguments": ', '['],
    [bare('weather', '{}'), 'x'],
  ])('%s is held back until something else follows', (text, other) => {
    const parser = new OutputParser(TOOLS);
    expect(parser.push(text)).toEqual([]);
    expect(parser.push(other)).toEqual([{ type: 'content', text: text + other }]);
    expect(parser.push('{')).toEqual([{ type: 'content', text: '{' }]);
  });

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
