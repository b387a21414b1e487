/** One good request of each kind and its right answer, asked again and again between the bad ones. */
import { readFileSync } from 'node:fs';
import { formBody, send } from '../support/listeners.ts';
import type { Answer } from '../support/listeners.ts';
import type { ListenerName } from './case.ts';

export interface Target {
  /** Base addresses by listener, ending in /v1. */
  readonly urls: Readonly<Record<string, string>>;
  readonly key: string | undefined;
}

const CLIP = new URL('../fixtures/parley-transcribe/', import.meta.url);

/** The good requests of one server. */
export class GoodRequests {
  readonly #target: Target;
  /** Its first answer: the same seed gives the same bytes, whatever came before. */
  #speech: Buffer | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  /** Asks all four at once; `round` makes the schema one that no cache has. Returns what was wrong. */
  async ask(round: number, limitMs: number): Promise<readonly string[]> {
    const kinds: Readonly<Record<string, () => Promise<string | undefined>>> = {
      chat: () => chat(this.#target),
      schema: () => schema(this.#target, `round${round}`),
      speech: () => this.#speak(),
      transcription: () => transcription(this.#target),
    };
    const found = await Promise.all(
      Object.entries(kinds).map(async ([kind, ask]) => {
        const problem = await within(ask(), limitMs).catch((error: unknown) => String(error));
        return problem === undefined ? [] : [`a good ${kind} request: ${problem}`];
      }),
    );
    return found.flat();
  }

  async #speak(): Promise<string | undefined> {
    const body = { model: 'tts-1', input: 'Hello.', voice: 'oni', response_format: 'wav', seed: 1 };
    const answer = await post(this.#target, 'speech', '/audio/speech', 'application/json', JSON.stringify(body));
    if (answer.status !== 200 || answer.bytes.toString('latin1', 0, 4) !== 'RIFF') return describe(answer);
    this.#speech ??= answer.bytes;
    return this.#speech.equals(answer.bytes) ? undefined : 'the same seed gave other sound';
  }
}

/** The promise's value, or a sentence when it takes longer. */
export async function within<T>(promise: Promise<T>, limitMs: number): Promise<T | string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => (timer = setTimeout(() => resolve(`no answer in ${limitMs / 1000} s`), limitMs)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function post({ urls, key }: Target, listener: ListenerName, path: string, type: string, body: string | Buffer): Promise<Answer> {
  const headers = { 'content-type': type, ...(key !== undefined && { authorization: `Bearer ${key}` }) };
  return send(`${urls[listener]}${path}`, { method: 'POST', body, headers });
}

const describe = ({ status, text }: Answer): string => `${status} ${text.slice(0, 300)}`;
const ask = (target: Target, content: string, more: object): Promise<Answer> => {
  const body = { model: 'parley-chat', messages: [{ role: 'user', content }], temperature: 0, ...more };
  return post(target, 'chat', '/chat/completions', 'application/json', JSON.stringify(body));
};

async function chat(target: Target): Promise<string | undefined> {
  const answer = await ask(target, 'What is the capital of France?', { max_tokens: 24 });
  return answer.status === 200 && /Paris/.test(answer.json.choices[0]!.message.content) ? undefined : describe(answer);
}

/** An object of exactly the asked-for shape; a name that was never used cannot be in a cache of compiled grammars. */
async function schema(target: Target, name: string): Promise<string | undefined> {
  const properties = { [name]: { type: 'string', maxLength: 8 }, wild: { type: 'boolean' } };
  const wanted = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
  const answer = await ask(target, 'Name an animal.', {
    max_tokens: 120,
    response_format: { type: 'json_schema', json_schema: { name: 'animal', schema: wanted } },
  });
  if (answer.status !== 200) return describe(answer);
  const value = JSON.parse(answer.json.choices[0]!.message.content) as Record<string, unknown>;
  const isRight = Object.keys(value).join() === `${name},wild` && typeof value[name] === 'string' && typeof value['wild'] === 'boolean';
  return isRight ? undefined : describe(answer);
}

async function transcription(target: Target): Promise<string | undefined> {
  const golden = JSON.parse(readFileSync(new URL('golden.json', CLIP), 'utf8')) as { text: string };
  const form = formBody([['file', readFileSync(new URL('clip.wav', CLIP))], ['model', 'whisper-1']]); // prettier-ignore
  const answer = await post(target, 'transcription', '/audio/transcriptions', 'multipart/form-data; boundary=XX', form);
  return answer.status === 200 && answer.json.text === golden.text.trim() ? undefined : describe(answer);
}
