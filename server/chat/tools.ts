/** The fields of a chat request that constrain its answer: response_format, tools, tool_choice, and the older functions and function_call. */
import { z } from 'zod';
import type { ResponseFormat, ToolDefinition } from '../../engine/api.ts';
import { HttpError, invalidValue } from '../http/errors.ts';
import { list } from '../body/bounded.ts';
import { defined } from '../body/validate.ts';

const MAX_TOOLS = 128;
const name = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'is 1 to 64 letters, digits, _ or -');
const described = { description: z.string().nullish(), strict: z.boolean().nullish() };

/** Schema of `response_format`. The JSON Schema within it is checked by the engine, keyword by keyword. */
export const responseFormatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  // `schema` beside json_object is llama.cpp's spelling.
  z.object({ type: z.literal('json_object'), schema: z.unknown().optional() }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z
      .object({ name, schema: z.unknown().optional(), ...described })
      .meta({ allOf: [{ required: ['schema'], properties: { schema: { not: { type: 'null' } } } }] }),
  }),
]);

const functionSchema = z.object({ name, parameters: z.record(z.string(), z.unknown()).nullish(), ...described });
const named = z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) });

/** The fields about tools, to be spread into the schema of the body. */
export const toolFields = {
  tools: z
    .array(
      z
        .object({ type: z.string(), function: functionSchema.optional() })
        .refine(({ type }) => type === 'function', {
          message: "only tools of type 'function' are served",
          path: ['type'],
          params: { code: 'unsupported_value' },
        })
        .refine((tool) => tool.type !== 'function' || tool.function !== undefined, {
          message: 'is required',
          path: ['function'],
          params: { code: 'missing_required_parameter' },
        })
        .meta({ allOf: [{ required: ['function'], properties: { type: { const: 'function' } } }] }),
    )
    .max(MAX_TOOLS, `has at most ${MAX_TOOLS} tools`)
    .optional(),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      named,
      z.object({
        type: z.literal('allowed_tools'),
        allowed_tools: z.object({ mode: z.enum(['auto', 'required']), tools: list(named, (all) => all.min(1)) }),
      }),
    ])
    .optional(),
  functions: z.array(functionSchema).max(MAX_TOOLS).optional(),
  function_call: z.union([z.enum(['none', 'auto']), z.object({ name: z.string() })]).optional(),
  parallel_tool_calls: z.boolean().optional(),
};

const fieldsSchema = z.object(toolFields);
type ToolFields = z.output<typeof fieldsSchema>;
type Choice = 'none' | 'auto' | 'required' | { readonly name: string };

/** Converts `response_format` to the engine's form; undefined for text. Throws HttpError 400 if a schema is missing. */
export function toResponseFormat(format: z.output<typeof responseFormatSchema> | undefined): ResponseFormat | undefined {
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type === 'json_object')
    return format.schema == null ? { type: 'json_object' } : { type: 'json_schema', schema: format.schema };
  if (format.json_schema.schema == null) {
    const param = 'response_format.json_schema.schema';
    throw new HttpError(400, 'invalid_json_schema', `'${param}' is required`, { param });
  }
  return { type: 'json_schema', schema: format.json_schema.schema };
}

/** Whether a request has the older `functions` instead of `tools`; its answer then has one call, as `function_call` beside `tool_calls`. */
export const hasFunctions = (fields: ToolFields): boolean => fields.tools === undefined && fields.functions !== undefined;

/** The function definitions of a body, each with its path there. */
function definitionsOf(fields: ToolFields) {
  if (hasFunctions(fields)) return (fields.functions ?? []).map((definition, i) => ({ definition, path: `functions[${i}]` }));
  return (fields.tools ?? []).flatMap((tool, i) => (tool.function ? [{ definition: tool.function, path: `tools[${i}]` }] : []));
}

/** The path in the body of each tool that is offered to the engine. These may be a selection of the body's, or come from `functions`. */
export function toolPaths(fields: ToolFields, offered: readonly ToolDefinition[]): readonly string[] {
  const paths = new Map(definitionsOf(fields).map(({ definition, path }) => [definition.name, path]));
  return offered.map((tool) => paths.get(tool.name)!);
}

/** Converts tools and tool choice to the engine's form, also from `functions` and `function_call`. Throws HttpError 400 that names the field. */
export function toTools(fields: ToolFields): { readonly tools?: readonly ToolDefinition[]; readonly toolChoice?: Choice } {
  const isOld = hasFunctions(fields);
  const path = isOld ? 'functions' : 'tools';
  const tools = definitionsOf(fields).map(({ definition: { name, description, parameters, strict } }) =>
    defined({
      name,
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict === true ? true : undefined,
    }),
  ) as ToolDefinition[];
  const twice = tools.findIndex((tool, index) => tools.findIndex((other) => other.name === tool.name) < index);
  if (twice >= 0) throw invalidValue(`${path}[${twice}]${isOld ? '' : '.function'}.name`, `two tools are called '${tools[twice]?.name}'`);
  const choiceParam = fields.tool_choice === undefined ? 'function_call' : 'tool_choice';
  const { choice, allowed } = readChoice(fields);
  if (tools.length === 0) {
    if (choice === undefined || choice === 'none') return {};
    throw invalidValue(choiceParam, `'${choiceParam}' needs 'tools'`);
  }
  const asked = [...(allowed ?? []), ...(typeof choice === 'object' ? [choice.name] : [])];
  const unknown = asked.find((wanted) => !tools.some((tool) => tool.name === wanted));
  if (unknown !== undefined)
    throw invalidValue(choiceParam, `'${choiceParam}' names '${unknown.slice(0, 64)}', which is not among the tools`);
  const offered = allowed ? tools.filter((tool) => allowed.includes(tool.name)) : tools;
  return { tools: offered, ...(choice !== undefined && { toolChoice: choice }) };
}

function readChoice({ tool_choice: choice, function_call: old }: ToolFields): {
  readonly choice?: Choice;
  readonly allowed?: readonly string[];
} {
  if (choice === undefined) return old === undefined ? {} : { choice: old };
  if (typeof choice === 'string') return { choice };
  if (choice.type === 'function') return { choice: { name: choice.function.name } };
  return { choice: choice.allowed_tools.mode, allowed: choice.allowed_tools.tools.map((tool) => tool.function.name) };
}
