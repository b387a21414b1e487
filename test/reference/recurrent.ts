/** Shared with the self-test at start. */
export { causalConv, gatedDeltaRule, rmsNormGated, selectiveScan, silu } from '../../engine/runner/plain/recurrent.ts';
export type { DeltaShape, ScanShape } from '../../engine/runner/plain/recurrent.ts';
