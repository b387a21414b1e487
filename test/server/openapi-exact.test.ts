/** /openapi.json takes exactly what the code takes: both get each schema's examples and thousands of changes to them. */
import Ajv from 'ajv/dist/2020.js';
import type { AnySchema, ValidateFunction } from 'ajv';
import { expect, test } from 'vitest';
import { ListenerContext } from '../../server/listener/context.ts';
import { parseChatBody } from '../../server/chat/schema.ts';
import { parseCompletionBody } from '../../server/chat/completion-schema.ts';
import { parseMiddleBody } from '../../server/chat/middle.ts';
import { HttpError } from '../../server/http/errors.ts';
import { parseSpeechBody } from '../../server/speech/schema.ts';
import { FakeEngine, VOICES } from '../support/fake-engine.ts';
import { postJson, send, startListeners } from '../support/listeners.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Body = Readonly<Record<string, Json>>;
type Path = readonly (string | number)[];

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly examples?: readonly Body[];
  readonly oneOf?: readonly Schema[];
}

/** What fields are changed to: every type, and the values at which limits lie. */
const VALUES: readonly Json[] = [
  ...[null, true, false, 0, 1, -1, 0.5, 1.5, 2, 3, 4.5, -2.5, 16, 17, 20, 21, 128, 129, 24_000, 1e17, -1e17],
  ...[
    '',
    ' ',
    'x',
    'x.wav',
    'none',
    'auto',
    'required',
    'text',
    'system',
    'tool',
    'assistant',
    'mp3',
    'opus',
    'wav',
    'sse',
    'low',
    'parley-chat',
  ],
  ...[[], ['x'], [''], ['text'], [1], [-1], [[1]], [[]], Array<string>(17).fill('x'), {}, { x: 1 }, { 5: 1 }, { 5: 101 }, { type: 'text' }],
];

/** What no JSON Schema can say: sums, orders and names that another field gives. */
const BEYOND: readonly ((path: string, body: Body) => boolean)[] = [
  (path) => /voice(_ref|\.id)?$/.test(path),
  (path) => /(tool_choice|function_call).*name$|tools.*name$|functions.*name$|messages.*arguments$/.test(path),
  (_, { continue_final_message: goesOn, messages }) =>
    goesOn === true && Array.isArray(messages) && (messages as readonly Body[]).at(-1)?.['role'] !== 'assistant',
  (_, { best_of: best, n }) => best != null && n != null && best !== n,
  (_, { prompt, n }) => Array.isArray(prompt) && Number(n) * prompt.length > 128,
  (_, { tokens }) => Array.isArray(tokens) && tokens.flat().some((token) => Number(token) > 0x10ffff),
];

/** Every place in a value. */
function placesIn(value: Json, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, Array.isArray(value) ? Number(key) : key]))];
}

/** The body with another value at a place; undefined takes the place away. */
function withValue(value: Json, [key, ...rest]: Path, changed: Json | undefined): Json {
  if (key === undefined) return changed as Json;
  if (Array.isArray(value)) return value.map((item: Json, i) => (i === key ? withValue(item, rest, changed) : item));
  const inner = rest.length === 0 ? changed : withValue((value as Body)[key] ?? null, rest, changed);
  return Object.fromEntries([
    ...Object.entries(value as Body).filter(([name]) => name !== key),
    ...(inner === undefined ? [] : [[key, inner]]),
  ]) as Json;
}

/** A body's changes, one at a time: each place and each field of the schema, to each value and to nothing. */
function* changesOf(example: Body, fields: readonly string[]): Generator<readonly [string, Body]> {
  const places = new Map([...fields.map((field) => [field] as Path), ...placesIn(example)].map((path) => [path.join('.'), path]));
  places.delete('');
  for (const [name, path] of places) {
    for (const value of [...VALUES, undefined]) yield [name, withValue(example, path, value) as Body];
  }
}

const fieldsOf = ({ properties = {}, oneOf = [] }: Schema): string[] => [...Object.keys(properties), ...oneOf.flatMap(fieldsOf)];
const examplesOf = ({ examples = [], oneOf = [] }: Schema): Body[] => [...examples, ...oneOf.flatMap(examplesOf)];

async function documentOf(base: string): Promise<Readonly<Record<string, Schema>>> {
  const { paths } = JSON.parse((await send(`${base}/openapi.json`)).text) as {
    paths: Record<string, { post?: { requestBody?: { content: Record<string, { schema: Schema }> } } }>;
  };
  const bodies = Object.entries(paths).flatMap(([path, { post }]) => {
    const schema = post?.requestBody?.content['application/json']?.schema;
    return schema ? [[path, schema] as const] : [];
  });
  return Object.fromEntries(bodies);
}

/** Whether the code takes a body, and why not. */
type Taker = (body: Body) => Promise<string | undefined> | string | undefined;

/** The function that a route checks its body with, without the sockets around it. */
function checkOf(context: ListenerContext, parse: (body: Body) => { readonly model: string | undefined }): Taker {
  return (body) => {
    try {
      const { model } = parse(body);
      if (model !== undefined) context.checkModel(model);
      return undefined;
    } catch (error) {
      if (!(error instanceof HttpError) || error.status >= 500) throw error;
      return error.message;
    }
  };
}

const routeOf =
  (url: string): Taker =>
  async (body) => {
    const { status, json } = await postJson(url, body);
    expect(status, JSON.stringify(body)).toBeLessThan(500);
    return status === 200 ? undefined : json.error.message;
  };

