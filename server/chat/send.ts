/** An answer on its way to a client: counted, and sent as one JSON body or as server-sent events. */
import type { Response } from 'express';
import type { Job, ListenerContext } from '../http/context.ts';
import { relay } from '../http/relay.ts';
import { answerChunks, createEnvelope, wholeAnswer } from './answer.ts';
import type { Answer, Envelope, Source } from './answer.ts';

/** What an answer of this listener starts from. */
export function startAnswer(context: ListenerContext, prefix: string): Envelope {
  return createEnvelope(context.options.modelId, context.fingerprint(), prefix);
}

/** Passes events through; times the first token and the ones after it, and puts the sums over all prompts in the log line. */
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
        // As they come, so that who leaves has been charged.
        job.charge(event.tokens);
        charged += event.tokens;
      } else {
        job.note({ completion_tokens: (total.completion += event.completionTokens), finish_reason: event.reason });
        // Tokens without text have no delta; of several choices the last to end brings what is left.
        ended += event.completionTokens;
        job.charge(Math.max(0, ended - charged));
        charged = Math.max(charged, ended);
      }
      yield event;
    }
  });
}

/** Sends an answer in the way that was asked for. */
export async function sendAnswer(response: Response, sources: readonly Source[], answer: Answer, job: Job): Promise<void> {
  if (!answer.delivery.stream) return void response.json(await wholeAnswer(sources, answer));
  await relay(response, job, answerChunks(sources, answer));
}
