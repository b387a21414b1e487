/**
 * Which JSON Schemas constrained decoding can honour. The grammar library ignores what it does not know, and a schema that is
 * ignored in part gives answers that look right until they are not; so every keyword is either enforced or refused by name.
 * What is enforced was tried against xgrammar 0.1.27, see test/engine/json-schema.test.ts.
 */

export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

/** Why a schema cannot be used. */
export interface SchemaProblem {
  /** JSON pointer to the schema that holds the keyword. */
  readonly pointer: string;
  readonly keyword: string;
  readonly message: string;
}

/** Keywords that say nothing about validity. */
const ANNOTATIONS = new Set([
  'title', 'description', 'default', 'examples', 'example', '$schema', '$id', '$comment', '$anchor', 'deprecated', 'readOnly', 'writeOnly', '$defs', 'definitions', 'strict',
]); // prettier-ignore

/** Keywords that hold one schema. */
const ONE_SCHEMA = new Set(['items', 'additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems']);
/** Keywords that hold a list of schemas. */
const SCHEMA_LIST = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
/** Keywords that hold schemas by name. */
const SCHEMA_MAP = new Set(['properties', 'patternProperties']);
const VALUES = new Set([
  'type', 'enum', 'const', 'required', 'minProperties', 'maxProperties', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern', 'format',
  'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', '$ref',
]); // prettier-ignore

const FORMATS = new Set([
  'date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uri-reference', 'uri-template', 'uuid', 'json-pointer', 'relative-json-pointer',
]); // prettier-ignore
const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
/** Beside these no other constraint is read. */
const EXCLUSIVE = ['$ref', 'anyOf', 'oneOf', 'allOf'] as const;
const MAX_DEPTH = 64;

interface Context {
  readonly root: unknown;
  /** Definitions that were checked, or are being checked: that is where recursion ends. */
  readonly definitions: Set<string>;
}

/** The first thing in `schema` that could not be honoured, or undefined. */
export function findSchemaProblem(schema: unknown): SchemaProblem | undefined {
  return check(schema, '', { root: schema, definitions: new Set() }, 0);
}

function check(schema: unknown, pointer: string, context: Context, depth: number): SchemaProblem | undefined {
  const problem = (keyword: string, message: string): SchemaProblem => ({ pointer: pointer || '/', keyword, message });
  if (depth > MAX_DEPTH) return problem('(depth)', `schemas may be nested ${MAX_DEPTH} deep`);
  if (schema === true) return undefined;
  if (schema === false) return problem('false', 'a schema that accepts nothing cannot be generated');
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    return problem('(schema)', `a schema is an object or true, found ${JSON.stringify(schema)}`);
  }
  const entries = Object.entries(schema as Record<string, unknown>);
  for (const [keyword, value] of entries) {
    const at = `${pointer}/${escape(keyword)}`;
    let nested: [string, unknown][] = [];
    if (ANNOTATIONS.has(keyword)) continue;
    if (ONE_SCHEMA.has(keyword)) {
      // `false` here means "no more of them", which the grammar does honour.
      if (typeof value !== 'boolean') nested = [[at, value]];
    } else if (SCHEMA_LIST.has(keyword)) {
      if (!Array.isArray(value) || value.length === 0) return problem(keyword, `${keyword} is a list of schemas`);
      nested = value.map((item, i) => [`${at}/${i}`, item]);
    } else if (SCHEMA_MAP.has(keyword)) {
      if (typeof value !== 'object' || value === null) return problem(keyword, `${keyword} maps names to schemas`);
      nested = Object.entries(value).map(([name, item]) => [`${at}/${escape(name)}`, item]);
    } else if (!VALUES.has(keyword)) {
      return problem(keyword, `the keyword '${keyword}' cannot be enforced while decoding`);
    }
    for (const [where, item] of nested) {
      const found = check(item, where, context, depth + 1);
      if (found) return found;
    }
  }
  return checkValues(new Map(entries), problem, context);
}

type Problem = (keyword: string, message: string) => SchemaProblem;

