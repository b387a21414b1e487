/** Vulkan driver files of the two software adapters that tests use, where this machine has them. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findChromium } from '../setup-browsers.mjs';

const found = (...paths: string[]): string | undefined => paths.find((path) => existsSync(path));

/** Mesa's software driver: the one in use (the system's own may be too old to be), else where Debian, Ubuntu and Fedora put it. */
export const LAVAPIPE = found(
  ...(process.env['VK_DRIVER_FILES'] ?? '').split(':').filter((path) => /\/lvp_icd\.[^/]*json$/.test(path)),
  '/usr/share/vulkan/icd.d/lvp_icd.json',
  '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json',
);

const chromium = findChromium();

/** The software driver beside the Chromium of the browser tests: a second adapter that is really another. */
export const SWIFTSHADER = found(
  ...[
    ...(chromium !== undefined && existsSync(chromium) ? [dirname(realpathSync(chromium))] : []),
    '/usr/lib/chromium',
    '/usr/lib/chromium-browser',
    '/opt/google/chrome',
  ].map((folder) => join(folder, 'vk_swiftshader_icd.json')),
);
