/** The answer of a chat completion, streamed or whole, as the engine's events. */
import type { ChatEvent, FinishReason } from '../../../engine/api.ts';
import { EngineError } from '../../../engine/errors.ts';
import { errorOf, shortened } from './server-error.ts';
import { sseData } from './sse.ts';

/** Part of an answer, or all of it: some servers do not stream. */
interface ChatChunk {
  readonly choices?: readonly {
    readonly index?: number;
    readonly delta?: ChatDelta | null;
    readonly message?: ChatDelta | null;
    readonly finish_reason?: FinishReason | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details?: { readonly cached_tokens?: number };
  } | null;
  readonly error?: unknown;
}

/** A thinking model's thoughts come under either name, or as parts of the content. */
interface ChatDelta {
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
}

/** The events of a response. Servers send token counts at the end, so `start` has none and `finish` comes last. */
export async function* chatEvents(response: Response): AsyncGenerator<ChatEvent> {
  const type = response.headers.get('content-type') ?? '';
  const isWhole = /^application\/json\b/.test(type);
  let reason: FinishReason = 'stop';
  let deltas = 0;
  let usage: ChatChunk['usage'];
  let complete = false;
  for await (const data of isWhole ? [await response.text()] : sseData(response)) {
    if (data === '[DONE]') {
      complete = true;
      break;
    }
    const chunk = chunkOf(data);
    if (isWhole && !chunk.choices) throw unlike(type);
    usage = chunk.usage ?? usage;
    for (const { index = 0, delta, message, finish_reason } of chunk.choices ?? []) {
      reason = finish_reason ?? reason;
      complete ||= Boolean(finish_reason);
      const { text, reasoning } = partsOf(delta ?? message ?? {});
      if (text === '' && reasoning === '') continue;
      deltas++;
      yield { type: 'delta', index, text, tokens: 1, ...(reasoning !== '' && { reasoning }) };
    }
  }
  if (!complete && deltas === 0 && /^text\/html\b/.test(type)) throw unlike(type);
  // A connection closed by a proxy or a dying server looks like a normal end. Some servers never send [DONE], so a finish_reason counts as
  // an end too.
  if (!complete) throw new TypeError('the stream ended without a finish_reason and without [DONE]');
  const cachedTokens = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  if (usage) yield { type: 'start', promptTokens: usage.prompt_tokens, cachedTokens };
  yield { type: 'finish', index: 0, reason, stopReason: null, completionTokens: usage?.completion_tokens ?? deltas, cachedTokens };
}

/** Parses a chunk. Throws EngineError for a server's error, or its words in place of JSON. */
function chunkOf(data: string): ChatChunk {
  let chunk: ChatChunk | null;
  try {
    chunk = JSON.parse(data) as ChatChunk | null;
  } catch (error) {
    // The beginning of a chunk at the end of a connection says nothing.
    throw data.startsWith('{') ? error : stopped(shortened(data));
  }
  const found = chunk?.error || !chunk?.choices ? errorOf(chunk) : undefined;
  if (found) throw stopped(found.message ?? 'it does not say why');
  return chunk ?? {};
}

/** The error for an answer of another type, such as the page of a proxy. */
const unlike = (type: string): EngineError =>
  new EngineError('unsupported', `The server answers, but not with a chat completion (${type}): is this the address of the API?`);

const stopped = (why: string): EngineError => new EngineError('internal', `The server stopped: ${why}`);

/** A part of a content that is a list. Mistral's thinking models write one. */
interface ContentPart {
  readonly text?: unknown;
  readonly thinking?: unknown;
}

function partsOf({ content, reasoning_content, reasoning }: ChatDelta): { text: string; reasoning: string } {
  const thoughts = Array.isArray(content) ? (content as ContentPart[]).map((part) => textOf(part?.thinking)).join('') : '';
  return { text: textOf(content), reasoning: textOf(reasoning_content) || textOf(reasoning) || thoughts };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? (content as ContentPart[]).map((part) => textOf(part?.text)).join('') : '';
}
