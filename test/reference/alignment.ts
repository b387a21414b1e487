/** Shared with the self-test at start. */
export { alignmentMatrix, attentionWeights } from '../../engine/runner/plain/alignment.ts';
