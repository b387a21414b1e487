/**
 * Starts child processes and worker threads that run the server's modules, from any working directory. In the repository these are TypeScript, which tsx loads; in a
 * package they are compiled.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';

const TSX = import.meta.url.endsWith('.ts') ? pathToFileURL(createRequire(import.meta.url).resolve('tsx')) : undefined;

/** Node options for a child process. */
export const TSX_ARGV: readonly string[] = TSX ? ['--import', TSX.href] : [];

/** Starts a worker thread that runs the module at `url`. Node 20 ignores `--import` for workers, so a script registers tsx first. */
export function startWorker(url: URL, options: WorkerOptions = {}): Worker {
  if (!TSX) return new Worker(url, { ...options, execArgv: [] });
  const api = new URL('./esm/api/index.mjs', TSX);
  const script = `import(${JSON.stringify(api.href)}).then(({ register }) => { register(); return import(${JSON.stringify(url.href)}); });`;
  return new Worker(script, { ...options, execArgv: [], eval: true });
}
