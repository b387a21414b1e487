/**
 * GET /openapi.json: OpenAPI 3.1 of one listener. Bodies come from the zod schemas that check them; what is checked beside those (which
 * fields exclude or need each other, what is null, what is built) is said here, and a test sends both the same bodies.
 */
import { z } from 'zod';
import { chatSchema } from '../chat/schema.ts';
import { DEFAULT_MAX_TOKENS, completionSchema } from '../chat/completion-schema.ts';
import type { Task } from './metrics.ts';
import { BUILT_FORMATS as SPEECH_FORMATS, currentSpeechSchema, earlierSpeechSchema } from '../speech/schema.ts';
import { abortSchema, detokenizeSchema, tokenizeSchema } from '../chat/token-schema.ts';
import { BUILT_FORMATS as TRANSCRIPT_FORMATS } from '../transcription/schema.ts';

type Json = Readonly<Record<string, unknown>>;

/** What a listener's settings and model say of bodies. */
export interface BodyLimits {
  /** Choices a request. */
  readonly maxChoices?: number;
  /** Characters of text to speak. */
  readonly maxInput?: number;
  /** Whether the earlier speech form is taken. */
  readonly legacy?: boolean;
  /** Hz of the speech model. */
  readonly sampleRate?: number;
}

export interface DocumentOptions extends BodyLimits {
  readonly task: Task;
  /** Names that `model` may have. */
  readonly models: readonly string[];
  readonly modelOptional: boolean;
  readonly hasKey: boolean;
  readonly hasAdminKey: boolean;
}

interface Operation {
  readonly summary: string;
  /** JSON Schema of the body, by content type. */
  readonly body?: Readonly<Record<string, Json>>;
  /** Content types of a 200. */
  readonly answers?: readonly string[];
  readonly parameters?: readonly Json[];
  /** Whose key it needs where one is set; absent = the one for everything. */
  readonly access?: 'open' | 'admin';
}

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';
const NULL: Json = { type: 'null' };

/** What a body's schema leaves open. */
interface Exact {
  /** Fields needed besides the schema's. */
  readonly required?: readonly string[];
  /** Instead of the schema's. */
  readonly properties?: Readonly<Record<string, Json>>;
  /** All of which must hold. */
  readonly rules?: readonly Json[];
  /** Without `model`. */
  readonly example: Json;
}

/** A body's schema as the server takes it: a field that may be absent may be null. */
function bodyOf(schema: z.ZodType, { required = [], properties = {}, rules = [], example }: Exact): Json {
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

const jsonBody = (schema: Json): Readonly<Record<string, Json>> => ({ [JSON_TYPE]: schema });
const given = (name: string, value: Json = { not: NULL }): Json => ({ required: [name], properties: { [name]: value } });
const absent = (...names: readonly string[]): Json => ({ properties: Object.fromEntries(names.map((name) => [name, NULL])) });

const get = (summary: string, more: Partial<Operation> = {}): Json => ({ get: operation({ summary, ...more }) });
const post = (summary: string, more: Partial<Operation> = {}): Json => ({ post: operation({ summary, ...more }) });
const OPEN = { access: 'open' } as const;
const ADMIN = { access: 'admin' } as const;

const SHARED: Readonly<Record<string, Json>> = {
  ...Object.fromEntries(
    ['/health', '/healthz', '/v1/health', '/readyz'].map((path) => [path, get('Whether requests can be served', OPEN)]),
  ),
  ...Object.fromEntries(['/livez', '/live'].map((path) => [path, get('Whether the process lives', OPEN)])),
  '/metrics': get('Prometheus metrics', { answers: ['text/plain'], ...OPEN }),
  ...Object.fromEntries(['/get_server_info', '/server_info'].map((path) => [path, get('Settings, adapter and counters', ADMIN)])),
  '/openapi.json': get('This document', OPEN),
  '/v1/models': get("The listener's model under all its names"),
  '/v1/models/{id}': get('One model', { parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] }),
};

const text = { type: 'string' };
/** Every answer to choose tools but 'none' needs some. */
const SOME_TOOLS: Json = {
  anyOf: [given('tools', { type: 'array', minItems: 1 }), { allOf: [absent('tools'), given('functions', { type: 'array', minItems: 1 })] }],
};
const STREAM_OPTIONS: Json = { if: given('stream_options'), then: given('stream', { const: true }) };

