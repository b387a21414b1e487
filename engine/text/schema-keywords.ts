/** JSON Schema keywords, grouped by the kind of value that they hold. */

/** Rejects a schema because of one keyword, which cannot be enforced or, if `malformed`, is not valid JSON Schema. Never returns. */
export type Refuse = (keyword: string, message: string, why?: 'malformed') => never;
/** Keywords of one schema: value by name. */
export type Keywords = ReadonlyMap<string, unknown>;

/** Annotations: keywords without effect on validity, in JSON Schema, in OpenAPI (`discriminator` is a hint beside `oneOf`) or in a tool's definition. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title', 'description', 'default', 'examples', 'example', '$schema', '$id', '$comment', '$anchor', 'deprecated', 'readOnly', 'writeOnly', '$defs', 'definitions', 'strict',
  'contentEncoding', 'contentMediaType', 'contentSchema', 'discriminator', 'externalDocs', 'xml',
]); // prettier-ignore

/** Formats that are enforced. Any other is an annotation, as JSON Schema allows: `int64`, `binary` and `password` come with every OpenAPI document. */
export const FORMATS: ReadonlySet<unknown> = new Set([
  'date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uri-reference', 'uri-template', 'uuid', 'json-pointer', 'relative-json-pointer',
]); // prettier-ignore
/** Enforced formats that the empty string satisfies. */
const MAY_BE_EMPTY: ReadonlySet<unknown> = new Set(['uri-reference', 'uri-template', 'json-pointer']);

/** Keywords that hold one schema. */
export const ONE_SCHEMA: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems']); // prettier-ignore
/** Keywords that hold a list of schemas. */
export const SCHEMA_LIST: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
/** Keywords that hold schemas by name. */
export const SCHEMA_MAP: ReadonlySet<string> = new Set(['properties', 'patternProperties']);
/** Keywords that bound a number; the names are those of NumberRange. */
export const NUMERIC = ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum', 'multipleOf'] as const;
/** Keywords that hold a value other than a schema. */
export const VALUES: ReadonlySet<string> = new Set([
  'type', 'enum', 'const', 'required', 'minProperties', 'maxProperties', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern', 'format', 'nullable', '$ref', ...NUMERIC,
]); // prettier-ignore
/** Keywords that apply to one type only, by type. */
export const OF_TYPE = {
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  array: ['minItems', 'maxItems', 'items', 'prefixItems'],
  object: ['minProperties', 'maxProperties', 'properties', 'patternProperties', 'propertyNames', 'additionalProperties', 'required'],
} as const;
/** Keywords with which a schema is more than a record, whose values all have one schema. */
const OTHER_PROPERTIES = ['properties', 'patternProperties', 'unevaluatedProperties'] as const;
/** Keywords that bound the length of a string. */
export const OF_LENGTH: ReadonlySet<string> = new Set(['minLength', 'maxLength']);
/** Keywords beside which no other constraint than a type can be enforced. */
export const EXCLUSIVE = ['$ref', 'anyOf', 'oneOf', 'allOf'] as const;

/** Types that a schema allows, by `type` and OpenAPI's `nullable`; empty = any. */
export function typesOf(keywords: Keywords): string[] {
  const types = [keywords.get('type') ?? []].flat().map(String);
  return keywords.get('nullable') === true && types.length > 0 && !types.includes('null') ? [...types, 'null'] : types;
}

/** Whether a keyword is to be ignored: an annotation, a format that is unknown or has a stronger rule beside it, or `propertyNames` that allows every name. */
export function isNote(keyword: string, keywords: Keywords): boolean {
  if (keyword === 'format') return !FORMATS.has(keywords.get('format')) || isMoreThanFormat(keywords);
  if (keyword === 'propertyNames') return isAnyText(keywords.get(keyword));
  return ANNOTATIONS.has(keyword);
}

/** Whether a pattern or a length beside a format is enforced in its place: clients also write the format from which they made a pattern. */
function isMoreThanFormat(keywords: Keywords): boolean {
  const least = MAY_BE_EMPTY.has(keywords.get('format')) ? 0 : 1;
  return keywords.has('pattern') || keywords.has('maxLength') || ((keywords.get('minLength') as number | undefined) ?? 0) > least;
}

/** Whether a schema of names allows every string, like the one that `z.record` writes. */
function isAnyText(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return schema === true;
  const keywords = new Map(Object.entries(schema));
  return [...keywords].every(([keyword, value]) => isNote(keyword, keywords) || (keyword === 'type' && value === 'string'));
}

/**
 * Returns the keywords of one schema within `root`. The library cannot enforce rules for both names and values of a record. So a record whose names are listed
 * gets them as `properties`, and one whose names have a pattern or a length gets `patternProperties`. Pydantic writes such a schema for a `dict` with an enum as
 * keys, and Zod for `z.record` of an enum.
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

/** Names, or a pattern of names, that `schema` allows; undefined if it has other rules, or too many. */
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

/** Resolves a reference into the same schema (`#/...`); undefined if it points to nothing. */
export function lookUp(root: unknown, ref: string): unknown {
  let target = root;
  for (const part of ref.slice(2).split('/')) {
    const name = decode(part).replaceAll('~1', '/').replaceAll('~0', '~');
    target =
      typeof target === 'object' && target !== null && Object.hasOwn(target, name) ? (target as Record<string, unknown>)[name] : undefined;
  }
  return target;
}

/** Decodes a reference's percent-encoding; a part with a stray % is returned unchanged. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
