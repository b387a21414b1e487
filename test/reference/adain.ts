/** Shared with the self-test at start. */
export { adain } from '../../engine/runner/plain/adain.ts';
