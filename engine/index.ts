/** The engine's public surface. */
export type * from './api.ts';
export { connectEngine } from './client.ts';
export type { EngineClient } from './client.ts';
export { DEFAULT_ENGINE_CONFIG, resolveConfig } from './config.ts';
export type { EngineConfig, ModelSource } from './config.ts';
export { EngineError } from './errors.ts';
export type { EngineErrorCode } from './errors.ts';
export { serveEngine } from './host.ts';
export { probeAdapter, probeMemory } from './parallel/measure.ts';
export type { AdapterReport, AdapterSpeed } from './parallel/measure.ts';
export type { Platform } from './platform/platform.ts';
export type { Engine } from './protocol.ts';
export { planModels, tokensThatFit } from './runner/memory-plan.ts';
export type { MemoryShare, ModelDemand } from './runner/memory-plan.ts';
export { describeModel } from './tasks/describe-model.ts';
export { createEngine } from './tasks/engine.ts';
export { main as serveGrammars } from './text/grammar-worker.ts';
