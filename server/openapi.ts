/** GET /openapi.json: OpenAPI 3.1 of one listener. Request bodies come from the schemas that check them, where those are zod schemas. */
import { z } from 'zod';
import { chatSchema } from './chat-schema.ts';
import { completionSchema } from './completion-schema.ts';
import type { Task } from './metrics.ts';
import { speechSchema } from './speech-schema.ts';
import { abortSchema, detokenizeSchema, tokenizeSchema } from './token-schema.ts';
import { BUILT_FORMATS as TRANSCRIPT_FORMATS } from './transcription-schema.ts';

type Json = Readonly<Record<string, unknown>>;

interface Operation {
  readonly summary: string;
  /** JSON Schema of the body, by content type. */
  readonly body?: Readonly<Record<string, Json>>;
  /** Content types of a 200. */
  readonly answers?: readonly string[];
  readonly parameters?: readonly Json[];
}

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';

/** What a client may send: fields that are null count as absent, which the document does not say. */
const jsonBody = (schema: z.ZodType): Readonly<Record<string, Json>> => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return { [JSON_TYPE]: rest };
};

const get = (summary: string, more: Partial<Operation> = {}): Json => ({ get: operation({ summary, ...more }) });
const post = (summary: string, more: Partial<Operation> = {}): Json => ({ post: operation({ summary, ...more }) });

const SHARED: Readonly<Record<string, Json>> = {
  ...Object.fromEntries(['/health', '/healthz', '/v1/health', '/readyz'].map((path) => [path, get('Whether requests can be served')])),
  ...Object.fromEntries(['/livez', '/live'].map((path) => [path, get('Whether the process lives')])),
  '/metrics': get('Prometheus metrics', { answers: ['text/plain'] }),
  ...Object.fromEntries(['/get_server_info', '/server_info'].map((path) => [path, get('Settings, adapter and counters')])),
  '/openapi.json': get('This document'),
  '/v1/models': get("The listener's model under all its names"),
  '/v1/models/{id}': get('One model', { parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] }),
};

const text = { type: 'string' };
const transcriptionForm: Json = {
  type: 'object',
  required: ['file'],
  properties: {
    file: { type: 'string', contentMediaType: 'application/octet-stream' },
    model: text,
    language: { type: 'string', description: 'ISO 639-1 code or English name of the language that is spoken' },
    prompt: {
      type: 'string',
      description: 'Text before the audio; ignored, with x-parley-warning, by models that were not trained with any',
    },
    response_format: { enum: TRANSCRIPT_FORMATS },
    temperature: { type: 'number', minimum: 0, maximum: 1 },
    'timestamp_granularities[]': { type: 'array', items: { enum: ['segment'] }, description: 'For verbose_json' },
    stream: { type: 'boolean', description: 'Not with srt, verbose_json and vtt' },
  },
};
const transcripts: Partial<Operation> = {
  body: { 'multipart/form-data': transcriptionForm },
  answers: [JSON_TYPE, 'text/plain', 'text/vtt', EVENTS],
};

const OWN: Readonly<Record<Task, () => Readonly<Record<string, Json>>>> = {
  chat: () => ({
    '/v1/chat/completions': post('Answers a conversation', { body: jsonBody(chatSchema), answers: [JSON_TYPE, EVENTS] }),
    '/v1/completions': post('Goes on from a prompt', { body: jsonBody(completionSchema), answers: [JSON_TYPE, EVENTS] }),
    '/health_generate': get('Whether the model generates a token'),
    '/v1/tokenize': post('Token ids of a prompt or a conversation', { body: jsonBody(tokenizeSchema) }),
    '/v1/detokenize': post('Text of token ids', { body: jsonBody(detokenizeSchema) }),
    '/v1/flush_cache': post('Forgets cached prefixes'),
    '/v1/abort_request': post('Ends running requests by the id in x-request-id', { body: jsonBody(abortSchema) }),
  }),
  speech: () => ({
    '/v1/audio/speech': post('Speaks a text', { body: jsonBody(speechSchema), answers: ['audio/mpeg', 'audio/wav', 'audio/pcm', EVENTS] }),
    '/v1/audio/voices': get('Voices'),
  }),
  transcription: () => ({
    '/v1/audio/transcriptions': post('Writes down speech', transcripts),
    '/v1/audio/translations': post('Writes down speech in English, where the model can', transcripts),
  }),
};

/** The document of a listener. What is under /v1 also answers without it. */
export function openApi(task: Task, hasKey: boolean): Json {
  return {
    openapi: '3.1.0',
    info: { title: `Parley: ${task}`, version: '1', description: 'Paths under /v1 also answer without that prefix.' },
    paths: { ...SHARED, ...OWN[task]() },
    components: {
      schemas: { Error: ERROR },
      ...(hasKey && { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } }),
    },
    ...(hasKey && { security: [{ key: [] }] }),
  };
}

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

function operation({ summary, body, answers = [JSON_TYPE], parameters }: Operation): Json {
  const errors = { description: 'An error', content: { [JSON_TYPE]: { schema: { $ref: '#/components/schemas/Error' } } } };
  const types = (schemas: readonly (readonly [string, Json])[]): Json =>
    Object.fromEntries(schemas.map(([type, schema]) => [type, schema]));
  return {
    summary,
    ...(parameters && { parameters }),
    ...(body && {
      requestBody: { required: true, content: types(Object.entries(body).map(([type, schema]) => [type, { schema }])) },
    }),
    responses: { 200: { description: 'Success', content: types(answers.map((type) => [type, {}])) }, default: errors },
  };
}
