/** Pulls in a process of its own, as `parley pull` does, for tests of two at once and of signals. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PARLEY = fileURLToPath(new URL('../../server/parley.mjs', import.meta.url));

export interface CommandRun {
  readonly child: ChildProcess;
  /** What it has written so far. */
  readonly out: { text: string };
  readonly err: { text: string };
  readonly exit: Promise<number | null>;
}

/** Starts `parley` with these arguments and these variables besides its parent's, less those that are undefined. */
export function startParley(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): CommandRun {
  const child = spawn(process.execPath, [PARLEY, ...argv], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const collect = (stream: NodeJS.ReadableStream): { text: string } => {
    const found = { text: '' };
    stream.setEncoding('utf8').on('data', (text: string) => (found.text += text));
    return found;
  };
  return {
    child,
    out: collect(child.stdout),
    err: collect(child.stderr),
    exit: once(child, 'close').then(([code]) => code as number | null),
  };
}
