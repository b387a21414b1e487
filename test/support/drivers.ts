import { existsSync } from 'node:fs';

const found = (...paths: string[]): string | undefined => paths.find((path) => existsSync(path));

/** Mesa's software driver, where Debian, Ubuntu and Fedora put it. */
export const LAVAPIPE = found('/usr/share/vulkan/icd.d/lvp_icd.json', '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json');
/** Chromium's software driver: a second adapter that is really another. */
export const SWIFTSHADER = found(
  '/usr/lib/chromium/vk_swiftshader_icd.json',
  '/usr/lib/chromium-browser/vk_swiftshader_icd.json',
  '/opt/google/chrome/vk_swiftshader_icd.json',
);
