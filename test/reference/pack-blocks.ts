/** Shared with the self-test at start. */
export { packBlocks } from '../../engine/runner/plain/pack-blocks.ts';
