/** Pointwise functions by their definitions. */
export { activation, gated } from '../../engine/runner/plain.ts';
export { clampedGate, sparseGates, xielu } from '../../engine/runner/plain/layers.ts';
