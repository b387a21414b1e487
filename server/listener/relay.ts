/** Relays an engine call's events to the client: counts them, streams them as SSE, and reports a failure in a form that the client can still receive. */
import type { Response } from 'express';
import type { Job, ListenerContext } from './context.ts';
import type { Phase } from '../trace/types.ts';
import { EventStream } from '../http/sse.ts';

/** How the events of a speech or transcription call are counted. */
export interface AudioCount<Event> {
  /** Whether the event carries output: audio or a segment. */
  isOutput(event: Event): boolean;
  /** Phase of the trace that begins with the event, if one does. */
  phase(event: Event): Phase | undefined;
  /** Seconds of audio of the whole call, in its last event; undefined in the others. */
  seconds(event: Event): number | undefined;
  /** Tokens that the call is charged for; asked of the last event only. */
  tokens(event: Event): number;
}

/** Passes events through, and records time to first output, seconds of audio and tokens in metrics, trace, log line and rate limit. */
export async function* countAudio<Event>(
  context: ListenerContext,
  job: Job,
  events: AsyncIterable<Event>,
  { isOutput, phase: phaseOf, seconds: secondsOf, tokens }: AudioCount<Event>,
): AsyncGenerator<Event> {
  let first = true;
  for await (const event of events) {
    const [seconds, phase] = [secondsOf(event), phaseOf(event)];
    if (phase !== undefined) job.enter(phase);
    if (first && isOutput(event)) {
      first = false;
      context.metrics.firstOutput(job.elapsed());
    } else if (seconds !== undefined) {
      job.charge(tokens(event));
      context.metrics.audio(seconds, job.elapsed());
      job.note({ audio_seconds: Number(seconds.toFixed(3)) });
    }
    yield event;
  }
}

/**
 * Streams events as SSE frames, then [DONE]; an `undefined` only begins the stream. A failure before the stream has begun is thrown, and becomes a plain error
 * response. A later one is sent as a frame, which clients raise as an error.
 */
export async function relay(response: Response, job: Job, events: AsyncIterable<object | undefined>): Promise<void> {
  const stream = new EventStream(response);
  try {
    for await (const event of events) {
      stream.begin();
      if (event) await stream.send(event);
    }
  } catch (error) {
    if (!stream.begun) throw error;
    if (response.destroyed) return;
    await stream.send(job.fail(error).body);
  }
  await stream.sendDone();
  stream.end();
}
