/** JSON Schemas that nobody writes by hand and somebody will send: references, depth, number, contradiction, patterns. */
import { HOSTILE_TEXTS, hostileValue, mutateJson, randomText } from './json.ts';
import { TOOL, chatBody } from './bodies.ts';
import type { JsonBytes } from './bodies.ts';
import { between, chance, choose, logBetween, weighted } from './rng.ts';
import type { Rng } from './rng.ts';

interface Named {
  readonly name: string;
  readonly schema: unknown;
}

const object = (properties: object, required = Object.keys(properties)): object => ({ type: 'object', properties, required });
const numbered = <T>(count: number, make: (index: number) => T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, make(i)]));
const ref = (name: string): object => ({ $ref: `#/$defs/${name}` });

/** Definitions that lead to each other. */
function references(rng: Rng): Named {
  const count = logBetween(rng, 2, 400);
  const inObject = chance(rng, 0.6);
  const step = (name: string): object => (inObject ? object({ x: ref(name) }) : choose(rng, [ref(name), { anyOf: [ref(name), { type: 'null' }] }, { type: 'array', items: ref(name) }])); // prettier-ignore
  return choose<() => Named>(rng, [
    () => ({ name: `reference chain of ${count}`, schema: { $defs: { ...numbered(count, (i) => step(`a${i + 1}`)), [`a${count}`]: { type: 'string' } }, ...ref('a0') } }), // prettier-ignore
    () => ({ name: `reference ring of ${count}`, schema: { $defs: numbered(count, (i) => step(`a${(i + 1) % count}`)), ...ref('a0') } }),
    () => ({ name: `references, ${count} twice each`, schema: { $defs: { ...numbered(count, (i) => object({ x: ref(`a${i + 1}`), y: ref(`a${i + 1}`) })), [`a${count}`]: { type: 'null' } }, ...ref('a0') } }), // prettier-ignore
    () => ({ name: 'reference to itself', schema: { $defs: { a: ref('a') }, ...ref('a') } }),
    () => ({ name: 'tree of itself', schema: object({ left: { $ref: '#' }, right: { $ref: '#' } }, chance(rng, 0.5) ? [] : ['left']) }),
    () => ({ name: 'reference to nowhere', schema: { $ref: choose(rng, ['#/$defs/none', '#/', '#//', 'http://example.com/s.json', 'file:///etc/passwd', '#/$defs/~2', '#/$defs/%', '', '#anchor', '#/properties/x/../y']) } }), // prettier-ignore
    () => ({ name: 'reference of another type', schema: { $ref: hostileValue(rng) } }),
    () => ({ name: 'reference with neighbours', schema: { $defs: { a: { type: 'string' } }, $ref: '#/$defs/a', type: 'number', maxLength: 3 } }), // prettier-ignore
  ])();
}

/** One keyword within itself. */
function depth(rng: Rng): Named {
  const levels = logBetween(rng, 2, 60);
  const [name, wrap] = choose<readonly [string, (inner: unknown) => unknown]>(rng, [
    ['properties', (inner) => object({ x: inner })],
    ['items', (inner) => ({ type: 'array', items: inner, minItems: 1 })],
    ['anyOf', (inner) => ({ anyOf: [inner, { type: 'null' }] })],
    ['anyOf twice', (inner) => ({ anyOf: [inner, inner] })],
    ['allOf', (inner) => ({ allOf: [inner] })],
    ['oneOf', (inner) => ({ oneOf: [{ const: 1 }, inner] })],
    ['not', (inner) => ({ not: inner })],
    ['additionalProperties', (inner) => ({ type: 'object', additionalProperties: inner })],
    ['prefixItems', (inner) => ({ type: 'array', prefixItems: [inner, inner] })],
  ]);
  // Doubled, a schema of 60 levels has no size that could be sent.
  const doubles = name.endsWith('twice') || name === 'prefixItems';
  let schema: unknown = { type: 'string' };
  const depth = Math.min(levels, doubles ? 9 : 60);
  for (let i = 0; i < depth; i++) schema = wrap(schema);
  return { name: `${name} ${depth} deep`, schema };
}

