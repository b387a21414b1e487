/**
 * A promise interface of the codec workers. If a worker dies or hangs, its current request and its encoders fail, a new worker replaces it, and waiting decodings
 * go on.
 */
import { tmpdir } from 'node:os';
import type { Worker } from 'node:worker_threads';
import type { CodecReply, CodecRequest } from './worker.ts';
import type { SampleEncoding } from './encoders.ts';
import type { Rates } from './pcm.ts';
import type { Decoded } from './upload/decode.ts';
import { TemporaryFolder } from './temporary-folder.ts';
import type { Blocks } from '../body/blocks.ts';
import { HttpError, codecFailed, shuttingDown } from '../http/errors.ts';
import { abortErrorOf } from '../../engine/errors.ts';
import { startWorker } from '../tsx.ts';

/** Most milliseconds that a worker may take without an answer or a sign of progress. */
const DEADLINE_MS = 120_000;
const HEAP_MIB = 512;

/** An encoder of one file, which takes its samples in chunks. */
export interface AudioEncoder {
  push(samples: Float32Array): Promise<Uint8Array>;
  /** Returns the rest of the file and, if the file should begin with other bytes than it did, `head`: those contain its length. */
  finish(): Promise<{ readonly bytes: Uint8Array; readonly head?: Uint8Array }>;
  /** Frees the encoder if the rest is not wanted; may also be called after finish(). */
  discard(): void;
}

/** A decoded upload, which the receiver must discard. */
export interface DecodedFile extends Decoded {
  /** Removes the file of samples; may be called again. */
  discard(): Promise<void>;
}

/** Pool of codec worker threads. */
export class CodecPool {
  /** Decoders are separate from encoders, so that a long file does not delay speech that somebody is listening to. */
  readonly #decoders: readonly CodecThread[];
  readonly #encoders: readonly CodecThread[];
  readonly #files = new TemporaryFolder();
  readonly #log: FolderLog | undefined;
  /** Whether the last upload found no place for its samples. */
  #isFolderLost = false;
  #nextId = 1;

  constructor(size = 2, { log, ...options }: CodecPoolOptions = {}) {
    this.#log = log;
    const threads = (): CodecThread[] => Array.from({ length: size }, () => new CodecThread(options));
    this.#decoders = threads();
    this.#encoders = threads();
  }

  /**
   * Decodes into a file that exists until it is discarded. The bytes are transferred to the worker, so `file` is empty afterwards. Rejects with an HttpError for
   * the client or, on an abort, with its reason once the worker has stopped.
   */
  async decode(file: Blocks, signal?: AbortSignal): Promise<DecodedFile> {
    try {
      const decoded = await this.#decode(file, this.#files.newPath(), signal);
      this.#noteFolder();
      return decoded;
    } catch (error) {
      if (error instanceof HttpError && error.code === 'out_of_memory') this.#noteFolder(error.message);
      throw error;
    }
  }

  /** Logs that the folder for temporary files takes no samples, once until it takes some again. */
  #noteFolder(problem?: string): void {
    const isLost = problem !== undefined;
    if (isLost === this.#isFolderLost) return;
    this.#isFolderLost = isLost;
    const fields = { folder: tmpdir() };
    if (isLost) this.#log?.error({ ...fields, problem }, 'recordings are refused until the folder for temporary files (TMPDIR) is mended');
    else this.#log?.info(fields, 'the folder for temporary files takes recordings again');
  }

