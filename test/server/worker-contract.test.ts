/** What routers ask of a worker, replayed: each router's calls, with the fields that it parses and the types that it parses them into. */
import { request as httpRequest } from 'node:http';
import { describe, expect, test } from 'vitest';
import { NAMES, ROUTES, eachOf } from '../support/each-listener.ts';
import { GOOD_CHAT as GOOD } from '../support/chat-body.ts';
import { JSON_TYPE, postJson, send, startListeners, until } from '../support/listeners.ts';

/** A field's type as a router's parser has it: `?` = it may be absent, but not of another type. */
type Kind = 'string' | 'bool' | 'i32' | 'f64' | 'strings' | 'null';
type Fields = Readonly<Record<string, Kind | `${Kind}?`>>;

const IS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string' && value !== '',
  bool: (value) => typeof value === 'boolean',
  i32: (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 31,
  f64: (value) => typeof value === 'number' && Number.isFinite(value),
  strings: (value) => Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string'),
  null: (value) => value === null,
};

/** The fields of an object that have another type than the parser's. */
function wrong(value: unknown, fields: Fields): string[] {
  return Object.entries(fields).filter(([name, kind]) => {
    const found = (value as Record<string, unknown>)[name];
    const [type, optional] = [kind.replace('?', '') as Kind, kind.endsWith('?')];
    return !(optional && found === undefined) && !IS[type](found);
  }).map(([name, kind]) => `${name} is no ${kind}: ${JSON.stringify((value as Record<string, unknown>)[name])}`); // prettier-ignore
}

const SERVER_INFO: Fields = {
  model_path: 'string',
  served_model_name: 'string',
  tokenizer_path: 'string',
  version: 'string',
  dp_size: 'i32',
  tp_size: 'i32',
  pp_size: 'i32',
  context_length: 'i32?',
  max_total_tokens: 'i32?',
  max_running_requests: 'i32',
  max_prefill_tokens: 'i32?',
  is_embedding: 'bool',
  disaggregation_mode: 'string',
  enable_http2: 'bool',
  weight_version: 'string',
  load_balance_method: 'string?',
};
const MODEL_INFO: Fields = {
  model_path: 'string',
  tokenizer_path: 'string',
  is_generation: 'bool',
  has_image_understanding: 'bool',
  has_audio_understanding: 'bool',
  model_type: 'string',
  architectures: 'strings',
  weight_version: 'string',
};
const SCHEDULER_LOAD: Fields = {
  dp_rank: 'i32',
  num_running_reqs: 'i32',
  num_waiting_reqs: 'i32',
  num_waiting_uncached_tokens: 'i32',
  num_total_reqs: 'i32',
  num_used_tokens: 'i32',
  max_total_num_tokens: 'i32',
  token_usage: 'f64',
  gen_throughput: 'f64',
  cache_hit_rate: 'f64',
  utilization: 'f64',
  max_running_requests: 'i32',
};
const LOADS: Fields = { timestamp: 'string', version: 'string', dp_rank_count: 'i32' };
const MODELS_ENTRY: Fields = { id: 'string', object: 'string', created: 'i32', owned_by: 'string', root: 'string', parent: 'null', max_model_len: 'i32?' }; // prettier-ignore

interface Call {
  readonly method?: string;
  readonly path: string;
  readonly status?: number;
  /** The object with the fields, in the body. */
  readonly at?: (body: never) => unknown;
  readonly fields?: Fields;
}

const CALLS: Readonly<Record<string, readonly Call[]>> = {
  'sglang-router': [
    { path: '/health' },
    { path: '/server_info', fields: SERVER_INFO },
    { path: '/model_info', fields: MODEL_INFO },
    {
      path: '/get_load',
      at: (body: readonly unknown[]) => body[0],
      fields: { dp_rank: 'i32', num_reqs: 'i32', num_waiting_reqs: 'i32', num_tokens: 'i32' },
    },
    { path: '/metrics' },
    { method: 'POST', path: '/flush_cache' },
  ],
  smg: [
    { path: '/health' },
    { path: '/v1/models', at: ({ data }: { readonly data: readonly unknown[] }) => data[0], fields: MODELS_ENTRY },
    // Its presence would make the worker a vLLM.
    { path: '/version', status: 404 },
    { path: '/server_info', fields: SERVER_INFO },
    { path: '/model_info', fields: MODEL_INFO },
    { path: '/v1/loads?include=core,disagg,queues,memory', fields: LOADS },
    {
      path: '/v1/loads?include=nothing-known',
      at: ({ loads }: { readonly loads: readonly unknown[] }) => loads[0],
      fields: SCHEDULER_LOAD,
    },
    { method: 'POST', path: '/flush_cache?timeout=1' },
  ],
  'its older names': [
    { path: '/get_server_info', fields: SERVER_INFO },
    { path: '/get_model_info', fields: MODEL_INFO },
    { path: '/flush_cache' },
  ],
  'vLLM production stack': [
    { path: '/v1/models', at: ({ data }: { readonly data: readonly unknown[] }) => data[0], fields: MODELS_ENTRY },
    { path: '/is_sleeping', fields: { is_sleeping: 'bool' } },
    { path: '/metrics' },
  ],
  Kubernetes: [
    { path: '/readyz' },
    { path: '/healthz' },
    { path: '/live' },
    { path: '/livez' },
    { path: '/health_generate' },
    { path: '/health_generate' },
  ],
};

