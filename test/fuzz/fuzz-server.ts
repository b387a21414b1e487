/** A server of the fuzzer's own on free ports of 127.0.0.1, with the bundled models. */
import { growth, holdings } from '../bench/serving/soak.ts';
import type { Holdings } from '../bench/serving/soak.ts';
import { send } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import type { Running } from '../support/server-process.ts';
import type { ListenerName } from './case.ts';
import { GoodRequests } from './good.ts';

export { growth };
export type { Holdings };

/** Collects its garbage when told, so that what is resident is what is held. */
const ENTRY = new URL('../bench/serving/soak-server.ts', import.meta.url);
/** Short, so that a request whose limit a mutation took away still ends soon. */
const CONTEXT_LENGTH = 512;

export class FuzzServer {
  readonly good: GoodRequests;
  readonly #running: Running;
  readonly #key: string | undefined;
  #restarts = 0;

  private constructor(running: Running, key: string | undefined) {
    this.#running = running;
    this.#key = key;
    this.good = new GoodRequests({ urls: running.urls, key });
  }

  /** Starts one; throws with its output when it does not come up. */
  static async start(key: string | undefined): Promise<FuzzServer> {
    const adapter = process.env['PARLEY_ADAPTER'];
    const argv = [`--context-length=${CONTEXT_LENGTH}`, ...(adapter === undefined ? [] : [`--adapter=${adapter}`])];
    const running = await whenReady(spawnAt(ENTRY, argv, key === undefined ? {} : { PARLEY_API_KEY: key }));
    if (Object.keys(running.urls).length < 3) throw new Error(`the server did not start:\n${running.lines.join('\n')}`);
    return new FuzzServer(running, key);
  }

  /** What it has written so far. */
  get lines(): readonly string[] {
    return this.#running.lines;
  }

  port(listener: ListenerName): number {
    return Number(new URL(this.#running.urls[listener]!).port);
  }

  /** What ended or began anew since the last look; undefined when nothing did. */
  async died(): Promise<string | undefined> {
    const { child, urls } = this.#running;
    if (child.exitCode !== null || child.signalCode !== null) return `the server's process ended (${child.exitCode ?? child.signalCode})`;
    const { text } = await send(`${urls['chat']!.replace(/\/v1$/, '')}/metrics`);
    const restarts = Number(/^parley_engine_restarts_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? NaN);
    if (restarts === this.#restarts) return undefined;
    this.#restarts = restarts;
    return `the engine's process ended and was started again (${restarts} times so far)`;
  }

  /** What it holds when it is idle. */
  async holdings(): Promise<Holdings> {
    const headers = this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` };
    return holdings(this.#running.urls['chat']!, this.#running.child.pid!, true, headers);
  }

  /** Asks it to leave; returns its exit code. */
  async leave(): Promise<number | null> {
    this.#running.child.kill('SIGTERM');
    return this.#running.exit;
  }

  kill(): void {
    this.#running.child.kill('SIGKILL');
  }
}
