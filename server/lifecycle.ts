/** Where the process is between start and exit, and which requests are in flight; shared by its listeners. */
import { EngineError } from '../engine/errors.ts';

/** `leaving`: readiness says no, work is still taken; `draining`: new work is refused; running work ends by itself. */
export type LifecycleState = 'serving' | 'leaving' | 'draining';

export class Lifecycle {
  state: LifecycleState = 'serving';
  readonly #running = new Set<AbortController>();

  /** Requests that compute something right now. */
  get inFlight(): number {
    return this.#running.size;
  }

  /** A request begins; its controller is aborted when the drain deadline passes. Call the result when it is over. */
  begin(controller: AbortController): () => void {
    this.#running.add(controller);
    return () => this.#running.delete(controller);
  }

  /** The drain deadline: what still runs ends with a typed error. */
  abortAll(): void {
    for (const controller of this.#running) controller.abort(new EngineError('shutting_down', 'the server is shutting down'));
  }
}
