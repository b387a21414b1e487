/** Row norms. */
export { layerNorm, rmsNorm } from '../../engine/runner/plain.ts';
