/** Whether a model can be kept and computed here, as far as the browser tells: asked before anything is fetched. */
import { EngineError } from '../../../engine/errors.ts';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';
import { StoreError } from './store-error.ts';
import { formatBytes } from '../util.ts';

/** In bytes; absent where the browser does not say. */
export interface Room {
  /** That the page may still store. */
  readonly storageBytes?: number;
  /** Of the machine. */
  readonly memoryBytes?: number;
}

/** Browsers tell a machine's memory in steps, and say this number, in GiB, of everything above it. */
const MOST_TOLD = 8;

/** What there is. WebGPU does not tell a graphics card's memory; no model runs that needs more than the machine has. */
export async function roomHere(): Promise<Room> {
  const { quota, usage = 0 } = (await (navigator.storage as StorageManager | undefined)?.estimate?.()) ?? {};
  const { deviceMemory } = navigator as { readonly deviceMemory?: number };
  return {
    ...(quota !== undefined && { storageBytes: quota - usage }),
    ...(deviceMemory !== undefined && deviceMemory < MOST_TOLD && { memoryBytes: deviceMemory * 2 ** 30 }),
  };
}

/** Throws StoreError('quota') or EngineError('out_of_memory') for a model that is too large; `stored` bytes of it are here already. */
export function requireFit(manifest: Pick<ModelManifest, 'id' | 'files' | 'about'>, room: Room, stored = 0): void {
  const missing = manifestBytes(manifest) - stored;
  if (missing > (room.storageBytes ?? Infinity)) {
    throw new StoreError('quota', `${manifest.id} takes ${formatBytes(missing)}, and this browser gives this page ${formatBytes(Math.max(0, room.storageBytes!))} more`); // prettier-ignore
  }
  const { memoryBytes, weightBytes } = manifest.about ?? {};
  const needed = memoryBytes ?? weightBytes ?? 0;
  if (needed > (room.memoryBytes ?? Infinity)) {
    throw new EngineError('out_of_memory', `${manifest.id} needs about ${formatBytes(needed)} of memory, and this machine has about ${formatBytes(room.memoryBytes!)}`); // prettier-ignore
  }
}
