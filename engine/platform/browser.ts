/** The platform of browsers (page or worker): `navigator.gpu`, and checkpoint files as Blobs, of which slices are read without loading the whole. */
import { EngineError } from '../errors.ts';
import type { EspeakPackage } from './espeak.ts';
import { tabMemory } from './memory.ts';
import { requestNavigatorAdapter } from './navigator-gpu.ts';
import type { ByteSource, KeptTexts, Platform, PlatformWorker } from './platform.ts';

/** A file of which slices can be read: a Blob, or something like it. */
export interface SlicedFile {
  readonly size: number;
  /** The bytes [start, end), as far as the file has them. */
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

export interface BrowserPlatformOptions {
  /** All .wgsl files by path below shaders/; the bundler inlines them. */
  readonly shaders: ReadonlyMap<string, string>;
  /** Finds a checkpoint's file; undefined if there is none. Default: fetches `path` as a URL. */
  readonly file?: (path: string) => Promise<SlicedFile | undefined>;
  /** Names in a folder; undefined if there is no such folder. Absent: folders cannot be listed, so formats that are recognised by their files' names are not. */
  readonly list?: (path: string) => readonly string[] | undefined;
  readonly log?: (line: string) => void;
  /** Starts a worker that runs `serveGrammars` (index.ts), which adds 1 MB to a page. Absent: constrained requests are refused. */
  readonly grammarWorker?: () => Worker;
  /** Opens the package of espeak-ng. Absent: speech models are refused. */
  readonly espeak?: () => Promise<EspeakPackage>;
}

/** The platform of a page or a worker. */
export function createBrowserPlatform(options: BrowserPlatformOptions): Platform {
  const { shaders, file = fetchFile, list, log = () => {}, grammarWorker, espeak } = options;
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
    ...(espeak && { espeak }),
    ...(grammarWorker && { startGrammarWorker: () => platformWorker(grammarWorker()) }),
  };
}

/** Texts in the origin private file system. */
const ORIGIN_TEXTS: KeptTexts = {
  async read(name) {
    try {
      const folder = await navigator.storage.getDirectory();
      return await (await (await folder.getFileHandle(name)).getFile()).text();
    } catch {
      // There is no such text, or the browser gives this page no storage.
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

/** Wraps a Web Worker. Browsers do not report that a worker has ended, only that its script failed or could not be loaded. */
function platformWorker(worker: Worker): PlatformWorker {
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (callback) => worker.addEventListener('message', ({ data }) => callback(data)),
    onExit: (callback) => worker.addEventListener('error', ({ message }) => callback(message || 'its script could not be loaded')),
    terminate: async () => worker.terminate(),
  };
}

/** Fetches a file; undefined if it is missing, also when a static server answers with an HTML page instead of 404. Throws EngineError('invalid_model') for other failures. */
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
