/** Published weights, which are never committed: PARLEY_WEIGHTS names a folder that has them by these names, as `npm run test:real` makes one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = process.env['PARLEY_WEIGHTS'] ?? '';

export interface PublishedWeights {
  readonly path: string;
  /** Why a test on them is skipped; undefined where they are here. */
  readonly absent: string | undefined;
}

/** Where a file or folder of published weights is; `inside` is a file that the folder must have. */
export function publishedWeights(name: string, inside = ''): PublishedWeights {
  const path = join(FOLDER, name);
  if (FOLDER === '') return { path, absent: 'PARLEY_WEIGHTS names no folder of published weights' };
  return { path, absent: existsSync(join(path, inside)) ? undefined : `${join(name, inside)} is not in PARLEY_WEIGHTS` };
}
