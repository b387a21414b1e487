import { expect, test } from 'vitest';
import { findSchemaProblem } from '../../engine/text/json-schema.ts';
import { normalizeSchema, objectsOf } from '../../engine/text/schema-normal.ts';

// The grammar took nothing for it, and went on behind it.
test.each(['^[]$', 'a[]?', '^\\ud83d$', '^[\\ud83c-\\udbff]$'])('a pattern with what takes no character is refused: %s', (pattern) => {
  expect(findSchemaProblem({ type: 'string', pattern })).toMatchObject({
    keyword: 'pattern',
    message: expect.stringMatching(/takes no character/),
  });
});

test.each(['^[^\\ud800-\\udfff]$', '^[a\\ud83d]$', '^\\ud83d\\ude00$', '^[^]$'])(
  'one with halves of characters beside others is not: %s',
  (pattern) => {
    expect(findSchemaProblem({ type: 'string', pattern })).toBeUndefined();
  },
);

// The grammar took any value for the first alternative.
test('alternatives without a type are of the one beside them', () => {
  const { schema } = normalizeSchema({
    type: 'string',
    anyOf: [{ description: 'free' }, true, { enum: ['x'] }, { type: 'string', maxLength: 2 }],
  });
  expect(JSON.parse(schema)).toEqual({
    type: 'string',
    anyOf: [{ type: 'string' }, { type: 'string' }, { enum: ['x'] }, { type: 'string', maxLength: 2 }],
  });
});

// The library wrote a warning among the server's log.
test.each([
  { pattern: '^a+$', minLength: 1 },
  { pattern: '^a*$', minLength: 0 },
  { format: 'relative-json-pointer', minLength: 1 },
])('a length that the pattern beside it implies is left out: %j', (rules) => {
  const schema = { type: 'string', ...rules };
  expect(findSchemaProblem(schema)).toBeUndefined();
  expect(JSON.parse(normalizeSchema(schema).schema)).toEqual({ type: 'string', pattern: expect.any(String) as string });
});

// The grammar took a text for the arguments of a tool whose schema is {}, and the answer had no call.
test.each<[unknown, unknown]>([
  [true, { type: 'object' }],
  [{}, { type: 'object' }],
  [{ description: 'none' }, { description: 'none', type: 'object' }],
  [{ properties: { a: {} } }, { properties: { a: {} }, type: 'object' }],
  [{ type: ['null', 'object'] }, { type: 'object' }],
  [{ type: 'object', nullable: true }, { type: 'object' }],
  [{ $ref: '#/$defs/a', nullable: true }, { $ref: '#/$defs/a' }],
  [{ anyOf: [{ type: 'null' }, {}, { $ref: '#/$defs/a' }] }, { anyOf: [{ type: 'object' }, { $ref: '#/$defs/a' }] }],
  [
    { type: ['object', 'null'], oneOf: [{ required: ['a'] }] },
    { type: 'object', oneOf: [{ required: ['a'], type: 'object' }] },
  ],
  [{ enum: [{}, null] }, { enum: [{}, null] }],
  [
    { type: ['object', 'null'], properties: { next: { $ref: '#' } } },
    { type: ['object', 'null'], properties: { next: { $ref: '#' } } },
  ],
  [false, undefined],
  [{ type: 'string', nullable: true }, undefined],
  [{ oneOf: [{ type: 'array' }, false] }, undefined],
])('of %j a call takes what is an object', (schema, held) => {
  expect(objectsOf(schema)).toEqual(held);
});

// The library reads no rule for values beside one for their names, so these were refused.
test.each([
  ['listed names', { type: 'string', enum: ['a', 'b'] }, { properties: { a: { type: 'number' }, b: { type: 'number' } } }],
  ['one name', { const: 'a', title: 'Key' }, { properties: { a: { type: 'number' } } }],
  ['a definition of names', { $ref: '#/$defs/K' }, { properties: { k: { type: 'number' } } }],
  ['names with a pattern', { pattern: '^a+$' }, { patternProperties: { '^a+$': { type: 'number' } } }],
  ['names with a length', { minLength: 1, maxLength: 3 }, { patternProperties: { '^.{1,3}$': { type: 'number' } } }],
  ['names that are not empty', { type: 'string', minLength: 1 }, { patternProperties: { '^.{1,}$': { type: 'number' } } }],
])('a record of %s is of properties', (_, propertyNames, same) => {
  const $defs = { K: { type: 'string', enum: ['k'] } };
  const required = 'properties' in same ? Object.keys(same.properties).slice(0, 1) : [];
  const record = { type: 'object', propertyNames, additionalProperties: { type: 'number' }, required, $defs };
  expect(findSchemaProblem(record)).toBeUndefined();
  const { schema } = normalizeSchema(record);
  expect(JSON.parse(schema)).toEqual(
    JSON.parse(normalizeSchema({ type: 'object', ...same, additionalProperties: false, required }).schema),
  );
});

test.each([{ format: 'date' }, { enum: ['a', 1] }, { enum: ['a'], pattern: '^a$' }, { $ref: '#/$defs/K' }])(
  'of names by %j it is none',
  (propertyNames) => {
    const $defs = { K: { anyOf: [{ type: 'string', enum: ['a'] }] } };
    const record = { type: 'object', propertyNames, additionalProperties: { type: 'number' }, $defs };
    expect(findSchemaProblem(record)).toMatchObject({ keyword: 'propertyNames' });
  },
);

test('what stands beside a definition of names is refused by name', () => {
  const propertyNames = { $ref: '#/$defs/K', pattern: '^a' };
  const record = { type: 'object', propertyNames, additionalProperties: { type: 'number' }, $defs: { K: { enum: ['a', 'b'] } } };
  expect(findSchemaProblem(record)).toMatchObject({ pointer: '/propertyNames', keyword: 'pattern' });
});
