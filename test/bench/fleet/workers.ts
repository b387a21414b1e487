/** Whole servers with the bundled models, as the workers of a fleet. */
import { spawnAt, whenReady } from '../../support/server-process.ts';
import type { Running } from '../../support/server-process.ts';

const MAIN = new URL('../../../server/main.ts', import.meta.url);

export type FleetTask = 'chat' | 'speech' | 'transcription';

export interface Worker extends Running {
  /** Base addresses without /v1, by task. */
  readonly base: Readonly<Record<FleetTask, string>>;
  /** The ports that it listens on, for one that takes its place. */
  readonly ports: readonly string[];
}

/** Long enough for a router that asks once a second to see it; then at most so long for what runs. */
export const DRAIN = ['--drain-delay=4', '--drain-timeout=40'];

/** Starts one and waits until it is ready; `ports` of one that left, and more settings. */
export async function startWorker({
  ports = [],
  flags = [],
}: { readonly ports?: readonly string[]; readonly flags?: readonly string[] } = {}): Promise<Worker> {
  const running = await whenReady(spawnAt(MAIN, [...DRAIN, ...ports, ...flags]));
  if (running.child.exitCode !== null) throw new Error(`a worker did not start:\n${running.lines.join('\n')}`);
  const base = Object.fromEntries(Object.entries(running.urls).map(([task, url]) => [task, url.replace(/\/v1$/, '')])) as Worker['base'];
  const port = (task: FleetTask): string => new URL(base[task]).port;
  return {
    ...running,
    base,
    ports: [`--port=${port('chat')}`, `--speech-port=${port('speech')}`, `--transcription-port=${port('transcription')}`],
  };
}

/** Ends it at once. */
export async function stopWorker(worker: Worker): Promise<void> {
  worker.child.kill('SIGKILL');
  await worker.exit;
}
