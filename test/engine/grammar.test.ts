import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { callFormOf } from '../../engine/text/call-forms.ts';
import { Grammars } from '../../engine/text/grammar.ts';
import type { Constraint, GrammarMatcher } from '../../engine/text/grammar.ts';
import { findSchemaProblem } from '../../engine/text/json-schema.ts';
import { OutputParser } from '../../engine/text/output-parser.ts';

const STOP = 2;
/** One of each kind. */
const FORMS = ['<tool_call>', '[TOOL_CALLS] [ARGS]', '[TOOL_CALLS]', '<|tool_call>', '<start_function_call>', '<|tool_call_start|>', '<function_calls>', '<|/tool_call|>', '<|tool_call|>'].map((template) => callFormOf(template, () => false)); // prettier-ignore
let grammars: Grammars;
let tokens: string[];

beforeAll(() => {
  const file = JSON.parse(readFileSync('models/parley-chat/tokenizer.json', 'utf8')) as {
    model: { vocab: Record<string, number> };
    added_tokens: { id: number; content: string }[];
  };
  tokens = [];
  for (const [token, id] of Object.entries(file.model.vocab)) tokens[id] = token;
  for (const { id, content } of file.added_tokens) tokens[id] = content;
  const url = new URL('../../engine/text/grammar-worker.ts', import.meta.url);
  const platform = createNodePlatform();
  grammars = new Grammars(
    () => platform.startGrammarWorker!(url),
    () => ({ tokens, type: 'byte_level', stopTokenIds: [STOP] }),
  );
});
afterAll(() => grammars.close());

const start = async (constraint: Constraint): Promise<GrammarMatcher> => (await grammars.start(constraint, 1))[0]!;

const allowed = (mask: Int32Array, token: number): boolean => ((mask[token >> 5]! >>> (token & 31)) & 1) === 1;

/** How a byte-level BPE writes each byte: printable ones as they are, the others by the characters from U+0100 on. */
const BYTES = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
BYTES.filter((char) => !/[!-~\u00a1-\u00ac\u00ae-\u00ff]/.test(char)).forEach(
  (char, i) => (BYTES[char.charCodeAt(0)] = String.fromCharCode(0x100 + i)),
);

/** Spells `text` byte by byte as single-character tokens; true when every one is allowed and the end may follow. */
async function accepts(constraint: Constraint, text: string): Promise<boolean> {
  const matcher: GrammarMatcher = await start(constraint);
  try {
    for (const byte of Buffer.from(text)) {
      const token = tokens.indexOf(BYTES[byte]!);
      if (token < 0) throw new Error(`no token for byte ${byte}`);
      if (!allowed(await matcher.bitmask(), token)) return false;
      if (!matcher.accept(token)) return false;
    }
    return allowed(await matcher.bitmask(), STOP);
  } finally {
    matcher.dispose();
  }
}

/** What is written when the first token that is allowed, and no space if that can be, is taken each time. */
async function written(constraint: Constraint): Promise<unknown> {
  const matcher = await start(constraint);
  let text = '';
  try {
    while (!matcher.terminated) {
      const mask = await matcher.bitmask();
      const choices = tokens.flatMap((token, id) => (id !== STOP && token && allowed(mask, id) ? [id] : []));
      if (choices.length === 0) break;
      const token = choices.find((id) => !/[\u0100-\u0120]/.test(tokens[id]!)) ?? choices[0]!;
      matcher.accept(token);
      text += tokens[token]!;
    }
    return JSON.parse(
      text.replace(/[\u0100-\u0121]/g, (char) => String.fromCharCode(char === '\u0121' ? 0x7f : char.charCodeAt(0) - 0x100)),
    );
  } finally {
    matcher.dispose();
  }
}

const schema = (value: unknown): Constraint => ({ type: 'json_schema', schema: value });

