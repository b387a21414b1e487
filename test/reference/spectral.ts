/** Shared with the self-test at start. */
export { logMel, magnitude } from '../../engine/runner/plain/spectral.ts';
export type { Denoise, LogMelCase } from '../../engine/runner/plain/spectral.ts';
