/** The platform of Deno: its own WebGPU (wgpu, as in Firefox) and files, within the permissions that it was started with. */
import { EngineError } from '../errors.ts';
import { deno } from './deno-api.ts';
import type { DenoFile, DenoNews, DenoTask } from './deno-api.ts';
import { openEspeak } from './espeak.ts';
import type { EspeakPackage } from './espeak.ts';
import { openJapanese } from './lindera.ts';
import { adapterMemory } from './memory.ts';
import type { SystemProbe } from './memory.ts';
import { requestNavigatorAdapter } from './navigator-gpu.ts';
import type { ByteSource, Platform, PlatformWorker } from './platform.ts';

export interface DenoPlatformOptions {
  readonly log?: (line: string) => void;
}

const SHADERS = new URL(import.meta.resolve('../../shaders/'));
const WORKER = new URL('./deno-worker.ts', import.meta.url);
/** Time limit of a driver's tool such as nvidia-smi, so that a hung one does not hang the start. */
const TOOL_TIMEOUT_MS = 5_000;

/** Makes the platform of a Deno process or of one of its threads. */
export function createDenoPlatform(options: DenoPlatformOptions = {}): Platform {
  return {
    name: 'deno',
    log: options.log ?? ((line) => console.error(line)),
    requestAdapter: (request) => requestNavigatorAdapter(request, { who: 'Deno', to: 'Deno' }),
    deviceCreated: () => {},
    shaders: readShaders,
    open: openByteSource,
    exists: async (path) => (await kindOf(path)) !== undefined,
    list: listFolder,
    join: (folder, name) => `${folder.replace(/\/$/, '')}/${name}`,
    memory: (adapter) => adapterMemory(adapter, SYSTEM),
    espeak: openEspeakPackage,
    openJapanese,
    importModule: (path) => import(fileUrl(path).href) as Promise<Record<string, unknown>>,
    startWorker: (url) => startWorker({ module: url.href }),
    startGrammarWorker: (url) => startWorker({ module: url.href, library: import.meta.resolve('@mlc-ai/web-xgrammar') }),
  };
}

/** Without a permission, the answer is simply unknown; only the system's memory must be readable, since memory on shared adapters cannot be planned without it. */
const SYSTEM: SystemProbe = {
  freeBytes: () => systemMemory().available,
  totalBytes: () => systemMemory().total,
  run: async (program, args) => {
    try {
      const options = { args, stdout: 'piped', stderr: 'null', signal: AbortSignal.timeout(TOOL_TIMEOUT_MS) } as const;
      const { success, stdout } = await new deno.Command(program, options).output();
      return success ? new TextDecoder().decode(stdout) : undefined;
    } catch (error) {
      return absent(error);
    }
  },
  read: (path) => {
    try {
      return deno.readTextFileSync(path);
    } catch (error) {
      return absent(error);
    }
  },
  list: (path) => {
    try {
      return [...deno.readDirSync(path)].map(({ name }) => name);
    } catch (error) {
      return absent(error) ?? [];
    }
  },
};

/** Returns undefined for errors of missing files and missing permissions; throws others again. */
function absent(error: unknown): undefined {
  const { NotFound, NotADirectory, NotCapable } = deno.errors;
  if ([NotFound, NotADirectory, NotCapable].some((kind) => error instanceof kind)) return undefined;
  throw error;
}

function systemMemory(): { readonly total: number; readonly available: number } {
  try {
    return deno.systemMemoryInfo();
  } catch (error) {
    if (!(error instanceof deno.errors.NotCapable)) throw error;
    throw new EngineError('unsupported', 'Deno may not tell how much memory there is: it lacks the permission allow-sys=systemMemoryInfo', {
      cause: error,
    });
  }
}

async function readShaders(folder = SHADERS, prefix = ''): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for await (const { name, isFile, isDirectory } of deno.readDir(folder)) {
    if (isFile && name.endsWith('.wgsl')) files.set(prefix + name, await deno.readTextFile(new URL(name, folder)));
    if (!isDirectory) continue;
    for (const [path, text] of await readShaders(new URL(`${name}/`, folder), `${prefix}${name}/`)) files.set(path, text);
  }
  return files;
}

