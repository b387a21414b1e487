/**
 * Compiles kernels on all cores where the driver would take one. Mesa's software driver compiles a kernel at its first dispatch, on the thread of the
 * queue, so that a first start leaves all cores but one idle for most of its time. What it made it keeps on disk for every process: what another has
 * compiled, this one only reads (docs/decisions/kernels.md). Processes and not threads, because a compiler's memory is let go with its process only.
 */
import { LazyThread } from '../platform/thread.ts';
import type { DiskCompiler, PlatformWorker } from '../platform/platform.ts';
import { fingerprint } from '../util/fingerprint.ts';
import { COMPILER_OPERATIONS } from './compiler-process.ts';
import type { CompileJob } from './compiler-process.ts';
import type { DeviceOptions } from './open-adapter.ts';

/** File beside the driver's own cache: fingerprints of the pipelines that it has, by the driver's name and version. */
const FILE = 'parley.json';
/** Most fingerprints that are kept, the latest ones. A version of Parley has some hundred, of 16 digits each. */
const MOST_KEPT = 10_000;
/** Fewest pipelines that are worth processes: one takes 0.25 s to compile on average, starting a process 0.6 s. */
const WORTH_PROCESSES = 8;

type KeptNames = Readonly<Record<string, readonly string[]>>;
type CompilerProcess = LazyThread<typeof COMPILER_OPERATIONS>;

interface Waiting {
  readonly name: string;
  readonly job: CompileJob;
  readonly done: () => void;
}

export class ParallelCompiler {
  readonly #driver: DiskCompiler;
  readonly #adapter: string;
  readonly #options: DeviceOptions;
  readonly #processes: readonly CompilerProcess[];
  readonly #idle: CompilerProcess[];
  /** Number of processes that have not failed. */
  #working: number;
  #started = false;
  readonly #waiting: Waiting[] = [];
  /** Fingerprints of pipelines in the driver's cache; those in `#added` are not yet written to the file. */
  readonly #known: Promise<ReadonlySet<string>>;
  readonly #added = new Set<string>();

  /** `adapter` is the adapter's name, which ends with the driver's version. */
  constructor(driver: DiskCompiler, adapter: string, options: DeviceOptions) {
    this.#driver = driver;
    this.#adapter = adapter;
    this.#options = options;
    const start = (): PlatformWorker => driver.start(new URL(/* @vite-ignore */ './compiler-process.ts', import.meta.url));
    this.#processes = Array.from({ length: driver.processes }, () => new LazyThread(COMPILER_OPERATIONS, start));
    this.#idle = [...this.#processes];
    this.#working = driver.processes;
    this.#known = this.#read().then((kept) => new Set(kept[adapter]));
  }

  /** Resolves, and never rejects, once the driver has this pipeline in its cache or a process has failed with it: errors come from the engine's own device. */
  async compile(job: CompileJob): Promise<void> {
    const name = fingerprint(`${job.label}\n${job.code}`);
    if ((await this.#known).has(name)) return;
    await new Promise<void>((done) => {
      this.#waiting.push({ name, job, done });
      // Starts after this tick, when all pipelines that were requested in it are known.
      if (this.#waiting.length === 1) queueMicrotask(() => this.#deal());
    });
  }

  #deal(): void {
    this.#started ||= this.#waiting.length >= WORTH_PROCESSES;
    if (!this.#started) for (const { name } of this.#waiting) this.#added.add(name);
    if (!this.#started || this.#working === 0) this.#leave();
    else for (const own of this.#idle.splice(0, this.#waiting.length)) void this.#work(own);
  }

  /** Gives up the waiting pipelines, which the engine's device then compiles. */
  #leave(): void {
    for (const { done } of this.#waiting.splice(0)) done();
  }

  /** Runs one process while pipelines wait. After any failure it is not used again, since the next kernel would fail alike. */
  async #work(own: CompilerProcess): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const { name, job, done } = next;
      const compiled = await own.methods.compile({ ...job, options: this.#options }).then(
        () => true,
        () => false,
      );
      if (compiled) this.#added.add(name);
      done();
      if (compiled) continue;
      if (--this.#working === 0) this.#leave();
      return;
    }
    this.#idle.push(own);
  }

  /** Ends the processes at once, and writes the fingerprints of what was compiled. */
  async close(): Promise<void> {
    this.#leave();
    await Promise.all(this.#processes.map((one) => one.close()));
    if (this.#added.size === 0) return;
    const kept = await this.#read();
    const names = [...new Set([...(kept[this.#adapter] ?? []), ...this.#added])].slice(-MOST_KEPT);
    // If they cannot be written, the next start compiles again and finds all in the driver's cache.
    await this.#driver.kept.write(FILE, JSON.stringify({ ...kept, [this.#adapter]: names })).catch(() => undefined);
  }

  /** Reads the file; a damaged one counts as empty. */
  async #read(): Promise<KeptNames> {
    try {
      const found: unknown = JSON.parse((await this.#driver.kept.read(FILE)) ?? '{}');
      return isKept(found) ? found : {};
    } catch {
      return {};
    }
  }
}

function isKept(value: unknown): value is KeptNames {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((names) => Array.isArray(names) && names.every((name) => typeof name === 'string'));
}
