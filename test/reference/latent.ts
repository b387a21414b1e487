/** Shared with the self-test at start. */
export { latentKeys, latentQueries } from '../../engine/runner/plain/latent.ts';
