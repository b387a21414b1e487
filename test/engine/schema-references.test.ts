/** References of a JSON Schema that lead nowhere. */
import { expect, test } from 'vitest';
import { findMalformed, findSchemaProblem } from '../../engine/text/json-schema.ts';

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

test('references are followed as far as schemas may be nested, and no further', () => {
  let looked = 0;
  const definitions = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`d${i}`, to(`d${i + 1}`)]));
  const $defs = new Proxy(definitions, { getOwnPropertyDescriptor: (...at) => (looked++, Reflect.getOwnPropertyDescriptor(...at)) });
  const schema = { $defs, anyOf: Array.from({ length: 900 }, () => to('d0')) };
  expect(findSchemaProblem(schema)).toMatchObject({ keyword: '(depth)' });
  expect(findMalformed(schema)).toBeUndefined();
  expect(looked).toBeLessThan(2 * 900 * 100);
  expect(findSchemaProblem({ $ref: `#/${'a/'.repeat(600)}` })).toMatchObject({
    keyword: '$ref',
    message: expect.stringContaining('1202 characters'),
  });
});
