/** Shared with the self-test at start. */
export { correctStreams, predictStreams } from '../../engine/runner/plain/streams.ts';
