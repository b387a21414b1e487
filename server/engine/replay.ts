/** Repeats a call whose engine process died before any of its answer was sent. */
import { EngineError, abortErrorOf } from '../../engine/errors.ts';

export interface ReplayOptions<Run, Event> {
  /** The engine process in which the call begins. */
  readonly run: Run;
  /** Makes the call; `start` is the start event of the first attempt, if it got that far. */
  readonly call: (run: Run, start: Event | undefined) => AsyncIterable<Event>;
  /** Waits for the next engine process; undefined if none gets ready in time. */
  readonly next: (run: Run, signal: AbortSignal) => Promise<Run | undefined>;
  readonly signal: AbortSignal;
}

/**
 * Makes a call and returns its events. If the engine dies before any event but `start`, which is no part of the answer, the call is repeated once in the next
 * process, but not twice, since the call itself may be what kills it. The call is made right here, not with the first event, so that an engine that is down
 * is reported at once.
 */
export function replayed<Run, Event extends { readonly type: string }>(options: ReplayOptions<Run, Event>): AsyncIterable<Event> {
  return events(options.call(options.run, undefined), options);
}

async function* events<Run, Event extends { readonly type: string }>(
  first: AsyncIterable<Event>,
  { run, call, next, signal }: ReplayOptions<Run, Event>,
): AsyncGenerator<Event, void, undefined> {
  let start: Event | undefined;
  let isStreaming = false;
  try {
    for await (const event of first) {
      if (event.type === 'start') start = event;
      else isStreaming = true;
      yield event;
    }
    return;
  } catch (error) {
    if (isStreaming || signal.aborted || !(error instanceof EngineError && error.code === 'device_lost')) throw error;
    const following = await next(run, signal);
    if (signal.aborted) throw abortErrorOf(signal);
    if (following === undefined) throw error;
    run = following;
  }
  for await (const event of call(run, start)) if (start === undefined || event.type !== 'start') yield event;
}
