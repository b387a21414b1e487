/** An answer from the engine's events, as one JSON body or as chunks; what a choice looks like is its API's business. */
import type { ChatEvent, EngineInfo, FinishReason, ModelInfo } from '../../engine/api.ts';
import type { Delivery } from './sampling-schema.ts';

/** What every body and chunk of one answer has in common. */
export interface Envelope {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

export type Delta = Extract<ChatEvent, { type: 'delta' }>;
type StopReason = string | number | null;

/** One choice as it grows: what it looks like in chunks and in a whole body. */
export interface Choice {
  /** The chunk before any text; undefined = none. */
  begin(): object | undefined;
  /** Takes a delta of the engine and gives its chunk. */
  take(delta: Delta): object;
  /** The last chunk. */
  end(reason: FinishReason, stopReason: StopReason): object;
  /** All of it. */
  whole(reason: FinishReason, stopReason: StopReason): object;
}

export interface Answer {
  readonly envelope: Envelope;
  readonly delivery: Delivery;
  /** `object` of a whole body and of a chunk. */
  readonly objects: readonly [whole: string, chunk: string];
  /** By source, then by index within it. */
  readonly choices: readonly Choice[];
}

/** The events of one prompt. */
export type Source = AsyncIterable<ChatEvent>;

/** What an answer starts from; `fingerprint` stands for the model and what computes it. */
export function createEnvelope(model: string, fingerprint: string, prefix: string): Envelope {
  return {
    id: `${prefix}-${crypto.randomUUID().replaceAll('-', '')}`,
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: fingerprint,
  };
}

/** What a fingerprint is the SHA-256 of: equal where equal requests with a seed get equal answers. */
export function describeBuild({ adapter }: EngineInfo, model: ModelInfo | undefined): string {
  return JSON.stringify([model?.id, model?.architecture, model?.parameters, model?.weightBytes, adapter.name, adapter.family]);
}

/** A fingerprint from the hash of what `describeBuild` gives, in hex. */
export const fingerprint = (hash: string): string => `fp_${hash.slice(0, 12)}`;

/** The JSON body of an answer, once everything is there. */
export async function wholeAnswer(sources: readonly Source[], { envelope, objects, choices }: Answer): Promise<object> {
  const usage = new Usage();
  const finished: object[] = [];
  for await (const { source, event } of merge(sources)) {
    usage.add(event, source);
    if (event.type === 'start') continue;
    const index = source * (choices.length / sources.length) + event.index;
    if (event.type === 'delta') choices[index]?.take(event);
    else finished[index] = choices[index]?.whole(event.reason, event.stopReason) ?? {};
  }
  return { ...envelope, object: objects[0], choices: finished, usage: usage.toJSON() };
}

/**
 * The chunks of an answer as they come: beginnings, deltas, finishes, usage if asked. `undefined`: the engine has begun with every prompt, and there is nothing
 * to say yet. Before that nothing is, as a prompt may still be refused, which is an error of its own and not an event.
 */
export async function* answerChunks(sources: readonly Source[], answer: Answer): AsyncGenerator<object | undefined> {
  const { envelope, objects, choices, delivery } = answer;
  const usage = new Usage();
  const chunk = (chosen: readonly object[], last = false): object => ({
    ...envelope,
    object: objects[1],
    choices: chosen,
    ...(delivery.includeUsage && { usage: last || delivery.continuousUsage ? usage.toJSON() : null }),
  });
  const outstanding = new Set(sources.keys());
  const held: object[] = [];
  for await (const { source, event } of merge(sources)) {
    usage.add(event, source);
    if (outstanding.delete(source) && outstanding.size === 0) {
      yield undefined;
      for (const beginning of choices.map((choice) => choice.begin())) if (beginning) yield chunk([beginning]);
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

/** The events of several sources in the order in which they come. */
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
    // One failed or the reader left: the others end without being waited for.
    for (const source of pending.values()) source.catch(() => {});
    for (const iterator of iterators) iterator.return?.().catch(() => {});
  }
}

/** A prompt's tokens and cached tokens count once, completion tokens are summed over the choices. */
class Usage {
  /** By source: tokens of its prompt, those of them that were cached. */
  readonly #prompt = new Map<number, number>();
  readonly #cached = new Map<number, number>();
  #reasoning = 0;
  /** By choice: counted from deltas while it runs, exact once it has finished. */
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
      // Later choices share the first one's prompt, which is no hit of the cache.
      if (event.index === 0) this.#cached.set(source, event.cachedTokens);
    }
  }

  toJSON(): Record<string, unknown> {
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

/** JSON has no infinity; -9999 is what OpenAI sends. */
export const finite = (logprob: number): number => (Number.isFinite(logprob) ? logprob : -9999);
