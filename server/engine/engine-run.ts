/** One engine process, from its start to its end. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { MemoryPlan } from '../../engine/api.ts';
import { connectEngine } from '../../engine/client.ts';
import type { EngineClient } from '../../engine/client.ts';
import { fromPlainError } from '../../engine/errors.ts';
import type { EngineError } from '../../engine/errors.ts';
import type { HostMessage, MessagePortLike } from '../../engine/host.ts';
import type { Logger } from '../log.ts';
import { ROOT } from '../setup/layout.mjs';
import { TSX_ARGV } from '../tsx.ts';
import type { BugMessage, FailedMessage, PlannedMessage, StartMessage } from './port.ts';
import { Watchdog } from './watchdog.ts';

const KEPT_LINES = 20;
/** Time that a process has to close before it is killed. */
const CLOSE_MS = 1_000;

/** The program of an engine process. */
export interface EngineProgram {
  readonly entry: URL;
  /** Environment variables, in addition to this process's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Times in milliseconds after which a process that makes no progress is killed. */
export interface EngineLimits {
  /** Without progress of pending GPU work, or without any message. */
  readonly watchdogMs: number;
  /** From the start until it is ready; default: no limit. */
  readonly startMs?: number;
}

/** A running engine process and its client. */
export class EngineRun {
  readonly child: ChildProcess;
  readonly client: EngineClient;
  /** Resolves when the process has ended, with how, for the log. */
  readonly ended: Promise<string>;
  /** The last lines that it wrote to stderr. */
  readonly lastErrors: string[] = [];
  /** The error with which the engine could not be built, if it said so. */
  failure: EngineError | undefined;
  /** Called with the memory plan of each device. */
  onPlan: ((plan: MemoryPlan) => void) | undefined;
  /** Whether the engine is loaded and its process alive. */
  isReady = false;
  #readyAt: number | undefined;
  #killedBecause: string | undefined;
  readonly #watchdog: Watchdog;
  readonly #log: Logger;
  #isDeviceLost = false;

  constructor({ entry, environment }: EngineProgram, start: StartMessage, log: Logger, { watchdogMs, startMs }: EngineLimits) {
    this.child = fork(fileURLToPath(entry), {
      cwd: standingFolder(),
      env: { ...process.env, ...environment },
      serialization: 'advanced',
      execArgv: [...TSX_ARGV],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { child } = this;
    this.#log = log.child({ source: 'engine' });
    if (child.stdout) createInterface(child.stdout).on('line', (line) => this.#log.info(line));
    // Drivers write many warnings; they matter only if the process then dies.
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
      this.#isDeviceLost = this.client.status().state === 'lost';
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
    // If the process could not be started (EMFILE, for one), there is no channel to send by.
    if (child.connected) child.send(start, () => {});
  }

  /** Whether the process ended because it lost its GPU device, while it served or loaded; a crashed driver counts as a crash. */
  get isDeviceLost(): boolean {
    return this.#isDeviceLost || this.failure?.code === 'device_lost';
  }

  /** Milliseconds since the engine got ready; 0 if it never did. */
  get livedMs(): number {
    return this.#readyAt === undefined ? 0 : performance.now() - this.#readyAt;
  }

  /** Milliseconds since pending GPU work last made progress; 0 before the engine is ready. */
  get stalledMs(): number {
    return this.isReady ? this.#watchdog.stalledMs : 0;
  }

  /** Asks the engine to close, and kills the process if that takes too long. */
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

/**
 * The folder to start a process in: this process's current one or, where that has been deleted since the start, the server's own, because Node does not start in a
 * deleted folder. One that has been made anew at its place is another folder to the system, so it is always named.
 */
function standingFolder(): string {
  const current = process.cwd();
  return existsSync(current) ? current : ROOT;
}
