/** References of a JSON Schema that lead nowhere. */
import { expect, test } from 'vitest';
import { findSchemaProblem } from '../../engine/text/json-schema.ts';

const to = (name: string): object => ({ $ref: `#/$defs/${name}` });

// The grammar of such a ring allows nothing but the end: the answer would be empty, and called finished.
test.each([
  ['a definition that is itself', { $defs: { a: to('a') }, ...to('a') }],
  ['two that are each other', { $defs: { a: to('b'), b: to('a') }, type: 'object', properties: { x: to('a') } }],
  ['a schema that is itself', { $ref: '#' }],
  ['a definition that is the schema, which is it', { $defs: { a: { $ref: '#' } }, ...to('a') }],
])('%s is refused', (_, schema) => {
  expect(findSchemaProblem(schema)).toMatchObject({ keyword: '$ref', message: expect.stringMatching(/leads back to itself/) });
});

test.each([
  ['a tree', { type: 'object', properties: { left: { $ref: '#' } } }],
  ['a list of lists', { $defs: { a: { type: 'array', items: to('a') } }, ...to('a') }],
  ['a chain', { $defs: { a: to('b'), b: { type: 'null' } }, ...to('a') }],
])('%s is not', (_, schema) => expect(findSchemaProblem(schema)).toBeUndefined());
