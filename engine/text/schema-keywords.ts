/** The keywords of JSON Schema by what they hold. */

/** Refuses a schema by the keyword that is wrong. */
export type Refuse = (keyword: string, message: string) => never;
/** The keywords of one schema. */
export type Keywords = ReadonlyMap<string, unknown>;

/** Keywords that say nothing about validity. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  'title', 'description', 'default', 'examples', 'example', '$schema', '$id', '$comment', '$anchor', 'deprecated', 'readOnly', 'writeOnly', '$defs', 'definitions', 'strict',
]); // prettier-ignore

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
/** Beside these no other constraint is read. */
export const EXCLUSIVE = ['$ref', 'anyOf', 'oneOf', 'allOf'] as const;

/** The types that `type` names, with OpenAPI's `nullable`; empty = any. */
export function typesOf(keywords: Keywords): string[] {
  const types = [keywords.get('type') ?? []].flat().map(String);
  return keywords.get('nullable') === true && types.length > 0 && !types.includes('null') ? [...types, 'null'] : types;
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
