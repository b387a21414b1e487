/** Shared with the self-test at start. */
export { lstm } from '../../engine/runner/plain/lstm.ts';
export type { Direction, LstmState } from '../../engine/runner/plain/lstm.ts';
