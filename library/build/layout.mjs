/** Paths within a package. Takes the place of server/setup/layout.mjs, which describes each export. It is in `dist/node/`, like all of the server. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownCacheFolder } from '../../sources/node/settings.ts';

const require = createRequire(import.meta.url);
/** Folder of an installed package, or undefined. `file` is one of its `exports` that is directly in the package's folder. */
function folderOf(file) {
  try {
    return dirname(require.resolve(file));
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const BUNDLED = folderOf('parley-models/package.json');
// Not below node_modules, which the next install may empty, but next to the cache of sources/.
export const CACHE = join(ownCacheFolder(process.env), 'machine');
export const PAGE = join(ROOT, 'dist', 'page');
const models = [BUNDLED, ROOT].flatMap((folder) => (folder === undefined ? [] : [join(folder, 'models')]));
export const BESIDE_PAGE = {
  '/models': [...models.filter((folder) => existsSync(folder)), join(PAGE, 'no-models')],
  // espeak-ng has another licence than Parley, so it is not copied into the page.
  '/espeak': [folderOf('parley-espeak/package.json') ?? join(PAGE, 'no-models')],
};
export const IS_REPOSITORY = false;
