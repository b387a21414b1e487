/** What the listeners answer is what /openapi.json says of it, and it says something of every answer. `send` compares the answers of all other server tests too. */
import Ajv from 'ajv/dist/2020.js';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { EngineInfo, MemoryUse } from '../../engine/api.ts';
import { contextExceeded } from '../../engine/errors.ts';
import { writeWav } from '../../engine/audio/wav.ts';
import type * as Library from '../../library/types.ts';
import type { ChatChunk, ChatCompletion } from '../../server/chat/answer-schema.ts';
import type { TranscriptAnswer, TranscriptEvent } from '../../server/transcription/answer-schema.ts';
import { FORMATS } from '../../server/speech/schema.ts';
import { NAMES } from '../support/each-listener.ts';
import { FAKE_INFO } from '../support/fake-engine.ts';
import type { FakeOptions } from '../support/fake-engine.ts';
import { postForm, postJson, publishedAnswers, send, startListeners } from '../support/listeners.ts';
import type { Answer, FormParts, Started } from '../support/listeners.ts';
import { eventsOf } from '../support/published-answers.ts';

type Task = (typeof NAMES)[number];

interface Call {
  readonly path: string;
  /** A JSON body or a form; without either, the route is asked by GET. */
  readonly body?: object;
  readonly form?: FormParts;
  readonly fake?: FakeOptions;
  readonly options?: NonNullable<Parameters<typeof startListeners>[1]>;
  readonly prepare?: (started: Started) => void;
  readonly status?: number;
}

const USER = { model: 'parley-chat', messages: [{ role: 'user', content: 'Hi' }] };
const TOOL = { name: 'f', parameters: { type: 'object' } };
const logprob = { token: 'é', logprob: -Infinity, bytes: [195, 169] };
const DELTAS: FakeOptions['deltas'] = [
  { reasoning: 'Hm.', logprobs: [{ ...logprob, top: [logprob] }] },
  { toolCalls: [{ call: 0, name: 'f', arguments: '{' }] },
  { toolCalls: [{ call: 0, arguments: '}' }] },
];
const SPEECH = { model: 'tts-1', input: 'One. Two.', voice: 'nona' };
const FILE: FormParts = [['file', new Uint8Array(writeWav(new Float32Array(16_000).fill(0.1), 16_000))], ['model', 'whisper-1']]; // prettier-ignore
const GRANULARITIES: FormParts = [['timestamp_granularities[]', 'segment'], ['timestamp_granularities[]', 'word']]; // prettier-ignore

const MEMORY: MemoryUse = { deviceBytes: 1e10, source: 'as set', fraction: 0.8, otherBytes: 1, weightBytes: 1, activationBytes: 1, kvBytes: 1, kvPages: 1, windowPages: 1, pageSize: 16, kvCacheDtype: 'f16', stateSlots: 1, stateBytes: 1 }; // prettier-ignore
/** An engine that tells all that one may tell. */
const TELLING: EngineInfo = {
  ...FAKE_INFO,
  memory: [
    {
      deviceBytes: 1e10,
      source: 'nvidia-smi',
      fraction: 0.8,
      models: [{ id: 'm', task: 'chat', weightBytes: 1, activationBytes: 1, pages: MEMORY }],
      totalBytes: 1,
    },
  ],
  kernels: {
    tested: 3,
    replaced: [{ kernel: 'a', by: 'b', why: 'it was wrong' }],
    tuned: [{ shape: '1x1', chosen: 'a', microseconds: { a: 1.5 } }],
  },
  models: FAKE_INFO.models.map((model) => ({
    ...model,
    format: 'GGUF Q4_K_M',
    languages: ['en'],
    sampling: { temperature: 0.7 },
    numerics: 'fast',
    ranks: [{ adapter: 'a', memory: MEMORY }],
    adapter: FAKE_INFO.adapter,
  })),
};
const telling = ({ engine }: Started): void => void Object.assign(engine, { info: () => TELLING });
const loading = ({ engine }: Started): void => void (engine.state = 'loading');

