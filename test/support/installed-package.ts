/** The packages as somebody has them who installed them: built, packed and unpacked into a folder of their own, which sees nothing of the repository but the dependencies. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { extract } from 'tar';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface InstalledPackage {
  /** Holds node_modules. */
  readonly folder: string;
  readonly tarball: string;
  /** The built folder that was packed. */
  readonly built: string;
  remove(): void;
}

/** Builds, packs and installs `parley`, with `parley-models`, `parley-espeak` and the packages named in `beside`, which are linked from the repository. */
export async function installPackage(beside: readonly string[]): Promise<InstalledPackage> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-installed-'));
  const out = join(folder, 'built');
  run(process.execPath, [join(ROOT, 'node_modules/tsx/dist/cli.mjs'), join(ROOT, 'library/build/build.ts')], ROOT, {
    PARLEY_PACKAGE_FOLDER: out,
  });
  const built = join(out, 'parley');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const tarball = join(out, run(npm, ['pack', '--silent', '--pack-destination', out], built).trim().split('\n').at(-1)!);
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'parley'), { recursive: true });
  await extract({ file: tarball, cwd: join(modules, 'parley'), strip: 1 });
  const { dependencies } = JSON.parse(readFileSync(join(modules, 'parley', 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), ...beside]) link(join(ROOT, 'node_modules', name), join(modules, name));
  for (const name of ['parley-models', 'parley-espeak']) link(join(out, name), join(modules, name));
  return { folder, tarball, built, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function link(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  rmSync(to, { recursive: true, force: true });
  symlinkSync(from, to, 'junction');
}

/** Against programs that do not end. */
const HUNG_MS = 240_000;

/** Runs a program to its end; returns its stdout, throws with what it said when it fails. */
export function run(program: string, args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 1 << 26,
    timeout: HUNG_MS,
  });
  if (status !== 0) throw error ?? new Error(`${program} ${args.join(' ')} ended with ${status}:\n${stdout}\n${stderr}`);
  return stdout;
}
