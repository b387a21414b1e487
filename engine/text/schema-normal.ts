/**
 * Rewrites a checked JSON Schema for the grammar library: drops annotations and definitions that nothing refers to, writes `nullable` as a type, and replaces
 * bounded numbers by placeholder constants, for which grammar-library.ts substitutes rules of number-grammar.ts (the library cannot bound numbers).
 */
import type { NumberRange } from './number-grammar.ts';
import { FORMAT_PATTERNS, anchoredPattern, escapedPattern } from './schema-pattern.ts';
import {
  EXCLUSIVE,
  NUMERIC,
  OF_LENGTH,
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

/** A rewritten schema, and the constants that stand for bounded numbers in it. */
export interface NormalSchema {
  /** The schema as JSON text. */
  readonly schema: string;
  /** Placeholder constants and the numbers that each stands for. No other string of `schema` contains one. */
  readonly numbers: readonly (readonly [constant: string, range: NumberRange])[];
}

type Json = Readonly<Record<string, unknown>>;

/** Rewrites a schema in which findSchemaProblem finds no problem. */
export function normalizeSchema(root: unknown): NormalSchema {
  const { schema, numbers, isClear } = rewritten(root, '#number');
  if (isClear) return { schema, numbers };
  // A string of the schema that looks like a placeholder would become a number. No string contains a placeholder with more `#` in a row than the schema has
  // anywhere.
  const longest = (schema.match(/#+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
  const { schema: unmistakable, numbers: renamed } = rewritten(root, `${'#'.repeat(longest + 1)}number`);
  return { schema: unmistakable, numbers: renamed };
}

/**
 * Restricts the schema of a tool's parameters to objects: nothing else is read as a call's arguments, and clients write `{}` for a tool without parameters.
 * Returns undefined if the schema allows no object. References and enums are not looked into, and a schema that refers to itself is returned unchanged: it may end
 * in null.
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
  /** Number of placeholders inserted. */
  uses = 0;
  readonly #root: unknown;
  readonly #stem: string;
  readonly #ranges = new Map<string, NumberRange>();
  /** Name that each referenced definition gets in the new schema's `$defs`, by reference. */
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
    const written = entries.map(([keyword, value]) => this.#entry(keyword, typed(keyword, value, keywords)));
    // What is left of lengths beside a pattern is implied by it. The library ignores them, with a warning on standard output.
    const isPattern = written.some(([keyword]) => keyword === 'pattern');
    const own = Object.fromEntries(written.filter(([keyword]) => !(isPattern && OF_LENGTH.has(keyword))));
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
    // A null counts as absent.
    if (keyword === 'required') return ((value ?? []) as string[]).map(spelled);
    if (keyword === 'pattern') return wholePattern(value as string);
    if (!SCHEMA_MAP.has(keyword)) return value;
    const nameOf = keyword === 'properties' ? spelled : wholePattern;
    return Object.fromEntries(Object.entries((value ?? {}) as Json).map(([name, item]) => [nameOf(name), this.#rewrite(item)]));
  }

  /** Replaces a schema's bounded numbers by a placeholder, beside the other types that it allows. */
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

/** Gives alternatives without a type the `type` beside them, which the library ignores there. */
function typed(keyword: string, value: unknown, keywords: Keywords): unknown {
  if (keyword === 'prefixItems' || !SCHEMA_LIST.has(keyword) || !keywords.has('type')) return value;
  const says = ['type', 'enum', 'const', ...EXCLUSIVE];
  return (value as readonly unknown[]).map((item) => {
    if (item === true) return { type: keywords.get('type') };
    return says.some((name) => Object.hasOwn(item as Json, name)) ? item : { type: keywords.get('type'), ...(item as Json) };
  });
}

const wholePattern = (pattern: string): string => escapedPattern(anchoredPattern(pattern));

/**
 * Keywords that others imply. The library applies lengths, patterns, formats and counts only beside a `type`, so a schema without one gets the types to which they
 * belong.
 */
function implied(keywords: Keywords): Json {
  if (['enum', 'const', ...EXCLUSIVE].some((keyword) => keywords.has(keyword))) return {};
  const says = (keyword: string): boolean => keywords.has(keyword) && !isNote(keyword, keywords);
  const types = Object.entries(OF_TYPE).flatMap(([type, own]) => (own.some(says) ? [type] : []));
  return { ...(types.length > 0 && { type: types }), ...(says('minItems') && !says('prefixItems') && { items: {} }) };
}

/**
 * Escapes a name for JSON, and the result for the library's grammars. The library puts names into them unescaped, so that a quotation mark broke the grammar, and
 * a control character the answer.
 */
function spelled(name: string): string {
  const inside = (text: string): string => JSON.stringify(text).slice(1, -1);
  return inside(inside(name));
}

/** Makes a schema nullable. `types` = its types with null among them; empty = any. */
function withNull(schema: Json, types: readonly string[]): Json {
  const type = types.length > 0 ? { type: types } : {};
  if ('const' in schema && schema['type'] !== undefined) return { ...type, enum: [...new Set([schema['const'], null])] };
  if ('enum' in schema) return { ...schema, ...type, enum: [...new Set([...(schema['enum'] as unknown[]), null])] };
  if ('const' in schema || EXCLUSIVE.some((keyword) => keyword in schema)) return { anyOf: [schema, { type: 'null' }] };
  return { ...schema, ...type };
}
