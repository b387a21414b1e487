/**
 * Which JSON Schemas constrained decoding can enforce. The grammar library ignores keywords that it does not know, and an answer held to half a schema
 * looks right until it is not. So every keyword is either enforced or refused by name (`oneOf` and overlapping `patternProperties` as docs/api.md says).
 * What is enforced was tried against xgrammar 0.1.27, see test/engine/grammar.test.ts. The library also recurses on a stack of 64 KiB and takes seconds
 * for large schemas, so their size is bounded here, before the library sees them.
 */
import { ANNOTATIONS, ONE_SCHEMA, SCHEMA_LIST, SCHEMA_MAP, VALUES, keywordsOf, lookUp } from './schema-keywords.ts';
import type { Refuse } from './schema-keywords.ts';
import { normalizeSchema } from './schema-normal.ts';
import { VALUE_CHECKS } from './schema-values.ts';

/** The keyword for which a schema is refused, and why. */
export interface SchemaProblem {
  /** JSON pointer to the schema that holds the keyword. */
  readonly pointer: string;
  readonly keyword: string;
  readonly message: string;
}

/**
 * Size limits of one schema. A level of nesting takes at most 1.2 kB of the library's stack (an object; following a reference takes 0.4 kB), so 32 levels
 * take two thirds of it. At the other limits, with a vocabulary of 4,096 tokens, compiling takes 0.4 s (1,000 values) to 2.5 s (256 optional properties).
 */
export const LIMITS = {
  /** Levels of nesting; following a reference counts as one. */
  depth: 32,
  /** Schemas, nested ones included. */
  schemas: 1_000,
  /** Properties of all objects together. */
  properties: 256,
  /** Values of all `enum`s together. */
  values: 1_000,
  /** Characters of the normalised schema, which has no annotations. */
  characters: 65_536,
  /** Characters of one `$ref`. */
  reference: 1_024,
} as const;

/** Finds the first keyword whose value is invalid, or undefined. Unsupported keywords pass: this checks schemas that are shown to the model but not enforced. */
export function findMalformed(schema: unknown): SchemaProblem | undefined {
  return problemOf(() => void new SchemaCheck(schema, true).visit(schema, '', 0));
}

/** Finds the first keyword or size that cannot be enforced, or undefined. */
export function findSchemaProblem(schema: unknown): SchemaProblem | undefined {
  const problem = problemOf(() => void new SchemaCheck(schema, false).visit(schema, '', 0));
  if (problem) return problem;
  const { length } = normalizeSchema(schema).schema;
  if (length <= LIMITS.characters) return undefined;
  return { pointer: '/', keyword: '(size)', message: `a schema of ${length} characters; at most ${LIMITS.characters} can be enforced` };
}

function problemOf(check: () => void): SchemaProblem | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof Unusable) return error.problem;
    throw error;
  }
}

class Unusable extends Error {
  readonly problem: SchemaProblem;
  readonly isMalformed: boolean;

  constructor(problem: SchemaProblem, isMalformed: boolean) {
    super(problem.message);
    this.problem = problem;
    this.isMalformed = isMalformed;
  }
}

class SchemaCheck {
  readonly #root: unknown;
  readonly #onlyMalformed: boolean;
  /** Levels below each `$ref` target that has been checked, or 0 while it is being checked, which ends the recursion. */
  readonly #heights = new Map<string, number>();
  #schemas = 0;
  #properties = 0;
  #values = 0;

  constructor(root: unknown, onlyMalformed: boolean) {
    this.#root = root;
    this.#onlyMalformed = onlyMalformed;
  }