/** The kind of what is at a path; undefined if there is nothing. Throws EngineError('invalid_model') without the permission to look. */
async function kindOf(path: string): Promise<'file' | 'folder' | 'other' | undefined> {
  try {
    const { isFile, isDirectory } = await deno.stat(path);
    return isFile ? 'file' : isDirectory ? 'folder' : 'other';
  } catch (error) {
    if (error instanceof deno.errors.NotCapable) {
      throw new EngineError('invalid_model', `Deno may not read ${path}: it lacks the permission allow-read for it`, { cause: error });
    }
    return absent(error);
  }
}

async function listFolder(path: string): Promise<readonly string[] | undefined> {
  if ((await kindOf(path)) !== 'folder') return undefined;
  const names: string[] = [];
  for await (const { name } of deno.readDir(path)) names.push(name);
  return names;
}

async function openEspeakPackage(): Promise<EspeakPackage> {
  const script = new URL(import.meta.resolve('@echogarden/espeak-ng-emscripten'));
  const { default: make } = await import('@echogarden/espeak-ng-emscripten');
  const data = decodeURIComponent(new URL('espeak-ng.data', script).pathname);
  return openEspeak(make, await deno.readTextFile(script), () => openByteSource(data));
}

async function openByteSource(path: string): Promise<ByteSource> {
  const kind = await kindOf(path);
  if (kind !== 'file') {
    const why = { folder: 'a folder stands where a file is expected', other: 'not a regular file' };
    throw new EngineError('invalid_model', `${kind === undefined ? 'file not found' : why[kind]}: ${path}`);
  }
  const file = await deno.open(path, { read: true });
  const { size } = await file.stat();
  // A file has one read position, so reads are done one after the other.
  let last: Promise<unknown> = Promise.resolve();
  return {
    size,
    read: (offset, length, into) => {
      const bytes = into && into.length >= length ? into.subarray(0, length) : new Uint8Array(length);
      const read = last.then(() => readFully(file, path, offset, bytes));
      last = read.catch(() => undefined);
      return read;
    },
    close: async () => {
      await last;
      file.close();
    },
  };
}

async function readFully(file: DenoFile, path: string, offset: number, bytes: Uint8Array): Promise<Uint8Array> {
  await file.seek(offset, 0);
  let done = 0;
  while (done < bytes.length) {
    const count = await file.read(bytes.subarray(done));
    if (count === null) {
      throw new EngineError('invalid_model', `${path} is cut short: expected ${offset + bytes.length} bytes, found ${offset + done}`);
    }
    done += count;
  }
  return bytes;
}

/** Converts a path, absolute or relative to the working directory, to a file URL. */
function fileUrl(path: string): URL {
  const absolute = /^([a-zA-Z]:)?[\\/]/.test(path) ? path : `${deno.cwd()}/${path}`;
  return new URL(encodeURI(absolute.replaceAll('\\', '/')).replace(/[?#]/g, encodeURIComponent), 'file:///');
}

/** Starts a thread with the permissions of the process. */
function startWorker(task: Omit<DenoTask, 'platform'>): PlatformWorker {
  const worker = new Worker(WORKER, { type: 'module' });
  let ended = false;
  const listeners: ((why: string) => void)[] = [];
  const end = (why: string): void => {
    if (ended) return;
    ended = true;
    for (const listener of listeners) listener(why);
  };
  worker.addEventListener('error', (event) => {
    // Otherwise the whole process would end.
    event.preventDefault();
    end(event.message || 'its script could not be loaded');
  });
  worker.addEventListener('message', ({ data }: MessageEvent<DenoNews>) => {
    if ('closed' in data) end('it closed itself');
  });
  worker.postMessage({ ...task, platform: import.meta.url } satisfies DenoTask);
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (callback) =>
      worker.addEventListener('message', ({ data }: MessageEvent<DenoNews>) => {
        if ('message' in data) callback(data.message);
      }),
    onExit: (callback) => void listeners.push(callback),
    terminate: async () => {
      worker.terminate();
      end('it was ended');
    },
  };
}