function checkValues(keywords: ReadonlyMap<string, unknown>, problem: Problem, context: Context): SchemaProblem | undefined {
  const exclusive = EXCLUSIVE.find((keyword) => keywords.has(keyword));
  if (exclusive) {
    const sibling = [...keywords.keys()].find((keyword) => keyword !== exclusive && !ANNOTATIONS.has(keyword) && keyword !== 'type');
    if (sibling) return problem(sibling, `'${sibling}' beside '${exclusive}' cannot be enforced: move it into the branches`);
  }
  if ((keywords.get('allOf') as unknown[] | undefined)?.length! > 1)
    return problem('allOf', "'allOf' of more than one schema cannot be enforced");
  const types = [keywords.get('type') ?? []].flat();
  const unknownType = types.find((type) => !TYPES.has(String(type)));
  if (unknownType !== undefined) return problem('type', `unknown type ${JSON.stringify(unknownType)}`);
  const values = keywords.has('const') ? [keywords.get('const')] : keywords.get('enum');
  if (values !== undefined) {
    if (!Array.isArray(values) || values.length === 0) return problem('enum', "'enum' is a list of at least one value");
    const alien = types.length > 0 && values.find((value) => !types.some((type) => hasType(value, String(type))));
    if (alien !== false && alien !== undefined) return problem('enum', `${JSON.stringify(alien)} is not of type ${types.join(' or ')}`);
  }
  return (
    checkRef(keywords, problem, context) ??
    checkObject(keywords, problem) ??
    checkString(keywords, problem) ??
    checkRange(keywords, types, problem)
  );
}

function checkRef(keywords: ReadonlyMap<string, unknown>, problem: Problem, context: Context): SchemaProblem | undefined {
  const ref = keywords.get('$ref');
  if (ref === undefined || ref === '#') return undefined;
  if (typeof ref !== 'string' || !ref.startsWith('#/'))
    return problem('$ref', `only references into the same schema work, found ${JSON.stringify(ref)}`);
  let target: unknown = context.root;
  for (const part of ref.slice(2).split('/')) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    target =
      typeof target === 'object' && target !== null && Object.hasOwn(target, name) ? (target as Record<string, unknown>)[name] : undefined;
  }
  if (target === undefined) return problem('$ref', `${ref} points to nothing`);
  // What hangs below $defs is an annotation until something refers to it, so it is checked here.
  if (context.definitions.has(ref)) return undefined;
  context.definitions.add(ref);
  return check(target, ref.slice(1), context, 0);
}

function checkObject(keywords: ReadonlyMap<string, unknown>, problem: Problem): SchemaProblem | undefined {
  const required = keywords.get('required');
  if (required === undefined) return undefined;
  if (!Array.isArray(required)) return problem('required', "'required' is a list of names");
  const properties = keywords.get('properties') ?? {};
  const missing = required.find((name) => !Object.hasOwn(properties, String(name)));
  return missing === undefined ? undefined : problem('required', `'${String(missing)}' is required but not in 'properties'`);
}

function checkString(keywords: ReadonlyMap<string, unknown>, problem: Problem): SchemaProblem | undefined {
  const pattern = keywords.get('pattern');
  const format = keywords.get('format');
  if (pattern !== undefined) {
    if (typeof pattern !== 'string') return problem('pattern', "'pattern' is a regular expression");
    const other = ['minLength', 'maxLength', 'format'].find((keyword) => keywords.has(keyword));
    if (other) return problem(other, `'${other}' beside 'pattern' cannot be enforced`);
    try {
      new RegExp(pattern, 'u');
    } catch {
      return problem('pattern', `${JSON.stringify(pattern)} is not a regular expression`);
    }
    if (/\(\?[=!<]|\\[bB1-9kpP]/.test(pattern)) return problem('pattern', 'look-around, back references, \\b and \\p cannot be enforced');
    if (!pattern.startsWith('^') || !pattern.endsWith('$')) return problem('pattern', "a pattern must be anchored with '^' and '$'");
  }
  if (format !== undefined && !FORMATS.has(String(format))) return problem('format', `unknown format ${JSON.stringify(format)}`);
  return undefined;
}

function checkRange(keywords: ReadonlyMap<string, unknown>, types: readonly unknown[], problem: Problem): SchemaProblem | undefined {
  const bounds = ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum'].filter((keyword) => keywords.has(keyword));
  const [first] = bounds;
  if (!first) return undefined;
  const broken = bounds.find((keyword) => !Number.isSafeInteger(keywords.get(keyword)));
  if (broken) return problem(broken, `'${broken}' must be a whole number to be enforced`);
  if (types.length !== 1 || types[0] !== 'integer') return problem(first, `'${first}' can be enforced for type integer only`);
  const lower = bounds.some((keyword) => /min/i.test(keyword));
  const upper = bounds.some((keyword) => /max/i.test(keyword));
  if (lower !== upper) return problem(first, `'${first}' needs the other bound beside it to be enforced`);
  return undefined;
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

/** A name as a step of a JSON pointer. */
function escape(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
