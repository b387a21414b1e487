/** What is asked of a fleet, and what came of it. */
import { request as httpRequest } from 'node:http';
import type { Agent } from 'node:http';
import { JSON_TYPE, formBody, send } from '../../support/listeners.ts';
import type { Answer } from '../../support/listeners.ts';

export type Headers = Readonly<Record<string, string>>;

/** A base address without /v1, and what every request to it carries. */
export interface Target {
  readonly base: string;
  readonly headers?: Headers;
  readonly agent?: Agent;
}

export interface ChatAsk {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly stream?: boolean;
  readonly max_tokens?: number;
  readonly [field: string]: unknown;
}

export const MODEL = 'parley-chat';

/** How a request ended: its text; or nothing of it came; or it broke off after its answer had begun. */
export type Outcome =
  | { readonly end: 'whole'; readonly text: string; readonly tokens: number; readonly cached: number; readonly prompt: number }
  | { readonly end: 'lost' | 'broken'; readonly why: string };

/** One chat, greedy unless it says otherwise. Never asked twice: what a client would retry is the router's business here. */
export function askChat({ base, headers = {}, agent }: Target, ask: ChatAsk, signal?: AbortSignal): Promise<Outcome> {
  const body = JSON.stringify({
    model: MODEL,
    temperature: 0,
    max_tokens: 16,
    ...ask,
    ...(ask.stream && { stream_options: { include_usage: true } }),
  });
  return new Promise((resolve) => {
    let text = '';
    let begun = false;
    const options = { method: 'POST', headers: { ...JSON_TYPE, ...headers }, ...(agent && { agent }), ...(signal && { signal }) };
    const request = httpRequest(`${base}/v1/chat/completions`, options, (response) => {
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        begun = true;
      });
      const over = (): void =>
        resolve(outcomeOf(response.statusCode ?? 0, text, ask.stream === true, begun && response.statusCode === 200));
      response.on('end', over);
      response.on('error', over);
    });
    request.on('error', (error) => resolve({ end: 'lost', why: error.message }));
    request.end(body);
  });
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number };
}

function outcomeOf(status: number, text: string, stream: boolean, begun: boolean): Outcome {
  const failed = (why: string): Outcome => ({ end: begun ? 'broken' : 'lost', why });
  if (status !== 200) return { end: 'lost', why: `${status} ${text.slice(0, 300)}` };
  try {
    if (!stream) {
      const { choices, usage } = JSON.parse(text) as {
        readonly choices: readonly {
          readonly message: {
            readonly content: string | null;
            readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
          };
        }[];
        readonly usage: Usage;
      };
      const { content, tool_calls: calls } = choices[0]!.message;
      return whole(content ?? JSON.stringify(calls?.map(({ function: { name, arguments: given } }) => [name, given])), usage);
    }
    if (!text.trimEnd().endsWith('data: [DONE]')) return failed('the stream broke off');
    let said = '';
    let usage: Usage | undefined;
    for (const frame of text.split('\n\n').filter((one) => one.startsWith('data: {'))) {
      const chunk = JSON.parse(frame.slice('data: '.length)) as {
        readonly error?: { readonly message: string };
        readonly choices?: readonly { readonly delta: { readonly content?: string | null } }[];
        readonly usage?: Usage | null;
      };
      if (chunk.error) return failed(chunk.error.message);
      said += chunk.choices?.[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    return whole(said, usage);
  } catch (error) {
    return failed(`${error instanceof Error ? error.message : String(error)}: ${text.slice(-200)}`);
  }
}

const whole = (text: string, usage: Usage | undefined): Outcome => ({
  end: 'whole',
  text,
  tokens: usage?.completion_tokens ?? 0,
  prompt: usage?.prompt_tokens ?? 0,
  cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
});

/** Speech as a WAV file. */
export function askSpeech({ base, headers = {} }: Target, input: string): Promise<Answer> {
  const body = JSON.stringify({ model: 'parley-speech', input, voice: 'oni', response_format: 'wav', seed: 1 });
  return send(`${base}/v1/audio/speech`, { body, headers: { ...JSON_TYPE, ...headers } });
}

/** What is heard in a file. */
export function askTranscript({ base, headers = {} }: Target, wav: Uint8Array): Promise<Answer> {
  const form = formBody([['model', 'parley-transcribe'], ['response_format', 'json'], ['file', wav]]); // prettier-ignore
  // A name that says what it is: some routers ask for it.
  const body = Buffer.from(
    form.toString('latin1').replace('clip.bin', 'clip.wav').replace('application/octet-stream', 'audio/wav'),
    'latin1',
  );
  return send(`${base}/v1/audio/transcriptions`, { body, headers: { 'content-type': 'multipart/form-data; boundary=XX', ...headers } });
}

/** `clients` at once, each asking the next of `count` requests until there is none. */
export async function crowd<T>(clients: number, count: number, one: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      results[index] = await one(index);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return results;
}