/** `model` in a body that must name it, unless the server was told otherwise. */
function modelOf({ models, modelOptional }: DocumentOptions): Required<Pick<Exact, 'required' | 'properties' | 'example'>> {
  return { required: modelOptional ? [] : ['model'], properties: { model: { enum: models } }, example: { model: models[0] } };
}

function chatBody(options: DocumentOptions): Json {
  const { required, properties, example } = modelOf(options);
  const choice = { not: { enum: ['none', null] } };
  return bodyOf(chatSchema, {
    required,
    example: { ...example, messages: [{ role: 'user', content: 'What is 2+2?' }] },
    properties: {
      ...properties,
      n: { type: 'integer', minimum: 1, maximum: Math.min(128, options.maxChoices ?? 128) },
      modalities: { type: 'array', items: { const: 'text' } },
      audio: NULL,
      web_search_options: NULL,
      moderation: NULL,
    },
    rules: [
      STREAM_OPTIONS,
      { if: given('top_logprobs', { type: 'integer', minimum: 1 }), then: given('logprobs', { const: true }) },
      { if: given('tool_choice', choice), then: SOME_TOOLS },
      { if: { allOf: [given('function_call', choice), absent('tool_choice')] }, then: SOME_TOOLS },
    ],
  });
}

function completionBody(options: DocumentOptions): Json {
  const { required, properties, example } = modelOf(options);
  const n = { type: 'integer', minimum: 1, maximum: Math.min(128, options.maxChoices ?? 128) };
  return bodyOf(completionSchema, {
    required,
    example: { ...example, prompt: 'Once upon a time' },
    properties: { ...properties, n, suffix: { const: '' } },
    rules: [
      STREAM_OPTIONS,
      { not: { allOf: [given('echo', { const: true }), given('logprobs')] } },
      { if: absent('n'), then: { properties: { best_of: { enum: [1, null] } } } },
      { if: absent('max_tokens'), then: { properties: { min_tokens: { anyOf: [{ maximum: DEFAULT_MAX_TOKENS }, NULL] } } } },
    ],
  });
}

function speechBody(options: DocumentOptions): Json {
  const { maxInput, sampleRate, legacy = true } = options;
  const { required, properties, example } = modelOf(options);
  const spoken = { type: 'string', pattern: '\\S', ...(maxInput !== undefined && { maxLength: maxInput }) };
  const current = bodyOf(currentSpeechSchema, {
    required,
    example: { ...example, input: 'Hello there.', voice: 'charter' },
    properties: {
      ...properties,
      input: spoken,
      response_format: { enum: SPEECH_FORMATS },
      ...(sampleRate !== undefined && { sample_rate: { const: sampleRate } }),
    },
    rules: [absent('text', 'voice_ref')],
  });
  const reference = { type: 'string', pattern: '\\.wav$' };
  const earlier = bodyOf(earlierSpeechSchema, {
    example: { text: 'Hello there.', voice_ref: 'charter.wav' },
    properties: { text: spoken, voice_ref: reference },
    rules: [absent('input', 'voice')],
  });
  return legacy ? { oneOf: [current, earlier] } : current;
}

function tokenizeBody({ models }: DocumentOptions): Json {
  const one = [{ allOf: [given('prompt'), absent('messages')] }, { allOf: [given('messages'), absent('prompt')] }];
  return bodyOf(tokenizeSchema, { example: { prompt: 'Hello' }, properties: { model: { enum: models } }, rules: [{ oneOf: one }] });
}

const abortBody: Json = bodyOf(abortSchema, {
  example: { rid: 'my-request' },
  rules: [{ anyOf: [given('rid'), given('abort_all', { const: true })] }],
});

/** Of a form, whose parts are all text: the file and these. */
function transcriptionForm(options: DocumentOptions): Json {
  const { required, properties } = modelOf(options);
  return {
    type: 'object',
    required: ['file', ...required],
    properties: {
      file: { type: 'string', contentMediaType: 'application/octet-stream' },
      ...properties,
      language: { type: 'string', description: 'ISO 639-1 code or English name of the language that is spoken' },
      prompt: {
        type: 'string',
        description: 'Text before the audio; ignored, with x-parley-warning, by models that were not trained with any',
      },
      response_format: { enum: TRANSCRIPT_FORMATS },
      temperature: { type: 'number', minimum: 0, maximum: 1 },
      'timestamp_granularities[]': { type: 'array', items: { enum: ['segment'] }, description: 'For verbose_json' },
      stream: { type: 'boolean', description: 'Not with srt, verbose_json and vtt' },
      chunking_strategy: { const: 'auto' },
    },
  };
}

