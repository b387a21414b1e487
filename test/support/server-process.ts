/** Starts a whole server as a process, for tests of its start, signals and exit, and of everything together. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { TSX_ARGV } from '../../server/tsx.ts';
import { until } from './listeners.ts';

/** A server that was started as a process. */
export interface Spawned {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly exit: Promise<number | null>;
  /** Resolves when it is ready, or has ended. */
  readonly ready: Promise<void>;
}

export interface Running extends Spawned {
  /** Base addresses by task, ending in /v1. */
  readonly urls: Readonly<Record<string, string>>;
}

/**
 * Starts `entry` on free ports, with these variables besides its parent's, with a channel to it where one is asked for, and by way of another command where one is
 * given, which becomes it; the caller ends it.
 */
export function spawnAt(
  entry: URL,
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  channel?: 'ipc',
  by: readonly string[] = [],
): Spawned {
  const anyPort = ['--port=0', '--speech-port=0', '--transcription-port=0', '--host=127.0.0.1'];
  const env = { ...process.env, ...environment };
  const [command = '', ...rest] = [...by, process.execPath, ...TSX_ARGV, fileURLToPath(entry), ...anyPort, ...argv];
  const child = spawn(command, rest, {
    env,
    stdio: ['ignore', 'pipe', 'pipe', ...(channel ? [channel] : [])],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) createInterface(stream!).on('line', (line) => lines.push(line));
  const exit = once(child, 'close').then(([code]) => code as number | null);
  const ready = until(() => lines.some((line) => line.startsWith('ready after')) || child.exitCode !== null);
  return { child, lines, exit, ready };
}

/** Waits until it has said where it listens. */
export async function whenReady(server: Spawned): Promise<Running> {
  await server.ready;
  const urls = Object.fromEntries(
    server.lines.flatMap((line) => (/^(\w+)\s+(http:\/\/[^/]+)\/v1/.exec(line) ? [line.split(/\s+/).slice(0, 2)] : [])),
  );
  return { ...server, urls };
}
