/** Paths within the repository. In the package, library/build/layout.mjs, which has the same exports, takes the place of this file. Plain Node. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the server's files besides code: `models/` with recipes and the model that tells speech from noise. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/**
 * Folder whose `models/` contains the bundled models; undefined if they are not installed.
 * @type {string | undefined}
 */
export const BUNDLED = ROOT;
/** Folder for downloads and for what tests write. It may be deleted at any time. */
export const CACHE = join(ROOT, '.parley');
/** The built playground. */
export const PAGE = join(ROOT, 'dist', 'web');
/**
 * Folders of files that the page requests but its own folder lacks, by the path below which they are requested; each is searched in turn.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const BESIDE_PAGE = {};
/** Whether missing packages are installed, the page is built, and TypeScript runs through tsx; false in the published package. */
export const IS_REPOSITORY = true;
