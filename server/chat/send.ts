/** Sends an answer to its client, as one JSON body or as SSE, and counts its tokens. */
import type { Response } from 'express';
import type { Job, ListenerContext } from '../listener/context.ts';
import { relay } from '../listener/relay.ts';
import { answerChunks, createEnvelope, wholeAnswer } from './answer.ts';
import type { Answer, Body, Envelope, Source } from './answer.ts';

/** Makes the envelope of an answer of this listener, by the LoRA adapter that `model` names or by the model itself; `prefix` begins its id. */
export function startAnswer(context: ListenerContext, prefix: string, model: string | undefined): Envelope {
  return createEnvelope(context.loraOf(model).lora ?? context.options.modelId, context.fingerprint(), prefix);
}

/** Passes events through, and records token counts and latencies in metrics, trace, rate limit and log line; the log line has the sums over all prompts. */
export function countEvents(context: ListenerContext, job: Job, sources: readonly Source[]): Source[] {
  const total = { prompt: 0, cached: 0, completion: 0 };
  return sources.map(async function* (events) {
    let lastToken = 0;
    let [charged, ended] = [0, 0];
    for await (const event of events) {
      if (event.type === 'start') {
        job.note({ prompt_tokens: (total.prompt += event.promptTokens), cached_tokens: (total.cached += event.cachedTokens) });
        context.metrics.admitted(job.elapsed());
        job.enter('prefill');
        job.charge(event.promptTokens);
      } else if (event.type === 'delta') {
        const now = job.elapsed();
        job.enter('decode');
        if (lastToken === 0) context.metrics.firstOutput(now);
        else context.metrics.tokens(event.tokens, now - lastToken);
        lastToken = now;
        // Charged token by token, so that a client that disconnects has paid for what was generated.
        job.charge(event.tokens);
        charged += event.tokens;
      } else {
        job.note({ completion_tokens: (total.completion += event.completionTokens), finish_reason: event.reason });
        // Tokens without text have no delta: what is missing is charged as choices finish.
        ended += event.completionTokens;
        job.charge(Math.max(0, ended - charged));
        charged = Math.max(charged, ended);
      }
      yield event;
    }
  });
}

/** Sends an answer as its request asked: streamed, or as one JSON body. */
export async function sendAnswer<Whole extends Body, Chunk extends Body>(
  response: Response<Whole>,
  sources: readonly Source[],
  answer: Answer<Whole, Chunk>,
  job: Job,
): Promise<void> {
  if (!answer.delivery.stream) return void response.json(await wholeAnswer(sources, answer));
  await relay(response, job, answerChunks(sources, answer));
}
