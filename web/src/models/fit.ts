/** Checks, before anything is fetched, whether a model can be stored and run here, as far as the browser tells. */
import { EngineError } from '../../../engine/errors.ts';
import { manifestBytes } from './manifest.ts';
import type { ModelManifest } from './manifest.ts';
import { StoreError } from './store-error.ts';
import { formatBytes } from '../util.ts';

/** Room for a model, in bytes; absent where the browser does not say. */
export interface Room {
  /** Storage that the page may still use. */
  readonly storageBytes?: number;
  /** Memory of the machine. */
  readonly memoryBytes?: number;
}

/** Most memory that browsers report, in GiB: they round it to steps, and report this for all larger machines. */
const MOST_TOLD = 8;

/** Returns the room on this machine. WebGPU does not report GPU memory, so the machine's memory is the limit. */
export async function roomHere(): Promise<Room> {
  const { quota, usage = 0 } = (await (navigator.storage as StorageManager | undefined)?.estimate?.()) ?? {};
  const { deviceMemory } = navigator as { readonly deviceMemory?: number };
  return {
    ...(quota !== undefined && { storageBytes: quota - usage }),
    ...(deviceMemory !== undefined && deviceMemory < MOST_TOLD && { memoryBytes: deviceMemory * 2 ** 30 }),
  };
}

/** Throws StoreError('quota') or EngineError('out_of_memory') if a model is too large; `stored` bytes of it are in the store already. */
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