/** Many of something. */
function number(rng: Rng): Named {
  const count = logBetween(rng, 10, 3000);
  const values = (length: number): string[] => Array.from({ length: count }, (_, i) => `${i}`.padStart(length, 'v'));
  return choose<() => Named>(rng, [
    () => ({
      name: `${count} optional properties`,
      schema: object(
        numbered(count, () => ({ type: 'integer' })),
        [],
      ),
    }),
    () => ({ name: `${count} required properties`, schema: object(numbered(count, () => ({ type: 'string' }))) }),
    () => ({
      name: `${count} optional ones, closed`,
      schema: {
        ...object(
          numbered(count, () => ({})),
          [],
        ),
        additionalProperties: false,
      },
    }),
    () => ({ name: `enum of ${count}`, schema: { enum: values(8) } }),
    () => ({ name: `enum of ${count * 10} numbers`, schema: { enum: Array.from({ length: count * 10 }, (_, i) => i) } }),
    () => ({ name: `enum of ${Math.ceil(count / 20)} long ones`, schema: { enum: values(5000).slice(0, Math.ceil(count / 20)) } }),
    () => ({ name: `anyOf ${count}`, schema: { anyOf: values(3).map((value) => object({ [value]: { const: value } })) } }),
    () => ({ name: `name of ${count * 20} characters`, schema: object({ ['n'.repeat(count * 20)]: { type: 'null' } }) }),
    () => ({ name: `maxLength ${count * 1000}`, schema: { type: 'string', minLength: chance(rng, 0.5) ? count * 999 : 0, maxLength: count * 1000 } }), // prettier-ignore
    () => ({ name: `items ${count * 1000}`, schema: { type: 'array', items: { type: 'integer' }, minItems: count, maxItems: count * 1000 } }), // prettier-ignore
    () => ({ name: `required that is not there, ${count}`, schema: { type: 'object', required: values(4) } }),
    () => ({ name: `type list of ${count}`, schema: { type: Array.from({ length: count }, () => 'string') } }),
  ])();
}

const PATTERNS = ['(a+)+$', '(a|a)*b', '(a*)*', '((((a{1,50}){1,50}){1,50}){1,50})', 'a{1,100000}', '.{0,65535}', '[^\\s\\S]', '(?=a)b', '(?<n>a)\\k<n>', '\\1', '\\p{L}+', '[', '(', ')', '*', 'a{3,1}', '^$', '\\u0000', '\\x00', '[\ud800]', '\ud800', '(?i)a', '[z-a]', '\\', '^(?!a).*$', '\\b', '.*'.repeat(40), '(x?){60}x{60}', '[\\u0000-\\uffff]*', '😀{5}', '(?:a|b|'.repeat(30)]; // prettier-ignore

function patterns(rng: Rng): Named {
  const pattern = chance(rng, 0.7) ? choose(rng, PATTERNS) : choose<() => string>(rng, [() => '('.repeat(logBetween(rng, 2, 5000)), () => `(${'a|'.repeat(logBetween(rng, 2, 5000))}b)`, () => randomText(rng, between(rng, 1, 30)), () => `[${'a-z'.repeat(logBetween(rng, 1, 5000))}]*`])(); // prettier-ignore
  const name = `pattern ${JSON.stringify(pattern.slice(0, 40))}`;
  const where = choose(rng, ['string', 'property names', 'patternProperties']);
  if (where === 'string') return { name, schema: object({ x: { type: 'string', pattern } }) };
  if (where === 'property names') return { name, schema: { type: 'object', propertyNames: { pattern }, minProperties: 1 } };
  return { name, schema: { type: 'object', patternProperties: { [pattern]: { type: 'integer' } } } };
}

const BOUNDS: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  array: ['minItems', 'maxItems', 'minContains', 'uniqueItems'],
  object: ['minProperties', 'maxProperties'],
};

/** Bounds that contradict each other, are no numbers, or are out of reach. */
function bounds(rng: Rng): Named {
  const type = choose(rng, Object.keys(BOUNDS));
  const value = (): unknown => choose<unknown>(rng, [0, 1, 3, 5, -1, 10, 2.5, 1e9, 1e308, 2 ** 53, -1e9, 0.1, '3', null, true, [], {}, between(rng, -9, 9), between(rng, -9, 9)]); // prettier-ignore
  const chosen = Object.fromEntries(BOUNDS[type]!.filter(() => chance(rng, 0.6)).map((keyword) => [keyword, value()]));
  const schema = { type, ...chosen };
  return { name: `bounds ${JSON.stringify(schema)}`, schema: chance(rng, 0.5) ? schema : object({ x: schema }) };
}