const COMMON: readonly Call[] = [
  ...['/health', '/healthz', '/readyz', '/livez', '/live', '/health_generate'].map((path) => ({ path })),
  { path: '/v1/health' },
  { path: '/health', prepare: loading, status: 503 },
  { path: '/metrics' },
  { path: '/openapi.json' },
  { path: '/openapi.json', options: { apiKey: 'k', adminKey: 'a' } },
  ...['/server_info', '/get_server_info', '/model_info', '/get_model_info', '/v1/loads', '/get_load', '/is_sleeping'].flatMap((path) => [
    { path },
    { path, prepare: telling },
    { path, prepare: loading },
  ]),
  { path: '/v1/models' },
  { path: '/v1/models', prepare: telling, options: { loras: ['l'] } },
  { path: '/v1/models', prepare: loading },
  { path: '/v1/models/m', options: { aliases: ['m'] } },
  { path: '/v1/models/nobody', status: 404 },
  { path: '/v1/flush_cache', body: {} },
  { path: '/v1/flush_cache' },
];

const streamed = { stream: true, stream_options: { include_usage: true } };
const BREAKS: FakeOptions = { failAfter: 2 };
/** A request as it is, and for a stream. */
const alsoStreamed = (call: Call & { readonly body: object }): Call[] => [
  call,
  { ...call, body: { ...call.body, ...streamed } },
  { ...call, body: { ...call.body, stream: true } },
];

const CALLS: Readonly<Record<Task, readonly Call[]>> = {
  chat: [
    ...alsoStreamed({ path: '/v1/chat/completions', body: USER }),
    ...alsoStreamed({ path: '/v1/chat/completions', body: { ...USER, n: 2, max_tokens: 1 } }),
    ...alsoStreamed({
      path: '/v1/chat/completions',
      body: { ...USER, functions: [TOOL], logprobs: true, top_logprobs: 1 },
      fake: { deltas: DELTAS },
      options: { reasoningField: 'both' },
    }),
    {
      path: '/v1/chat/completions',
      body: { ...USER, stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } },
    },
    { path: '/v1/chat/completions', body: { ...USER, stream: true }, fake: BREAKS },
    { path: '/v1/chat/completions', body: {}, status: 400 },
    {
      path: '/v1/chat/completions',
      body: USER,
      fake: { failAfter: 0, failWith: contextExceeded('too long', { promptTokens: 2000, contextLength: 1024, param: 'messages' }) },
      status: 400,
    },
    ...alsoStreamed({ path: '/v1/completions', body: { model: 'parley-chat', prompt: ['a', 'b'] } }),
    ...alsoStreamed({
      path: '/v1/completions',
      body: { model: 'parley-chat', prompt: 'ab', echo: true, logprobs: 1 },
      fake: { deltas: DELTAS },
    }),
    ...alsoStreamed({ path: '/v1/fim/completions', body: { model: 'parley-chat', prompt: 'a', suffix: 'b' } }),
    { path: '/v1/tokenize', body: { prompt: 'ab' } },
    { path: '/v1/tokenize', body: { prompt: ['ab', 'c'] }, prepare: telling },
    { path: '/v1/detokenize', body: { tokens: [97] } },
    { path: '/v1/detokenize', body: { tokens: [[97], [98, 99]] } },
    { path: '/v1/tokenizer_info' },
    { path: '/v1/abort_request', body: { rid: 'x' } },
  ],
  speech: [
    ...FORMATS.map((format) => ({ path: '/v1/audio/speech', body: { ...SPEECH, response_format: format } })),
    { path: '/v1/audio/speech', body: { ...SPEECH, stream_format: 'sse' } },
    { path: '/v1/audio/speech', body: { ...SPEECH, stream_format: 'sse' }, fake: BREAKS },
    { path: '/v1/audio/speech', body: { ...SPEECH, voice: 'nobody' }, status: 400 },
    { path: '/v1/audio/voices' },
    { path: '/v1/audio/voices', prepare: telling },
  ],
  transcription: ['/v1/audio/transcriptions', '/v1/audio/translations'].flatMap((path) => [
    ...['json', 'text', 'srt', 'vtt', 'verbose_json'].map((format) => ({ path, form: [...FILE, ['response_format', format]] as const })),
    { path, form: [...FILE, ['response_format', 'verbose_json'], ...GRANULARITIES] as const },
    { path, form: [...FILE, ['include[]', 'logprobs']] as const },
    { path, form: [...FILE, ['stream', 'true'], ['include[]', 'logprobs'], ...GRANULARITIES] as const },
    { path, form: [...FILE, ['stream', 'true']] as const, fake: BREAKS },
    { path, form: [], status: 400 },
  ]),
};

/** Asks a listener, of its own only where the call is special. */
async function ask(usual: Started, task: Task, { path, body, form, fake, options, prepare, status = 200 }: Call): Promise<Answer> {
  const started = fake || options || prepare ? await startListeners({ translates: true, ...fake }, options) : usual;
  prepare?.(started);
  const url = started[task] + path;
  const answer = await (form ? postForm(url, form) : body ? postJson(url, body) : send(url));
  expect([path, answer.status], answer.text).toEqual([path, status]);
  return answer;
}

