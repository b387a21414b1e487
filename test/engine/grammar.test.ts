import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Grammars } from '../../engine/text/grammar.ts';
import type { Constraint, GrammarLibrary, GrammarMatcher } from '../../engine/text/grammar.ts';
import { findSchemaProblem } from '../../engine/text/json-schema.ts';

const STOP = 2;
let grammars: Grammars;
let tokens: string[];

beforeAll(async () => {
  const file = JSON.parse(readFileSync('models/parley-chat/tokenizer.json', 'utf8')) as {
    model: { vocab: Record<string, number> };
    added_tokens: { id: number; content: string }[];
  };
  tokens = [];
  for (const [token, id] of Object.entries(file.model.vocab)) tokens[id] = token;
  for (const { id, content } of file.added_tokens) tokens[id] = content;
  const library = (await createNodePlatform().grammarLibrary()) as GrammarLibrary;
  grammars = await Grammars.create(library, { tokens, type: 'byte_level', stopTokenIds: [STOP] });
});

const allowed = (mask: Int32Array, token: number): boolean => ((mask[token >> 5]! >>> (token & 31)) & 1) === 1;

/** Spells `text` byte by byte as single-character tokens; true when every one is allowed and the end may follow. */
async function accepts(constraint: Constraint, text: string): Promise<boolean> {
  const matcher: GrammarMatcher = await grammars.start(constraint);
  try {
    for (const char of text) {
      const token = tokens.indexOf(char === ' ' ? 'Ġ' : char === '\n' ? 'Ċ' : char);
      if (token < 0) throw new Error(`no token for ${JSON.stringify(char)}`);
      if (!allowed(await matcher.bitmask(), token)) return false;
      if (!matcher.accept(token)) return false;
    }
    return allowed(await matcher.bitmask(), STOP);
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

  test('a matcher can take tokens back', async () => {
    const matcher = await grammars.start({ type: 'json_object' });
    const open = tokens.indexOf('{');
    const before = await matcher.bitmask();
    expect(matcher.accept(open)).toBe(true);
    matcher.rollback(1);
    expect(await matcher.bitmask()).toEqual(before);
    matcher.dispose();
  });

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
    ['pattern', { type: 'string', pattern: '^a+$' }, '"aa"', '"b"'],
    ['format', { type: 'string', format: 'date' }, '"2026-01-31"', '"soon"'],
    ['range', { type: 'integer', minimum: 5, maximum: 10 }, '7', '3'],
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

  test.each<[string, unknown, string]>([
    ['multipleOf', { type: 'object', properties: { a: { type: 'integer', multipleOf: 5 } } }, '/properties/a'],
    ['uniqueItems', { type: 'array', uniqueItems: true }, '/'],
    ['not', { not: { type: 'string' } }, '/'],
    ['if', { if: {}, then: {} }, '/'],
    ['contains', { type: 'array', items: { anyOf: [{ contains: {} }] } }, '/items/anyOf/0'],
    ['dependentRequired', { type: 'object', dependentRequired: { a: ['b'] } }, '/'],
    ['allOf', { allOf: [{ type: 'integer' }, { type: 'number' }] }, '/'],
    ['required', { type: 'object', required: ['z'] }, '/'],
    ['minimum', { type: 'integer', minimum: 5 }, '/'],
    ['maximum', { type: 'number', maximum: 5 }, '/'],
    ['pattern', { type: 'string', pattern: '^(?=a)b$' }, '/'],
    ['maxLength', { type: 'string', pattern: '^a*$', maxLength: 2 }, '/'],
    ['format', { type: 'string', format: 'weird' }, '/'],
    ['$ref', { $ref: '#/$defs/missing' }, '/'],
    ['$ref', { $ref: 'http://example.com/a.json' }, '/'],
    ['not', { $ref: '#/$defs/a', $defs: { a: { not: {} } } }, '/$defs/a'],
    ['false', false, '/'],
    ['properties', { anyOf: [{ type: 'integer' }], properties: {} }, '/'],
    ['enum', { type: 'string', enum: ['a', 1] }, '/'],
  ])('refuses %s by name and pointer', async (keyword, value, pointer) => {
    expect(findSchemaProblem(value)).toMatchObject({ keyword, pointer });
    await expect(grammars.start(schema(value))).rejects.toMatchObject({ code: 'invalid_json_schema' });
  });

  test('a schema nested beyond 64 levels is refused', () => {
    let deep: unknown = { type: 'integer' };
    for (let i = 0; i < 70; i++) deep = { type: 'array', items: deep };
    expect(findSchemaProblem(deep)?.keyword).toBe('(depth)');
  });
});
