/** The platform of Node: Dawn through npm `webgpu`, files through `node:fs`. Only this file and its neighbours node-* may import `node:` in engine/. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SHARE_ENV, Worker } from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';
import { create, globals } from 'webgpu';
import { EngineError } from '../errors.ts';
import { listByDriver, matchingAdapters, noSuchAdapter, parseAdapterChoice, parseAdapterList } from './adapter-choice.ts';
import type { ListedAdapter } from './adapter-choice.ts';
import { openJapanese } from './lindera.ts';
import { adapterMemory } from './memory.ts';
import type { SystemProbe } from './memory.ts';
import { openEspeak } from './espeak.ts';
import type { EspeakPackage } from './espeak.ts';
import { LOADER, diskCompiler } from './node-compilers.ts';
import { keptIn, listFolder, openByteSource } from './node-files.ts';
import type { AdapterRequest, Platform, PlatformWorker } from './platform.ts';

export interface NodePlatformOptions {
  /**
   * Dawn's toggles. `fast` switches off checks that guard against untrusted shaders (robustness, zero-filled workgroup memory), which the engine's own do not need.
   * `default` is what browsers run, and what correctness tests use.
   */
  readonly toggles?: 'default' | 'fast';
  readonly log?: (line: string) => void;
  /** How to wait for a software adapter: `timer` lets the rest of the process run, `sleep` blocks the thread but is some 10 times finer. Default: timer. */
  readonly wait?: 'timer' | 'sleep';
  /** Folder of Platform.kept, in which measurements are kept; absent = nothing is kept. */
  readonly cache?: string | undefined;
}

const COMMON_TOGGLES = ['allow_unsafe_apis', 'use_vulkan_memory_model', 'vulkan_enable_f16_on_nvidia'];
const FAST_TOGGLES = ['disable_robustness', 'disable_workgroup_init', 'disable_polyfills_on_integer_div_and_mod', 'skip_validation'];

const SHADERS = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'shaders');

/**
 * Objects from create() that must stay referenced as long as any device lives, because collecting one earlier corrupts the heap. They are never released.
 */
const held: unknown[] = [];

/**
 * Threads of Mesa's software driver: twice the cores. A dispatch is split into as many pieces as there are threads, so a core that wakes late delays it less
 * (docs/decisions/chat-under-load.md). Mesa's default is one thread per core, and its limit is 32.
 */
const MESA_THREADS = String(Math.min(2 * availableParallelism(), 32));

/** Time limit of a driver's tool such as nvidia-smi, so that a hung one does not hang the start. */
const TOOL_TIMEOUT_MS = 5_000;

const SYSTEM: SystemProbe = {
  freeBytes: () => process.availableMemory(),
  totalBytes: totalmem,
  run: (program, args) =>
    new Promise((resolve) => {
      execFile(program, [...args], { timeout: TOOL_TIMEOUT_MS }, (error, stdout) => resolve(error ? undefined : stdout));
    }),
  read: (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined),
  list: (path) => (existsSync(path) ? readdirSync(path) : []),
};

let throttled = false;
let patched = false;

/** Milliseconds between two polls of pending GPU work; timers have no finer resolution. */
const TIMER_MS = 1;
/**
 * Lengths of a sleeping thread's naps. They grow with the wait, so that a result is late by a fraction of its time only, and long work keeps its cores: with naps of
 * 50 us throughout, a product of 10 ms was 12 % slower, attention of 60 ms 30 %.
 */
const NAP_MS = { first: 0.05, growth: 1.2, longest: 0.5 } as const;

/**
 * Slows down Dawn's wait loop on software adapters. While GPU work is pending, Dawn's binding spins `setImmediate -> ProcessEvents -> setImmediate`, which takes one
 * of the cores that compute (measured 1.8x slower). Dawn looks setImmediate up on the global object and passes a native function; only such calls are delayed.
 */
function patchSetImmediate(wait: 'timer' | 'sleep'): void {
  if (patched) return;
  patched = true;
  const original = globalThis.setImmediate;
  const isNative = (f: unknown): boolean => typeof f === 'function' && Function.prototype.toString.call(f).includes('[native code]');
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  let nap: number = NAP_MS.first;
  let woke = 0;
  const slowed = (callback: (...args: unknown[]) => void, ...args: unknown[]): unknown => {
    if (throttled && isNative(callback)) {
      if (wait === 'timer') return setTimeout(callback, TIMER_MS, ...args);
      // A call that comes later than the nap lasted begins another wait.
      nap = performance.now() - woke < nap ? Math.min(nap * NAP_MS.growth, NAP_MS.longest) : NAP_MS.first;
      Atomics.wait(sleeper, 0, 0, nap);
      woke = performance.now();
    }
    return original(callback, ...args);
  };
  globalThis.setImmediate = Object.assign(slowed, original);
}

