/** GET /openapi.json: OpenAPI 3.1 of one listener, collected from its routes. */
import { z } from 'zod';
import { EVENT_TYPE, JSON_TYPE } from './route.ts';
import type { Json, Route } from './route.ts';
import { errorSchema, named } from './answers.ts';
import type { Sent } from './answers.ts';

const anything = z.record(z.string(), z.unknown());

/** Schema of the document itself, as far as clients need it that read it as an answer. */
export const documentSchema = named('OpenApiDocument', 'OpenAPI 3.1 of this listener', {
  openapi: z.string(),
  info: z.object({ title: z.string(), version: z.string(), description: z.string() }),
  tags: z.array(z.object({ name: z.string() })),
  paths: z
    .record(z.string(), z.record(z.string(), z.looseObject({ summary: z.string(), tags: z.array(z.string()), responses: anything })))
    .describe('Operations by path and method'),
  components: z.object({ schemas: anything, securitySchemes: anything.optional() }),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
});
export type OpenApiDocument = Sent<typeof documentSchema>;

export interface DocumentOptions {
  readonly title: string;
  readonly hasKey: boolean;
  readonly hasAdminKey: boolean;
}

/** What this document has of a listener's answers, which does not change while it runs. */
export interface DescribedAnswers {
  readonly responses: ReadonlyMap<Route, Json>;
  /** Schemas of `components`, by name. */
  readonly schemas: Json;
}

/** Describes the answers of these routes. Schemas that have names are moved to `components`. */
export function describeAnswers(routes: readonly Route[]): DescribedAnswers {
  const schemas = new Map<string, unknown>();
  const describe = (answer: z.ZodType): unknown => {
    // As input, since an object takes further fields there: those of later versions.
    const { $schema: _, $defs = {}, ...made } = toComponents(z.toJSONSchema(answer, { io: 'input' }));
    for (const [name, schema] of Object.entries($defs)) schemas.set(name, schema);
    return made;
  };
  const error = { description: 'An error', content: { [JSON_TYPE]: { schema: describe(errorSchema) } } };
  const responses = routes.map((route) => {
    const content = Object.entries(route.answers).map(([type, schema]) => [type, { schema: describe(schema) }]);
    const description = EVENT_TYPE in route.answers ? SUCCESS_WITH_EVENTS : 'Success';
    return [route, { 200: { description, content: Object.fromEntries(content) as Json }, default: error }] as const;
  });
  return { responses: new Map(responses), schemas: Object.fromEntries(schemas) };
}

const SUCCESS_WITH_EVENTS = `Success. A stream is ${EVENT_TYPE}, whose schema is that of the JSON in each event, after \`data: \``;

type Made = z.core.JSONSchema.BaseSchema;

/** A schema whose references to others lead to the document's components. */
const toComponents = (schema: Made): Made =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' ? value.replace('#/$defs/', '#/components/schemas/') : value,
  ) as Made;

/** The OpenAPI document of a listener with these routes. Bodies are described anew each time, since a loaded model tells more. */
export function openApi(routes: readonly Route[], { responses, schemas }: DescribedAnswers, options: DocumentOptions): OpenApiDocument {
  const { title, hasKey, hasAdminKey } = options;
  const keys = { ...(hasKey && { key: BEARER }), ...(hasAdminKey && { admin: BEARER }) };
  const security = (route: Route): Json => {
    if (hasAdminKey && route.access === 'admin-acts') return { security: [{ admin: [] }] };
    if (hasKey && hasAdminKey && route.access === 'worker') return { security: [{ key: [] }, { admin: [] }] };
    return hasKey && route.access === 'open' ? { security: [] } : {};
  };
  const paths = new Map<string, OpenApiDocument['paths'][string]>();
  for (const route of routes) {
    const path = route.path.replace(PARAMETER, '{$1}');
    const described = { ...operation(route), responses: responses.get(route)!, ...security(route) };
    paths.set(path, { ...paths.get(path), [route.method]: described });
  }
  return {
    openapi: '3.1.0',
    info: { title, version: '1', description: 'Paths under /v1 also answer without that prefix.' },
    tags: [...new Set(routes.flatMap(({ tags }) => tags))].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: { schemas, ...((hasKey || hasAdminKey) && { securitySchemes: keys }) },
    ...(hasKey && { security: [{ key: [] }] }),
  };
}

/** A path parameter in Express's syntax. */
const PARAMETER = /[*:](\w+)/g;

const BEARER: Json = { type: 'http', scheme: 'bearer' };

function operation({ path, summary, tags, body, query = {} }: Route) {
  const parameters = [
    ...[...path.matchAll(PARAMETER)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries(query).map(([name, schema]) => ({ name, in: 'query', schema })),
  ];
  const content = Object.entries(body?.() ?? {}).map(([type, schema]) => [type, { schema }]);
  return {
    summary,
    tags,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: Object.fromEntries(content) as Json } }),
  };
}
