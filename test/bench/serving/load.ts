/** Closed-loop load: clients that each have one request at a time, and what they saw. */
import { setMaxListeners } from 'node:events';
import type { ChatMessage, ChatRequest } from '../../../engine/api.ts';
import type { ChatEngine } from '../../../engine/tasks/chat-engine.ts';

/** One answer as its reader saw it, as far as it came; times in milliseconds. */
export interface Sample {
  /** Whether it came to its end before the time limit. */
  readonly finished: boolean;
  readonly text: string;
  /** From the request to the first token, or to the time limit where none came. */
  readonly firstToken: number;
  /** Between one token and the next. */
  readonly gaps: readonly number[];
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly tokens: number;
}

/** Runs one request until it ends or `limit` fires; throws what the engine throws. */
export async function runRequest(engine: ChatEngine, request: ChatRequest, limit = new AbortController().signal): Promise<Sample> {
  const from = performance.now();
  const times: number[] = [];
  let [text, promptTokens, cachedTokens, tokens, finished] = ['', 0, 0, 0, false];
  try {
    for await (const event of engine.chat(request, limit)) {
      if (event.type === 'start') ({ promptTokens, cachedTokens } = event);
      else if (event.type === 'delta') {
        times.push(performance.now());
        text += event.text;
        tokens += event.tokens;
      } else [finished, tokens] = [true, event.completionTokens]; // Tokens without text have no delta.
    }
  } catch (error) {
    if (!limit.aborted) throw error;
  }
  const gaps = times.slice(1).map((time, i) => time - times[i]!);
  return { finished, text, firstToken: (times[0] ?? performance.now()) - from, gaps, promptTokens, cachedTokens, tokens };
}

/** What a client asks: the messages of its turn, given its conversation so far. */
export type Script = (client: number, turn: number, history: readonly ChatMessage[]) => readonly ChatMessage[];

export interface LoadOptions {
  readonly clients: number;
  /** Requests each client makes, one after the other. */
  readonly turns: number;
  readonly maxTokens: number;
  /** After this the clients stop asking, and what runs is aborted. */
  readonly limitMs: number;
  /** Default true: every answer has maxTokens. */
  readonly ignoreEos?: boolean;
}

export interface LoadResult {
  readonly samples: readonly Sample[];
  readonly seconds: number;
}

/** Lets the clients loose at the same moment and waits for them all. */
export async function closedLoop(engine: ChatEngine, script: Script, options: LoadOptions): Promise<LoadResult> {
  const { clients, turns, maxTokens, limitMs, ignoreEos = true } = options;
  const samples: Sample[] = [];
  const signal = AbortSignal.timeout(limitMs);
  setMaxListeners(clients, signal);
  const from = performance.now();
  const client = async (index: number): Promise<void> => {
    let messages: readonly ChatMessage[] = [];
    for (let turn = 0; turn < turns && !signal.aborted; turn++) {
      messages = script(index, turn, messages);
      const request: ChatRequest = { messages, sampling: { temperature: 0 }, maxTokens, ignoreEos };
      const sample = await runRequest(engine, request, signal);
      samples.push(sample);
      messages = [...messages, { role: 'assistant', content: sample.text }];
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
  return { samples, seconds: (performance.now() - from) / 1000 };
}

/** The value below which a share of the values lies; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}
