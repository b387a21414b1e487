/** Shared with the self-test at start. */
export { quantizeRows } from '../../engine/runner/plain/quantize.ts';
