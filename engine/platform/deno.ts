/** Deno: its own WebGPU (wgpu, which is Firefox's), files through its own API, nothing beyond the permissions that it was started with. */
import { EngineError } from '../errors.ts';
import { deno } from './deno-api.ts';
import type { DenoFile, DenoNews, DenoTask } from './deno-api.ts';
import { adapterMemory } from './memory.ts';
import type { SystemProbe } from './memory.ts';
import { requestNavigatorAdapter } from './navigator-gpu.ts';
import type { ByteSource, Platform, PlatformWorker } from './platform.ts';

export interface DenoPlatformOptions {
  readonly log?: (line: string) => void;
}

const SHADERS = new URL(import.meta.resolve('../../shaders/'));
const WORKER = new URL('./deno-worker.ts', import.meta.url);
/** A hung driver tool must not hang the start. */
const TOOL_TIMEOUT_MS = 5_000;

/** The platform of a Deno process, or of a thread of one. */
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
    importModule: (path) => import(fileUrl(path).href) as Promise<Record<string, unknown>>,
    startWorker: (url) => startWorker({ module: url.href }),
    startGrammarWorker: (url) => startWorker({ module: url.href, library: import.meta.resolve('@mlc-ai/web-xgrammar') }),
  };
}

/** What may not be asked is not known, but for the memory: without it, nothing can be planned on adapters that share it. */
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

/** What is missing, or may not be looked at, is undefined. */
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

/** What stands at a path, or undefined. Throws EngineError('invalid_model') where that may not be asked. */
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

async function openByteSource(path: string): Promise<ByteSource> {
  const kind = await kindOf(path);
  if (kind !== 'file') {
    const why = { folder: 'a folder stands where a file is expected', other: 'not a regular file' };
    throw new EngineError('invalid_model', `${kind === undefined ? 'file not found' : why[kind]}: ${path}`);
  }
  const file = await deno.open(path, { read: true });
  const { size } = await file.stat();
  // A file has one place at which it is read, so reads go one after the other.
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

/** The URL of a path of this system, which may be relative to where the process was started. */
function fileUrl(path: string): URL {
  const absolute = /^([a-zA-Z]:)?[\\/]/.test(path) ? path : `${deno.cwd()}/${path}`;
  return new URL(encodeURI(absolute.replaceAll('\\', '/')).replace(/[?#]/g, encodeURIComponent), 'file:///');
}

/** A thread with the permissions of the process. */
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
    // Else the whole process ends with it.
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
