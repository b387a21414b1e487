/**
 * Makes the JSON Schemas of bodies for /openapi.json from the zod schemas that check them. Rules that zod does not check (which fields exclude or need each other,
 * what may be null, what is not built) are added next to each schema, and a test gives the same bodies to both.
 */
import { z } from 'zod';
import { JSON_TYPE } from '../http/route.ts';
import type { Json } from '../http/route.ts';

/** Names that a body's `model` may have, and whether the field may be left out. */
export interface ModelNames {
  readonly models: readonly string[];
  readonly modelOptional: boolean;
}

/** Rules of a body that its zod schema lacks. */
interface Exact {
  /** Required fields besides the schema's. */
  readonly required?: readonly string[];
  /** Schemas of properties that replace zod's. */
  readonly properties?: Readonly<Record<string, Json>>;
  /** Further schemas that must all hold. */
  readonly rules?: readonly Json[];
  readonly example: Json;
}

export const NULL: Json = { type: 'null' };

/** JSON Schema of a body as the server accepts it: an optional field may also be null. */
export function describeBody(schema: z.ZodType, { required = [], properties = {}, rules = [], example }: Exact): Json {
  const { $schema: _, ...made } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const needed = [...(made.required ?? []), ...required];
  const fields = Object.entries({ ...(made.properties as Readonly<Record<string, Json>>), ...properties });
  const open = fields.map(([name, field]) => [name, needed.includes(name) ? field : { anyOf: [field, NULL] }] as const);
  return {
    ...made,
    required: needed,
    properties: Object.fromEntries(open),
    ...(rules.length > 0 && { allOf: rules }),
    examples: [example],
  };
}

/** Schema parts of `model`, which is required unless the server was told otherwise. */
export function describeModel({ models, modelOptional }: ModelNames): Required<Pick<Exact, 'required' | 'properties' | 'example'>> {
  return { required: modelOptional ? [] : ['model'], properties: { model: { enum: models } }, example: { model: models[0] } };
}

/** A route's JSON body with this schema. */
export const jsonBody = (schema: Json): Readonly<Record<string, Json>> => ({ [JSON_TYPE]: schema });

/** Schema that requires a field, and that its value satisfies `value` (by default: is not null). */
export const given = (name: string, value: Json = { not: NULL }): Json => ({ required: [name], properties: { [name]: value } });

/** Schema that requires fields to be null or absent. */
export const absent = (...names: readonly string[]): Json => ({ properties: Object.fromEntries(names.map((name) => [name, NULL])) });
