/** Answers that break off: what the log, the counters and the traces say of them, and of clients that leave. */
import { request as httpRequest } from 'node:http';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { EngineError } from '../../engine/errors.ts';
import type { RequestTimes, Tracer } from '../../server/trace/types.ts';
import { GOOD_CHAT } from '../support/chat-body.ts';
import { ROUTES } from '../support/each-listener.ts';
import type { FakeOptions } from '../support/fake-engine.ts';
import { JSON_TYPE, postForm, postJson, send, startListeners, until } from '../support/listeners.ts';
import type { Started } from '../support/listeners.ts';
import { tone } from '../support/wav-file.ts';

type Line = Readonly<Record<string, unknown>>;

/** The listeners, with the lines of their log and what they hand to a tracer. */
async function logged(fake: FakeOptions) {
  const lines: Line[] = [];
  const traced: RequestTimes[] = [];
  const log = pino({ level: 'info', base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) });
  const tracer: Tracer = { request: (times) => void traced.push(times), flush: async () => {} };
  return { ...(await startListeners(fake, { log, tracer })), lines, traced };
}

const ID = { 'x-request-id': 'mine' };
const SPEECH = { model: 'tts-1', input: 'Hello. World.', voice: 'nona', response_format: 'pcm' };

const chat = ({ chat: base }: Started) => postJson(base + ROUTES.chat, { ...GOOD_CHAT, stream: true }, ID);
const chunks = ({ speech }: Started) => postJson(speech + ROUTES.speech, { ...SPEECH, stream: true }, ID);
const sse = ({ speech }: Started) => postJson(speech + ROUTES.speech, { ...SPEECH, stream_format: 'sse' }, ID);
const heard = ({ transcription }: Started) =>
  postForm(transcription + ROUTES.transcription, [['model', 'whisper-1'], ['stream', 'true'], ['file', writeWav(tone(440, 16_000, 0.5), 16_000)]], ID); // prettier-ignore

const aborted = async (base: string): Promise<string | undefined> =>
  /num_aborted_requests_total\{.*\} (\d+)/.exec((await send(`${base}/metrics`)).text)?.[1];

describe.each([
  ['chat', chat, 'chat'],
  ['speech in chunks', chunks, 'speech'],
  ['speech in events', sse, 'speech'],
  ['transcription', heard, 'transcription'],
] as const)('%s that breaks off', (_name, ask, listener) => {
  test('by a bug: the log has its stack under the id, and the request counts as a failure of the server', async () => {
    const started = await logged({ failAfter: 2, failWith: new TypeError('what went wrong') });
    await ask(started).catch(() => {});
    await until(() => started.lines.some(({ route }) => route !== undefined));
    const [bug, request, ...others] = started.lines;
    expect(bug).toMatchObject({ level: 50, id: 'mine', msg: 'bug', stack: expect.stringMatching(/what went wrong\n\s+at /) });
    expect(request).toMatchObject({ id: 'mine', status: 500, code: 'internal_error' });
    expect(others).toEqual([]);
    expect(started.traced).toMatchObject([{ status: 500, note: { code: 'internal_error' } }]);
    expect(await aborted(started[listener])).toBe('0');
    const route = ROUTES[listener].replace('/v1', '');
    expect((await send(`${started[listener]}/metrics`)).text).toContain(`parley_requests_total{route="${route}",status="500"} 1`);
  });

  test('because the engine was lost: the log says why, without a stack', async () => {
    const started = await logged({ failAfter: 2, failWith: new EngineError('device_lost', 'the GPU is gone') });
    await ask(started).catch(() => {});
    await until(() => started.lines.some(({ route }) => route !== undefined));
    expect(started.lines).toMatchObject([
      { level: 40, id: 'mine', code: 'device_lost', why: 'the GPU is gone' },
      { id: 'mine', status: 503, code: 'device_lost' },
    ]);
  });
});

test.each([
  ['chat', { ...GOOD_CHAT, stream: true }],
  ['speech', { ...SPEECH, stream: true }],
  ['speech', { ...SPEECH, stream_format: 'sse' }],
] as const)('a client that leaves %s in the middle is one that left, and nothing else is logged', async (listener, body) => {
  const started = await logged({ holdAfter: 2 });
  const request = httpRequest(started[listener] + ROUTES[listener], { method: 'POST', headers: JSON_TYPE });
  request.on('error', () => {});
  request.on('response', (response) => response.once('data', () => request.destroy()));
  request.end(JSON.stringify(body));
  await until(() => started.engine.aborted === 1 && started.lines.length > 0);
  expect(started.lines).toMatchObject([{ status: 499 }]);
  expect(started.lines[0]).not.toHaveProperty('code');
  expect(await aborted(started[listener])).toBe('1');
});
