/** Supervises the engine process: starts it, restarts it when it dies or hangs, and serves the listeners as an Engine throughout. */
import type { EngineInfo, EngineStatus, MemoryPlan } from '../../engine/api.ts';
import { EngineError } from '../../engine/errors.ts';
import { operations } from '../../engine/protocol.ts';
import type { OperationName, OperationRow, Operations } from '../../engine/protocol.ts';
import { EMPTY_STATUS } from '../../engine/status.ts';
import type { Logger } from '../log.ts';
import { EngineRun } from './engine-run.ts';
import type { StartMessage } from './port.ts';
import { replayed } from './replay.ts';

export interface SupervisorOptions {
  readonly start: Omit<StartMessage, 'type'>;
  readonly log: Logger;
  /** Milliseconds after which the process is killed, if pending GPU work makes no progress or no message arrives; default 60 s. */
  readonly watchdogMs?: number;
  /** Milliseconds of life after getting ready that reset the count of consecutive deaths; default 10 s. */
  readonly livedMs?: number;
  /** Milliseconds before the first restart, which double with each death in a row; default 250. */
  readonly delayMs?: number;
  /** Milliseconds within which a restarted engine must be ready; default: by RELOAD_FACTOR. */
  readonly reloadMs?: number;
  /** Milliseconds for which a request whose engine died before it answered waits for the next one; default 60 s. */
  readonly replayWaitMs?: number;
  /** Called when the supervisor gives up: the first start was refused, or the process died too often in a row. */
  readonly onGiveUp: (error: EngineError) => void;
  /** Called with the memory plan of each device, before models are loaded. Only for the first start, since later ones plan the same. */
  readonly onPlan?: (plan: MemoryPlan) => void;
  /** Environment variables for the engine process, in addition to this process's. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Entry module of the engine process; default: ./process.ts. */
  readonly entry?: URL;
}

const MAX_DELAY_MS = 32_000;
/** Consecutive deaths, each before or soon after getting ready, after which the supervisor gives up. */
const MAX_ATTEMPTS = 10;
/** Consecutive deaths after which it gives up if the engine was never ready; fewer, because someone may be waiting at a terminal. */
const MAX_FIRST_ATTEMPTS = 3;

/** A restart may take this many times as long as the first start (or as watchdogMs, if that is longer), since it loads the same models. The first start has no limit. */
const RELOAD_FACTOR = 10;
/** Longest delay of a Node timer, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

/** An Engine that survives the death of its process. */
export type EngineSupervisor = Supervisor & Operations;

/** Starts an engine process and keeps it alive until `close`. */
export function superviseEngine(options: SupervisorOptions): EngineSupervisor {
  const supervisor = new Supervisor(options);
  return Object.assign(
    supervisor,
    operations((name, row) => supervisor.around(name, row)),
  );
}