const mediaType = ({ headers }: Answer): string => headers['content-type']!.replace(/;.*/, '');

describe.each(NAMES)('the answers of the listener for %s', (task) => {
  test('are as /openapi.json says, which describes no others, and would not be with an undeclared field or a value of another type', async () => {
    const published = await publishedAnswers(task);
    const usual = await startListeners({ translates: true });
    const seen = new Set<string>();
    for (const call of [...COMMON, ...CALLS[task]]) {
      const answer = await ask(usual, task, call);
      const method = call.body || call.form ? 'post' : 'get';
      const type = mediaType(answer);
      const problemsOf = (text: string): string[] => published.problemsOf(method, call.path, { ...answer, text });
      expect(problemsOf(answer.text)).toEqual([]);
      if (answer.status === 200) seen.add(`${method} ${published.describedPath(call.path)} ${type}`);
      const events = type === 'text/event-stream' ? eventsOf(answer.text) : [];
      if (type === 'text/event-stream') expect(events.length, call.path).toBeGreaterThan(1);
      // Within the document nearly everything is allowed.
      if (call.path === '/openapi.json') continue;
      for (const event of events)
        for (const changed of changesOf(event)) expect(problemsOf(`data: ${changed}`), `${call.path}: ${changed}`).not.toEqual([]);
      if (type === 'application/json')
        for (const changed of changesOf(JSON.parse(answer.text))) expect(problemsOf(changed), `${call.path}: ${changed}`).not.toEqual([]);
    }
    const described = Object.entries(published.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { responses }]) =>
        Object.keys(responses[200].content).map((type) => `${method} ${path} ${type}`),
      ),
    );
    expect([...seen].sort()).toEqual(described.sort());
  });
});

/** What fits nowhere in an answer. */
const ODD = { undeclared: [null] };

/** A value as JSON, with one thing changed at a time: each object has another field, and each value is another. */
function changesOf(value: unknown): string[] {
  const changes = (one: unknown): unknown[] => {
    if (typeof one !== 'object' || one === null) return [ODD];
    const parts = Object.entries(one).flatMap(([key, part]) =>
      changes(part).map((changed) => (Array.isArray(one) ? one.with(Number(key), changed) : { ...one, [key]: changed })),
    );
    return Array.isArray(one) ? [...parts, ODD, [...(one as unknown[]), ODD]] : [...parts, { ...one, ...ODD }];
  };
  return changes(value).map((changed) => JSON.stringify(changed));
}

describe('/openapi.json', () => {
  test.each(NAMES)(
    'describes answers so that every reference leads somewhere and clients may meet fields of later versions: %s',
    async (task) => {
      const started = await startListeners();
      const document = JSON.parse((await send(`${started[task]}/openapi.json`)).text) as {
        readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
        readonly components: { readonly schemas: Readonly<Record<string, object>> };
      };
      const { schemas } = document.components;
      const answers = [...Object.values(document.paths).flatMap((path) => Object.values(path).map(({ responses }) => responses)), schemas];
      const text = JSON.stringify(answers);
      const references = new Set([...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, reference]) => reference!));
      expect([...references].sort()).toEqual(Object.keys(schemas).map((name) => `#/components/schemas/${name}`).sort()); // prettier-ignore
      expect(text).not.toContain('"additionalProperties":false');
      expect(text).not.toContain('"schema":{}');
      for (const [name, schema] of Object.entries(schemas)) expect(new Ajv({ strict: false }).validateSchema(schema), name).toBe(true);
    },
  );
});

/** What a client has of an answer: JSON knows neither undefined nor read-only. */
type Parsed<T> = T extends readonly (infer Item)[]
  ? Parsed<Item>[]
  : T extends object
    ? { -readonly [K in keyof T]: Parsed<Exclude<T[K], undefined>> }
    : T;

test('the library declares what the listeners answer', () => {
  expectTypeOf<Parsed<ChatCompletion>>().toExtend<Library.ChatCompletion>();
  expectTypeOf<Parsed<ChatChunk>>().toExtend<Library.ChatCompletionChunk>();
  expectTypeOf<Parsed<TranscriptAnswer>>().toExtend<Library.Transcription | Library.TranscriptionVerbose>();
  expectTypeOf<Parsed<TranscriptEvent>>().toExtend<Library.TranscriptionStreamEvent>();
});