/** The platform of a Node process. */
export function createNodePlatform(options: NodePlatformOptions = {}): Platform {
  Object.assign(globalThis, globals);
  patchSetImmediate(options.wait ?? 'timer');
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const forThreads = { platform: import.meta.url, toggles: options.toggles ?? 'default', cache: options.cache };
  return {
    name: 'node',
    log,
    requestAdapter: (request) => requestAdapter(request, options),
    adapters: () => listAdapters({}),
    diskCompiler: (adapter) => diskCompiler(adapter, forThreads),
    deviceCreated: (software) => {
      throttled = software;
    },
    shaders: async () => readShaders(),
    open: openByteSource,
    exists: async (path) => existsSync(path),
    list: listFolder,
    join,
    memory: (adapter) => adapterMemory(adapter, SYSTEM),
    ...(options.cache !== undefined && { kept: keptIn(options.cache) }),
    espeak: openEspeakPackage,
    openJapanese,
    importModule: (path) => import(pathToFileURL(path).href) as Promise<Record<string, unknown>>,
    // The environment is shared, since it chooses drivers while an adapter is opened (askDawn).
    startWorker: (url) => startWorker(BOOT, { ...forThreads, module: url.href }, { env: SHARE_ENV }),
    startGrammarWorker: (url) =>
      startWorker(GRAMMAR_BOOT, { library: resolveModule('@mlc-ai/web-xgrammar'), module: url.href }, GRAMMAR_OPTIONS),
  };
}

/** A name that no adapter has, so that Dawn's error lists the names of all. */
const IMPOSSIBLE_NAME = '\u0001';

async function requestAdapter({ name }: AdapterRequest, { toggles }: NodePlatformOptions): Promise<GPUAdapter> {
  const features = toggles === 'fast' ? [...COMMON_TOGGLES, ...FAST_TOGGLES] : COMMON_TOGGLES;
  // Timestamps are not quantised to 65 us: that protects users of browsers, but would hide how long a kernel takes.
  const flags = [`enable-dawn-features=${features.join(',')}`, 'disable-dawn-features=timestamp_quantization'];
  const chosen = name === undefined ? undefined : await findAdapter(name);
  const adapter = await askDawn(chosen ? [...flags, `adapter=${chosen.name}`] : flags, chosen?.environment ?? {});
  if (adapter) return adapter;
  throw new EngineError(
    'no_adapter',
    'no WebGPU adapter: install a Vulkan driver (on Debian: mesa-vulkan-drivers from bookworm-backports gives a software one)',
  );
}

/**
 * Asks a new Dawn instance for its adapter. Drivers read the environment while the request is made, before its promise is returned, so `chosen` is set for that long
 * only. A worker thread must be started with SHARE_ENV for this, since others have a copy of the environment.
 */
function askDawn(flags: string[], chosen: Readonly<Record<string, string>>): Promise<GPUAdapter | null> {
  const environment = { LP_NUM_THREADS: process.env['LP_NUM_THREADS'] ?? MESA_THREADS, ...chosen };
  const before = Object.keys(environment).map((key) => [key, process.env[key]] as const);
  Object.assign(process.env, environment);
  try {
    const gpu = create(flags);
    held.push(gpu);
    const request = gpu.requestAdapter({ powerPreference: 'high-performance' });
    return request.then((adapter) => {
      if (adapter) held.push(adapter);
      return adapter;
    });
  } finally {
    for (const [key, value] of before) {
      if (value === undefined) delete process.env[key];
      else process.env[key] = value;
    }
  }
}

async function listAdapters(environment: Readonly<Record<string, string>>): Promise<ListedAdapter[]> {
  try {
    await askDawn([`adapter=${IMPOSSIBLE_NAME}`], environment);
    return [];
  } catch (error) {
    return parseAdapterList(String(error));
  }
}

/** Finds an adapter by a setting. Without an index it is the first that matches; an index counts over the driver files in order. Throws EngineError('no_adapter'). */
async function findAdapter(wanted: string): Promise<ListedAdapter> {
  const { part, index } = parseAdapterChoice(wanted);
  const listed = await listAdapters({});
  const first = matchingAdapters(listed, part)[0];
  if (!first) throw noSuchAdapter(wanted, listed);
  // Dawn takes the first adapter whose name contains the given one, which may be an earlier adapter than the one meant.
  if (index === undefined && listed.find(({ name }) => name.includes(first.name)) === first) return first;
  const files = driverFiles();
  const all = files.length === 0 ? listed : await listByDriver(files, listAdapters);
  const chosen = matchingAdapters(all, part)[index ?? 0];
  if (!chosen) throw noSuchAdapter(wanted, all);
  if (files.length === 0 && all.findIndex(({ name }) => name.includes(chosen.name)) !== all.indexOf(chosen)) {
    throw new EngineError('no_adapter', `'${wanted}': on this system only the first of several adapters of one name can be chosen`);
  }
  return chosen;
}

