/** A call that outlives the engine process it was made in, as long as nothing of its answer has gone out. */
import { EngineError, abortErrorOf } from '../../engine/errors.ts';

export interface ReplayOptions<Run, Event> {
  /** The engine's life the call begins in. */
  readonly run: Run;
  /** Makes the call; `start` is the event it began with before, if it got that far. */
  readonly call: (run: Run, start: Event | undefined) => AsyncIterable<Event>;
  /** The engine's next life, once it is ready; undefined = it will not come, or not in time. */
  readonly next: (run: Run, signal: AbortSignal) => Promise<Run | undefined>;
  readonly signal: AbortSignal;
}

/**
 * The call's events. If the engine dies before any but `start`, which holds nothing of the answer, the call is made once more in the next
 * life; a second death is not survived: the call may be what kills it. The first life begins here and not with the first event, so that
 * an engine that is down is told at once.
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
