/** Browser (page or worker): `navigator.gpu`, and checkpoint files as Blobs, which browsers read by slices without loading them. */
import { EngineError } from '../errors.ts';
import { tabMemory } from './memory.ts';
import { requestNavigatorAdapter } from './navigator-gpu.ts';
import type { ByteSource, KeptTexts, Platform, PlatformWorker } from './platform.ts';

/** What can be read by slices: a Blob, or what stands for a file elsewhere. */
export interface SlicedFile {
  readonly size: number;
  /** The bytes [start, end), or as many of them as there are. */
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

export interface BrowserPlatformOptions {
  /** All .wgsl files by their path below shaders/; the bundler inlines them. */
  readonly shaders: ReadonlyMap<string, string>;
  /** A checkpoint's file, or undefined when there is none; default: fetched from `path` as a URL. */
  readonly file?: (path: string) => Promise<SlicedFile | undefined>;
  /** The names in a folder, or undefined where there is none. Absent: folders cannot be listed, so formats that are known by their files are not. */
  readonly list?: (path: string) => readonly string[] | undefined;
  readonly log?: (line: string) => void;
  /** Starts a worker that runs `serveGrammars` (index.ts), 1 MB that only pages with constrained chat want; default: such requests are refused. */
  readonly grammarWorker?: () => Worker;
}

/** The platform of a page or a worker. */
export function createBrowserPlatform(options: BrowserPlatformOptions): Platform {
  const { shaders, file = fetchFile, list, log = () => {}, grammarWorker } = options;
  const files = new Map<string, Promise<SlicedFile | undefined>>();
  const lookUp = (path: string): Promise<SlicedFile | undefined> => {
    const known = files.get(path) ?? file(path);
    files.set(path, known);
    return known;
  };
  const need = async (path: string): Promise<SlicedFile> => {
    const blob = await lookUp(path);
    if (!blob) throw new EngineError('invalid_model', `file not found: ${path}`);
    return blob;
  };
  return {
    name: 'browser',
    log,
    requestAdapter: (request) => requestNavigatorAdapter(request, { who: 'this browser', to: 'this page' }),
    deviceCreated: () => {},
    shaders: async () => shaders,
    open: async (path) => blobSource(path, await need(path)),
    exists: async (path) => (await lookUp(path)) !== undefined,
    ...(list && { list: async (path: string) => list(path) }),
    join: (folder, name) => `${folder.replace(/\/$/, '')}/${name}`,
    memory: async (adapter) => tabMemory(adapter, (globalThis.navigator as { deviceMemory?: number }).deviceMemory),
    ...(typeof navigator !== 'undefined' && 'storage' in navigator && { kept: ORIGIN_TEXTS }),
    ...(grammarWorker && { startGrammarWorker: () => platformWorker(grammarWorker()) }),
  };
}

/** In the origin's own file system, which only this origin reads. */
const ORIGIN_TEXTS: KeptTexts = {
  async read(name) {
    try {
      const folder = await navigator.storage.getDirectory();
      return await (await (await folder.getFileHandle(name)).getFile()).text();
    } catch {
      // Not there, or the browser keeps nothing for this page: both are read as nothing.
      return undefined;
    }
  },
  async write(name, text) {
    const folder = await navigator.storage.getDirectory();
    const writable = await (await folder.getFileHandle(name, { create: true })).createWritable();
    await writable.write(text);
    await writable.close();
  },
};

/** Browsers do not say when a worker ends; they say when its script cannot be loaded or fails. */
function platformWorker(worker: Worker): PlatformWorker {
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (callback) => worker.addEventListener('message', ({ data }) => callback(data)),
    onExit: (callback) => worker.addEventListener('error', ({ message }) => callback(message || 'its script could not be loaded')),
    terminate: async () => worker.terminate(),
  };
}

/** The file at a URL. Missing files are undefined; so is the HTML page that some static servers answer instead of 404. */
export async function fetchFile(path: string): Promise<Blob | undefined> {
  let response: Response;
  try {
    response = await fetch(path);
  } catch (error) {
    throw new EngineError('invalid_model', `${path} could not be fetched: ${String(error)}`, { cause: error });
  }
  if (response.status === 404) return undefined;
  if (!response.ok) throw new EngineError('invalid_model', `${path} could not be fetched: HTTP ${response.status}`);
  if (response.headers.get('content-type')?.startsWith('text/html') === true) return undefined;
  return response.blob();
}

function blobSource(path: string, blob: SlicedFile): ByteSource {
  return {
    size: blob.size,
    async read(offset, length) {
      const bytes = new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
      if (bytes.length !== length) {
        throw new EngineError('invalid_model', `${path} is cut short: expected ${offset + length} bytes, found ${offset + bytes.length}`);
      }
      return bytes;
    },
    close: async () => {},
  };
}