/** Where a schema, a type, a name or a value should be, something else is. */
function oddities(rng: Rng): Named {
  const text = choose(rng, HOSTILE_TEXTS);
  return choose<() => Named>(rng, [
    () => ({ name: 'another type of schema', schema: hostileValue(rng) }),
    () => ({ name: 'another type of type', schema: { type: choose<unknown>(rng, [null, [], {}, 5, 'bogus', ['string', 'bogus'], ['string', 'string'], [null], '', 'String', [[]]]) } }), // prettier-ignore
    () => ({ name: `property called ${JSON.stringify(text)}`, schema: object({ [text]: { type: 'string', maxLength: 3 } }) }),
    () => ({ name: `enum with ${JSON.stringify(text)}`, schema: { enum: [text, 'b'] } }),
    () => ({ name: `const ${JSON.stringify(text)}`, schema: object({ x: { const: text } }) }),
    () => ({ name: 'enum of another kind', schema: { enum: choose<unknown>(rng, [[], null, {}, 'a', [[]], [{}], [null, 1, 'a', { b: [1] }], [1, 1], [1e308], [NaN]]) } }), // prettier-ignore
    () => ({ name: 'const of any kind', schema: object({ x: { const: hostileValue(rng) } }) }),
    () => ({ name: 'properties of another kind', schema: { type: 'object', properties: hostileValue(rng), required: hostileValue(rng) } }),
    () => ({ name: 'items of another kind', schema: { type: 'array', items: hostileValue(rng), prefixItems: hostileValue(rng) } }),
    () => ({ name: 'combined with nothing', schema: { [choose(rng, ['anyOf', 'oneOf', 'allOf'])]: choose<unknown>(rng, [[], [false], [true], {}, null, [null], [1]]) } }), // prettier-ignore
    () => ({ name: 'combined against itself', schema: { allOf: [{ type: 'string' }, { type: 'number' }] } }),
    () => ({ name: 'nullable', schema: object({ x: { type: 'string', nullable: choose<unknown>(rng, [true, false, 'yes', null]), maxLength: 4 } }) }), // prettier-ignore
    () => ({ name: `format ${text}`, schema: { type: 'string', format: choose(rng, [text, 'date-time', 'email', 'uuid', 'uri', 'ipv6', 'regex', 'duration']) } }), // prettier-ignore
    () => ({ name: 'conditions', schema: { if: { type: 'string' }, then: false, else: hostileValue(rng) } }),
    () => ({ name: 'rare keywords', schema: { type: 'object', [choose(rng, ['dependentRequired', 'dependentSchemas', 'unevaluatedProperties', 'propertyNames', 'contains', '$dynamicRef', '$recursiveRef', '$id', '$anchor', '$vocabulary', 'contentSchema', 'default', 'examples'])]: hostileValue(rng) } }), // prettier-ignore
  ])();
}

/** A schema as a program might make it, a few levels deep. */
function randomSchema(rng: Rng, levels: number): unknown {
  const inner = (): unknown => randomSchema(rng, levels - 1);
  const leaf = (): unknown => choose<unknown>(rng, [{ type: 'string', maxLength: 5 }, { type: 'integer', minimum: -5, maximum: 500 }, { type: 'number' }, { type: 'boolean' }, { type: 'null' }, { enum: ['a', 2, null] }, { const: 'x' }, { type: ['string', 'null'] }, { type: 'number', minimum: 0, maximum: 1 }, { type: 'string', nullable: true }, {}, true]); // prettier-ignore
  if (levels <= 0) return leaf();
  return choose<() => unknown>(rng, [
    leaf,
    () => object(numbered(between(rng, 0, 4), inner)),
    () => object(numbered(between(rng, 1, 4), inner), ['a0']),
    () => ({ ...object(numbered(between(rng, 1, 3), inner)), additionalProperties: false }),
    () => ({ type: 'array', items: inner(), maxItems: between(rng, 0, 3) }),
    () => ({ anyOf: [inner(), inner()] }),
    () => ({ oneOf: [inner(), inner()] }),
    () => ({ allOf: [inner()] }),
    () => ({ type: 'object', additionalProperties: inner() }),
  ])();
}

/** Any of the above, or a good one changed. */
export function anySchema(rng: Rng): Named {
  return weighted<() => Named>(rng, [
    [2, () => references(rng)],
    [2, () => depth(rng)],
    [2, () => number(rng)],
    [2, () => patterns(rng)],
    [3, () => bounds(rng)],
    [3, () => oddities(rng)],
    [3, () => ({ name: 'random', schema: randomSchema(rng, 4) })],
    [2, () => ({ name: 'mutated', schema: mutateJson(rng, TOOL.function.parameters) })],
  ])();
}

/** A chat request with a schema, in one of the places where one can stand. */
export function anySchemaBody(rng: Rng): JsonBytes {
  const { name, schema } = anySchema(rng);
  const tool = { type: 'function', function: { name: 'f', parameters: schema, strict: chance(rng, 0.5) } };
  const more = choose<() => object>(rng, [
    () => ({ response_format: { type: 'json_schema', json_schema: { name: 's', strict: chance(rng, 0.5), schema } } }),
    () => ({ response_format: { type: 'json_schema', json_schema: { name: 's', schema } }, stream: true }),
    () => ({ response_format: { type: 'json_object', schema } }),
    () => ({ tools: [tool], tool_choice: choose(rng, ['required', 'auto', { type: 'function', function: { name: 'f' } }]) }),
    () => ({ tools: [TOOL, tool], tool_choice: 'required', stream: true }),
    () => ({ functions: [tool.function], function_call: { name: 'f' } }),
  ])();
  const body = chatBody(rng, { max_tokens: between(rng, 1, 30), ...more });
  return { name, listener: 'chat', target: '/v1/chat/completions', bytes: Buffer.from(JSON.stringify(body)) };
}
