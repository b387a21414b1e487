/** Settings of engines in tabs, whatever the model. */
import type { EngineConfig } from '../../../engine/config.ts';
import { TAB_CONTEXT } from './manifest.ts';

/** Settings of an engine that shares the machine with a browser: a few conversations, a modest cache. */
export const TAB_CONFIG: Partial<EngineConfig> = {
  maxRunningRequests: 8,
  contextLength: TAB_CONTEXT,
  chunkedPrefillSize: 512,
  maxQueuedRequests: 32,
  // The page's limit for answers may exceed what a small model's context leaves.
  autoTruncateMaxTokens: true,
};
const TAB_MEMORY = 2 ** 30;

/** Memory budget of a tab's engine, in bytes: at least TAB_MEMORY, and what a large model needs with a conversation or two. */
export const tabMemory = (modelBytes = 0): number => Math.max(TAB_MEMORY, 1.5 * modelBytes);