/** The driver files (ICDs) that the Vulkan loader would read, sorted within each folder; empty except on Linux. */
export function driverFiles(): string[] {
  if (process.platform !== 'linux') return [];
  const given = process.env['VK_DRIVER_FILES'] ?? process.env['VK_ICD_FILENAMES'];
  const home = process.env['HOME'] ?? '/';
  const folders = [
    join(process.env['XDG_CONFIG_HOME'] ?? join(home, '.config'), 'vulkan/icd.d'),
    '/etc/vulkan/icd.d',
    join(process.env['XDG_DATA_HOME'] ?? join(home, '.local/share'), 'vulkan/icd.d'),
    ...(process.env['XDG_DATA_DIRS'] ?? '/usr/local/share:/usr/share').split(':').map((folder) => join(folder, 'vulkan/icd.d')),
  ];
  const paths = given === undefined ? folders : given.split(':').filter((path) => path !== '');
  const files = paths.flatMap((path) => {
    if (!existsSync(path)) return [];
    if (!statSync(path).isDirectory()) return [path];
    const names = readdirSync(path).filter((file) => file.endsWith('.json'));
    return names.sort().map((file) => join(path, file));
  });
  return [...new Set(files)];
}

function readShaders(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const entry of readdirSync(SHADERS, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.wgsl')) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(relative(SHADERS, path).split(sep).join('/'), readFileSync(path, 'utf8'));
  }
  return files;
}

/** Boot script of a worker thread. It registers the TypeScript loader, if there is one, since Node 20 ignores `--import` for workers. */
const BOOT = `
const { workerData, parentPort } = require('node:worker_threads');
const { loader, platform, module, toggles, cache } = workerData;
(async () => {
  if (loader) (await import(loader)).register();
  const { createNodePlatform } = await import(platform);
  const { main } = await import(module);
  const log = (line) => void process.stdout.write(line + '\\n');
  main(createNodePlatform({ toggles, log, cache, wait: 'sleep' }), {
    post: (message) => parentPort.postMessage(message),
    onMessage: (callback) => parentPort.on('message', callback),
    close: () => process.exit(0),
  });
})();`;

/**
 * Boot script of a grammar thread, which has no Dawn. The grammar library (@mlc-ai/web-xgrammar 0.1.27) is a UMD file in a package that declares itself ESM, so
 * `import` and `require` both fail. It works when compiled as CommonJS by Module._compile, which require hooks use. Delete when the package ships a module.
 */
const GRAMMAR_BOOT = `
const { workerData, parentPort } = require('node:worker_threads');
const { loader, module, library } = workerData;
const grammarLibrary = async () => {
  const { Module } = require('node:module');
  const loaded = new Module(library);
  loaded._compile(require('node:fs').readFileSync(library, 'utf8'), library);
  return loaded.exports;
};
(async () => {
  if (loader) (await import(loader)).register();
  const { main } = await import(module);
  main({ grammarLibrary }, {
    post: (message) => parentPort.postMessage(message),
    onMessage: (callback) => parentPort.on('message', callback),
  });
})();`;

/** Limit of a grammar thread's JavaScript heap; the library's WASM memory is bounded by wasm-guard.ts. */
const GRAMMAR_OPTIONS: WorkerOptions = { resourceLimits: { maxOldGenerationSizeMb: 256 } };

const resolveModule = (name: string): string => createRequire(import.meta.url).resolve(name);

async function openEspeakPackage(): Promise<EspeakPackage> {
  const script = createRequire(import.meta.url).resolve('@echogarden/espeak-ng-emscripten');
  const { default: make } = await import('@echogarden/espeak-ng-emscripten');
  return openEspeak(make, readFileSync(script, 'utf8'), () => openByteSource(join(dirname(script), 'espeak-ng.data')));
}

function startWorker(boot: string, data: Readonly<Record<string, string | undefined>>, options: WorkerOptions): PlatformWorker {
  const worker = new Worker(boot, { ...options, eval: true, execArgv: [], workerData: { loader: LOADER, ...data } });
  let why: string | undefined;
  worker.on('error', (error) => (why = error instanceof Error ? (error.stack ?? error.message) : String(error)));
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (callback) => void worker.on('message', callback),
    onExit: (callback) => void worker.on('exit', (code) => callback(why ?? `exit code ${code}`)),
    terminate: () => worker.terminate().then(() => undefined),
  };
}
