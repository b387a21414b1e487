/** Shared with the self-test at start. */
export { constrainedToken, logSumExp, tokenCandidates } from '../../engine/runner/plain/constrained-token.ts';
export type { ConstrainedStep } from '../../engine/runner/plain/constrained-token.ts';