class Supervisor {
  readonly #options: SupervisorOptions;
  #run: EngineRun | undefined;
  /** Info of the last engine that was ready, so that models stay listed during a restart. */
  #info: EngineInfo | undefined;
  /** Duration of the first start, in milliseconds. */
  #firstStartMs = 0;
  #attempts = 0;
  #restarts = 0;
  #devicesLost = 0;
  #retry: NodeJS.Timeout | undefined;
  #closing = false;
  #gaveUp = false;
  /** Wake-up callbacks of requests that wait for the next engine process. */
  readonly #waiting = new Set<() => void>();
  #resolveReady!: () => void;
  /** Resolves when the engine is ready for the first time; never rejects (see onGiveUp). */
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#start();
  }

  /** How often the engine process has been restarted. */
  get restarts(): number {
    return this.#restarts;
  }

  /** How often an engine process ended because it lost its GPU device. */
  get devicesLost(): number {
    return this.#devicesLost;
  }

  /** Milliseconds since pending GPU work last made progress; close to 0 (at most a watch interval) if none is pending. */
  get stalledMs(): number {
    return this.#run?.stalledMs ?? 0;
  }

  /** Process id of the engine; undefined if the process could not be started. */
  get pid(): number | undefined {
    return this.#run?.child.pid;
  }

  info(): EngineInfo {
    if (!this.#info) throw new EngineError('device_lost', 'the engine is still loading');
    return this.#info;
  }

  status(): EngineStatus {
    const status = this.#run?.client.status() ?? EMPTY_STATUS;
    if (this.#closing) return { ...status, state: 'closing' };
    if (!this.#info) return { ...status, state: 'loading' };
    return this.#run?.isReady ? status : { ...status, state: 'lost' };
  }

  /** Calls an operation in the current engine process. A call that streams events is repeated in the next process if this one dies before any of the answer was sent. */
  around(name: OperationName, { kind, again }: OperationRow): (request: unknown, signal: AbortSignal) => unknown {
    const method = ({ client }: EngineRun) => client[name] as (request: unknown, signal?: AbortSignal) => unknown;
    if (kind === 'value') return async (request) => method(this.#readyRun())(request);
    return (request, signal) => {
      const call = (run: EngineRun, start: { readonly type: string } | undefined) =>
        method(run)(start && again ? again(request, start) : request, signal) as AsyncIterable<{ readonly type: string }>;
      return replayed({ run: this.#readyRun(), call, next: (run) => this.#runAfter(run, signal), signal });
    };
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#retry);
    this.#wake();
    await this.#run?.close();
  }

  #readyRun(): EngineRun {
    if (!this.#run?.isReady) throw new EngineError('device_lost', 'the engine was lost and is being restarted');
    return this.#run;
  }

  /** The next engine process once it is ready; undefined if it does not come in time. */
  async #runAfter(dead: EngineRun, signal: AbortSignal): Promise<EngineRun | undefined> {
    const { log, replayWaitMs = 60_000 } = this.#options;
    const deadline = performance.now() + replayWaitMs;
    const isNext = (run: EngineRun | undefined): run is EngineRun => run !== undefined && run !== dead && run.isReady;
    while (!isNext(this.#run)) {
      const left = deadline - performance.now();
      if (left <= 0 || this.#closing || this.#gaveUp || signal.aborted) return undefined;
      await this.#anyChange(left, signal);
    }
    log.info({ pid: this.#run.child.pid }, 'a request that was not answered yet is made again');
    return this.#run;
  }

  /** Resolves when an engine gets ready or never will, when the time is up, or when the caller aborts. */
  #anyChange(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done);
      this.#waiting.add(done);
    });
  }

  #wake(): void {
    for (const done of this.#waiting) done();
  }

  #start(): void {
    const { log, watchdogMs = 60_000, start, entry = new URL('./process.ts', import.meta.url), environment = {} } = this.#options;
    const { reloadMs = RELOAD_FACTOR * Math.max(this.#firstStartMs, watchdogMs) } = this.#options;
    const limits = { watchdogMs, ...(this.#info && { startMs: Math.min(reloadMs, LONGEST_MS) }) };
    const begun = performance.now();
    const run = new EngineRun({ entry, environment }, { type: 'start', ...start }, log, limits);
    run.onPlan = this.#info ? undefined : this.#options.onPlan;
    this.#run = run;
    run.client.ready.then(
      () => {
        if (!this.#info) this.#firstStartMs = performance.now() - begun;
        this.#info = run.client.info();
        log.info({ pid: run.child.pid }, 'engine ready');
        this.#resolveReady();
        this.#wake();
      },
      () => {},
    );
    void run.ended.then((how) => this.#ended(run, how));
  }

  #ended(run: EngineRun, how: string): void {
    if (this.#closing) return;
    const { log, livedMs = 10_000, delayMs = 250 } = this.#options;
    // A refusal is a sentence that onGiveUp reports; the drivers' warnings beside it do not matter then.
    const isMistake = !this.#info && run.failure !== undefined && run.failure.code !== 'device_lost';
    const isRefusal = isMistake && run.failure!.code !== 'internal';
    log[isRefusal ? 'debug' : 'error']({ how, stderr: run.lastErrors }, 'engine process ended');
    if (run.isDeviceLost) this.#devicesLost++;
    if (run.livedMs > livedMs) this.#attempts = 0;
    // A failure of the first start is a mistake in the configuration, which no restart mends.
    if (isMistake) return this.#giveUp(run.failure!);
    if (++this.#attempts >= (this.#info ? MAX_ATTEMPTS : MAX_FIRST_ATTEMPTS)) {
      if (!this.#info && run.failure) return this.#giveUp(run.failure);
      const times = `the engine process died ${this.#attempts} times in a row; the last time: ${run.failure?.message ?? how}`;
      // What ran once may run again, so whatever the last process lacked, it is no mistake in the configuration.
      return this.#giveUp(new EngineError('device_lost', times));
    }
    this.#restarts++;
    const delay = Math.min(MAX_DELAY_MS, delayMs * 2 ** (this.#attempts - 1));
    this.#retry = setTimeout(() => this.#start(), delay);
  }

  #giveUp(error: EngineError): void {
    this.#gaveUp = true;
    this.#wake();
    this.#options.onGiveUp(error);
  }
}
