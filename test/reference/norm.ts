/** Row norms. */
export { layerNorm, rmsNorm } from '../../engine/runner/plain.ts';
export { matchRms } from '../../engine/runner/plain/layers.ts';
