/**
 * Browsers for the tests: the system's, else on Debian ones unpacked into .parley/, with what they need. Plain Node, because `npm test` calls it before
 * anything is installed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CACHE } from '../server/setup/layout.mjs';
import { REMOVE, SetupError, isForbidden, say, shown } from '../server/setup/setup.mjs';
import { hasApt, libraryFolders, osRelease, unpackPackages } from '../server/setup/apt.mjs';

const DRIVERS = join(CACHE, 'drivers');

const CHROMIUM = {
  title: 'Chromium',
  variable: 'PARLEY_CHROMIUM',
  names: ['chromium', 'chromium-browser', 'google-chrome'],
  package: 'chromium',
  folder: join(CACHE, 'chromium'),
  executable: 'usr/lib/chromium/chromium',
  size: '200 MB',
  skipped: 'the browser tests will skip',
};

const FIREFOX = {
  title: 'Firefox',
  variable: 'PARLEY_FIREFOX',
  names: ['firefox-esr', 'firefox'],
  package: 'firefox-esr',
  folder: join(CACHE, 'firefox'),
  executable: 'usr/lib/firefox-esr/firefox-esr',
  size: '100 MB',
  skipped: 'the tests in it will skip',
};

const BROWSERS = { chromium: CHROMIUM, firefox: FIREFOX };

/**
 * Path of a Chromium, or undefined: then browser tests skip and say so. PARLEY_CHROMIUM overrides.
 * @returns {string | undefined}
 */
export const findChromium = () => find(CHROMIUM);

/**
 * Path of a Firefox, or undefined: then the tests in it skip and say so. PARLEY_FIREFOX overrides.
 * @returns {string | undefined}
 */
export const findFirefox = () => find(FIREFOX);

/**
 * The environment to start that Chromium in: without the unpacked graphics driver, for it brings its own.
 * @param {string | undefined} path
 * @returns {Record<string, string | undefined>}
 */
export function chromiumEnvironment(path) {
  const without = (name) => (process.env[name] ?? '').split(delimiter).filter((part) => part !== '' && !part.startsWith(DRIVERS));
  const list = (paths) => (paths.length === 0 ? undefined : paths.join(delimiter));
  const own = ownEnvironment(CHROMIUM, path, without('LD_LIBRARY_PATH'));
  return { ...process.env, VK_DRIVER_FILES: list(without('VK_DRIVER_FILES')), LD_LIBRARY_PATH: list(without('LD_LIBRARY_PATH')), ...own };
}

/**
 * The environment to start that Firefox in: with the graphics driver that Node has, for it brings none.
 * @param {string | undefined} path
 * @returns {Record<string, string | undefined>}
 */
export function firefoxEnvironment(path) {
  const given = (process.env['LD_LIBRARY_PATH'] ?? '').split(delimiter).filter((part) => part !== '');
  return { ...process.env, ...ownEnvironment(FIREFOX, path, given) };
}

/** Fetches the named browsers where there are none and apt has them; a process of its own each, because nothing else waits for them. Resolves when all have ended. */
export async function ensureBrowsers(names) {
  const children = names.map((name) => spawn(process.execPath, [fileURLToPath(import.meta.url), name], { stdio: 'inherit' }));
  await Promise.all(children.map((child) => once(child, 'close')));
}

function find({ variable, names, folder, executable }) {
  if (process.env[variable]) return process.env[variable];
  const folders = (process.env.PATH ?? '').split(delimiter);
  const installed = names.flatMap((name) => folders.map((place) => join(place, name)));
  return [...installed, join(folder, executable)].find((path) => existsSync(path));
}

/** An unpacked browser has libraries and fonts of its own. */
function ownEnvironment({ folder, executable }, path, libraries) {
  if (path !== join(folder, executable)) return {};
  return {
    LD_LIBRARY_PATH: [...libraryFolders(folder), ...libraries].join(delimiter),
    FONTCONFIG_FILE: fontSettings(folder),
  };
}

const fontSettings = (folder) => join(folder, 'parley-fonts.conf');

/** Fetches a browser where there is none and apt has one; otherwise its tests say that they skip. */
function ensure(browser) {
  const { title, variable, folder, size, skipped } = browser;
  if (process.platform !== 'linux' || find(browser) !== undefined) return;
  // Ubuntu's packages are empty ones that ask for a snap.
  if (osRelease().ID !== 'debian' || !hasApt() || isForbidden()) {
    say(`no ${title} found: ${skipped}. To have them, install one or name it in ${variable}`);
    return;
  }
  say(`fetching ${title} with apt into ${shown(folder)} (about ${size}); the system stays as it is. ${REMOVE}`);
  try {
    unpackPackages([browser.package, 'fonts-liberation'], folder);
    const folders = ['/usr/share/fonts', join(folder, 'usr/share/fonts')].map((path) => `<dir>${path}</dir>`).join('');
    const settings = `<?xml version="1.0"?>\n<fontconfig>${folders}<cachedir>${join(folder, 'font-cache')}</cachedir></fontconfig>\n`;
    writeFileSync(fontSettings(folder), settings);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`no ${title}: ${error.message}. So ${skipped}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) for (const name of process.argv.slice(2)) ensure(BROWSERS[name]);
