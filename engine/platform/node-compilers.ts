/** Processes that compile shaders for Mesa's software driver (engine/gpu/parallel-compiler.ts says why), and access to its disk cache. */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { keptIn } from './node-files.ts';
import type { DiskCompiler, KeptTexts, PlatformWorker } from './platform.ts';

const MOST_PROCESSES = 8;
/** Memory reserved per process, in bytes; the kernels of the bundled models take some 250 MB, most of it the compiler's. */
const PROCESS_BYTES = 400 * 2 ** 20;
/** Time that a process has to end before it is killed. */
const END_MS = 2_000;

/** URL of the TypeScript loader that threads and processes register first; undefined in a package, whose modules are compiled. */
export const LOADER = import.meta.url.endsWith('.ts')
  ? new URL('./esm/api/index.mjs', pathToFileURL(createRequire(import.meta.url).resolve('tsx'))).href
  : undefined;

/** What a process needs to make a platform of its own. */
export interface ForProcesses {
  readonly platform: string;
  readonly toggles: string;
}

export function diskCompiler({ info }: GPUAdapter, forProcesses: ForProcesses): DiskCompiler | undefined {
  const processes = Math.min(availableParallelism(), MOST_PROCESSES, Math.floor(process.availableMemory() / PROCESS_BYTES));
  const caches = /llvmpipe/i.test(info.description) ? mesaCaches() : [];
  if (caches.length === 0 || processes < 2) return undefined;
  return { processes, start: (url) => startProcess({ ...forProcesses, module: url.href }), kept: besideMesa(caches) };
}

/**
 * Folders in which Mesa may have its disk cache, found as Mesa does (`disk_cache_generate_cache_dir`), and which it may write: the one that a variable names, else
 * that of $HOME, which Mesa 25 takes, or that of the account, which older ones take. None if the cache is off or of a kind other than the default.
 */
function mesaCaches(): readonly string[] {
  const { env } = process;
  const otherwise = ['MESA_SHADER_CACHE_DISABLE', 'MESA_GLSL_CACHE_DISABLE', 'MESA_DISK_CACHE_SINGLE_FILE', 'MESA_DISK_CACHE_MULTI_FILE'];
  if (otherwise.some((name) => env[name] !== undefined)) return [];
  const named = env['MESA_SHADER_CACHE_DIR'] ?? env['MESA_GLSL_CACHE_DIR'] ?? env['XDG_CACHE_HOME'];
  const homes = [env['HOME'], accountHome()].filter((home) => home !== undefined);
  const caches = named === undefined ? homes.map((home) => join(home, '.cache')) : [named];
  return [...new Set(caches)].filter(mayBeWritten);
}

/** The home folder of the user's account; undefined for a user without one, as some containers have. */
function accountHome(): string | undefined {
  try {
    return userInfo().homedir;
  } catch {
    return undefined;
  }
}

/** Whether this user may write a folder, or make it. */
function mayBeWritten(folder: string): boolean {
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  try {
    accessSync(there, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Texts in the folder of Mesa's cache, which Mesa makes with the first device; its name depends on Mesa's version. */
function besideMesa(caches: readonly string[]): KeptTexts {
  const folder = (): string | undefined =>
    caches
      .flatMap((cache) => ['mesa_shader_cache_db', 'mesa_shader_cache'].map((name) => join(cache, name)))
      .find((path) => existsSync(path));
  return {
    read: async (name) => {
      const found = folder();
      return found === undefined ? undefined : keptIn(found).read(name);
    },
    write: async (name, text) => {
      const found = folder();
      if (found !== undefined) await keptIn(found).write(name, text);
    },
  };
}

/** Boot script of a process, like that of a thread in node.ts. Its log is dropped, since the engine's own device logs the same. */
const BOOT = `
const { loader, platform, module, toggles } = JSON.parse(process.env.PARLEY_PROCESS);
(async () => {
  if (loader) (await import(loader)).register();
  const { createNodePlatform } = await import(platform);
  const { main } = await import(module);
  main(createNodePlatform({ toggles, log: () => undefined }), {
    post: (message) => process.send(message),
    onMessage: (callback) => process.on('message', callback),
    close: () => process.exit(0),
  });
})();
process.on('disconnect', () => process.exit(0));`;

function startProcess(data: ForProcesses & { readonly module: string }): PlatformWorker {
  const child = spawn(process.execPath, ['-e', BOOT], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
    // The process never dispatches, so the driver needs one thread only. ELECTRON_RUN_AS_NODE makes Electron's executable behave as Node.
    env: { ...process.env, PARLEY_PROCESS: JSON.stringify({ loader: LOADER, ...data }), LP_NUM_THREADS: '1', ELECTRON_RUN_AS_NODE: '1' },
  });
  // A process that could not be started emits 'error' and perhaps no 'exit'.
  const onEnd = (callback: (why: string) => void): void => {
    let told = false;
    const tell = (why: string): void => {
      if (!told) callback(why);
      told = true;
    };
    child.on('error', (error) => tell(String(error)));
    child.on('exit', (code, signal) => tell(`exit code ${code ?? signal}`));
  };
  return {
    post: (message) => void child.send(message as object, () => undefined),
    onMessage: (callback) => void child.on('message', callback),
    onExit: onEnd,
    terminate: async () => {
      const ended = new Promise<string>(onEnd);
      if (child.connected) child.disconnect();
      const late = setTimeout(() => child.kill('SIGKILL'), END_MS);
      await ended;
      clearTimeout(late);
    },
  };
}