function transcripts(options: DocumentOptions): Partial<Operation> {
  return { body: { 'multipart/form-data': transcriptionForm(options) }, answers: [JSON_TYPE, 'text/plain', 'text/vtt', EVENTS] };
}

const OWN: Readonly<Record<Task, (options: DocumentOptions) => Readonly<Record<string, Json>>>> = {
  chat: (options) => ({
    '/v1/chat/completions': post('Answers a conversation', { body: jsonBody(chatBody(options)), answers: [JSON_TYPE, EVENTS] }),
    '/v1/completions': post('Goes on from a prompt', { body: jsonBody(completionBody(options)), answers: [JSON_TYPE, EVENTS] }),
    '/health_generate': get('Whether the model generates a token', OPEN),
    '/v1/tokenize': post('Token ids of a prompt or a conversation', { body: jsonBody(tokenizeBody(options)) }),
    '/v1/detokenize': post('Text of token ids', {
      body: jsonBody(bodyOf(detokenizeSchema, { example: { tokens: [72, 105] }, properties: { model: { enum: options.models } } })),
    }),
    '/v1/flush_cache': post('Forgets cached prefixes', ADMIN),
    '/v1/abort_request': post('Ends running requests by the id in x-request-id', { body: jsonBody(abortBody), ...ADMIN }),
  }),
  speech: (options) => ({
    '/v1/audio/speech': post('Speaks a text', {
      body: jsonBody(speechBody(options)),
      answers: ['audio/mpeg', 'audio/wav', 'audio/pcm', EVENTS],
    }),
    '/v1/audio/voices': get('Voices'),
  }),
  transcription: (options) => ({
    '/v1/audio/transcriptions': post('Writes down speech', transcripts(options)),
    '/v1/audio/translations': post('Writes down speech in English, where the model can', transcripts(options)),
  }),
};

/** The document of a listener. What is under /v1 also answers without it. */
export function openApi(options: DocumentOptions): Json {
  const { task, hasKey, hasAdminKey } = options;
  const keys = { ...(hasKey && { key: BEARER }), ...(hasAdminKey && { admin: BEARER }) };
  return {
    openapi: '3.1.0',
    info: { title: `Parley: ${task}`, version: '1', description: 'Paths under /v1 also answer without that prefix.' },
    paths: mapOperations({ ...SHARED, ...OWN[task](options) }, options),
    components: { schemas: { Error: ERROR }, ...((hasKey || hasAdminKey) && { securitySchemes: keys }) },
    ...(hasKey && { security: [{ key: [] }] }),
  };
}

const BEARER: Json = { type: 'http', scheme: 'bearer' };

/** Says of each operation which key it needs, where that is not the one for everything. */
function mapOperations(paths: Readonly<Record<string, Json>>, { hasKey, hasAdminKey }: DocumentOptions): Json {
  const secure = ({ access, ...rest }: Json): Json => {
    if (access === 'admin' && hasAdminKey) return { ...rest, security: [{ admin: [] }] };
    return access === 'open' && hasKey ? { ...rest, security: [] } : rest;
  };
  const each = Object.entries(paths).map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, one]) => [method, secure(one as Json)])),
  ]);
  return Object.fromEntries(each) as Json;
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

function operation({ summary, body, answers = [JSON_TYPE], parameters, access }: Operation): Json {
  const errors = { description: 'An error', content: { [JSON_TYPE]: { schema: { $ref: '#/components/schemas/Error' } } } };
  const types = (schemas: readonly (readonly [string, Json])[]): Json =>
    Object.fromEntries(schemas.map(([type, schema]) => [type, schema]));
  return {
    summary,
    ...(access && { access }),
    ...(parameters && { parameters }),
    ...(body && {
      requestBody: { required: true, content: types(Object.entries(body).map(([type, schema]) => [type, { schema }])) },
    }),
    responses: { 200: { description: 'Success', content: types(answers.map((type) => [type, {}])) }, default: errors },
  };
}
