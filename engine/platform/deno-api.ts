/** The parts of Deno's own API that the platform uses, typed here because the sources are checked for Node and browsers. */

export interface DenoFile {
  read(into: Uint8Array): Promise<number | null>;
  /** Sets the read position; `whence` 0 = from the beginning. */
  seek(offset: number, whence: 0): Promise<number>;
  stat(): Promise<{ readonly size: number }>;
  close(): void;
}

export interface DenoEntry {
  readonly name: string;
  readonly isFile: boolean;
  readonly isDirectory: boolean;
}

export interface DenoApi {
  readonly version: { readonly deno: string };
  readonly errors: Readonly<Record<'NotFound' | 'NotADirectory' | 'NotCapable', abstract new () => Error>>;
  cwd(): string;
  open(path: string, options: { readonly read: true }): Promise<DenoFile>;
  stat(path: string): Promise<{ readonly isFile: boolean; readonly isDirectory: boolean }>;
  readTextFile(path: URL): Promise<string>;
  readTextFileSync(path: string): string;
  readDir(path: string | URL): AsyncIterable<DenoEntry>;
  readDirSync(path: string): Iterable<DenoEntry>;
  /** System memory in bytes. */
  systemMemoryInfo(): { readonly total: number; readonly available: number };
  Command: new (
    program: string,
    options: { readonly args: readonly string[]; readonly stdout: 'piped'; readonly stderr: 'null'; readonly signal: AbortSignal },
  ) => { output(): Promise<{ readonly success: boolean; readonly stdout: Uint8Array }> };
}

/** The first message to a thread (deno-worker.ts): what to run. */
export interface DenoTask {
  /** URL of a module that exports `main`. */
  readonly module: string;
  /** URL of the module that makes the thread's platform. */
  readonly platform: string;
  /** URL of the grammar library; if it is given, `main` gets the library in place of a platform. */
  readonly library?: string;
}

/** A message from a thread to whoever started it. */
export type DenoNews = { readonly message: unknown } | { readonly closed: true };

/** Deno's API; undefined in other runtimes. */
export const deno = (globalThis as unknown as { readonly Deno: DenoApi }).Deno;