describe('every listener answers the calls of', () => {
  test.each(Object.entries(CALLS))('%s', async (_, calls) => {
    await eachOf(await startListeners(), async (base) => {
      for (const { method = 'GET', path, status = 200, at, fields } of calls) {
        const answer = await send(base + path, { method });
        expect([path, answer.status]).toEqual([path, status]);
        if (fields) expect([path, wrong(at ? at(answer.json as never) : answer.json, fields)]).toEqual([path, []]);
      }
    });
  });
});

test('each names its own model, claims no events that nobody sends, and says which API it speaks', async () => {
  await eachOf(await startListeners(), async (base, _, name) => {
    const info = JSON.parse((await send(`${base}/server_info`)).text) as Record<string, unknown>;
    expect(info).toMatchObject({
      served_model_name: `parley-${name === 'transcription' ? 'transcribe' : name}`,
      disaggregation_mode: 'null',
    });
    expect(info).not.toHaveProperty('kv_events');
    expect((await send(`${base}/v1/models`)).json.data[0]).toMatchObject({ id: info['served_model_name'], owned_by: 'sglang' });
  });
});

test('the loads are those of the engine and of the settings', async () => {
  const { chat, transcription, engine } = await startListeners(
    {},
    { capacity: { maxRunningRequests: 8, maxQueuedRequests: 20, ppSize: 1 } },
  );
  engine.load = { waiting: 3, waitingTokens: 700, kvPagesTotal: 64, kvPagesUsed: 16, promptTokens: 200, cachedTokens: 50 };
  const loads = async (base: string) =>
    (JSON.parse((await send(`${base}/v1/loads`)).text) as { readonly loads: readonly Record<string, number>[] }).loads[0];
  expect(await loads(chat)).toMatchObject({
    num_running_reqs: 0,
    num_waiting_reqs: 3,
    num_waiting_uncached_tokens: 700,
    num_total_reqs: 3,
    num_used_tokens: 256,
    max_total_num_tokens: 1024,
    token_usage: 0.25,
    cache_hit_rate: 0.25,
    max_running_requests: 8,
  });
  expect((await send(`${chat}/get_load`)).json).toEqual([{ dp_rank: 0, num_reqs: 3, num_waiting_reqs: 3, num_tokens: 956 }]);
  // Pages of layers that see a window only may run out first.
  engine.load = { ...engine.load, windowPagesTotal: 10, windowPagesUsed: 9 };
  expect(await loads(chat)).toMatchObject({ num_used_tokens: 256, token_usage: 0.9 });
  // The chats of the snapshot are not the audio listener's business.
  expect(await loads(transcription)).toMatchObject({ num_total_reqs: 0, max_running_requests: 20, token_usage: 0 });
});

test('the audio listeners count their own requests', async () => {
  const { speech, engine } = await startListeners({ delay: 1e6 });
  const request = httpRequest(speech + ROUTES.speech, { method: 'POST', headers: JSON_TYPE });
  request.on('error', () => {});
  request.end(JSON.stringify({ model: 'tts-1', input: 'Hello.', voice: 'oni' }));
  await until(() => engine.speeches.length === 1);
  expect((await send(`${speech}/get_load`)).json).toEqual([{ dp_rank: 0, num_reqs: 1, num_waiting_reqs: 0, num_tokens: 1 }]);
  expect((await postJson(`${speech}/flush_cache`, {})).json.error.code).toBe('requests_running');
  request.destroy();
  expect((await postJson(`${speech}/flush_cache?timeout=600`, {})).status).toBe(200);
  expect((await send(`${speech}/get_load`)).json).toMatchObject([{ num_reqs: 0 }]);
});

