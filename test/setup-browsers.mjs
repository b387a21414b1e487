/**
 * Chromium for the browser tests: the system's, else on Debian one unpacked into .parley/chromium, with what it needs. Plain Node, because
 * `npm test` calls it before anything is installed.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CACHE, REMOVE, SetupError, isForbidden, say, shown } from '../server/setup/setup.mjs';
import { hasApt, libraryFolders, osRelease, unpackPackages } from '../server/setup/apt.mjs';

const DRIVERS = join(CACHE, 'drivers');
const FOLDER = join(CACHE, 'chromium');
const UNPACKED = join(FOLDER, 'usr', 'lib', 'chromium', 'chromium');
const FONT_SETTINGS = join(FOLDER, 'parley-fonts.conf');
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/**
 * Path of a Chromium, or undefined: then browser tests skip and say so. PARLEY_CHROMIUM overrides.
 * @returns {string | undefined}
 */
export function findChromium() {
  if (process.env.PARLEY_CHROMIUM) return process.env.PARLEY_CHROMIUM;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const installed = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [...installed, UNPACKED].find((path) => existsSync(path));
}

/**
 * The environment to start that Chromium in. An unpacked one has libraries and fonts of its own; none is shown the unpacked graphics driver,
 * for it brings its own.
 * @param {string | undefined} chromium
 * @returns {Record<string, string | undefined>}
 */
export function chromiumEnvironment(chromium) {
  const isOurs = chromium === UNPACKED;
  const without = (name) => (process.env[name] ?? '').split(delimiter).filter((path) => path !== '' && !path.startsWith(DRIVERS));
  const list = (paths) => (paths.length === 0 ? undefined : paths.join(delimiter));
  return {
    ...process.env,
    VK_DRIVER_FILES: list(without('VK_DRIVER_FILES')),
    LD_LIBRARY_PATH: list([...(isOurs ? libraryFolders(FOLDER) : []), ...without('LD_LIBRARY_PATH')]),
    ...(isOurs && { FONTCONFIG_FILE: FONT_SETTINGS }),
  };
}

/** Fetches a Chromium where there is none and apt has one; otherwise the browser tests say that they skip. */
export function ensureChromium() {
  if (process.platform !== 'linux' || findChromium() !== undefined) return;
  // Ubuntu's package is an empty one that asks for a snap.
  if (osRelease().ID !== 'debian' || !hasApt() || isForbidden()) {
    say('no Chromium found: the browser tests will skip. To have them, install one or name it in PARLEY_CHROMIUM');
    return;
  }
  say(`fetching Chromium with apt into ${shown(FOLDER)} (about 200 MB); the system stays as it is. ${REMOVE}`);
  try {
    unpackPackages(['chromium', 'fonts-liberation'], FOLDER);
    writeFileSync(FONT_SETTINGS, fontSettings());
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`no Chromium: ${error.message}. The browser tests will skip`);
  }
}

function fontSettings() {
  const folders = ['/usr/share/fonts', join(FOLDER, 'usr/share/fonts')].map((folder) => `<dir>${folder}</dir>`);
  return `<?xml version="1.0"?>\n<fontconfig>${folders.join('')}<cachedir>${join(FOLDER, 'font-cache')}</cachedir></fontconfig>\n`;
}
