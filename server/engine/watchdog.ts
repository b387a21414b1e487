/** Watches an engine process for a hung or lost GPU and for silence. */
import type { EngineStatus } from '../../engine/api.ts';
import type { EngineClient } from '../../engine/client.ts';

const WATCH_INTERVAL_MS = 250;

/** Calls `kill`, once, when a ready engine loses its device, makes no GPU progress, or sends nothing for `limitMs`. */
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

  /** Milliseconds since pending GPU work last made progress; close to 0 (at most a watch interval) if none is pending. */
  get stalledMs(): number {
    return performance.now() - this.#progressAt;
  }

  /** Stops watching. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    // If this process was suspended (by a debugger, or with the machine), the engine's messages have not been read yet.
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
    // A dying process closes its channel a moment before its exit is reported, which tells more.
    if (state === 'lost' && this.#isConnected()) return 'the GPU device was lost';
    if (now - this.#progressAt > this.#limitMs) return `no GPU progress for ${seconds} s`;
    return now - this.#client.lastHeard > this.#limitMs ? `no sign of life for ${seconds} s` : undefined;
  }
}
