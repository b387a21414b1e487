/** An answer from the engine's events, as one JSON body or as chunks; what a choice looks like is its API's business. */
import { createHash, randomUUID } from 'node:crypto';
import type { Response } from 'express';
import type { ChatEvent, FinishReason } from '../../engine/api.ts';
import type { Job, ListenerContext } from '../http/context.ts';
import { relay } from '../http/relay.ts';
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

/** What an answer of this listener starts from. */
export function createEnvelope(context: ListenerContext, prefix: string): Envelope {
  const { adapter } = context.engine.info();
  const model = context.model();
  const build = JSON.stringify([model?.id, model?.architecture, model?.parameters, model?.weightBytes, adapter.name, adapter.family]);
  return {
    id: `${prefix}-${randomUUID().replaceAll('-', '')}`,
    created: Math.floor(Date.now() / 1000),
    model: context.options.modelId,
    system_fingerprint: `fp_${createHash('sha256').update(build).digest('hex').slice(0, 12)}`,
  };
}

/** Passes events through; times the first token and the ones after it, and puts the sums over all prompts in the log line. */
export function countEvents(context: ListenerContext, job: Job, sources: readonly Source[]): Source[] {
  const total = { prompt: 0, completion: 0 };
  return sources.map(async function* (events) {
    let lastToken = 0;
    for await (const event of events) {
      if (event.type === 'start') job.note({ prompt_tokens: (total.prompt += event.promptTokens) });
      else if (event.type === 'delta') {
        const now = job.elapsed();
        if (lastToken === 0) context.metrics.firstOutput(now);
        else context.metrics.tokens(event.tokens, now - lastToken);
        lastToken = now;
      } else job.note({ completion_tokens: (total.completion += event.completionTokens), finish_reason: event.reason });
      yield event;
    }
  });
}

/** Sends one JSON body once everything is there. */
export async function sendWhole(response: Response, sources: readonly Source[], answer: Answer): Promise<void> {
  const { envelope, objects, choices } = answer;
  const usage = new Usage();
  const finished: object[] = [];
  for await (const { source, event } of merge(sources)) {
    usage.add(event, source);
    if (event.type === 'start') continue;
    const index = source * (choices.length / sources.length) + event.index;
    if (event.type === 'delta') choices[index]?.take(event);
    else finished[index] = choices[index]?.whole(event.reason, event.stopReason) ?? {};
  }
  response.json({ ...envelope, object: objects[0], choices: finished, usage });
}

/** Sends chunks as they come: beginnings, deltas, finishes, usage if asked, [DONE]. */
export async function sendStream(response: Response, sources: readonly Source[], answer: Answer, job: Job): Promise<void> {
  const { envelope, objects, choices, delivery } = answer;
  const usage = new Usage();
  await relay(response, job, async (stream) => {
    const send = (chosen: readonly object[], last = false): Promise<void> =>
      stream.send({
        ...envelope,
        object: objects[1],
        choices: chosen,
        ...(delivery.includeUsage && { usage: last || delivery.continuousUsage ? usage : null }),
      });
    for await (const { source, event } of merge(sources)) {
      usage.add(event, source);
      if (!stream.begun) {
        stream.begin();
        for (const beginning of choices.map((choice) => choice.begin())) if (beginning) await send([beginning]);
      }
      if (event.type === 'start') continue;
      const choice = choices[source * (choices.length / sources.length) + event.index];
      if (!choice) continue;
      await send([event.type === 'delta' ? choice.take(event) : choice.end(event.reason, event.stopReason)]);
    }
    if (delivery.includeUsage) await send([], true);
  });
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
