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
