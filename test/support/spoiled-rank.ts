/** The thread of a rank whose driver spoils kernels. */
import { main as serve } from '../../engine/parallel/rank-worker.ts';
import type { Platform, WorkerPort } from '../../engine/platform/platform.ts';
import { SPOILED_SUMS, spoiled } from './spoiled-shaders.ts';

/** Serves as a rank does. */
export function main(platform: Platform, port: WorkerPort): void {
  serve(spoiled(platform, SPOILED_SUMS), port);
}