  async #decode(file: Blocks, path: string, signal?: AbortSignal): Promise<DecodedFile> {
    const blocks = file.take();
    try {
      const request = { type: 'decode', id: this.#nextId++, blocks, path } as const;
      const reply = await leastBusy(this.#decoders).ask(
        request,
        blocks.map(({ buffer }) => buffer),
        signal,
      );
      if (!('samples' in reply)) throw new TypeError('the codec worker answered something else');
      const { samples, warnings } = reply;
      return { samples, warnings, discard: () => this.#files.remove(path) };
    } catch (error) {
      await this.#files.remove(path);
      throw error;
    }
  }

  async open(encoding: SampleEncoding, rates: Rates): Promise<AudioEncoder> {
    const thread = leastBusy(this.#encoders);
    const id = this.#nextId++;
    const ask = async (request: CodecRequest) => {
      const reply = await thread.ask(request);
      if (!('bytes' in reply)) throw new TypeError('the codec worker answered something else');
      return reply;
    };
    thread.sessions++;
    let open = true;
    const close = (): void => {
      if (open) thread.sessions--;
      open = false;
    };
    await ask({ type: 'open', id, encoding, rates }).catch((error: unknown) => {
      close();
      throw error;
    });
    return {
      push: async (samples) => (await ask({ type: 'push', id, samples })).bytes,
      finish: () => ask({ type: 'finish', id }).finally(close),
      discard: () => {
        if (open) thread.tell({ type: 'discard', id });
        close();
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#decoders, ...this.#encoders].map((thread) => thread.close()));
    this.#files.close();
  }
}

const leastBusy = (threads: readonly CodecThread[]): CodecThread =>
  threads.reduce((best, thread) => (thread.load < best.load ? thread : best));

/** The part of a logger that tells of the folder for temporary files. */
interface FolderLog {
  error(fields: object, text: string): void;
  info(fields: object, text: string): void;
}

interface CodecPoolOptions extends CodecThreadOptions {
  readonly log?: FolderLog;
}

/** Options for tests. */
interface CodecThreadOptions {
  /** URL of the worker's module. */
  readonly worker?: URL;
  readonly deadlineMs?: number;
}

interface Waiting {
  readonly request: CodecRequest;
  readonly transfer: readonly ArrayBuffer[];
  readonly resolve: (reply: CodecReply) => void;
  readonly reject: (error: Error) => void;
}

/** One worker thread, started at its first request, and again after it died. */
class CodecThread {
  /** Number of encoders between open and finish. */
  sessions = 0;
  readonly #options: Required<CodecThreadOptions>;
  #worker: Worker | undefined;
  /** Whether the worker has loaded its modules. */
  #isLoaded = false;
  /** Requests in order. Only the first is sent to the worker, once that is loaded, so that a dying worker takes only one request with it. */
  #waiting: Waiting[] = [];
  #deadline: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ worker = new URL('./worker.ts', import.meta.url), deadlineMs = DEADLINE_MS }: CodecThreadOptions) {
    this.#options = { worker, deadlineMs };
  }

  get load(): number {
    return this.#waiting.length + this.sessions;
  }

  /** Sends a request and resolves to its reply. Only decodings have a `signal`: other requests are short, and a worker with encoders must not be terminated. */
  async ask(request: CodecRequest, transfer: readonly ArrayBuffer[] = [], signal?: AbortSignal): Promise<CodecReply> {
    if (signal?.aborted) throw abortErrorOf(signal);
    if (this.#closed) throw shuttingDown();
    let forget: (() => void) | undefined;
    const reply = await new Promise<CodecReply>((resolve, reject) => {
      const waiting = { request, transfer, resolve, reject };
      forget = () => void this.#forget(waiting, signal!);
      signal?.addEventListener('abort', forget, { once: true });
      this.#waiting.push(waiting);
      if (this.#waiting.length === 1) this.#sendFirst();
    }).finally(() => signal?.removeEventListener('abort', forget!));
    if (!('error' in reply)) return reply;
    const { status, code, message, headers, param, stack } = reply.error;
    const cause = stack === undefined ? undefined : Object.assign(new Error(message), { stack });
    throw new HttpError(status, code, message, { headers, ...(param !== undefined && { param }), ...(cause && { cause }) });
  }

  /** Sends a message without a reply, and only to a running worker: a dead one has lost the encoder anyway, and one started after close() would keep the process alive. */
  tell(request: CodecRequest): void {
    this.#worker?.postMessage(request);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
    for (const { reject } of this.#waiting.splice(0)) reject(shuttingDown());
  }

  /**
   * Drops a request that was aborted. A file may take minutes, and others wait behind it, so a worker that is decoding it is terminated, and the next request
   * starts another. A worker that is still loading has no request and stays: Node would leave the modules' files open that it is reading.
   */
  async #forget(waiting: Waiting, signal: AbortSignal): Promise<void> {
    const at = this.#waiting.indexOf(waiting);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    if (at === 0 && this.#isLoaded) {
      const worker = this.#worker;
      this.#worker = undefined;
      this.#isLoaded = false;
      // Nothing that it still sends is awaited.
      worker?.removeAllListeners().on('error', () => {});
      if (!this.#closed) this.#sendFirst();
      // Until the worker has ended, it may still write the file.
      await worker?.terminate();
    }
    waiting.reject(abortErrorOf(signal));
  }

  #sendFirst(): void {
    const [first] = this.#waiting;
    try {
      if (first) this.#worker ??= this.#start();
    } catch (error) {
      return this.#fail(undefined, error);
    }
    if (first && this.#isLoaded) this.#worker!.postMessage(first.request, [...first.transfer]);
    this.#watch();
  }

  #start(): Worker {
    const worker = startWorker(this.#options.worker, {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    });
    worker.on('message', (reply: CodecReply | 'loaded' | 'progress') => {
      if (reply === 'progress') return this.#watch();
      if (reply === 'loaded') {
        this.#isLoaded = true;
        return this.#sendFirst();
      }
      this.#waiting.shift()?.resolve(reply);
      this.#sendFirst();
    });
    let cause: unknown = new Error('the codec worker ended');
    worker.on('error', (error) => (cause = error));
    worker.on('exit', () => this.#fail(worker, cause));
    return worker;
  }

  /** Restarts the deadline of the request that the worker is working on. */
  #watch(): void {
    clearTimeout(this.#deadline);
    if (this.#waiting.length === 0) return;
    this.#deadline = setTimeout(() => void this.#worker?.terminate(), this.#options.deadlineMs).unref();
  }

  /** Fails the request that the worker was working on, and those that need an encoder of this worker. `worker` is undefined if none could be started. */
  #fail(worker: Worker | undefined, cause: unknown): void {
    if (this.#worker === worker) {
      this.#worker = undefined;
      this.#isLoaded = false;
    }
    clearTimeout(this.#deadline);
    const [first, ...others] = this.#waiting;
    const lost = [...(first ? [first] : []), ...others.filter(({ request }) => request.type !== 'decode')];
    this.#waiting = others.filter(({ request }) => request.type === 'decode');
    for (const { reject } of lost) reject(codecFailed(cause));
    if (!this.#closed) this.#sendFirst();
  }
}
