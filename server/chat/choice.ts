/** The JSON of a chat answer's choices: message or delta, reasoning, tool calls, log-probabilities. */
import type { FinishReason, TokenLogprob } from '../../engine/api.ts';
import { finite } from './answer.ts';
import type { Answer, Bodies, Choice, Delta, Envelope } from './answer.ts';
import type { ChatChunk, ChatCompletion } from './answer-schema.ts';
import type { ChatCall } from './schema.ts';

/** Field of the reasoning text: `reasoning_content`, as in SGLang and llama.cpp, `reasoning`, as in vLLM and Ollama, or both. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'both'] as const;
export type ReasoningField = (typeof REASONING_FIELDS)[number];

/** Makes the answer of a chat call, with a ChatChoice for each of its `n` choices. */
export function chatAnswer(call: ChatCall, envelope: Envelope, reasoningField: ReasoningField): Answer<ChatCompletion, ChatChunk> {
  const logprobs = call.request.logprobs !== undefined;
  const choices = Array.from(
    { length: call.request.n ?? 1 },
    (_, i) => new ChatChoice(i, { reasoningField, logprobs, hasFunctions: call.hasFunctions, alwaysContent: false }),
  );
  return { delivery: call, bodies: chatBodies(envelope), choices };
}

/** Puts the bodies of a chat answer together. */
export const chatBodies = (envelope: Envelope): Bodies<ChatCompletion, ChatChunk> => ({
  whole: (choices, usage) => ({ ...envelope, object: 'chat.completion', choices, usage }),
  chunk: (choices, usage) => ({ ...envelope, object: 'chat.completion.chunk', choices, ...usage }),
});

type WholeChoice = ChatCompletion['choices'][number];
type ChunkChoice = ChatChunk['choices'][number];
type ChunkDelta = ChunkChoice['delta'];
type TokenLogprobs = NonNullable<ChunkChoice['logprobs']>;
/** A piece of a tool call. */
type CallDelta = NonNullable<ChunkDelta['tool_calls']>[number];

interface ChoiceOptions {
  readonly reasoningField: ReasoningField;
  readonly logprobs: boolean;
  /** Write the one tool call as the older `function_call` too, which clients that still send `functions` read. */
  readonly hasFunctions: boolean;
  /** Give every delta a `content`, if only an empty one, as Mistral's API does: clients of that API stop at a delta without. */
  readonly alwaysContent: boolean;
}

/** One choice of POST /chat/completions. */
export class ChatChoice implements Choice<ChatCompletion, ChatChunk> {
  readonly #index: number;
  readonly #field: ReasoningField;
  readonly #hasFunctions: boolean;
  readonly #alwaysContent: boolean;
  #text = '';
  #reasoning = '';
  readonly #calls: { readonly id: string; readonly name: string; arguments: string }[] = [];
  readonly #logprobs: TokenLogprobs['content'][number][] | undefined;

  constructor(index: number, { reasoningField, logprobs, hasFunctions, alwaysContent }: ChoiceOptions) {
    this.#index = index;
    this.#hasFunctions = hasFunctions;
    this.#alwaysContent = alwaysContent;
    this.#field = reasoningField;
    this.#logprobs = logprobs ? [] : undefined;
  }

  begin(): ChunkChoice {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  take({ text, reasoning, toolCalls, logprobs }: Delta): ChunkChoice {
    this.#text += text;
    this.#reasoning += reasoning ?? '';
    const calls = toolCalls?.map(({ call, name, arguments: piece = '' }) => this.#takeCall(call, name, piece));
    const described = logprobs?.map(describeLogprob);
    if (described) this.#logprobs?.push(...described);
    const delta = { ...(text !== '' && { content: text }), ...this.#reasoningFields(reasoning), ...(calls && this.#asCalls(calls)) };
    return this.#chunk(delta, described && { content: described, refusal: null });
  }

  end(reason: FinishReason, stopReason: string | number | null): ChunkChoice {
    return { ...this.#chunk({}, null, reason), stop_reason: stopReason };
  }

  whole(reason: FinishReason, stopReason: string | number | null): WholeChoice {
    const calls = this.#calls.map(({ id, ...call }) => ({ id, type: 'function' as const, function: call }));
    return {
      index: this.#index,
      message: {
        role: 'assistant',
        content: this.#text === '' && calls.length > 0 ? null : this.#text,
        refusal: null,
        ...this.#reasoningFields(this.#reasoning || undefined),
        ...(calls.length > 0 && this.#asCalls(calls)),
      },
      logprobs: this.#logprobs ? { content: this.#logprobs, refusal: null } : null,
      finish_reason: reason,
      stop_reason: stopReason,
    };
  }

  #chunk(fields: ChunkDelta, logprobs: TokenLogprobs | null = null, reason: FinishReason | null = null): ChunkChoice {
    const delta = this.#alwaysContent ? { content: '', ...fields } : fields;
    return { index: this.#index, delta, logprobs, finish_reason: reason };
  }

  #asCalls<Call extends { readonly function: object }>(calls: readonly Call[]) {
    return { tool_calls: calls, ...(this.#hasFunctions && { function_call: calls[0]!.function as Call['function'] }) };
  }

  /** Takes a piece of a tool call. Only the first piece has id, type and name, since clients that assemble calls reject a second name. */
  #takeCall(index: number, name: string | undefined, piece: string): CallDelta {
    const known = this.#calls[index];
    if (known) {
      known.arguments += piece;
      return { index, function: { arguments: piece } };
    }
    const call = { id: `call_${crypto.randomUUID().replaceAll('-', '').slice(0, 24)}`, name: name ?? '', arguments: piece };
    this.#calls[index] = call;
    return { index, id: call.id, type: 'function', function: { name: call.name, arguments: piece } };
  }

  #reasoningFields(reasoning: string | undefined): Record<string, string> {
    if (reasoning === undefined) return {};
    return {
      ...(this.#field !== 'reasoning' && { reasoning_content: reasoning }),
      ...(this.#field !== 'reasoning_content' && { reasoning }),
    };
  }
}

function describeLogprob({ token, logprob, bytes, top }: NonNullable<Delta['logprobs']>[number]): TokenLogprobs['content'][number] {
  const plain = (one: TokenLogprob) => ({ token: one.token, logprob: finite(one.logprob), bytes: one.bytes });
  return { ...plain({ token, logprob, bytes }), top_logprobs: top.map(plain) };
}
