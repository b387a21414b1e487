/**
 * Where things lie in the repository. The package that is made of it has a file of the same names in this one's place (library/build/layout.mjs).
 * Plain Node.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What the server brings besides code lies below it: `models/` with recipes and the model that tells speech from noise. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/**
 * Folder in whose `models/` the bundled models lie; undefined where they are not installed.
 * @type {string | undefined}
 */
export const BUNDLED = ROOT;
/** What is fetched, and what tests write. It may be deleted at any time. */
export const CACHE = join(ROOT, '.parley');
/** The built playground. */
export const PAGE = join(ROOT, 'dist', 'web');
/**
 * What the page asks for and its folder has not: folders by the path that they are asked under, each looked into in turn.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const BESIDE_PAGE = {};
/** Whether packages are installed and the page is built when they are wanted, and TypeScript runs through tsx: not so in a package. */
export const IS_REPOSITORY = true;
