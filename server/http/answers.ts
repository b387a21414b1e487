/**
 * Schemas of answers, from which /openapi.json and the types of what the code sends are made. Nothing is checked against them while serving: the compiler
 * holds the code to their types, and the tests hold what is answered to them.
 */
import { z } from 'zod';

/** Schemas of a route's successful answers, by content type; that of `text/event-stream` is of the JSON in one event. */
export type Answers = Readonly<Record<string, z.ZodType>>;

/** What may be sent where a schema is declared; what it is made of may be read-only. */
export type Sent<Schema extends z.ZodType> = Frozen<z.output<Schema>>;
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** A schema for each field of an interface, so that the compiler tells of a field that was forgotten. */
export type ShapeOf<T> = { readonly [K in keyof T]-?: z.ZodType };

/** Schema of an object with a name, which it has in clients that are made from /openapi.json too. */
export const named = <const Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.object(shape).meta({ id, description });

export const integer = z.number().meta({ type: 'integer' });
export const count = z.number().meta({ type: 'integer', minimum: 0 });
export const byteCount = z.number().meta({ type: 'integer', format: 'int64', minimum: 0 });
export const unixTime = z.number().meta({ type: 'integer', format: 'int64', description: 'Unix time in seconds' });
/** Schema of a body of bytes, in the notation that generators of clients know. */
export const binary = z.string().meta({ format: 'binary' });

export const errorSchema = named('Error', 'Any failure, whatever the status', {
  error: z.object({
    message: z.string(),
    type: z.string().describe('`invalid_request_error`, `server_error` and others'),
    param: z.string().nullable().describe('Dotted path of the field that is to blame'),
    code: z.string().describe('A stable identifier, such as `invalid_value`'),
    n_prompt_tokens: count.optional().describe('Of `context_length_exceeded`: tokens of the prompt'),
    n_ctx: count.optional().describe('Of `context_length_exceeded`: tokens that the context holds'),
  }),
});
export type ErrorAnswer = Sent<typeof errorSchema>;

/** The answer of routes that only say that all is well. */
export const statusSchema = named('Status', 'All is well', { status: z.literal('ok') });
export type StatusAnswer = Sent<typeof statusSchema>;
