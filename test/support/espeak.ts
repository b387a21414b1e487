/** espeak-ng in the tests' own thread. */
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';

/** A platform that has espeak-ng and nothing else, threads least of all. */
export const ONLY_ESPEAK: Pick<Platform, 'espeak'> = { espeak: () => createNodePlatform().espeak!() };
