/** Repeats a call whose engine process died before any of its answer was sent. */
import { EngineError, abortErrorOf } from '../../engine/errors.ts';

export interface ReplayOptions<Run, Event> {
  /** The engine process in which the call begins. Whoever chose it has reported an engine that is down. */
  readonly run: Run;
  /** Makes the call; `start` is the start event of the first attempt, if it got that far. */
  readonly call: (run: Run, start: Event | undefined) => AsyncIterable<Event>;
  /** Waits for the next engine process; undefined if none gets ready in time. */
  readonly next: (run: Run, signal: AbortSignal) => Promise<Run | undefined>;
  readonly signal: AbortSignal;
}

/**
 * Makes a call and yields its events. If the engine dies before any event but `start`, which is no part of the answer, the call is repeated once in the next
 * process, but not twice, since the call itself may be what kills it. The call is made when the first event is asked for, so one that nobody reads takes no place in the
 * engine.
 */
export async function* replayed<Run, Event extends { readonly type: string }>({
  run,
  call,
  next,
  signal,
}: ReplayOptions<Run, Event>): AsyncGenerator<Event, void, undefined> {
  let start: Event | undefined;
  let isStreaming = false;
  try {
    for await (const event of call(run, undefined)) {
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
