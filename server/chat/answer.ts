/** Turns the engine's events into an answer, as one JSON body or as chunks. The form of a choice is left to `Choice`, of which each API has its own. */
import type { ChatEvent, FinishReason } from '../../engine/api.ts';
import type { Delivery } from './sampling-schema.ts';
import type { ChatCompletion, UsageAnswer } from './answer-schema.ts';

/** Fields that the body or every chunk of one answer has. */
export type Envelope = Pick<ChatCompletion, 'id' | 'created' | 'model' | 'system_fingerprint'>;

export type Delta = Extract<ChatEvent, { type: 'delta' }>;
type StopReason = string | number | null;

/** A whole body or a chunk, whichever API's. */
export interface Body {
  readonly choices: readonly unknown[];
}
type ChoiceOf<T extends Body> = T['choices'][number];

/** One choice while it is generated: gives its JSON for chunks and for the whole body. */
export interface Choice<Whole extends Body, Chunk extends Body> {
  /** The chunk before any text; undefined if there is none. */
  begin(): ChoiceOf<Chunk> | undefined;
  /** Takes a delta of the engine; returns its chunk. */
  take(delta: Delta): ChoiceOf<Chunk>;
  /** The last chunk, with the finish reason. */
  end(reason: FinishReason, stopReason: StopReason): ChoiceOf<Chunk>;
  /** The whole choice for a JSON body, from the deltas taken so far. */
  whole(reason: FinishReason, stopReason: StopReason): ChoiceOf<Whole>;
}

/** Puts the bodies of one answer together. */
export interface Bodies<Whole extends Body, Chunk extends Body> {
  whole(choices: readonly ChoiceOf<Whole>[], usage: UsageAnswer): Whole;
  chunk(choices: readonly ChoiceOf<Chunk>[], usage: { readonly usage?: UsageAnswer | null }): Chunk;
}

/** What an answer is made of, apart from the engine's events. */
export interface Answer<Whole extends Body, Chunk extends Body> {
  readonly delivery: Delivery;
  readonly bodies: Bodies<Whole, Chunk>;
  /** All choices: those of the first prompt, then those of the second, and so on. */
  readonly choices: readonly Choice<Whole, Chunk>[];
}

/** The engine's events for one prompt. */
export type Source = AsyncIterable<ChatEvent>;

/** Makes an answer's envelope, with a new id that begins with `prefix`. */
export function createEnvelope(model: string, fingerprint: string, prefix: string): Envelope {
  return {
    id: `${prefix}-${crypto.randomUUID().replaceAll('-', '')}`,
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: fingerprint,
  };
}

/** Collects all events of an answer into its JSON body. */
export async function wholeAnswer<Whole extends Body, Chunk extends Body>(
  sources: readonly Source[],
  { bodies, choices }: Answer<Whole, Chunk>,
): Promise<Whole> {
  const usage = new Usage();
  const finished: ChoiceOf<Whole>[] = [];
  for await (const { source, event } of merge(sources)) {
    usage.add(event, source);
    if (event.type === 'start') continue;
    const index = source * (choices.length / sources.length) + event.index;
    const choice = choices[index];
    if (event.type === 'delta') choice?.take(event);
    else if (choice) finished[index] = choice.whole(event.reason, event.stopReason);
  }
  return bodies.whole(finished, usage.toJSON());
}

/**
 * Streams an answer as chunks: beginnings, deltas, finishes, and usage if asked for. Nothing is sent before the engine has begun every prompt, since one may still
 * be refused, which must be a plain error response. An `undefined` then says that the stream can begin.
 */
export async function* answerChunks<Whole extends Body, Chunk extends Body>(
  sources: readonly Source[],
  { bodies, choices, delivery }: Answer<Whole, Chunk>,
): AsyncGenerator<Chunk | undefined> {
  const usage = new Usage();
  const chunk = (chosen: readonly ChoiceOf<Chunk>[], last = false): Chunk =>
    bodies.chunk(chosen, delivery.includeUsage ? { usage: last || delivery.continuousUsage ? usage.toJSON() : null } : {});
  const outstanding = new Set(sources.keys());
  const held: Chunk[] = [];
  for await (const { source, event } of merge(sources)) {
    usage.add(event, source);
    if (outstanding.delete(source) && outstanding.size === 0) {
      yield undefined;
      for (const beginning of choices.map((choice) => choice.begin())) if (beginning !== undefined) yield chunk([beginning]);
      yield* held.splice(0);
    }
    if (event.type === 'start') continue;
    const choice = choices[source * (choices.length / sources.length) + event.index];
    if (!choice) continue;
    const next = chunk([event.type === 'delta' ? choice.take(event) : choice.end(event.reason, event.stopReason)]);
    if (outstanding.size === 0) yield next;
    else held.push(next);
  }
  if (delivery.includeUsage) yield chunk([], true);
}

/** Merges several sources into one stream, in the order in which events arrive. */
async function* merge(sources: readonly Source[]): AsyncGenerator<{ readonly source: number; readonly event: ChatEvent }> {
  const iterators = sources.map((source) => source[Symbol.asyncIterator]());
  const next = async (source: number) => ({ source, result: await iterators[source]!.next() });
  const pending = new Map(iterators.map((_, source) => [source, next(source)]));
  try {
    while (pending.size > 0) {
      const { source, result } = await Promise.race(pending.values());
      pending.delete(source);
      if (result.done) continue;
      yield { source, event: result.value };
      pending.set(source, next(source));
    }
  } finally {
    // A source failed or the client left: the others are ended without being awaited.
    for (const source of pending.values()) source.catch(() => {});
    for (const iterator of iterators) iterator.return?.().catch(() => {});
  }
}

/** Counts the tokens of an answer for `usage`: prompt tokens once per prompt, completion tokens summed over the choices. */
class Usage {
  /** Prompt tokens by source; `#cached` are the cached ones among them. */
  readonly #prompt = new Map<number, number>();
  readonly #cached = new Map<number, number>();
  #reasoning = 0;
  /** Completion tokens by choice: counted from its deltas while it runs, exact once it has finished. */
  readonly #completion = new Map<string, number>();

  add(event: ChatEvent, source: number): void {
    if (event.type === 'start') {
      this.#prompt.set(source, event.promptTokens);
      this.#cached.set(source, event.cachedTokens);
      return;
    }
    const choice = `${source}/${event.index}`;
    if (event.type === 'delta') {
      this.#completion.set(choice, (this.#completion.get(choice) ?? 0) + event.tokens);
      if (event.reasoning !== undefined) this.#reasoning += event.tokens;
    } else {
      this.#completion.set(choice, event.completionTokens);
      // The other choices share the first one's prompt, which does not count as a cache hit.
      if (event.index === 0) this.#cached.set(source, event.cachedTokens);
    }
  }

  toJSON(): UsageAnswer {
    const sum = (counts: ReadonlyMap<unknown, number>): number => [...counts.values()].reduce((total, count) => total + count, 0);
    const [prompt, completion] = [sum(this.#prompt), sum(this.#completion)];
    return {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: sum(this.#cached), audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: this.#reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    };
  }
}

/** Replaces an infinite log-probability, which JSON cannot express, by -9999, as OpenAI does. */
export const finite = (logprob: number): number => (Number.isFinite(logprob) ? logprob : -9999);
