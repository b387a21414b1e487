/** Shared with the self-test at start. */
export { istftHead, stft } from '../../engine/runner/plain/istft.ts';
