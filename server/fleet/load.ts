/**
 * What a listener has to do right now and how much it can take: the one source of /v1/loads, /get_load and the gauges of /metrics. Counters of
 * this process and the engine's last snapshot, so asking never waits for the engine.
 */
import type { EngineStatus, ModelInfo } from '../../engine/api.ts';
import { splitOf } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { ModelTask } from '../../engine/model-types.ts';

/** What the operator's settings allow a listener. */
export interface Capacity {
  /** Requests that the scheduler runs side by side, and those that may wait. */
  readonly maxRunningRequests: number;
  readonly maxQueuedRequests: number;
  /** Prompt tokens of one step, where a number was set. */
  readonly maxPrefillTokens?: number;
  /** Groups of layers that the chat model is split into. */
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

export interface Load {
  readonly running: number;
  /** Admitted, and not begun. */
  readonly waiting: number;
  /** Prompt tokens of what waits that no cache has. */
  readonly waitingTokens: number;
  /** What is occupied, and what there is: tokens of keys and values where the task is chat, else requests. */
  readonly used: number;
  readonly total: number;
  /** used / total, 0..1. */
  readonly usage: number;
  readonly maxRunning: number;
  /** Share of the prompt tokens so far that were cached, 0..1. */
  readonly hitRate: number;
  /** Pages of keys and values, and tokens a page; 0 where the task has none, or the model is not loaded. */
  readonly pages: number;
  readonly pageSize: number;
}

export interface LoadSource {
  readonly task: ModelTask;
  readonly status: EngineStatus;
  readonly model: ModelInfo | undefined;
  /** Requests of this listener that compute. */
  readonly inFlight: number;
  readonly capacity: Capacity;
}

/** The load of a listener. The engine's snapshot counts the chat scheduler's rows; the audio listeners count their own requests. */
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
    // Layers that see a window only have pages of their own, which may run out first.
    usage: Math.max(status.kvPagesUsed / Math.max(1, pages), status.windowPagesUsed / Math.max(1, status.windowPagesTotal)),
    maxRunning: capacity.maxRunningRequests,
    hitRate: status.cachedTokens / Math.max(1, status.promptTokens),
    pages,
    pageSize,
  };
}

/** Growth of a total a second between calls; calls within a second of each other get the same answer. */
export function rateOf(total: () => number): () => number {
  let [since, before, rate] = [performance.now(), 0, 0];
  return () => {
    const [now, count] = [performance.now(), total()];
    if (now - since < 1000) return rate;
    // A total that starts again comes from an engine that was started again.
    rate = (Math.max(0, count - before) * 1000) / (now - since);
    [since, before] = [now, count];
    return rate;
  };
}
