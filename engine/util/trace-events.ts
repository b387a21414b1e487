/** Kernels on a time line, in the form that Perfetto (ui.perfetto.dev) and chrome://tracing open: Chrome's trace events. */
import type { ProfileEntry } from '../api.ts';

/** An event of the format; times in microseconds. */
export interface TraceEvent {
  readonly name: string;
  /** X = something with a length; M = the name of a process or thread. */
  readonly ph: 'X' | 'M';
  readonly pid: number;
  readonly tid: number;
  readonly cat?: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly args: Readonly<Record<string, string>>;
}

const [PID, TID] = [1, 1];

/** One track with every dispatch of a profile, in the order in which they ran; a kernel's name, and its variant among the arguments. */
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
