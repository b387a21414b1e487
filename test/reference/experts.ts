/** Shared with the self-test at start. */
export { combine, expertLinear, routes, tileExperts } from '../../engine/runner/plain/experts.ts';
