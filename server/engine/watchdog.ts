/** Watches over an engine process: whether its GPU gets on, and whether it lives. */
import type { EngineStatus } from '../../engine/api.ts';
import type { EngineClient } from '../../engine/client.ts';

const WATCH_INTERVAL_MS = 250;

/** Calls `kill` once when a ready engine stands still. */
export class Watchdog {
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

  /** Milliseconds since pending GPU work last moved; below a watch interval when none is pending. */
  get stalledMs(): number {
    return performance.now() - this.#progressAt;
  }

  /** Looks no more. */
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
