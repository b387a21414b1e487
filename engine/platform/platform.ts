/** What the engine needs from the JavaScript runtime; implemented by node.ts, deno.ts and browser.ts. */
import type { AdapterInfo } from '../api.ts';
import type { EspeakPackage } from './espeak.ts';
import type { AdapterMemory } from './memory.ts';

/** A file that is read in ranges, so that weights stream to the GPU without a full copy in host memory. */
export interface ByteSource {
  readonly size: number;
  /** Reads exactly `length` bytes at `offset`; throws EngineError('invalid_model') if the file is shorter. The result may be in `into`, if that is given and long enough. */
  read(offset: number, length: number, into?: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface AdapterRequest {
  /**
   * Case-insensitive part of the adapter's name, with #index if several have it; in a browser also `high-performance` or `low-power`. Absent = the platform's best.
   */
  readonly name?: string;
}

/** A thread that runs a module's `main(platform, port)`. */
export interface PlatformWorker {
  post(message: unknown): void;
  onMessage(callback: (message: unknown) => void): void;
  /** Called once, when the thread has ended, with the reason as far as it is known. */
  onExit(callback: (why: string) => void): void;
  /** Ends the thread at once. If it is in a call to Dawn at that moment, the whole process dies: see WorkerPort.close. */
  terminate(): Promise<void>;
}

/** A thread's port to whoever started it. */
export interface WorkerPort {
  post(message: unknown): void;
  onMessage(callback: (message: unknown) => void): void;
  /** Ends this thread, which is safe because it is not within a call to Dawn. */
  close(): void;
}

/** Small texts that outlast the process, by name. */
export interface KeptTexts {
  /** Resolves with undefined if there is no such text, or it cannot be read. */
  read(name: string): Promise<string | undefined>;
  /** Rejects if the text cannot be written. */
  write(name: string, text: string): Promise<void>;
}

/** Processes that compile shaders into the disk cache of a driver which itself compiles on one thread only; the engine's process finds the results there. */
export interface DiskCompiler {
  /** Number of processes that may compile at the same time. */
  readonly processes: number;
  /** Starts a process, with a platform of its own, that runs the `main` exported by the module at `url`. */
  start(url: URL): PlatformWorker;
  /** Texts in the driver's cache folder, which vanish when that is cleared. */
  readonly kept: KeptTexts;
}

/** A word of Japanese as a dictionary has it. */
export interface Morpheme {
  readonly surface: string;
  /** Part of speech, and its subdivision, in the words of IPADIC: 助詞, 格助詞. */
  readonly partOfSpeech: string;
  readonly kind: string;
  /** How the word is conjugated here: 連用形. */
  readonly form: string;
  /** In katakana, with ー for long vowels; empty if the dictionary lacks the word. */
  readonly pronunciation: string;
}

export interface Platform {
  readonly name: 'node' | 'deno' | 'browser';
  /** Opens an adapter; throws EngineError('no_adapter') that lists the available ones. */
  requestAdapter(request: AdapterRequest): Promise<GPUAdapter>;
  /** Lists all adapters; absent in browsers and Deno, which do not tell. */
  adapters?(): Promise<readonly { readonly name: string; readonly backend: string }[]>;
  /** Processes that compile for this adapter; absent or undefined if its driver compiles on all cores by itself, or has no disk cache. */
  diskCompiler?(adapter: GPUAdapter): DiskCompiler | undefined;
  /**
   * Called when a device has been created. On a software adapter Node's platform then slows its wait loop down, which would otherwise spin on a core that
   * computes.
   */
  deviceCreated(software: boolean): void;
  /** All .wgsl files by their path below shaders/. */
  shaders(): Promise<ReadonlyMap<string, string>>;
  /** Opens a file of a checkpoint folder; throws EngineError('invalid_model') when it is missing or no regular file. */
  open(path: string): Promise<ByteSource>;
  exists(path: string): Promise<boolean>;
  /** Names in a folder; undefined if there is no such folder. Absent if folders cannot be listed. */
  list?(path: string): Promise<readonly string[] | undefined>;
  join(folder: string, name: string): string;
  /** Memory of an adapter before the engine has allocated any. */
  memory(adapter: AdapterInfo): Promise<AdapterMemory>;
  /** Imports a file of a model folder as a module; absent if code of models may not be run. */
  importModule?(path: string): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Starts a thread that runs text/grammar-worker.ts, which is at `url` unless the code is bundled. The large grammar library is loaded only there. Absent: constrained
   * requests are refused.
   */
  startGrammarWorker?(url: URL): PlatformWorker;
  /**
   * Starts a thread, with a platform of its own, that runs the `main` exported by the module at `url`. Absent if there are no threads; the ranks of a split model then
   * share one.
   */
  startWorker?(url: URL): PlatformWorker;
  /** Opens the package of espeak-ng, which speech needs; absent where there is none. */
  espeak?(): Promise<EspeakPackage>;
  /** Loads a dictionary of Japanese and gives a function that splits text into its words; absent where a dictionary of 13 MB would be too much: in a page. */
  openJapanese?(): Promise<(text: string) => readonly Morpheme[]>;
  /** Texts that outlast the process; absent if nothing is kept. */
  readonly kept?: KeptTexts;
  /** Logs one line for the operator. */
  log(line: string): void;
}
