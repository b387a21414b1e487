/** Models named by a source (the hub, a package, an address, a recipe) become folders and files before the engine starts. */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { EngineConfig } from '../../engine/config.ts';
import { SourceError } from '../../sources/index.ts';
import type { SourceErrorKind } from '../../sources/index.ts';
import { reportPull, resolveSource } from '../../sources/node/index.ts';
import type { ResolveOptions, Resolved } from '../../sources/node/index.ts';
import type { Task } from '../http/metrics.ts';
import { TASKS } from './config.ts';
import type { ServerConfig } from './config.ts';

/** What may be better at the next start has another exit code than what a person must mend. */
const PASSING: readonly SourceErrorKind[] = ['unreachable', 'network', 'disk', 'tool'];

/** The exit code for a source that gives no model. */
export function exitCodeOf(error: SourceError): number {
  if (error.kind === 'aborted') return 130;
  return PASSING.includes(error.kind) ? 1 : 2;
}

/** The settings with each model's source replaced by the folder or file that it stands for; fetches what is not here. Throws SourceError. */
export async function resolveModels(config: ServerConfig, options: ResolveOptions): Promise<ServerConfig> {
  const found = new Map<Task, Resolved & { readonly named: string }>();
  for (const task of TASKS) {
    const path = config.engine[task]?.path;
    // A folder or file that is there is taken first, and needs no look at caches.
    if (path === undefined || (existsSync(path) && !path.endsWith('.json'))) continue;
    found.set(task, { ...(await resolveSource(path, options)), named: basename(path) });
  }
  if (found.size === 0) return config;
  const engine: Record<string, unknown> = { ...config.engine };
  // An id that was asked for stays; one made from the source's last part becomes the model's.
  const idOf = (task: Task, id: string): string => (found.get(task)?.named === id ? found.get(task)!.id : id);
  for (const [task, { path }] of found) engine[task] = { ...config.engine[task], path, id: idOf(task, config.engine[task]?.id ?? '') };
  const listeners = config.listeners.map((listener) => ({ ...listener, modelId: idOf(listener.task, listener.modelId) }));
  return { ...config, engine: engine as unknown as EngineConfig, listeners };
}

/** Runs `work` with a line of progress on stderr, stopped by the first signal; ends the process when a source gives no model. */
export async function pulling<T>(work: (options: ResolveOptions) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const report = reportPull(process.stderr);
  const onSignal = (): void => stop.abort();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  try {
    return await work({ signal: stop.signal, onProgress: report.onProgress, onNote: report.line });
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    report.line(error.message);
    return process.exit(exitCodeOf(error));
  } finally {
    report.end();
    for (const signal of signals) process.off(signal, onSignal);
  }
}
