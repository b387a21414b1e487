/** The engine process, from its start to its end. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { MemoryPlan } from '../../engine/api.ts';
import { connectEngine } from '../../engine/client.ts';
import type { EngineClient } from '../../engine/client.ts';
import { fromPlainError } from '../../engine/errors.ts';
import type { EngineError } from '../../engine/errors.ts';
import type { HostMessage, MessagePortLike } from '../../engine/host.ts';
import type { Logger } from '../log.ts';
import { TSX_ARGV } from '../tsx.ts';
import type { BugMessage, FailedMessage, PlannedMessage, StartMessage } from './port.ts';
import { Watchdog } from './watchdog.ts';

const KEPT_LINES = 20;
/** How long a process that was asked to close may take. */
const CLOSE_MS = 1_000;

/** What is run. */
export interface EngineProgram {
  readonly entry: URL;
  /** Variables besides this process's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** How long it may stand still before it is killed, in milliseconds. */
export interface EngineLimits {
  /** Without a finished GPU submission while one is pending, or without any sign of life. */
  readonly watchdogMs: number;
  /** Until it is ready. */
  readonly startMs?: number;
}

/** One life of the engine process. */
export class EngineRun {
  readonly child: ChildProcess;
  readonly client: EngineClient;
  /** How it ended, for the log. */
  readonly ended: Promise<string>;
  /** The last lines of its stderr. */
  readonly lastErrors: string[] = [];
  /** What it said before it gave up. */
  failure: EngineError | undefined;
  /** Told of each device's plan. */
  onPlan: ((plan: MemoryPlan) => void) | undefined;
  /** The engine is loaded, and the process is there. */
  isReady = false;
  #readyAt: number | undefined;
  #killedBecause: string | undefined;
  readonly #watchdog: Watchdog;
  readonly #log: Logger;

  constructor({ entry, environment }: EngineProgram, start: StartMessage, log: Logger, { watchdogMs, startMs }: EngineLimits) {
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
    const overdue = startMs === undefined ? undefined : setTimeout(() => kill(`not ready after ${Math.round(startMs / 1000)} s`), startMs);
    void this.client.ready.then(
      () => {
        clearTimeout(overdue);
        this.isReady = true;
        this.#readyAt = performance.now();
      },
      () => {},
    );
    void this.ended.then(() => {
      clearTimeout(overdue);
      this.isReady = false;
      this.#watchdog.stop();
    });
    // Without a file left to open (EMFILE) there is no process, and nothing to send it by.
    if (child.connected) child.send(start, () => {});
  }

  /** Milliseconds since it got ready; 0 if it never did. */
  get livedMs(): number {
    return this.#readyAt === undefined ? 0 : performance.now() - this.#readyAt;
  }

  /** Milliseconds since its pending GPU work last moved; 0 before it is ready. */
  get stalledMs(): number {
    return this.isReady ? this.#watchdog.stalledMs : 0;
  }

  /** Asks it to close, and kills it if that takes too long. */
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
