/** Processes that compile for Mesa's software driver (engine/gpu/parallel-compiler.ts says why), and what it keeps. */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { keptIn } from './node-files.ts';
import type { DiskCompiler, KeptTexts, PlatformWorker } from './platform.ts';

const MOST_PROCESSES = 8;
/** Bytes that one takes at most: some 250 MB for the kernels of the bundled models, most of it the compiler's. */
const PROCESS_BYTES = 400 * 2 ** 20;
/** How long a process that was asked to end may take. */
const END_MS = 2_000;

/** Registers what runs TypeScript in a thread or a process, where these modules are the sources; in a package they are compiled. */
export const LOADER = import.meta.url.endsWith('.ts')
  ? new URL('./esm/api/index.mjs', pathToFileURL(createRequire(import.meta.url).resolve('tsx'))).href
  : undefined;

/** What a process needs for a platform of its own. */
export interface ForProcesses {
  readonly platform: string;
  readonly toggles: string;
}

export function diskCompiler({ info }: GPUAdapter, forProcesses: ForProcesses): DiskCompiler | undefined {
  const processes = Math.min(availableParallelism(), MOST_PROCESSES, Math.floor(process.availableMemory() / PROCESS_BYTES));
  const cache = /llvmpipe/i.test(info.description) ? mesaCache() : undefined;
  if (cache === undefined || processes < 2) return undefined;
  return { processes, start: (url) => startProcess({ ...forProcesses, module: url.href }), kept: besideMesa(cache) };
}

/** Where Mesa keeps what it compiled, as it finds it (`disk_cache_generate_cache_dir`); undefined where it keeps nothing, or in another way than by default. */
function mesaCache(): string | undefined {
  const { env } = process;
  const otherwise = ['MESA_SHADER_CACHE_DISABLE', 'MESA_GLSL_CACHE_DISABLE', 'MESA_DISK_CACHE_SINGLE_FILE', 'MESA_DISK_CACHE_MULTI_FILE'];
  if (otherwise.some((name) => env[name] !== undefined)) return undefined;
  try {
    const cache = env['MESA_SHADER_CACHE_DIR'] ?? env['MESA_GLSL_CACHE_DIR'] ?? env['XDG_CACHE_HOME'] ?? join(userInfo().homedir, '.cache');
    let there = cache;
    while (!existsSync(there)) there = dirname(there);
    accessSync(there, constants.W_OK);
    return cache;
  } catch {
    // The user has no home, or may not write there.
    return undefined;
  }
}

/** Texts in the folder that Mesa makes there: a database in newer versions, files in older ones. */
function besideMesa(cache: string): KeptTexts {
  const folder = (): string | undefined => ['mesa_shader_cache_db', 'mesa_shader_cache'].map((name) => join(cache, name)).find((path) => existsSync(path)); // prettier-ignore
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

/** As node.ts starts a thread. What it says is nothing that the engine's own device does not say. */
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
    // It dispatches nothing, so the driver needs no threads for that. Electron's program is Node when told so.
    env: { ...process.env, PARLEY_PROCESS: JSON.stringify({ loader: LOADER, ...data }), LP_NUM_THREADS: '1', ELECTRON_RUN_AS_NODE: '1' },
  });
  // One that did not start has an error and perhaps no end.
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
