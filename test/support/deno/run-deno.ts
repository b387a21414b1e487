/** Starts Deno, which npm brings (package `deno`), where it has one for this system. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SHORT_VECTORS } from '../drivers.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DENO = join(ROOT, 'node_modules', 'deno', 'bin.cjs');
/** What Deno keeps of programs goes where everything else goes that tests write. */
const ENVIRONMENT = { ...process.env, ...SHORT_VECTORS, DENO_DIR: join(ROOT, '.parley', 'deno'), DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' };

/** The version, or undefined where npm has no Deno for this system. */
export function denoVersion(): string | undefined {
  const { status, stdout } = spawnSync(process.execPath, [DENO, '--version'], { env: ENVIRONMENT, encoding: 'utf8' });
  return status === 0 ? /^deno (\S+)/.exec(stdout)?.[1] : undefined;
}

/** Runs a script of this repository with these permissions and no others; resolves with what it printed, rejects with its complaints when it fails. */
export async function runDeno(permissions: readonly string[], script: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const argv = [DENO, 'run', '--no-prompt', '--no-lock', ...permissions, script, ...args];
  return promisify(execFile)(process.execPath, argv, { cwd: ROOT, env: { ...ENVIRONMENT, ...env }, maxBuffer: 1 << 26 });
}
