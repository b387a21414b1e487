/**
 * A checked JSON Schema as the grammar library takes it: without annotations and definitions that nothing refers to, `nullable` as a type, and
 * numbers within bounds as constants, in whose place the grammar then gets rules of number-grammar.ts (the library cannot bound numbers).
 */
import type { NumberRange } from './number-grammar.ts';
import { FORMAT_PATTERNS, anchoredPattern, escapedPattern } from './schema-pattern.ts';
import {
  EXCLUSIVE,
  NUMERIC,
  OF_TYPE,
  ONE_SCHEMA,
  SCHEMA_LIST,
  SCHEMA_MAP,
  isNote,
  keywordsOf,
  lookUp,
  typesOf,
} from './schema-keywords.ts';
import type { Keywords } from './schema-keywords.ts';

/** A schema and what stands for numbers in it. */
export interface NormalSchema {
  /** JSON. */
  readonly schema: string;
  /** Constants that stand for numbers, each in `schema` only where a number is meant. */
  readonly numbers: readonly (readonly [constant: string, range: NumberRange])[];
}

type Json = Readonly<Record<string, unknown>>;

/** Rewrites a schema that findSchemaProblem has nothing against. */
export function normalizeSchema(root: unknown): NormalSchema {
  const { schema, numbers, isClear } = rewritten(root, '#number');
  if (isClear) return { schema, numbers };
  // A text of the schema's own that looks like a constant of ours would become a number: no text has more of these signs on end than the longest.
  const longest = (schema.match(/#+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
  const { schema: unmistakable, numbers: renamed } = rewritten(root, `${'#'.repeat(longest + 1)}number`);
  return { schema: unmistakable, numbers: renamed };
}

/**
 * A schema of a tool's parameters, held to objects: nothing else is read as a call's arguments, and clients write `{}` for a tool that takes none.
 * Undefined where it allows no object. What a reference or an enum says is left alone, and so is a schema that refers to itself: it may end in null.
 */
export function objectsOf(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema === false ? undefined : { type: 'object' };
  const { nullable: _, ...own } = schema as Json;
  const types = typesOf(new Map(Object.entries(own)));
  if (types.length > 0 && !types.includes('object')) return undefined;
  if (/"\$ref":"#("|\/(any|one|all)Of)/.test(JSON.stringify(schema))) return schema;
  if ('$ref' in own || 'enum' in own || 'const' in own) return types.length > 0 ? { ...own, type: 'object' } : own;
  const lists = Object.entries(own).filter(([keyword]) => keyword !== 'prefixItems' && SCHEMA_LIST.has(keyword));
  const held = lists.map(
    ([keyword, value]) => [keyword, (value as unknown[]).map(objectsOf).filter((item) => item !== undefined)] as const,
  );
  if (held.some(([, items]) => items.length === 0)) return undefined;
  return { ...own, ...Object.fromEntries(held), ...((held.length === 0 || types.length > 0) && { type: 'object' }) };
}

function rewritten(root: unknown, stem: string): NormalSchema & { readonly isClear: boolean } {
  const rewriting = new Rewriting(root, stem);
  const schema = JSON.stringify(rewriting.schema);
  return { schema, numbers: rewriting.numbers, isClear: schema.split(stem).length - 1 === rewriting.uses };
}

class Rewriting {
  readonly schema: unknown;
  /** How often a constant was put in. */
  uses = 0;
  readonly #root: unknown;
  readonly #stem: string;
  readonly #ranges = new Map<string, NumberRange>();
  /** Definitions by reference: the place that each has in the new schema. */
  readonly #definitions = new Map<string, string>();

  constructor(root: unknown, stem: string) {
    this.#root = root;
    this.#stem = stem;
    const schema = this.#rewrite(root);
    const definitions: Record<string, unknown> = {};
    // Rewriting a definition may add further ones, which the iteration then reaches.
    for (const [ref, name] of this.#definitions) definitions[name] = this.#rewrite(lookUp(root, ref));
    this.schema = this.#definitions.size === 0 ? schema : { ...(schema as Json), $defs: definitions };
  }

  get numbers(): NormalSchema['numbers'] {
    return [...this.#ranges.values()].map((range, i) => [`${this.#stem}${i}.`, range]);
  }

  #rewrite(schema: unknown): unknown {
    if (typeof schema !== 'object' || schema === null) return schema;
    const keywords = keywordsOf(schema, this.#root);
    const entries = [...keywords].filter(([keyword]) => !isNote(keyword, keywords) && keyword !== 'nullable');
    const own = Object.fromEntries(entries.map(([keyword, value]) => this.#entry(keyword, typed(keyword, value, keywords))));
    const bounded = this.#withNumbers({ ...implied(keywords), ...own }, keywords);
    return keywords.get('nullable') === true ? withNull(bounded, typesOf(keywords)) : bounded;
  }

  #entry(keyword: string, value: unknown): readonly [keyword: string, value: unknown] {
    const pattern = keyword === 'format' ? FORMAT_PATTERNS.get(value) : undefined;
    return pattern === undefined ? [keyword, this.#value(keyword, value)] : ['pattern', wholePattern(pattern)];
  }

  #value(keyword: string, value: unknown): unknown {
    if (keyword === '$ref' && value !== '#') {
      const name = this.#definitions.get(value as string) ?? `d${this.#definitions.size}`;
      this.#definitions.set(value as string, name);
      return `#/$defs/${name}`;
    }
    if (ONE_SCHEMA.has(keyword)) return this.#rewrite(value);
    if (SCHEMA_LIST.has(keyword)) return (value as unknown[]).map((item) => this.#rewrite(item));
    // null is as good as absent.
    if (keyword === 'required') return ((value ?? []) as string[]).map(spelled);
    if (keyword === 'pattern') return wholePattern(value as string);
    if (!SCHEMA_MAP.has(keyword)) return value;
    const nameOf = keyword === 'properties' ? spelled : wholePattern;
    return Object.fromEntries(Object.entries((value ?? {}) as Json).map(([name, item]) => [nameOf(name), this.#rewrite(item)]));
  }

  /** Takes the bounds of numbers out of a schema: a constant stands for the numbers, beside the other types that it allows. */
  #withNumbers(schema: Json, keywords: ReadonlyMap<string, unknown>): Json {
    const bounds = NUMERIC.filter((keyword) => keywords.has(keyword));
    if (bounds.length === 0) return schema;
    const free = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !(NUMERIC as readonly string[]).includes(keyword)));
    // The values of an enum were checked against its bounds.
    if ('enum' in schema || 'const' in schema) return free;
    const types = [keywords.get('type')].flat().map(String);
    const range: NumberRange = {
      integer: !types.includes('number'),
      ...Object.fromEntries(bounds.map((keyword) => [keyword, keywords.get(keyword)])),
    };
    const key = JSON.stringify(range);
    this.#ranges.set(key, range);
    this.uses++;
    const number = { const: `${this.#stem}${[...this.#ranges.keys()].indexOf(key)}.` };
    const others = types.filter((type) => type !== 'number' && type !== 'integer');
    return others.length === 0 ? number : { anyOf: [{ ...free, type: others }, number] };
  }
}

/** Alternatives that name no type are of the type beside them, which the library does not read there. */
function typed(keyword: string, value: unknown, keywords: Keywords): unknown {
  if (keyword === 'prefixItems' || !SCHEMA_LIST.has(keyword) || !keywords.has('type')) return value;
  const says = ['type', 'enum', 'const', ...EXCLUSIVE];
  return (value as readonly unknown[]).map((item) => {
    if (item === true) return { type: keywords.get('type') };
    return says.some((name) => Object.hasOwn(item as Json, name)) ? item : { type: keywords.get('type'), ...(item as Json) };
  });
}

const wholePattern = (pattern: string): string => escapedPattern(anchoredPattern(pattern));

/** The library heeds lengths, patterns, formats and counts of a type that is named. A schema that names none means those that they speak of. */
function implied(keywords: Keywords): Json {
  if (['enum', 'const', ...EXCLUSIVE].some((keyword) => keywords.has(keyword))) return {};
  const says = (keyword: string): boolean => keywords.has(keyword) && !isNote(keyword, keywords);
  const types = Object.entries(OF_TYPE).flatMap(([type, own]) => (own.some(says) ? [type] : []));
  return { ...(types.length > 0 && { type: types }), ...(says('minItems') && !says('prefixItems') && { items: {} }) };
}

/**
 * A name as JSON writes it between its quotes, and that as the library's grammars do: it puts names into them as they are, so that a quotation mark
 * broke the grammar and a control character the answer.
 */
function spelled(name: string): string {
  const inside = (text: string): string => JSON.stringify(text).slice(1, -1);
  return inside(inside(name));
}

/** `schema` or null; `types` = those of the schema with null among them, empty = any. */
function withNull(schema: Json, types: readonly string[]): Json {
  const type = types.length > 0 ? { type: types } : {};
  if ('const' in schema && schema['type'] !== undefined) return { ...type, enum: [...new Set([schema['const'], null])] };
  if ('enum' in schema) return { ...schema, ...type, enum: [...new Set([...(schema['enum'] as unknown[]), null])] };
  if ('const' in schema || EXCLUSIVE.some((keyword) => keyword in schema)) return { anyOf: [schema, { type: 'null' }] };
  return { ...schema, ...type };
}
