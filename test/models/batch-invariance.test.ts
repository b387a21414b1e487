/** Greedy answers do not depend on what else runs: alone, all at once with staggered arrivals, and with every part of serving on or off. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CORNERS, chatRequests, describeInvariance } from '../support/invariance.ts';

const BUNDLED = {
  folder: join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat'),
  requests: chatRequests(),
  configs: CORNERS,
};

describeInvariance({ name: 'bundled model', ...BUNDLED, kvCacheDtype: 'auto' });
// Prompts by other kernels than answers, which only adapters with subgroup matrices have.
describeInvariance({ name: 'bundled model, fast', ...BUNDLED, numerics: 'fast' });
