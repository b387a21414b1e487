/** Shared with the self-test at start. */
export { logMel, magnitude } from '../../engine/runner/plain/spectral.ts';
export type { LogMelCase } from '../../engine/runner/plain/spectral.ts';
