/** The keywords of JSON Schema by what they hold. */

/** Refuses a schema by the keyword that cannot be enforced, or that is `malformed`: no schema at all. */
export type Refuse = (keyword: string, message: string, why?: 'malformed') => never;
/** The keywords of one schema. */
export type Keywords = ReadonlyMap<string, unknown>;

/** Keywords that say nothing about validity, in JSON Schema, OpenAPI (`discriminator` is a hint beside `oneOf`) or a tool's definition. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title', 'description', 'default', 'examples', 'example', '$schema', '$id', '$comment', '$anchor', 'deprecated', 'readOnly', 'writeOnly', '$defs', 'definitions', 'strict',
  'contentEncoding', 'contentMediaType', 'contentSchema', 'discriminator', 'externalDocs', 'xml',
]); // prettier-ignore

/** Formats that are enforced. Any other is a note, as JSON Schema has it: `int64`, `binary` and `password` come with every OpenAPI document. */
export const FORMATS: ReadonlySet<unknown> = new Set([
  'date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uri-reference', 'uri-template', 'uuid', 'json-pointer', 'relative-json-pointer',
]); // prettier-ignore
/** Those of them that an empty text has. */
const MAY_BE_EMPTY: ReadonlySet<unknown> = new Set(['uri-reference', 'uri-template', 'json-pointer']);

/** Keywords that hold one schema. */
export const ONE_SCHEMA: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems']); // prettier-ignore
/** Keywords that hold a list of schemas. */
export const SCHEMA_LIST: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
/** Keywords that hold schemas by name. */
export const SCHEMA_MAP: ReadonlySet<string> = new Set(['properties', 'patternProperties']);
/** Keywords that bound a number; the names are those of NumberRange. */
export const NUMERIC = ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum', 'multipleOf'] as const;
/** Keywords that hold anything else. */
export const VALUES: ReadonlySet<string> = new Set([
  'type', 'enum', 'const', 'required', 'minProperties', 'maxProperties', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern', 'format', 'nullable', '$ref', ...NUMERIC,
]); // prettier-ignore
/** Keywords by the type of which alone they speak. */
export const OF_TYPE = {
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  array: ['minItems', 'maxItems', 'items', 'prefixItems'],
  object: ['minProperties', 'maxProperties', 'properties', 'patternProperties', 'propertyNames', 'additionalProperties', 'required'],
} as const;
/** Rules for properties that are not those of a record. */
const OTHER_PROPERTIES = ['properties', 'patternProperties', 'unevaluatedProperties'] as const;
const OF_LENGTH: ReadonlySet<string> = new Set(['minLength', 'maxLength']);
/** Beside these no other constraint is read. */
export const EXCLUSIVE = ['$ref', 'anyOf', 'oneOf', 'allOf'] as const;

/** The types that `type` names, with OpenAPI's `nullable`; empty = any. */
export function typesOf(keywords: Keywords): string[] {
  const types = [keywords.get('type') ?? []].flat().map(String);
  return keywords.get('nullable') === true && types.length > 0 && !types.includes('null') ? [...types, 'null'] : types;
}

/** Whether a keyword says nothing that is to be enforced here. */
export function isNote(keyword: string, keywords: Keywords): boolean {
  if (keyword === 'format') return !FORMATS.has(keywords.get('format')) || isMoreThanFormat(keywords);
  if (keyword === 'propertyNames') return isAnyText(keywords.get(keyword));
  return ANNOTATIONS.has(keyword);
}

/** Whether there is, beside a format, what is enforced in its place: clients write the format that they made a pattern from. */
function isMoreThanFormat(keywords: Keywords): boolean {
  const least = MAY_BE_EMPTY.has(keywords.get('format')) ? 0 : 1;
  return keywords.has('pattern') || keywords.has('maxLength') || ((keywords.get('minLength') as number | undefined) ?? 0) > least;
}

/** Every name is a text: `z.record` says so. */
function isAnyText(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return schema === true;
  const keywords = new Map(Object.entries(schema));
  return [...keywords].every(([keyword, value]) => isNote(keyword, keywords) || (keyword === 'type' && value === 'string'));
}

/**
 * The keywords of one schema of `root`. The library reads no rule for values beside one for their names, so a record whose names are listed has them as
 * properties, and one whose names have a pattern or a length has that in `patternProperties`: Pydantic's `dict` of an enum and Zod's `z.record` of one say the same.
 */
export function keywordsOf(schema: object, root: unknown): Keywords {
  const keywords = new Map<string, unknown>(Object.entries(schema));
  const values = keywords.get('additionalProperties');
  if (typeof values !== 'object' || values === null || OTHER_PROPERTIES.some((keyword) => keywords.has(keyword))) return keywords;
  const rule = namesOf(keywords.get('propertyNames'), root);
  if (!rule) return keywords;
  keywords.delete('propertyNames');
  keywords.set(rule.keyword, Object.fromEntries(rule.names.map((name) => [name, values])));
  return keywords.set('additionalProperties', false);
}

/** The names or the pattern that `schema` allows, or undefined: something else, or more than that. */
function namesOf(schema: unknown, root: unknown): { keyword: 'properties' | 'patternProperties'; names: readonly string[] } | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const keywords = new Map<string, unknown>(Object.entries(schema));
  const says = [...keywords].filter(([keyword, value]) => !isNote(keyword, keywords) && !(keyword === 'type' && value === 'string'));
  const ref = keywords.get('$ref');
  if (typeof ref === 'string' && ref.startsWith('#/') && says.length === 1) {
    const target = lookUp(root, ref);
    return typeof target === 'object' && target !== null && !Object.hasOwn(target, '$ref') ? namesOf(target, root) : undefined;
  }
  if (says.length > 0 && says.every(([keyword, value]) => OF_LENGTH.has(keyword) && Number.isInteger(value) && Number(value) >= 0)) {
    const [least, most] = ['minLength', 'maxLength'].map((keyword) => keywords.get(keyword) as number | undefined);
    return { keyword: 'patternProperties', names: [`^.{${least ?? 0},${most ?? ''}}$`] };
  }
  const [[keyword, value] = []] = says;
  if (says.length !== 1) return undefined;
  if (keyword === 'pattern' && typeof value === 'string') return { keyword: 'patternProperties', names: [value] };
  const names = keyword === 'enum' ? value : keyword === 'const' ? [value] : undefined;
  const isListed = Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string');
  return isListed ? { keyword: 'properties', names } : undefined;
}

/** What a reference into the same schema (`#/...`) points to; undefined = nothing. */
export function lookUp(root: unknown, ref: string): unknown {
  let target = root;
  for (const part of ref.slice(2).split('/')) {
    const name = decode(part).replaceAll('~1', '/').replaceAll('~0', '~');
    target =
      typeof target === 'object' && target !== null && Object.hasOwn(target, name) ? (target as Record<string, unknown>)[name] : undefined;
  }
  return target;
}

/** References are parts of URIs; a lone % stands for itself. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
