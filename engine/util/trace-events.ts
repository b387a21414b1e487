/** A profile's kernels in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open. */
import type { ProfileEntry } from '../api.ts';

/** An event of the format; times in microseconds. */
export interface TraceEvent {
  readonly name: string;
  /** X = an event with a duration; M = metadata: the name of a process or thread. */
  readonly ph: 'X' | 'M';
  readonly pid: number;
  readonly tid: number;
  readonly cat?: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly args: Readonly<Record<string, string>>;
}

const [PID, TID] = [1, 1];

/** Converts a profile to one track with every dispatch, in order of execution, named after its kernel, with the variant among the arguments. */
export function traceEvents(
  adapter: string,
  kernels: readonly ProfileEntry[],
): { readonly traceEvents: readonly TraceEvent[]; readonly displayTimeUnit: 'ms' } {
  const place = { pid: PID, tid: TID };
  const named = (name: string, value: string): TraceEvent => ({ name, ph: 'M', ...place, args: { name: value } });
  const dispatches = kernels.flatMap(({ label, spans = [] }) =>
    spans.map(([ts, dur]): TraceEvent => ({
      name: label.split(' ')[0]!,
      cat: 'kernel',
      ph: 'X',
      ...place,
      ts,
      dur,
      args: { variant: label },
    })),
  );
  return {
    traceEvents: [
      named('process_name', adapter),
      named('thread_name', 'kernels'),
      ...dispatches.toSorted((a, b) => a.ts! - b.ts! || a.dur! - b.dur!),
    ],
    displayTimeUnit: 'ms',
  };
}
