/** Vulkan driver files of the two software adapters that tests use, where this machine has them. */
import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { findChromium } from '../setup-browsers.mjs';
import { NOT_OPTIMISED } from './not-optimised.ts';

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

/**
 * For what has no subgroups, on Mesa's software driver: vectors of half the length that it takes by itself. No result depends on it then, and most kernels compile in two
 * thirds of the time, in fewer still without the optimising passes: they compile the bundled models anew, and say little with them. The driver does not tell the functions
 * apart that read textures in either length (docs/decisions/kernels.md), so what it has compiled lies apart: beside its own cache, where the next clone finds it as well.
 */
export const SHORT_VECTORS = {
  LP_NATIVE_VECTOR_WIDTH: '128',
  ...NOT_OPTIMISED,
  MESA_SHADER_CACHE_DIR: join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'mesa_short_vectors'),
};