/** Gauges that pickers, autoscalers and routers look for, on every listener. */
const GAUGES = ['sglang:num_running_reqs', 'sglang:num_queue_reqs', 'sglang:token_usage', 'sglang:max_total_num_tokens', 'sglang:num_used_tokens', 'sglang:gen_throughput', 'vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc']; // prettier-ignore
const CHAT_ONLY = ['sglang:page_size', 'sglang:num_pages', 'sglang:cache_hit_rate', 'sglang:prompt_tokens_total', 'sglang:generation_tokens_total', 'sglang:cached_tokens_total', 'vllm:prompt_tokens_total', 'vllm:generation_tokens_total', 'vllm:prefix_cache_queries_total', 'vllm:prefix_cache_hits_total', 'vllm:gpu_prefix_cache_queries_total', 'vllm:gpu_prefix_cache_hits_total']; // prettier-ignore

test('metrics have the names that routers look for: one series each, with a value and no time', async () => {
  const { engine, ...started } = await startListeners();
  engine.load = { waiting: 2, kvPagesTotal: 64, kvPagesUsed: 16 };
  for (const name of NAMES) {
    const { text } = await send(`${started[name]}/metrics`);
    for (const family of [...GAUGES, ...(name === 'chat' ? CHAT_ONLY : [])]) {
      expect([family, text.match(new RegExp(`^${family}[{ ].*$`, 'gm'))]).toEqual([
        family,
        [expect.stringMatching(/^[\w:]+\{model_name="parley-\w+"\} [\d.]+$/)],
      ]);
    }
  }
  const { text } = await send(`${started.chat}/metrics`);
  for (const name of ['num_requests_total', 'num_aborted_requests_total'])
    expect(text).toContain(`sglang:${name}{model_name="parley-chat"} 0`);
  expect(text).toContain('sglang:cache_config_info{model_name="parley-chat",page_size="16",num_pages="64"} 1');
  expect(text).toContain('vllm:cache_config_info{model_name="parley-chat",block_size="16",num_gpu_blocks="64"} 1');
  expect(text).toContain('sglang:token_usage{model_name="parley-chat"} 0.25');
  expect(text).toContain('vllm:num_requests_waiting{model_name="parley-chat"} 2');
});

test('probes and listings are no requests in the metrics that routers read', async () => {
  const { chat } = await startListeners();
  await postJson(chat + ROUTES.chat, GOOD);
  for (const path of ['/health', '/metrics', '/v1/models', '/server_info']) await send(chat + path);
  await postJson(`${chat}/tokenize`, { prompt: 'a' });
  const { text } = await send(`${chat}/metrics`);
  for (const name of ['num_requests_total', 'e2e_request_latency_seconds_count', 'queue_time_seconds_count'])
    expect(text).toContain(`sglang:${name}{model_name="parley-chat"} 1`);
});

test('what a router may know needs the key or the admin key; settings and counters need the admin key', async () => {
  const { chat } = await startListeners({}, { apiKey: 'k', adminKey: 'root', settings: { 'chat-model': '/srv/secret' } });
  const as = (key: string, path: string) => send(chat + path, { headers: { authorization: `Bearer ${key}` } });
  for (const path of ['/server_info', '/model_info', '/v1/loads', '/loads', '/get_load', '/is_sleeping']) {
    expect([path, (await send(chat + path)).status]).toEqual([path, 401]);
    for (const key of ['k', 'root']) expect([path, (await as(key, path)).status]).toEqual([path, 200]);
  }
  expect((await as('k', '/server_info')).text).not.toMatch(/secret|adapter|status/);
  expect((await as('root', '/server_info')).json).toMatchObject({
    'chat-model': '/srv/secret',
    adapter: { name: 'fake adapter' },
    status: {},
  });
});

test('while the model loads a router is told so by /health alone', async () => {
  const { chat, engine } = await startListeners();
  engine.state = 'loading';
  expect((await send(`${chat}/health`)).status).toBe(503);
  expect((await send(`${chat}/live`)).status).toBe(200);
  for (const path of ['/server_info', '/model_info', '/v1/loads', '/get_load', '/metrics', '/v1/models'])
    expect([path, (await send(chat + path)).status]).toEqual([path, 200]);
  expect((await postJson(`${chat}/flush_cache`, {})).json.error.code).toBe('model_loading');
});
