/** Keeps an engine process alive: starts it, starts it again when it dies or hangs, and is an Engine to the listeners meanwhile. */
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
  /** Milliseconds without a finished GPU submission, while one is pending, or without any sign of life, before the process is killed. */
  readonly watchdogMs?: number;
  /** An engine that lives this many milliseconds after getting ready ends a row of deaths. */
  readonly livedMs?: number;
  /** Milliseconds within which a restarted engine must be ready; default: by RELOAD_FACTOR. */
  readonly reloadMs?: number;
  /** Milliseconds for which a request whose engine died before answering waits for the next engine. */
  readonly replayWaitMs?: number;
  /** Called when the engine cannot be kept alive: its first start failed, or it died too often in a row. */
  readonly onGiveUp: (error: EngineError) => void;
  /** Told what the models will take of each device, before they are loaded; engines that follow plan the same. */
  readonly onPlan?: (plan: MemoryPlan) => void;
  /** Variables of the engine process besides this one's. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Another entry, for tests. */
  readonly entry?: URL;
}

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 32_000;
/** Deaths in a row, each soon after getting ready (or before), after which it is not tried again. */
const MAX_ATTEMPTS = 10;
/** The same before it was ever ready: somebody is waiting at a terminal to hear why. */
const MAX_FIRST_ATTEMPTS = 3;

/** The first start has no limit. Later ones load the same models, so each may take this many times as long as the first, or as the watchdog waits if that is longer. */
const RELOAD_FACTOR = 10;
/** The longest time that a timer of Node waits. */
const LONGEST_MS = 2 ** 31 - 1;

/** An Engine that outlives its process. */
export type EngineSupervisor = Supervisor & Operations;

/** Starts an engine process and keeps it alive until it is closed. */
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
  /** The last known info, so that models stay listed while the engine restarts. */
  #info: EngineInfo | undefined;
  /** How long the first start took. */
  #firstStartMs = 0;
  #attempts = 0;
  #restarts = 0;
  #retry: NodeJS.Timeout | undefined;
  #closing = false;
  #gaveUp = false;
  /** Requests that wait for the engine's next life. */
  readonly #waiting = new Set<() => void>();
  #resolveReady!: () => void;
  /** Resolves when the engine is ready for the first time; never rejects (see onGiveUp). */
  readonly ready = new Promise<void>((resolve) => (this.#resolveReady = resolve));

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#start();
  }

  /** Times the engine process was started again. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Milliseconds since pending GPU work last moved; below a watch interval when none is pending. */
  get stalledMs(): number {
    return this.#run?.stalledMs ?? 0;
  }

  /** The engine's process id while there is one. */
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

  /** An operation in the engine's present life; one that answers with events is made again in the next, if none of its answer has gone out. */
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

  /** The next life of the engine, once it is ready. */
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

  /** Resolves when the engine got ready, will never, or the time is up or the caller gone. */
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
    const { log, livedMs = 10_000 } = this.#options;
    // A refusal is one sentence, which whoever is told to give up says; what drivers warned about beside it does not matter then.
    const isMistake = !this.#info && run.failure !== undefined && run.failure.code !== 'device_lost';
    const isRefusal = isMistake && run.failure!.code !== 'internal';
    log[isRefusal ? 'debug' : 'error']({ how, stderr: run.lastErrors }, 'engine process ended');
    if (run.livedMs > livedMs) this.#attempts = 0;
    // At the first start these are mistakes of the configuration, which no restart mends.
    if (isMistake) return this.#giveUp(run.failure!);
    if (++this.#attempts >= (this.#info ? MAX_ATTEMPTS : MAX_FIRST_ATTEMPTS)) {
      const times = `the engine process died ${this.#attempts} times in a row; the last time: ${how}`;
      return this.#giveUp(run.failure ?? new EngineError('device_lost', times));
    }
    this.#restarts++;
    const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.#attempts - 1));
    this.#retry = setTimeout(() => this.#start(), delay);
  }

  #giveUp(error: EngineError): void {
    this.#gaveUp = true;
    this.#wake();
    this.#options.onGiveUp(error);
  }
}
