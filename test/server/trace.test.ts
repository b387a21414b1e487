/** OpenTelemetry traces, as a collector gets them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { createLog } from '../../server/log.ts';
import { tracerOf } from '../../server/serve.ts';
import { createTracer } from '../../server/trace/tracer.ts';
import { ROUTES } from '../support/each-listener.ts';
import { GOOD_CHAT as GOOD } from '../support/chat-body.ts';
import { postForm, postJson, send, startListeners } from '../support/listeners.ts';
import { tone } from '../support/wav-file.ts';

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
}

/** A collector that keeps what it is sent. */
async function collector() {
  const got: { readonly url: string; readonly key: unknown; readonly text: string }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      got.push({ url: request.url!, key: request.headers['x-key'], text: Buffer.concat(chunks).toString() });
      response.end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const spans = (): readonly Span[] =>
    got.flatMap(({ text }) => (JSON.parse(text) as { readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[] }).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))); // prettier-ignore
  return { got, spans, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

const attribute = ({ attributes }: Span, key: string): unknown => Object.values(attributes.find((one) => one.key === key)?.value ?? {})[0];

/** Names of a request's parts. */
const phasesOf = (spans: readonly Span[], request: Span): string[] =>
  spans.filter(({ parentSpanId }) => parentSpanId === request.spanId).map(({ name }) => name);

test('a chat is a request with a queue, a prefill and a decode, in the trace of its caller, without a word of it', async () => {
  const { got, spans, endpoint } = await collector();
  const tracer = createTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b' }, createLog('silent'));
  const { chat, speech } = await startListeners({ words: ['secret', ' answer'] }, { tracer });
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const from = (flags: string) => ({ traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}` });
  const question = { ...GOOD, messages: [{ role: 'user', content: 'a secret question' }] };
  await postJson(chat + ROUTES.chat, question, from('01'));
  await postJson(chat + ROUTES.chat, question, from('00'));
  await postJson(chat + ROUTES.chat, { messages: [] });
  await postJson(speech + ROUTES.speech, { model: 'tts-1', input: 'secret', voice: 'oni' });
  await send(`${chat}/health`);
  // The answer of a request has gone out before its trace is written.
  await expect.poll(async () => (await tracer.flush(), spans().length)).toBe(8);
  const [root, ...parts] = spans().filter((span) => span.traceId === traceId);
  expect(root).toMatchObject({ name: 'chat parley-chat', kind: 2, parentSpanId: '00f067aa0ba902b7', status: {} });
  expect(parts.map(({ name, parentSpanId }) => [name, parentSpanId])).toEqual(
    ['queue', 'prefill', 'decode'].map((name) => [name, root!.spanId]),
  );
  // One after the other, from the beginning to the end.
  expect(parts.map((span) => span.startTimeUnixNano)).toEqual([
    root!.startTimeUnixNano,
    ...parts.slice(0, 2).map((span) => span.endTimeUnixNano),
  ]);
  expect(parts[2]!.endTimeUnixNano).toBe(root!.endTimeUnixNano);
  for (const [key, value] of [
    ['gen_ai.operation.name', 'chat'],
    ['gen_ai.request.model', 'parley-chat'],
    ['gen_ai.output.type', 'text'],
    ['gen_ai.usage.input_tokens', '10'],
    ['gen_ai.usage.cache_read.input_tokens', '0'],
    ['gen_ai.usage.output_tokens', '2'],
    ['http.response.status_code', '200'],
  ] as const)
    // prettier-ignore
    expect([key, attribute(root!, key)]).toEqual([key, value]);
  const refused = spans().find(({ status }) => status.code === 2)!;
  expect([refused.parentSpanId, attribute(refused, 'error.type')]).toEqual([undefined, 'invalid_value']);
  expect(spans().filter(({ parentSpanId }) => parentSpanId === refused.spanId)).toEqual([]);
  const spoken = spans().find(({ name }) => name === 'speech parley-speech')!;
  expect([attribute(spoken, 'gen_ai.output.type'), ...phasesOf(spans(), spoken)]).toEqual(['speech', 'queue', 'synthesis']);
  expect(got[0]).toMatchObject({ url: '/v1/traces', key: 'a b' });
  expect(got.map(({ text }) => text).join('')).not.toContain('secret');
});

test("OpenTelemetry's variables are read as it reads them: booleans in any case, empty ones as unset", async () => {
  const { got, endpoint } = await collector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: '' };
  const log = createLog('silent');
  for (const disabled of ['true', 'TRUE', 'True']) expect(await tracerOf({ ...env, OTEL_SDK_DISABLED: disabled }, log)).toBeUndefined();
  expect(await tracerOf({ ...env, OTEL_EXPORTER_OTLP_ENDPOINT: '' }, log)).toBeUndefined();
  const tracer = await tracerOf({ ...env, OTEL_SDK_DISABLED: '' }, log);
  const { chat } = await startListeners({}, { tracer: tracer! });
  await postJson(chat + ROUTES.chat, GOOD);
  await expect.poll(async () => (await tracer!.flush(), got.length)).toBe(1);
  expect(got[0]!.text).toContain('{"key":"service.name","value":{"stringValue":"parley"}}');
});

test('a transcription is received, unpacked, encoded and decoded', async () => {
  const { spans, endpoint } = await collector();
  const tracer = createTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, createLog('silent'));
  const { transcription } = await startListeners({}, { tracer });
  expect((await postForm(transcription + ROUTES.transcription, [['model', 'whisper-1'], ['file', writeWav(tone(440, 16_000, 0.5), 16_000)]])).status).toBe(200); // prettier-ignore
  await expect.poll(async () => (await tracer.flush(), spans().length)).toBe(5);
  const [request] = spans();
  expect(request).toMatchObject({ name: 'transcription parley-transcribe', kind: 2 });
  expect(phasesOf(spans(), request!)).toEqual(['receive', 'unpack', 'encode', 'decode']);
});

test('every route that has a model answer says what it is asked for', async () => {
  const { spans, endpoint } = await collector();
  const tracer = createTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, createLog('silent'));
  const { chat } = await startListeners({}, { tracer });
  for (const path of ['/v1/completions', '/v1/fim/completions']) await postJson(chat + path, { model: 'parley-chat', prompt: 'a' });
  await postJson(`${chat}/v1/tokenize`, { prompt: 'a' });
  const requests = () => spans().filter(({ kind }) => kind === 2);
  await expect.poll(async () => (await tracer.flush(), requests().length)).toBe(2);
  for (const request of requests()) {
    expect(request.name).toBe('text_completion parley-chat');
    expect(attribute(request, 'gen_ai.output.type')).toBe('text');
  }
});

test('a request that is refused before its work begins is in the traces', async () => {
  const { spans, endpoint } = await collector();
  const tracer = createTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, createLog('silent'));
  const { chat, engine } = await startListeners({}, { tracer });
  engine.state = 'loading';
  expect((await postJson(chat + ROUTES.chat, GOOD)).status).toBe(503);
  await expect.poll(async () => (await tracer.flush(), spans().length)).toBe(1);
  expect(attribute(spans()[0]!, 'error.type')).toBe('model_loading');
});

test('a collector that is not there holds nothing up', async () => {
  const tracer = createTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, createLog('silent'));
  const { chat } = await startListeners({}, { tracer });
  expect((await postJson(chat + ROUTES.chat, GOOD)).status).toBe(200);
  await expect.poll(() => tracer.flush()).toBeUndefined();
});

test('a header of the collector that is no percent-encoding is sent as it is, and ends nothing', async () => {
  const { got, endpoint } = await collector();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: 'x-key=100%' };
  const tracer = createTracer(environment, createLog('silent'));
  const { chat } = await startListeners({}, { tracer });
  await postJson(chat + ROUTES.chat, GOOD);
  await expect.poll(async () => (await tracer.flush(), got.map(({ key }) => key))).toEqual(['100%']);
});
