/**
 * Load and capacity of a listener, as shown by /v1/loads, /get_load and the gauges of /metrics. They are computed from counters of this process and the engine's
 * last status, so that asking never waits for the engine.
 */
import type { EngineStatus, ModelInfo } from '../../engine/api.ts';
import { splitOf } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { ModelTask } from '../../engine/model-types.ts';

/** Limits from the operator's settings. */
export interface Capacity {
  /** Most sequences that run at once; `maxQueuedRequests` is the limit of those that wait. */
  readonly maxRunningRequests: number;
  readonly maxQueuedRequests: number;
  /** Most prompt tokens per step, if a number was set (not `auto`). */
  readonly maxPrefillTokens?: number;
  /** Pipeline stages of the chat model. */
  readonly ppSize: number;
}

/** The capacity of an engine with these settings. */
export function capacityOf(config: EngineConfig): Capacity {
  const { maxRunningRequests, maxQueuedRequests, chunkedPrefillSize } = config;
  const { ppSize } = splitOf(config);
  return {
    maxRunningRequests,
    maxQueuedRequests,
    ppSize,
    ...(chunkedPrefillSize !== 'auto' && { maxPrefillTokens: chunkedPrefillSize }),
  };
}

/** Load of a listener at one moment. */
export interface Load {
  readonly running: number;
  /** Requests that are queued. */
  readonly waiting: number;
  /** Prompt tokens of the queued requests that are not in the prefix cache. */
  readonly waitingTokens: number;
  /** Tokens in the KV cache for chat, requests for the other tasks; `total` is the capacity in the same unit. */
  readonly used: number;
  readonly total: number;
  /** Share of the capacity in use, 0..1; for chat the larger of full and windowed KV pages. */
  readonly usage: number;
  readonly maxRunning: number;
  /** Share of all prompt tokens so far that were cached, 0..1. */
  readonly hitRate: number;
  /** KV pages, and tokens per page (`pageSize`); 0 for tasks without them, and until the model is loaded. */
  readonly pages: number;
  readonly pageSize: number;
}

export interface LoadSource {
  readonly task: ModelTask;
  readonly status: EngineStatus;
  readonly model: ModelInfo | undefined;
  /** Requests of this listener that are being computed. */
  readonly inFlight: number;
  readonly capacity: Capacity;
}

/** Computes a listener's load: from the chat scheduler's counters in the engine's status, or, for the audio tasks, from the listener's own requests. */
export function loadOf({ task, status, model, inFlight, capacity }: LoadSource): Load {
  if (task !== 'chat') {
    const total = capacity.maxQueuedRequests;
    const usage = Math.min(1, inFlight / total);
    return { running: inFlight, waiting: 0, waitingTokens: 0, used: inFlight, total, usage, maxRunning: total, hitRate: 0, pages: 0, pageSize: 0 }; // prettier-ignore
  }
  const pages = status.kvPagesTotal;
  const pageSize = model?.memory?.pageSize ?? 0;
  return {
    running: status.running,
    waiting: status.waiting,
    waitingTokens: status.waitingTokens,
    used: status.kvPagesUsed * pageSize,
    total: pages * pageSize,
    // Layers with a sliding window have KV pages of their own, which may run out first.
    usage: Math.max(status.kvPagesUsed / Math.max(1, pages), status.windowPagesUsed / Math.max(1, status.windowPagesTotal)),
    maxRunning: capacity.maxRunningRequests,
    hitRate: status.cachedTokens / Math.max(1, status.promptTokens),
    pages,
    pageSize,
  };
}

/** Returns a function that measures the growth of a total per second since its last measurement, which is at least a second ago. */
export function rateOf(total: () => number): () => number {
  let [since, before, rate] = [performance.now(), 0, 0];
  return () => {
    const [now, count] = [performance.now(), total()];
    if (now - since < 1000) return rate;
    // A total that shrank belongs to a restarted engine.
    rate = (Math.max(0, count - before) * 1000) / (now - since);
    [since, before] = [now, count];
    return rate;
  };
}
