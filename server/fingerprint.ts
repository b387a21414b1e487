/** `system_fingerprint`, which says what a seeded answer depends on. */
import type { EngineInfo, ModelInfo } from '../engine/api.ts';

/** The text whose SHA-256 is the fingerprint: model and adapter, on which a seeded answer depends. */
export function describeBuild({ adapter }: EngineInfo, model: ModelInfo | undefined): string {
  return JSON.stringify([model?.id, model?.architecture, model?.parameters, model?.weightBytes, adapter.name, adapter.family]);
}

/** Makes a `system_fingerprint` from the SHA-256 of `describeBuild`, in hex. */
export const fingerprint = (hash: string): string => `fp_${hash.slice(0, 12)}`;
