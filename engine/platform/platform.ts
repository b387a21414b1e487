/** What the engine needs from its surroundings; implemented by node.ts, deno.ts and browser.ts. */
import type { AdapterInfo } from '../api.ts';
import type { AdapterMemory } from './memory.ts';

/** A file read by ranges, so that weights stream to the GPU without a full copy in JS memory. */
export interface ByteSource {
  readonly size: number;
  /** Exactly `length` bytes at `offset`; throws when the file is shorter. They may lie in `into`, where that is given and long enough. */
  read(offset: number, length: number, into?: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface AdapterRequest {
  /**
   * Case-insensitive part of the adapter's name, with #index where several have it; in a browser also `high-performance` or `low-power`. Absent =
   * the platform's best.
   */
  readonly name?: string;
}

/** A thread that runs a module's `main(platform, port)`. */
export interface PlatformWorker {
  post(message: unknown): void;
  onMessage(callback: (message: unknown) => void): void;
  /** Called once, when the thread has ended, with what is known of why. */
  onExit(callback: (why: string) => void): void;
  /** Ends the thread wherever it is. One that is just then in a call to Dawn takes the whole process with it: see WorkerPort.close. */
  terminate(): Promise<void>;
}

/** The same, seen from the thread. */
export interface WorkerPort {
  post(message: unknown): void;
  onMessage(callback: (message: unknown) => void): void;
  /** Ends this thread, from between its calls to Dawn. */
  close(): void;
}

export interface KeptTexts {
  read(name: string): Promise<string | undefined>;
  /** Rejects where nothing can be written. */
  write(name: string, text: string): Promise<void>;
}

/** A driver that compiles on one thread of a process and keeps what it made on disk, where every process finds it: so several may compile for one. */
export interface DiskCompiler {
  /** Processes that may compile side by side. */
  readonly processes: number;
  /** Starts one, with a platform of its own, that runs the `main` exported by the module at `url`. */
  start(url: URL): PlatformWorker;
  /** Texts beside what the driver keeps, gone when that is. */
  readonly kept: KeptTexts;
}

export interface Platform {
  readonly name: 'node' | 'deno' | 'browser';
  /** Throws EngineError('no_adapter') that lists what is there. */
  requestAdapter(request: AdapterRequest): Promise<GPUAdapter>;
  /** The names of all adapters; browsers and Deno do not tell. */
  adapters?(): Promise<readonly { readonly name: string; readonly backend: string }[]>;
  /** Absent, or undefined, where a driver compiles on all cores by itself, or keeps nothing. */
  diskCompiler?(adapter: GPUAdapter): DiskCompiler | undefined;
  /**
   * Told once a device exists. Under Node on a software adapter, waiting by spinning would take half of
   * the cores that compute, so the platform slows its wait loop down there.
   */
  deviceCreated(software: boolean): void;
  /** All .wgsl files by their path below shaders/. */
  shaders(): Promise<ReadonlyMap<string, string>>;
  /** Opens a file of a checkpoint folder; throws EngineError('invalid_model') when it is missing or no regular file. */
  open(path: string): Promise<ByteSource>;
  exists(path: string): Promise<boolean>;
  /** The names in a folder, or undefined where there is none; absent where folders cannot be listed. */
  list?(path: string): Promise<readonly string[] | undefined>;
  join(folder: string, name: string): string;
  /** Memory of an adapter, before anything was taken of it. */
  memory(adapter: AdapterInfo): Promise<AdapterMemory>;
  /** Runs a file of a model folder as a module; absent where nothing may be run. */
  importModule?(path: string): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Starts a thread of text/grammar-worker.ts, which is at `url` where nothing is bundled. The grammar library, which is large, is loaded there
   * only. Absent: constrained requests are refused.
   */
  startGrammarWorker?(url: URL): PlatformWorker;
  /**
   * Starts a thread with a platform of its own, whose `main` is exported by the module at `url`. Waiting for a GPU sleeps for fractions of a
   * millisecond there. Absent where ranks of a split model share one thread.
   */
  startWorker?(url: URL): PlatformWorker;
  /** Small texts that outlast the process, by a file's name; absent where nothing is kept. What cannot be read, or is not there, is undefined. */
  readonly kept?: KeptTexts;
  /** One line for the operator. */
  log(line: string): void;
}
