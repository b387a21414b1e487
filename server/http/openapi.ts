/** GET /openapi.json: OpenAPI 3.1 of one listener, collected from its routes. */
import { JSON_TYPE } from './route.ts';
import type { Json, Route } from './route.ts';

export interface DocumentOptions {
  readonly title: string;
  readonly hasKey: boolean;
  readonly hasAdminKey: boolean;
}

/** The OpenAPI document of a listener with these routes. Bodies are described anew each time, since a loaded model tells more. */
export function openApi(routes: readonly Route[], { title, hasKey, hasAdminKey }: DocumentOptions): Json {
  const keys = { ...(hasKey && { key: BEARER }), ...(hasAdminKey && { admin: BEARER }) };
  const security = (route: Route): Json => {
    if (hasAdminKey && route.access === 'admin-acts') return { security: [{ admin: [] }] };
    if (hasKey && hasAdminKey && route.access === 'worker') return { security: [{ key: [] }, { admin: [] }] };
    return hasKey && route.access === 'open' ? { security: [] } : {};
  };
  const paths = new Map<string, Json>();
  for (const route of routes) {
    const path = route.path.replace(PARAMETER, '{$1}');
    paths.set(path, { ...paths.get(path), [route.method]: { ...operation(route), ...security(route) } });
  }
  return {
    openapi: '3.1.0',
    info: { title, version: '1', description: 'Paths under /v1 also answer without that prefix.' },
    tags: [...new Set(routes.flatMap(({ tags }) => tags))].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: { schemas: { Error: ERROR }, ...((hasKey || hasAdminKey) && { securitySchemes: keys }) },
    ...(hasKey && { security: [{ key: [] }] }),
  };
}

/** A path parameter in Express's syntax. */
const PARAMETER = /[*:](\w+)/g;

const BEARER: Json = { type: 'http', scheme: 'bearer' };
const text = { type: 'string' };
const ERROR: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message', 'type', 'param', 'code'],
      properties: { message: text, type: text, param: { type: ['string', 'null'] }, code: text },
    },
  },
};

function operation({ path, summary, tags, body, query = {}, answers = [JSON_TYPE] }: Route): Json {
  const errors = { description: 'An error', content: { [JSON_TYPE]: { schema: { $ref: '#/components/schemas/Error' } } } };
  const parameters = [
    ...[...path.matchAll(PARAMETER)].map(([, name]) => ({ name, in: 'path', required: true, schema: text })),
    ...Object.entries(query).map(([name, schema]) => ({ name, in: 'query', schema })),
  ];
  const content = Object.entries(body?.() ?? {}).map(([type, schema]) => [type, { schema }]);
  return {
    summary,
    tags,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: Object.fromEntries(content) as Json } }),
    responses: { 200: { description: 'Success', content: Object.fromEntries(answers.map((type) => [type, {}])) }, default: errors },
  };
}