interface Options {
  readonly modelOptional: boolean;
  readonly maxRunningRequests: number;
  readonly maxInput: number;
  readonly legacy: boolean;
}

function takersOf(base: string, options: Options): Readonly<Record<string, Taker>> {
  const engine = new FakeEngine();
  const chat = new ListenerContext('chat', { engine, modelId: 'parley-chat' });
  const speech = new ListenerContext('speech', { engine, modelId: 'parley-speech', aliases: ['tts-1', 'tts-1-hd'] });
  const limits = { ...options, voices: VOICES, aliases: new Map<string, string>(), sampleRate: 24_000, defaultFormat: 'mp3' as const };
  return {
    '/v1/chat/completions': checkOf(chat, (body) => parseChatBody(body, options)),
    '/v1/completions': checkOf(chat, (body) => parseCompletionBody(body, options)),
    '/v1/fim/completions': checkOf(chat, (body) => parseMiddleBody(body, options)),
    '/v1/audio/speech': checkOf(speech, (body) => parseSpeechBody(body, limits)),
    ...Object.fromEntries(['/v1/tokenize', '/v1/detokenize', '/v1/abort_request'].map((path) => [path, routeOf(base + path)])),
  };
}

/** Gives every change to both; the first few on which they differ, and how many each way. */
async function compare(take: Taker, schema: Schema, examples: readonly Body[]) {
  const validate: ValidateFunction = new Ajv({ strict: false }).compile(schema as AnySchema);
  const differ: string[] = [];
  const count = { taken: 0, refused: 0 };
  for (const [i, example] of examples.entries()) {
    for (const [path, body] of changesOf(example, i === 0 ? fieldsOf(schema) : [])) {
      if (BEYOND.some((rule) => rule(path, body))) continue;
      const refusal = await take(body);
      count[refusal === undefined ? 'taken' : 'refused']++;
      if (validate(body) === (refusal === undefined)) continue;
      differ.push(`${path}: ${JSON.stringify(body)} is ${refusal ?? 'taken'}; ${JSON.stringify(validate.errors)}`);
      if (differ.length === 10) return { differ, ...count };
    }
  }
  return { differ, ...count };
}

const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const MORE: Readonly<Record<string, readonly Body[]>> = {
  '/v1/chat/completions': [
    {
      model: 'parley-chat',
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'x' }] },
        { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { role: 'tool', content: 'x', tool_call_id: 'a' },
        { role: 'assistant', function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'x' },
        { role: 'assistant', content: 'x' },
      ],
      logprobs: true,
      top_logprobs: 2,
      stream: true,
      stream_options: { include_usage: true },
      tools: [TOOL],
      tool_choice: 'auto',
    },
    {
      model: 'parley-chat',
      messages: [{ role: 'user', content: 'x' }],
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
      logit_bias: { 5: 1 },
      stop: ['x'],
      functions: [TOOL.function],
      function_call: 'auto',
    },
    {
      model: 'parley-chat',
      messages: [{ role: 'user', content: 'x' }],
      response_format: { type: 'json_object' },
      tools: [TOOL],
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] } },
    },
  ],
  '/v1/completions': [
    { model: 'parley-chat', prompt: [1, 2], echo: true, stream: true, stream_options: {} },
    { model: 'parley-chat', prompt: ['x', 'y'], logprobs: 1, n: 2, best_of: 2 },
    { model: 'parley-chat', prompt: 'x', suffix: 'y', echo: true },
    { model: 'parley-chat', prompt: 'x', max_tokens: 0, echo: true, logprobs: 1 },
    { model: 'parley-chat', prompt: ['x'], suffix: 'y', logprobs: 1 },
  ],
  '/v1/audio/speech': [{ model: 'tts-1', input: 'x', voice: { id: 'oni' }, response_format: 'wav', seed: 1, sample_rate: 24_000 }],
  '/v1/tokenize': [{ messages: [{ role: 'user', content: 'x' }] }, { prompt: ['x'], model: 'parley-chat' }],
  '/v1/detokenize': [{ tokens: [[1], [2]] }],
  '/v1/abort_request': [{ abort_all: true }],
};

const USUAL: Options = { modelOptional: false, maxRunningRequests: 128, maxInput: 4096, legacy: true };
const OTHER: Options = { modelOptional: true, maxRunningRequests: 20, maxInput: 20, legacy: false };

test.each([
  ['as they come', USUAL],
  ['with a model that may be left out, other limits, and the current form of speech only', OTHER],
])('/openapi.json and the code agree %s', async (_, options) => {
  const { maxRunningRequests } = options;
  const started = await startListeners({}, { ...options, capacity: { maxRunningRequests, maxQueuedRequests: 512, ppSize: 1 } });
  for (const base of [started.chat, started.speech]) {
    const takers = takersOf(base, options);
    for (const [path, schema] of Object.entries(await documentOf(base))) {
      const examples = [...examplesOf(schema), ...(options === USUAL ? (MORE[path] ?? []) : [])];
      const { differ, taken, refused } = await compare(takers[path]!, schema, examples);
      expect(differ, path).toEqual([]);
      console.log(`${path}: ${taken} bodies taken, ${refused} refused by both`);
      expect(Math.min(taken, refused), path).toBeGreaterThan(10);
    }
  }
});