describe('grammar', () => {
  test('json_object allows any object and nothing else', async () => {
    expect(await accepts({ type: 'json_object' }, '{"a": [1, null, {"b": "c d"}]}')).toBe(true);
    expect(await accepts({ type: 'json_object' }, '{}')).toBe(true);
    expect(await accepts({ type: 'json_object' }, '[1]')).toBe(false);
    expect(await accepts({ type: 'json_object' }, 'Sure')).toBe(false);
  });

  test.each(['"', '\\', '/', '\b', '\t', '\n', '\u0007', '\u001b', '\u007f', "'"])(
    'a name, an enum and a constant with %j are written as JSON',
    async (odd) => {
      const text = `a${odd}b`;
      const named = { type: 'object', properties: { [text]: { const: 1 } }, required: [text], additionalProperties: false };
      expect(await written(schema(named))).toEqual({ [text]: 1 });
      expect(await written(schema({ enum: [text] }))).toBe(text);
      expect(await written(schema({ const: { [text]: [text] } }))).toEqual({ [text]: [text] });
    },
  );

  test('tool calls have one form, without room for rambling', async () => {
    const tools = [{ name: 'f', parameters: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false } }, { name: 'g' }]; // prettier-ignore
    const f = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>';
    const g = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>';
    const many: Constraint = { type: 'tool_calls', tools, single: false };
    const one: Constraint = { type: 'tool_calls', tools, single: true };
    expect(await accepts(many, f)).toBe(true);
    expect(await accepts(many, `${f}\n${g}`)).toBe(true);
    expect(await accepts(one, g)).toBe(true);
    expect(await accepts(one, `${f}\n${g}`)).toBe(false);
    expect(await accepts(many, 'Sure')).toBe(false);
    expect(await accepts(many, f.replace('{"a"', '{  "a"'))).toBe(false);
    expect(await accepts(many, f.replace('"f"', '"h"'))).toBe(false);
  });

  test.each(FORMS.map((form) => [form.tags[0].open, form] as const))(
    'calls in the form of %s, alone and in other text',
    async (_, form) => {
      const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false };
      const tools = [{ name: 'f', parameters: schema }, { name: 'g' }];
      const { begin, call, separator, end } = form.writing;
      const write = (...calls: [string, string][]): string => begin + calls.map(([name, args]) => call(name).join(args)).join(separator) + end; // prettier-ignore
      const [f, both, wrong] = [write(['f', '{"a": 1}']), write(['f', '{"a": 1}'], ['g', '{}']), write(['f', '{"a": "x"}'])];
      const many = { type: 'tool_calls', tools, single: false, form } as const;
      const one = { ...many, single: true };
      const said = (constraint: Constraint, ...texts: string[]): Promise<boolean[]> => Promise.all(texts.map((text) => accepts(constraint, text))); // prettier-ignore
      expect(await said(many, f, both, wrong, `Well. ${f}`)).toEqual([true, true, false, false]);
      expect(await said(one, f, both)).toEqual([true, false]);
      const free: Constraint = { type: 'text_and_calls', calls: many };
      expect(await said(free, f, both, `Well.\n${f}`, 'a < [é] 你好 🦊', '', wrong, `Well. ${wrong}`)).toEqual([true, true, true, true, true, false, false]); // prettier-ignore
      expect(await said({ type: 'text_and_calls', calls: one }, `Well. ${f}`, `Well. ${both}`)).toEqual([true, false]);
      const either: Constraint = { type: 'json_or_calls', json: { type: 'json_object' }, calls: many };
      expect(await said(either, f, both, '{"a": 1}', wrong, 'Well.')).toEqual([true, true, true, false, false]);
      const parser = new OutputParser({ tools: ['f', 'g'], form });
      const events = [...parser.push(both), ...parser.finish()];
      expect(events.map((event) => (event.type === 'call' ? event.name : event.text)).join(' ')).toBe('f {"a": 1} g {}');
    },
  );

  test('strict calls without tags are held to their schemas in other text', async () => {
    const parameters = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false };
    const tools = [{ name: 'f', parameters, strict: true }, { name: 'fg', parameters: { type: 'object' } }]; // prettier-ignore
    const free: Constraint = { type: 'text_and_calls', calls: { type: 'tool_calls', tools, single: false } };
    const f = (value: string): string => `\`\`\`json\n{\n  "name": "f",\n  "arguments": {\n    "a": ${value}\n  }\n}\n\`\`\``;
    for (const text of [f('1'), '{"name": "fg", "arguments": {"a": "x"}}', '{"name": "Anna"}', `${f('1')}\n${f('2')}`]) expect(await accepts(free, text), text).toBe(true); // prettier-ignore
    for (const text of [f('"x"'), '{"name": "f", "age": 3}', '{"name": "f", "arguments": {"a": 1, "b": 2}}'])
      expect(await accepts(free, text), text).toBe(false);
  });

  test('an answer may be JSON or calls, and not both', async () => {
    const calls = { type: 'tool_calls', tools: [{ name: 'g' }], single: false } as const;
    const g = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>';
    const bounded = { type: 'json_schema', schema: { type: 'object', properties: { a: { type: 'integer', minimum: 3 } }, required: ['a'], additionalProperties: false } } as const; // prettier-ignore
    for (const json of [bounded, { type: 'json_object' } as const]) {
      const either: Constraint = { type: 'json_or_calls', json, calls };
      for (const text of ['{"a": 3}', '{\n"a": 12}', g, `${g}\n${g}`]) expect(await accepts(either, text), text).toBe(true);
      for (const text of [`{"a": 3}\n${g}`, `${g}\n{"a": 3}`, 'Sure', '[1]']) expect(await accepts(either, text), text).toBe(false);
      expect(await accepts(either, '{"a": 2}')).toBe(json.type === 'json_object');
      const one: Constraint = { ...either, calls: { ...calls, single: true } };
      expect([await accepts(one, g), await accepts(one, '{"a": 3}'), await accepts(one, `${g}\n${g}`)]).toEqual([true, true, false]);
    }
  });

  // Every keyword that findSchemaProblem lets through is enforced: [schema, a text it accepts, a text it refuses].
  test.each<[string, unknown, string, string]>([
    ['type', { type: 'integer' }, '-12', '"x"'],
    ['type list', { type: ['integer', 'null'] }, 'null', '"x"'],
    ['enum', { enum: ['a', 1] }, '1', '2'],
    ['const', { const: { a: 1 } }, '{"a":1}', '{"a":2}'],
    [
      'required',
      { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false },
      '{"a": 1}',
      '{}',
    ],
    ['additionalProperties', { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: false }, '{}', '{"b": 1}'],
    [
      'patternProperties',
      { type: 'object', patternProperties: { '^x$': { type: 'integer' } }, additionalProperties: false },
      '{"x": 1}',
      '{"y": 1}',
    ],
    ['minProperties', { type: 'object', minProperties: 1, additionalProperties: { type: 'integer' } }, '{"a": 1}', '{}'],
    ['maxProperties', { type: 'object', maxProperties: 1, additionalProperties: { type: 'integer' } }, '{"a": 1}', '{"a": 1, "b": 2}'],
    ['items', { type: 'array', items: { type: 'integer' } }, '[1, 2]', '["x"]'],
    ['prefixItems', { type: 'array', prefixItems: [{ type: 'integer' }], items: false }, '[1]', '["x"]'],
    ['minItems', { type: 'array', items: { type: 'integer' }, minItems: 2 }, '[1, 2]', '[1]'],
    ['maxItems', { type: 'array', items: { type: 'integer' }, maxItems: 1 }, '[1]', '[1, 2]'],
    ['minLength', { type: 'string', minLength: 2 }, '"ab"', '"a"'],
    ['maxLength', { type: 'string', maxLength: 2 }, '"ab"', '"abc"'],
    ['no control characters', { type: 'string', maxLength: 3 }, '"a b"', '"a\tb"'],
    ['pattern', { type: 'string', pattern: '^a+$' }, '"aa"', '"b"'],
    ['format', { type: 'string', format: 'date' }, '"2026-01-31"', '"soon"'],
    ['a pattern, not the format beside it', { type: 'string', format: 'date', pattern: '^[ab]+$' }, '"ab"', '"2026-01-31"'],
    ['a length, not the format beside it', { type: 'string', format: 'date', maxLength: 3 }, '"abc"', '"2026-01-31"'],
    ['a format with a length of at least one', { type: 'string', format: 'date', minLength: 1 }, '"2026-01-31"', '"soon"'],
    ['a length beside a format that an empty text has', { type: 'string', format: 'json-pointer', minLength: 1 }, '"/a"', '""'],
    ['a pointer whose quotation mark ends no text', { type: 'string', format: 'json-pointer' }, '"/a\\"b/~0"', '"/a"b"'],
    ['types beside formats of OpenAPI', { type: 'integer', format: 'int64' }, '-12', '"x"'],
    ['an encoding by its pattern', { type: 'string', format: 'base64', contentEncoding: 'base64', pattern: '^$|^(?:[a-zA-Z\\d+/]{4})*$' }, '""', '"aGk"'], // prettier-ignore
    ['each alternative whole', { type: 'string', pattern: '^a+$|^b+$' }, '"bb"', '"ab"'],
    ['an alternative that is empty', { type: 'string', pattern: '^$|^b+$' }, '"bb"', '"a"'],
    ['a pattern without anchors', { type: 'string', pattern: '\\d{2}' }, '"é12é"', '"é1é2"'],
    ['a pattern with one anchor', { type: 'string', pattern: '^a|b$' }, '"xb"', '"bx"'],
    ['a pattern that ends in a dollar sign', { type: 'string', pattern: '^US\\$' }, '"US$5"', '"US"'],
    ['a pattern that takes no empty text', { type: 'string', minLength: 1, pattern: '^a+$' }, '"a"', '""'],
    ['a length without type', { minLength: 2 }, '"ab"', '"a"'],
    ['a pattern without type', { pattern: '^a+$' }, '"aa"', '"b"'],
    ['a count without type and items', { minItems: 2 }, '[1, "a"]', '[1]'],
    ['records', { type: 'object', propertyNames: { type: 'string' }, additionalProperties: { type: 'number' } }, '{"a": 1}', '{"a": "x"}'],
    ['names of records', { type: 'object', propertyNames: { pattern: '^a+$' } }, '{"aa": 1}', '{"b": 1}'],
    ['alternatives of OpenAPI', { oneOf: [{ type: 'integer' }, { type: 'null' }], discriminator: { propertyName: 'kind' } }, '1', '"x"'],
    ['range', { type: 'integer', minimum: 5, maximum: 10 }, '7', '3'],
    ['minimum alone', { type: 'integer', minimum: 5 }, '12', '4'],
    ['maximum of a number', { type: 'number', maximum: 5 }, '-7.25', '5.1'],
    ['multipleOf', { type: 'object', properties: { a: { type: 'integer', multipleOf: 5 } }, required: ['a'], additionalProperties: false }, '{"a": 15}', '{"a": 16}'], // prettier-ignore
    ['multipleOf of a number', { type: 'number', minimum: 0, multipleOf: 0.01 }, '12.50', '12.501'],
    ['an exclusive number', { type: ['number', 'null'], exclusiveMinimum: 0.5, exclusiveMaximum: 1 }, '0.51', '0.5'],
    ['numbers beside other types', { type: ['number', 'null'], minimum: 1 }, 'null', '0'],
    ['nullable', { type: 'string', nullable: true }, 'null', '1'],
    ['nullable of an object', { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], nullable: true }, 'null', '{}'],
    ['nullable of an enum', { type: 'string', enum: ['a'], nullable: true }, 'null', '"b"'],
    ['nullable of a bounded number', { type: 'integer', minimum: 3, nullable: true }, 'null', '2'],
    ['nullable of a $ref', { $ref: '#/$defs/a', nullable: true, $defs: { a: { type: 'integer' } } }, 'null', '"x"'],
    ['nullable of anyOf', { anyOf: [{ type: 'integer' }], nullable: true }, 'null', '"x"'],
    ['required: null', { type: 'object', properties: { a: { type: 'integer' } }, required: null, additionalProperties: false }, '{}', '{"b": 1}'], // prettier-ignore
    ['nullable: false', { type: 'string', nullable: false }, '"a"', 'null'],
    ['a text like a constant of ours', { anyOf: [{ const: '#number0.' }, { type: 'integer', minimum: 3 }] }, '"#number0."', '2'],
    ['a definition of an odd name', { $ref: '#/$defs/a~1b%25', $defs: { 'a/b%': { type: 'integer' } } }, '1', '"x"'],
    ['exclusive range', { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 9 }, '8', '9'],
    ['anyOf', { anyOf: [{ type: 'integer' }, { type: 'null' }] }, 'null', '"x"'],
    ['$ref', { $ref: '#/$defs/a', $defs: { a: { type: 'integer' } } }, '1', '"x"'],
    ['definitions', { $ref: '#/definitions/a', definitions: { a: { type: 'integer' } } }, '1', '"x"'],
    ['a recursive $ref', { $ref: '#/$defs/n', $defs: { n: { type: 'object', properties: { n: { $ref: '#/$defs/n' } }, additionalProperties: false } } }, '{"n": {"n": {}}}', '{"n": 1}'], // prettier-ignore
  ])('enforces %s', async (_, value, good, bad) => {
    expect(findSchemaProblem(value)).toBeUndefined();
    expect(await accepts(schema(value), good)).toBe(true);
    expect(await accepts(schema(value), bad)).toBe(false);
  });

  /** Whether this is JSON of a text that the pattern takes. */
  const isMatch = (pattern: string, json: string): boolean => {
    try {
      return new RegExp(pattern, 'u').test(JSON.parse(json) as string);
    } catch {
      return false;
    }
  };
  // What is accepted is what the pattern takes, as JSON writes it: never a quotation mark, backslash or control character as it is.
  test.each([
    '^.+$', '^[^x]*$', '^[^-x]*$', '^[^x-]*$', '^a\\sb$', '^[\\s\\d]+$', '^\\D{1,3}$', '^"a"$', '^\\\\d$', '^a[\\x00-\\x7f]b$', '^[!-~]+$', '^(?:"|x)+$', '^[\\w"]+$', '^a\\\\"?$', '^\\u0022x$', '^[а-яё]+$', '^[^а-я]$', '^[éa-c\\u2000-\\u200a]+$', '^[\\u{10000}-\\u{10ffff}]$', '^[€-\\uffff]+$', '^é+$', '^[\\ud83d\\ude00-\\u{1f64f}]$', '^\\uD83D\\uDE00$', '^\\u{1F600}$',
    '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$',
  ])('a pattern is matched with what its JSON says: %s', async (pattern) => {
    const constraint = schema({ type: 'string', pattern });
    for (const text of ['ab', 'a"b', '"a"', 'a\\b', 'a\tb', 'a\nb', 'x', '"x', '\\d', 'a\\', 'a\\"', '5 5', '-', 'w"w', '~!', 'мир', 'ё', 'é', '\u2005é', '€', '\u{1f600}', 'ÿ', '', '.', '+.', '-', '7', '-0.50', '.5', '+1.', '1.2.3']) {
      for (const written of new Set([JSON.stringify(text), `"${text}"`])) {
        expect(await accepts(constraint, written), `${pattern} with ${JSON.stringify(written)}`).toBe(isMatch(pattern, written));
      }
    }
  }); // prettier-ignore

  test.each<[string, unknown, string]>([
    ['uniqueItems', { type: 'array', uniqueItems: true }, '/'],
    ['not', { not: { type: 'string' } }, '/'],
    ['if', { if: {}, then: {} }, '/'],
    ['contains', { type: 'array', items: { anyOf: [{ contains: {} }] } }, '/items/anyOf/0'],
    ['dependentRequired', { type: 'object', dependentRequired: { a: ['b'] } }, '/'],
    ['allOf', { allOf: [{ type: 'integer' }, { type: 'number' }] }, '/'],
    ['required', { type: 'object', required: ['z'] }, '/'],
    ['pattern', { type: 'string', pattern: '^(?=a)b$' }, '/'],
    ['maxLength', { type: 'string', pattern: '^a*$', maxLength: 2 }, '/'],
    ['minLength', { type: 'string', pattern: '^a*$', minLength: 1 }, '/'],
    ['pattern', { type: 'string', pattern: '^(?:a$|b)$' }, '/'],
    ['propertyNames', { type: 'object', propertyNames: { format: 'date' }, additionalProperties: { type: 'number' } }, '/'],
    ['propertyNames', { type: 'object', propertyNames: { pattern: '^a+$' }, properties: { a: {} }, required: ['a'] }, '/'],
    ['patternProperties', { type: 'object', patternProperties: { '^x-': {} }, properties: { a: {} }, required: ['a'] }, '/'],
    ['enum', { type: 'string', maxLength: 2, enum: ['a', 'abc'] }, '/'],
    ['const', { pattern: '^a$', const: 'abc' }, '/'],
    // Matching these here would take years.
    ['pattern', { pattern: '^(a+)+$', const: `${'a'.repeat(60)}!` }, '/'],
    ['pattern', { pattern: `^${'(?:a|a)'.repeat(60)}$`, enum: [`${'a'.repeat(60)}!`] }, '/'],
    ['pattern', { pattern: `^${'a*'.repeat(60)}$`, enum: [`${'a'.repeat(600)}!`] }, '/'],
    ['format', { type: 'string', format: { toString: 1 } }, '/'],
    ['$ref', { $ref: '#/$defs/missing' }, '/'],
    ['$ref', { $ref: 'http://example.com/a.json' }, '/'],
    ['not', { $ref: '#/$defs/a', $defs: { a: { not: {} } } }, '/$defs/a'],
    ['false', false, '/'],
    ['properties', { anyOf: [{ type: 'integer' }], properties: {} }, '/'],
    ['enum', { type: 'string', enum: ['a', 1] }, '/'],
    ['minLength', { type: 'string', minLength: 5, maxLength: 2 }, '/'],
    ['minLength', { type: 'string', minLength: 1.5 }, '/'],
    ['minimum', { type: 'integer', minimum: 5, maximum: 2 }, '/'],
    ['exclusiveMinimum', { type: 'number', exclusiveMinimum: 2, maximum: 2 }, '/'],
    ['minimum', { type: 'number', minimum: '2' }, '/'],
    ['minimum', { minimum: 2 }, '/'],
    ['minimum', { type: 'string', minimum: 2 }, '/'],
    ['multipleOf', { type: 'integer', multipleOf: 0 }, '/'],
    ['enum', { type: 'integer', minimum: 2, enum: [1] }, '/'],
    ['minItems', { type: 'array', minItems: 3, maxItems: 1 }, '/'],
    ['maxItems', { type: 'array', maxItems: '3' }, '/'],
    ['type', { type: null }, '/'],
    ['type', { type: [] }, '/'],
    ['type', { type: { a: 1 } }, '/'],
    ['minProperties', { type: 'object', minProperties: 3 }, '/'],
    ['minProperties', { type: 'object', properties: { a: {} }, minProperties: 2, additionalProperties: false }, '/'],
    ['maxProperties', { type: 'object', properties: { a: {} }, required: ['a'], maxProperties: 0 }, '/'],
    ['required', { type: 'object', properties: { 3: {} }, required: [3] }, '/'],
    ['nullable', { type: 'string', nullable: 'yes' }, '/'],
    ['properties', { type: 'object', properties: { 'a\0b': {} } }, '/'],
    ['properties', { type: 'object', properties: { '\ud800': {} } }, '/'],
    ['properties', { type: 'object', properties: [] }, '/'],
    ['enum', { enum: ['\0'] }, '/'],
    ['enum', { enum: [{ a: ['\udc00'] }] }, '/'],
    ['const', { const: '\ud800x' }, '/'],
    ['patternProperties', { type: 'object', patternProperties: { '[': {} } }, '/'],
  ])('refuses %s by name and pointer', async (keyword, value, pointer) => {
    expect(findSchemaProblem(value)).toMatchObject({ keyword, pointer });
    await expect(start(schema(value))).rejects.toMatchObject({ code: 'invalid_json_schema' });
  });

  const nested = (levels: number, wrap: (inner: unknown) => unknown, innermost: unknown = { type: 'string' }): unknown =>
    Array.from({ length: levels }).reduce<unknown>((inner) => wrap(inner), innermost);
  const chain = (length: number, last: unknown): unknown => {
    const names = Array.from({ length }, (_, i) => `a${i}`);
    const link = (i: number): unknown => ({ type: 'object', properties: { x: { $ref: `#/$defs/a${i + 1}` } }, required: ['x'] });
    return { $ref: '#/$defs/a0', $defs: Object.fromEntries(names.map((name, i) => [name, i === length - 1 ? last : link(i)])) };
  };
  const named = (count: number, required: boolean): unknown => {
    const names = Array.from({ length: count }, (_, i) => `p${i}`);
    return {
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      ...(required && { required: names }),
    };
  };
  const text = (pattern: string): unknown => ({ type: 'string', pattern: `^${pattern}$` });

  const deepReference = {
    anyOf: [{ $ref: '#/$defs/a' }, nested(16, (items) => ({ type: 'array', items }), { $ref: '#/$defs/a' })],
    $defs: { a: nested(16, (items) => ({ type: 'array', items })) },
  };

  // The number that was found or is allowed stands in the message.
  test.each<[string, unknown, RegExp]>([
    ['a chain of 40 definitions', chain(40, { type: 'string' }), /32 deep/],
    ['a ring of 40 definitions', chain(40, { type: 'object', properties: { x: { $ref: '#/$defs/a0' } } }), /32 deep/],
    ['33 levels of arrays', nested(33, (items) => ({ type: 'array', items })), /32 deep/],
    ['10,000 levels', nested(10_000, (items) => ({ type: 'array', items })), /32 deep/],
    ['a definition that is also used deep down', deepReference, /32 deep/],
    ['401 optional properties', named(401, false), /401 properties .* 256/],
    ['3,000 required properties', named(3_000, true), /3000 properties .* 256/],
    ['1,001 values', { enum: Array.from({ length: 1_001 }, (_, i) => i) }, /1001 values .* 1000/],
    ['a value of 40 levels', { const: nested(40, (item) => [item]) }, /nested 32 deep/],
    ['more than 1,000 schemas', { anyOf: Array.from({ length: 1_001 }, () => ({ type: 'string' })) }, /1000 schemas/],
    ['a long text', { const: ['x'.repeat(40_000), 'y'.repeat(30_000)] }, /700\d\d characters; at most 65536/],
    ['a long pattern', text('a'.repeat(511)), /513 characters; at most 512/],
    ['deep groups', text(`${'('.repeat(40)}a${')'.repeat(40)}`), /40 deep; at most 32/],
    ['a long repeat', text('a{1000000}'), /1000000; at most 100000/],
    ['repeats in repeats', text('(((a{100}b){2,100}[{9}]){100,})'), /1000000; at most 100000/],
    ['a large count', { type: 'string', maxLength: 1e9 }, /from 0 to 1000000/],
    ['too many states', { type: 'integer', multipleOf: 1_999 }, /more than 500 states/],
  ])('%s: refused with the number', async (_, value, message) => {
    await expect(start(schema(value))).rejects.toMatchObject({
      code: 'invalid_json_schema',
      message: expect.stringMatching(message),
    });
  });

  // At the bounds themselves the library's stack holds: the thread reports one that ran over.
  test.each<[string, unknown]>([
    ['objects', nested(32, (x) => ({ type: 'object', properties: { x }, required: ['x'] }))],
    ['optional properties', nested(32, (x) => ({ type: 'object', properties: { x, y: { type: 'null' } }, additionalProperties: false }))],
    ['arrays', nested(32, (items) => ({ type: 'array', items, minItems: 1, maxItems: 3 }))],
    ['alternatives', nested(32, (item) => ({ anyOf: [item, { type: 'null' }] }))],
    ['maps', nested(32, (additionalProperties) => ({ type: 'object', additionalProperties }))],
    ['patterns of names', nested(32, (item) => ({ type: 'object', patternProperties: { '^a$': item } }))],
    ['a chain of definitions', chain(15, { type: 'string' })],
    ['a value', { const: nested(31, (item) => [item]) }],
    ['groups', text(`${'('.repeat(32)}a${')'.repeat(32)}`)],
    ['values', { enum: Array.from({ length: 1_000 }, (_, i) => `value ${i}`) }],
  ])('%s up to the bounds are enforced', async (_, value) => {
    const matcher = await start(schema(value));
    expect(matcher.mask!.some((word) => word !== 0)).toBe(true);
    matcher.dispose();
  });

  test('what only describes is no part of the size', async () => {
    const description = 'x'.repeat(100_000);
    const examples = nested(1_000, (item) => [item]);
    expect(await accepts(schema({ type: 'integer', description, examples, $defs: { unused: examples } }), '1')).toBe(true);
  });
});