  /** Checks a schema that is `depth` levels below the root; returns the number of levels below it. Throws Unusable. */
  visit(schema: unknown, pointer: string, depth: number): number {
    const refuse: Refuse = (keyword, message, why) => {
      throw new Unusable({ pointer: pointer || '/', keyword, message }, why === 'malformed');
    };
    if (depth > LIMITS.depth) refuse('(depth)', `schemas may be nested ${LIMITS.depth} deep, references included`);
    if (++this.#schemas > LIMITS.schemas) refuse('(schemas)', `more than ${LIMITS.schemas} schemas within a schema`);
    if (schema === true) return 0;
    if (schema === false) refuse('false', 'a schema that accepts nothing cannot be generated');
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
      return refuse('(schema)', `a schema is an object or true, found ${JSON.stringify(schema)?.slice(0, 40)}`, 'malformed'); // prettier-ignore
    }
    const keywords = keywordsOf(schema, this.#root);
    let height = 0;
    for (const [keyword, value] of keywords) {
      if (ANNOTATIONS.has(keyword)) continue;
      this.#try(() => {
        for (const [where, item] of this.#nested(keyword, value, refuse)) {
          height = Math.max(height, 1 + this.visit(item, `${pointer}/${escape(keyword)}${where}`, depth + 1));
        }
      });
    }
    this.#try(() => {
      this.#values += Array.isArray(keywords.get('enum')) ? (keywords.get('enum') as unknown[]).length : 0;
      if (this.#values > LIMITS.values) refuse('enum', `${this.#values} values in all; at most ${LIMITS.values} can be enforced`);
    });
    for (const check of VALUE_CHECKS) this.#try(() => check(keywords, refuse, this.#onlyMalformed));
    this.#try(() => {
      if (keywords.has('$ref')) height = Math.max(height, 1 + this.#follow(keywords.get('$ref'), depth, refuse));
    });
    return height;
  }

  /** Runs a check. When only malformed schemas are looked for, a problem of another kind is passed over. */
  #try(check: () => void): void {
    try {
      check();
    } catch (error) {
      if (!this.#onlyMalformed || !(error instanceof Unusable) || error.isMalformed) throw error;
    }
  }

  /** The subschemas of a keyword's value, each with its JSON pointer relative to that value. */
  #nested(keyword: string, value: unknown, refuse: Refuse): [string, unknown][] {
    if (ONE_SCHEMA.has(keyword)) {
      // `false` forbids further items or properties, which the grammar does enforce.
      return typeof value === 'boolean' ? [] : [['', value]];
    }
    if (SCHEMA_LIST.has(keyword)) {
      if (!Array.isArray(value) || value.length === 0) return refuse(keyword, `${keyword} is a list of schemas`, 'malformed');
      return value.map((item, i) => [`/${i}`, item]);
    }
    if (SCHEMA_MAP.has(keyword)) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return refuse(keyword, `${keyword} maps names to schemas`, 'malformed');
      const entries = Object.entries(value);
      this.#properties += entries.length;
      if (this.#properties > LIMITS.properties) {
        return refuse(keyword, `${this.#properties} properties in all; at most ${LIMITS.properties} can be enforced`);
      }
      return entries.map(([name, item]) => [`/${escape(name)}`, item]);
    }
    // Returned early, because a body may have 200,000 keywords: an exception for each, only to be caught, would take seconds.
    if (VALUES.has(keyword) || this.#onlyMalformed) return [];
    return refuse(keyword, `the keyword '${keyword.slice(0, 64)}' cannot be enforced while decoding`);
  }

  /** Checks the target of a `$ref`; returns the number of levels below it. Definitions are checked only here, when something refers to them. */
  #follow(ref: unknown, depth: number, refuse: Refuse): number {
    if (this.#isRing(ref)) refuse('$ref', `${String(ref).slice(0, 80)} leads back to itself: there is nothing that an answer could be`);
    if (ref === '#') return 0;
    if (typeof ref === 'string' && ref.length > LIMITS.reference) {
      return refuse('$ref', `a reference of ${ref.length} characters; at most ${LIMITS.reference} can be enforced`);
    }
    if (typeof ref !== 'string' || !ref.startsWith('#/')) {
      return refuse('$ref', `only references into the same schema work, found ${JSON.stringify(ref).slice(0, 80)}`);
    }
    const known = this.#heights.get(ref);
    if (known !== undefined) {
      if (depth + 1 + known > LIMITS.depth) refuse('(depth)', `schemas may be nested ${LIMITS.depth} deep, references included`);
      return known;
    }
    const target = lookUp(this.#root, ref);
    if (target === undefined) refuse('$ref', `${ref.slice(0, 80)} points to nothing`);
    this.#heights.set(ref, 0);
    const height = this.visit(target, ref.slice(1), depth + 1);
    this.#heights.set(ref, height);
    return height;
  }

  /** Whether a `$ref` leads back to itself through references alone. */
  #isRing(ref: unknown): boolean {
    const seen = new Set<unknown>();
    for (let at = ref; typeof at === 'string' && (at === '#' || at.startsWith('#/')) && at.length <= LIMITS.reference;) {
      if (seen.has(at)) return true;
      // Too deep in any case.
      if (seen.size > LIMITS.depth) return false;
      seen.add(at);
      const target = at === '#' ? this.#root : lookUp(this.#root, at);
      at = typeof target === 'object' && target !== null ? (target as Readonly<Record<string, unknown>>)['$ref'] : undefined;
    }
    return false;
  }
}

/** Escapes a name for use in a JSON pointer. */
function escape(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
