/** The three apps over a fake engine on real sockets, and small clients to talk to them. */
import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { onTestFinished } from 'vitest';
import { createChatApp } from '../../server/chat/routes.ts';
import type { ChatAppOptions } from '../../server/chat/routes.ts';
import { Lifecycle } from '../../server/lifecycle.ts';
import { listen } from '../../server/listener/listen.ts';
import type { Listener } from '../../server/listener/listen.ts';
import { SHOWN_SETTINGS } from '../../server/settings/shown.ts';
import { createSpeechApp } from '../../server/speech/routes.ts';
import type { SpeechAppOptions } from '../../server/speech/routes.ts';
import { createTranscriptionApp } from '../../server/transcription/routes.ts';
import type { TranscriptionAppOptions } from '../../server/transcription/routes.ts';
import { sharedCodec } from './codec.ts';
import { FakeEngine } from './fake-engine.ts';
import type { FakeOptions } from './fake-engine.ts';
import { PublishedAnswers } from './published-answers.ts';

export interface Started {
  readonly engine: FakeEngine;
  readonly lifecycle: Lifecycle;
  readonly listeners: readonly Listener[];
  /** Base addresses, without /v1. */
  readonly chat: string;
  readonly speech: string;
  readonly transcription: string;
}

/** Starts all three for the test that calls it. */
export async function startListeners(
  fake: FakeOptions = {},
  options: Partial<
    Omit<SpeechAppOptions, 'engine' | 'codec' | 'modelId'> & ChatAppOptions & Pick<TranscriptionAppOptions, 'uploadLimits'>
  > = {},
): Promise<Started> {
  const engine = new FakeEngine(fake);
  const lifecycle = new Lifecycle();
  const codec = sharedCodec();
  const common = { engine, lifecycle, ...options };
  const apps = [
    createChatApp({ modelId: 'parley-chat', ...common }),
    createSpeechApp({ modelId: 'parley-speech', aliases: ['tts-1', 'tts-1-hd'], codec, ...common }),
    createTranscriptionApp({ modelId: 'parley-transcribe', aliases: ['whisper-1'], codec, ...common }),
  ];
  const listeners = await Promise.all(apps.map((app) => listen(app, { host: '127.0.0.1', port: 0 })));
  onTestFinished(async () => {
    for (const listener of listeners) listener.destroy();
    await Promise.all(listeners.map((listener) => listener.drain()));
  });
  const [chat, speech, transcription] = listeners.map(({ port }) => `http://127.0.0.1:${port}`) as [string, string, string];
  for (const [task, base] of Object.entries({ chat, speech, transcription })) {
    started.set(base, task as Task);
    onTestFinished(() => void started.delete(base));
  }
  return { engine, lifecycle, listeners, chat, speech, transcription };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** Parsed body; undefined when it is no JSON. */
  readonly json: AnswerJson;
}

/** What tests look at in the bodies of the API; which of it is there depends on the route. */
export interface AnswerJson {
  readonly error: { readonly message: string; readonly type: string; readonly param: string | null; readonly code: string };
  readonly choices: readonly {
    readonly index: number;
    readonly message: { readonly content: string };
    readonly finish_reason: string;
  }[];
  readonly usage: Readonly<Record<string, unknown>>;
  readonly data: readonly { readonly id: string }[];
  readonly text: string;
}

export interface Send {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The address it comes from. */
  readonly from?: string;
}

type Task = 'chat' | 'speech' | 'transcription';

/** Tasks of the listeners that tests have started, by base address. */
const started = new Map<string, Task>();
const published = new Map<Task, Promise<PublishedAnswers>>();

/** What a listener's /openapi.json says of its answers, whatever its options. It is asked of another one, so that no test's listener has an answer more. */
export function publishedAnswers(task: Task): Promise<PublishedAnswers> {
  const ask = async (): Promise<PublishedAnswers> => {
    const options = { engine: new FakeEngine(), modelId: 'm', shownSettings: SHOWN_SETTINGS };
    const withCodec = { ...options, codec: sharedCodec() };
    const app =
      task === 'chat' ? createChatApp(options) : task === 'speech' ? createSpeechApp(withCodec) : createTranscriptionApp(withCodec);
    const listener = await listen(app, { host: '127.0.0.1', port: 0 });
    try {
      return new PublishedAnswers((await request(`http://127.0.0.1:${listener.port}/openapi.json`)).text);
    } finally {
      listener.destroy();
      await listener.drain();
    }
  };
  const asked = published.get(task) ?? ask();
  published.set(task, asked);
  return asked;
}

/** One request with node:http, which sends exactly what it is told. What a listener of startListeners answers is compared with its /openapi.json. */
export async function send(url: string, sent: Send = {}): Promise<Answer> {
  const answer = await request(url, sent);
  const { origin, pathname } = new URL(url);
  const task = started.get(origin);
  if (task !== undefined) {
    const problems = (await publishedAnswers(task)).problemsOf(methodOf(sent), pathname, answer);
    if (problems.length > 0) throw new Error(`unlike /openapi.json: ${problems.join('; ')}`);
  }
  return answer;
}

const methodOf = ({ method, body }: Send): string => method ?? (body === undefined ? 'GET' : 'POST');

async function request(url: string, sent: Send = {}): Promise<Answer> {
  const { headers = {}, body, from } = sent;
  return await new Promise((resolve, reject) => {
    const options = {
      method: methodOf(sent),
      headers,
      agent: false,
      ...(from !== undefined && { localAddress: from }),
    };
    const request = httpRequest(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const text = bytes.toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text, json: tryJson(text) as AnswerJson });
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

export const JSON_TYPE = { 'content-type': 'application/json' };

/** POSTs a value as JSON. */
export const postJson = (url: string, value: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  send(url, { body: JSON.stringify(value), headers: { ...JSON_TYPE, ...headers } });

/** Text fields, and files as bytes. */
export type FormParts = readonly (readonly [string, string | Uint8Array])[];

/** POSTs a multipart form, written by hand. */
export function postForm(url: string, parts: FormParts, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return send(url, { body: formBody(parts), headers: { 'content-type': 'multipart/form-data; boundary=XX', ...headers } });
}

/** The body of a multipart form with boundary XX. */
export function formBody(parts: FormParts): Buffer {
  const pieces = parts.flatMap(([name, value]) => {
    const file = typeof value === 'string' ? '' : '; filename="clip.bin"\r\nContent-Type: application/octet-stream';
    return [Buffer.from(`--XX\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`), Buffer.from(value), Buffer.from('\r\n')];
  });
  return Buffer.concat([...pieces, Buffer.from('--XX--\r\n')]);
}

/** Waits for something that happens in another task. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
