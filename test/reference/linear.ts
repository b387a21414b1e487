/** Products: the engine's own plain loops, which its self-test compares with too. */
export { linear } from '../../engine/runner/plain.ts';
