/** The drain state of the process and its requests in flight, shared by its listeners. */
import { EngineError } from '../engine/errors.ts';

/** `leaving`: readiness probes fail, but requests are still accepted. `draining`: new requests are refused, and running ones may finish. */
export type LifecycleState = 'serving' | 'leaving' | 'draining';

export class Lifecycle {
  state: LifecycleState = 'serving';
  readonly #running = new Set<AbortController>();

  /** Number of requests being computed. */
  get inFlight(): number {
    return this.#running.size;
  }

  /** Registers a request, whose controller is aborted at the drain deadline. Call the returned function when the request has ended. */
  begin(controller: AbortController): () => void {
    this.#running.add(controller);
    return () => this.#running.delete(controller);
  }

  /** Aborts the running requests, at the drain deadline, with EngineError('shutting_down'). */
  abortAll(): void {
    for (const controller of this.#running) controller.abort(new EngineError('shutting_down', 'the server is shutting down'));
  }
}
