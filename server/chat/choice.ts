/** The JSON of a chat answer's choices: message or delta, reasoning, tool calls, log-probabilities. */
import type { FinishReason, TokenLogprob } from '../../engine/api.ts';
import { finite } from './answer.ts';
import type { Answer, Choice, Delta, Envelope } from './answer.ts';
import type { ChatCall } from './schema.ts';

/** Field of the reasoning text: `reasoning_content`, as in SGLang and llama.cpp, `reasoning`, as in vLLM and Ollama, or both. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'both'] as const;
export type ReasoningField = (typeof REASONING_FIELDS)[number];

/** Makes the answer of a chat call, with a ChatChoice for each of its `n` choices. */
export function chatAnswer(call: ChatCall, envelope: Envelope, reasoningField: ReasoningField): Answer {
  const logprobs = call.request.logprobs !== undefined;
  const choices = Array.from(
    { length: call.request.n ?? 1 },
    (_, i) => new ChatChoice(i, { reasoningField, logprobs, hasFunctions: call.hasFunctions, alwaysContent: false }),
  );
  return { envelope, delivery: call, objects: ['chat.completion', 'chat.completion.chunk'], choices };
}

/** A piece of a tool call, as in `delta.tool_calls`. */
interface CallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: 'function';
  readonly function: object;
}

interface ChoiceOptions {
  readonly reasoningField: ReasoningField;
  readonly logprobs: boolean;
  /** Write the one tool call as the older `function_call` too, which clients that still send `functions` read. */
  readonly hasFunctions: boolean;
  /** Give every delta a `content`, if only an empty one, as Mistral's API does: clients of that API stop at a delta without. */
  readonly alwaysContent: boolean;
}

/** One choice of POST /chat/completions. */
export class ChatChoice implements Choice {
  readonly #index: number;
  readonly #field: ReasoningField;
  readonly #hasFunctions: boolean;
  readonly #alwaysContent: boolean;
  #text = '';
  #reasoning = '';
  readonly #calls: { readonly id: string; readonly name: string; arguments: string }[] = [];
  readonly #logprobs: unknown[] | undefined;

  constructor(index: number, { reasoningField, logprobs, hasFunctions, alwaysContent }: ChoiceOptions) {
    this.#index = index;
    this.#hasFunctions = hasFunctions;
    this.#alwaysContent = alwaysContent;
    this.#field = reasoningField;
    this.#logprobs = logprobs ? [] : undefined;
  }

  begin(): object {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  take({ text, reasoning, toolCalls, logprobs }: Delta): object {
    this.#text += text;
    this.#reasoning += reasoning ?? '';
    const calls = toolCalls?.map(({ call, name, arguments: piece = '' }) => this.#takeCall(call, name, piece));
    const described = logprobs?.map(describeLogprob);
    if (described) this.#logprobs?.push(...described);
    const delta = { ...(text !== '' && { content: text }), ...this.#reasoningFields(reasoning), ...(calls && this.#asCalls(calls)) };
    return this.#chunk(delta, described && { content: described, refusal: null });
  }

  end(reason: FinishReason, stopReason: string | number | null): object {
    return { ...this.#chunk({}, null, reason), stop_reason: stopReason };
  }

  whole(reason: FinishReason, stopReason: string | number | null): object {
    const calls = this.#calls.map(({ id, ...call }) => ({ id, type: 'function', function: call }));
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

  #chunk(fields: object, logprobs: unknown = null, reason: FinishReason | null = null): object {
    const delta = this.#alwaysContent ? { content: '', ...fields } : fields;
    return { index: this.#index, delta, logprobs: logprobs ?? null, finish_reason: reason };
  }

  #asCalls(calls: readonly { readonly function: object }[]): object {
    return { tool_calls: calls, ...(this.#hasFunctions && { function_call: calls[0]!.function }) };
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

function describeLogprob({ token, logprob, bytes, top }: NonNullable<Delta['logprobs']>[number]): object {
  const plain = (one: TokenLogprob) => ({ token: one.token, logprob: finite(one.logprob), bytes: one.bytes });
  return { ...plain({ token, logprob, bytes }), top_logprobs: top.map(plain) };
}
