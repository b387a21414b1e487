/**
 * JSON Schemas of bodies for /openapi.json, made from the zod schemas that check them. What is checked beside those (which fields exclude or
 * need each other, what is null, what is built) is said next to each schema, and a test gives the same bodies to both.
 */
import { z } from 'zod';
import { JSON_TYPE } from '../http/route.ts';
import type { Json } from '../http/route.ts';

/** Names that a body's `model` may have, and whether it may be left out. */
export interface ModelNames {
  readonly models: readonly string[];
  readonly modelOptional: boolean;
}

/** What a body's schema leaves open. */
interface Exact {
  /** Fields needed besides the schema's. */
  readonly required?: readonly string[];
  /** Instead of the schema's. */
  readonly properties?: Readonly<Record<string, Json>>;
  /** All of which must hold. */
  readonly rules?: readonly Json[];
  readonly example: Json;
}

export const NULL: Json = { type: 'null' };

/** A body's schema as the server takes it: a field that may be absent may be null. */
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

/** `model` in a body that must name it, unless the server was told otherwise. */
export function describeModel({ models, modelOptional }: ModelNames): Required<Pick<Exact, 'required' | 'properties' | 'example'>> {
  return { required: modelOptional ? [] : ['model'], properties: { model: { enum: models } }, example: { model: models[0] } };
}

/** A schema as a route's body of JSON. */
export const jsonBody = (schema: Json): Readonly<Record<string, Json>> => ({ [JSON_TYPE]: schema });

/** A field is there, and `value` takes it. */
export const given = (name: string, value: Json = { not: NULL }): Json => ({ required: [name], properties: { [name]: value } });

/** Fields are null or not there. */
export const absent = (...names: readonly string[]): Json => ({ properties: Object.fromEntries(names.map((name) => [name, NULL])) });
