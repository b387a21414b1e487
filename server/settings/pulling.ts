/** How a pull ends for whoever started it: its line of progress, its signals, its exit codes. Knows nothing of settings, so that commands start fast. */
import { SourceError } from '../../sources/index.ts';
import type { SourceErrorKind } from '../../sources/index.ts';
import { reportPull } from '../../sources/node/index.ts';
import type { ResolveOptions } from '../../sources/node/index.ts';

/** Kinds of error that the next try may not meet; the others need a person to mend something, and have another exit code. */
const PASSING: readonly SourceErrorKind[] = ['unreachable', 'network', 'disk', 'tool'];

/** Exit code of a process whose pull failed: 130 when it was interrupted, 1 when another try may succeed, else 2. */
export function pullExitCode(error: SourceError): number {
  if (error.kind === 'aborted') return 130;
  return PASSING.includes(error.kind) ? 1 : 2;
}

/** Runs `work` with a line of progress on stderr, stopped by the first signal; ends the process when a source gives no model. */
export async function pulling<T>(work: (options: ResolveOptions) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const report = reportPull(process.stderr);
  const onSignal = (): void => stop.abort();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  try {
    return await work({ signal: stop.signal, onProgress: report.onProgress, onNote: report.line, learnt: {} });
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    report.line(error.message);
    return process.exit(pullExitCode(error));
  } finally {
    report.end();
    for (const signal of signals) process.off(signal, onSignal);
  }
}
