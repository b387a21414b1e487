/** Shared with the self-test at start. */
export { causalConv, gatedDeltaRule, rmsNormGated } from '../../engine/runner/plain/recurrent.ts';
export type { DeltaShape } from '../../engine/runner/plain/recurrent.ts';
