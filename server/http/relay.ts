/** Relays a call's events to its reader: counts them, sends them as they come, and reports a failure in a way that the reader can still receive. */
import type { Response } from 'express';
import type { Job, ListenerContext } from './context.ts';
import { toHttpError } from './errors.ts';
import type { HttpError } from './errors.ts';
import type { Phase } from '../trace/types.ts';
import { EventStream } from './sse.ts';

/** What is counted of a call that makes or hears sound. */
export interface AudioCount<Event> {
  /** Whether this is something for the reader. */
  isOutput(event: Event): boolean;
  /** What the event begins, for traces. */
  phase(event: Event): Phase | undefined;
  /** Seconds of sound, of the last event; undefined of the others. */
  seconds(event: Event): number | undefined;
  /** Tokens that the call took, of the last event. */
  tokens(event: Event): number;
}

/** The same events; the time to the first output and the seconds of sound go to the metrics and the log line. */
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
 * Sends events as they come, then [DONE]; `undefined` only begins the stream. A failure before the stream has begun is thrown, and becomes a plain error
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
    await stream.send(failureOf(job, error).body);
  }
  await stream.sendDone();
  stream.end();
}

/** A failure in the middle of an answer, as its reader is shown it; its code goes into the log line. Of an aborted job the abort's reason is shown, which says more than the error it led to. */
export function failureOf(job: Job, error: unknown): HttpError {
  const shown = toHttpError(job.signal.aborted ? job.signal.reason : error);
  job.note({ code: shown.code });
  return shown;
}
