/** Measures parity (parity.ts) in a Node process of its own. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import type { ParityResult } from './parity.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Measured {
  readonly adapter: string;
  readonly errors: readonly string[];
  readonly result: ParityResult;
}

/** On the adapter that `env`, which is added to this process's, leaves, as if it lacked `disable`. */
export async function measureInNode(env: NodeJS.ProcessEnv, ...disable: OptionalFeature[]): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-parity-'));
  try {
    const file = join(folder, 'node.json');
    const child = spawn(process.execPath, ['--import', 'tsx', join(ROOT, 'test', 'support', 'parity-node.ts'), file, ...disable], {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (data: Buffer) => (said += data.toString()));
    const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
    if (status !== 0) throw new Error(`the Node side ended with ${status}:\n${said}`);
    return JSON.parse(readFileSync(file, 'utf8')) as Measured;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
