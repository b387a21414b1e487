/** Keeps an engine process alive: starts it, starts it again when it dies or hangs, and is an Engine to the listeners meanwhile. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { EngineInfo, EngineStatus, MemoryPlan } from '../../engine/api.ts';
import { connectEngine } from '../../engine/client.ts';
import type { EngineClient } from '../../engine/client.ts';
import { EngineError, fromPlainError } from '../../engine/errors.ts';
import type { HostMessage, MessagePortLike } from '../../engine/host.ts';
import { operations } from '../../engine/protocol.ts';
import type { OperationName, OperationRow, Operations } from '../../engine/protocol.ts';
import { EMPTY_STATUS } from '../../engine/status.ts';
import type { BugMessage, FailedMessage, PlannedMessage, StartMessage } from './port.ts';
import type { Logger } from '../log.ts';
import { replayed } from './replay.ts';
import { TSX_ARGV } from '../tsx.ts';

export interface SupervisorOptions {
  readonly start: Omit<StartMessage, 'type'>;
  readonly log: Logger;
  /** Milliseconds without a finished GPU submission, while one is pending, or without any sign of life, before the process is killed. */
  readonly watchdogMs?: number;
  /** Milliseconds after getting ready from which a death is not one of a row. */
  readonly livedMs?: number;
  /** Milliseconds that a request whose engine died before it answered anything waits for the next. */
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
const WATCH_INTERVAL_MS = 250;
const KEPT_LINES = 20;
/** How long a process that was asked to close may take. */
const CLOSE_MS = 1_000;

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
    const run = new EngineRun({ entry, environment }, { type: 'start', ...start }, log, watchdogMs);
    run.onPlan = this.#info ? undefined : this.#options.onPlan;
    this.#run = run;
    run.client.ready.then(
      () => {
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
    const isRefusal = !this.#info && run.failure !== undefined && run.failure.code !== 'internal';
    log[isRefusal ? 'debug' : 'error']({ how, stderr: run.lastErrors }, 'engine process ended');
    if (run.livedMs > livedMs) this.#attempts = 0;
    // At the first start these are mistakes of the configuration, which no restart mends.
    if (run.failure && !this.#info) return this.#giveUp(run.failure);
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

/** One life of the engine process. */
class EngineRun {
  readonly child: ChildProcess;
  readonly client: EngineClient;
  /** How it ended, for the log. */
  readonly ended: Promise<string>;
  /** The last lines of its stderr. */
  readonly lastErrors: string[] = [];
  /** What it said before it gave up. */
  failure: EngineError | undefined;
  isReady = false;
  #readyAt: number | undefined;
  #killedBecause: string | undefined;
  readonly #watchdog: Watchdog;
  readonly #log: Logger;
  onPlan: SupervisorOptions['onPlan'];

  constructor(
    { entry, environment }: Required<Pick<SupervisorOptions, 'entry' | 'environment'>>,
    start: StartMessage,
    log: Logger,
    watchdogMs: number,
  ) {
    this.child = fork(fileURLToPath(entry), {
      env: { ...process.env, ...environment },
      serialization: 'advanced',
      execArgv: [...TSX_ARGV],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { child } = this;
    this.#log = log.child({ source: 'engine' });
    if (child.stdout) createInterface(child.stdout).on('line', (line) => this.#log.info(line));
    // Drivers warn about much; it matters when the process then dies.
    if (child.stderr) {
      createInterface(child.stderr).on('line', (line) => {
        this.#log.info(line);
        this.lastErrors.push(line);
        if (this.lastErrors.length > KEPT_LINES) this.lastErrors.shift();
      });
    }
    this.ended = new Promise((resolve) => {
      child.on('error', (error) => resolve(`could not be run: ${error.message}`));
      child.on('exit', (code, signal) => resolve(this.#killedBecause ?? (signal ? `signal ${signal}` : `exit code ${code}`)));
    });
    this.client = connectEngine(this.#port());
    const kill = (why: string): void => {
      this.#killedBecause = `killed: ${why}`;
      child.kill('SIGKILL');
    };
    this.#watchdog = new Watchdog(this.client, () => child.connected, watchdogMs, kill);
    void this.client.ready.then(
      () => {
        this.isReady = true;
        this.#readyAt = performance.now();
      },
      () => {},
    );
    void this.ended.then(() => {
      this.isReady = false;
      this.#watchdog.stop();
    });
    child.send(start, () => {});
  }

  /** Milliseconds since it got ready; 0 if it never did. */
  get livedMs(): number {
    return this.#readyAt === undefined ? 0 : performance.now() - this.#readyAt;
  }

  get stalledMs(): number {
    return this.isReady ? this.#watchdog.stalledMs : 0;
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), this.isReady ? CLOSE_MS : 0);
    await Promise.race([this.client.close(), this.ended]);
    this.child.kill('SIGKILL');
    await this.ended;
    clearTimeout(timer);
  }

  #port(): MessagePortLike {
    const { child } = this;
    return {
      post: (message) => void (child.connected && child.send(message as object, () => {})),
      onMessage: (callback) =>
        void child.on('message', (message: FailedMessage | BugMessage | PlannedMessage | HostMessage) => {
          if (message.type === 'failed') this.failure = fromPlainError(message.error);
          else if (message.type === 'bug') this.#log.error(message.text);
          else if (message.type === 'planned') this.onPlan?.(message.plan);
          else callback(message);
        }),
      onClose: (callback) => {
        child.on('disconnect', callback);
        child.on('exit', callback);
      },
    };
  }
}

/** Calls `kill` once when a ready engine stands still. */
class Watchdog {
  readonly #client: EngineClient;
  readonly #isConnected: () => boolean;
  readonly #limitMs: number;
  readonly #kill: (why: string) => void;
  readonly #timer: NodeJS.Timeout;
  #lastTick = performance.now();
  #lastProgress = -1;
  #progressAt = performance.now();

  constructor(client: EngineClient, isConnected: () => boolean, limitMs: number, kill: (why: string) => void) {
    this.#client = client;
    this.#isConnected = isConnected;
    this.#limitMs = limitMs;
    this.#kill = kill;
    this.#timer = setInterval(() => this.#tick(), WATCH_INTERVAL_MS);
  }

  get stalledMs(): number {
    return performance.now() - this.#progressAt;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    // If this process itself stood still (a debugger, a suspended machine), the engine's news are not read yet.
    const late = now - this.#lastTick > 8 * WATCH_INTERVAL_MS;
    this.#lastTick = now;
    const status = this.#client.status();
    if (status.state === 'loading' || late || !status.pending || status.lastProgress !== this.#lastProgress) {
      this.#lastProgress = status.lastProgress;
      this.#progressAt = now;
    }
    if (status.state === 'loading' || late) return;
    const why = this.#problem(status.state, now);
    if (why === undefined) return;
    this.stop();
    this.#kill(why);
  }

  #problem(state: EngineStatus['state'], now: number): string | undefined {
    const seconds = Math.round(this.#limitMs / 1000);
    // A process that is dying closes its connection a moment before it is known how it ended.
    if (state === 'lost' && this.#isConnected()) return 'the GPU device was lost';
    if (now - this.#progressAt > this.#limitMs) return `no GPU progress for ${seconds} s`;
    return now - this.#client.lastHeard > this.#limitMs ? `no sign of life for ${seconds} s` : undefined;
  }
}
