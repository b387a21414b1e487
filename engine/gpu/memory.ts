import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { AdapterMemory } from '../platform/memory.ts';
import { formatBytes } from '../util/memory.ts';
import type { Device } from './device.ts';

/** The size of a device's memory, and where the number comes from. */
export type DeviceMemory = Pick<AdapterMemory, 'bytes' | 'from'>;

/** The remedy where a device has less or more memory than was found. */
export const SAY_MEMORY: Remedy = { does: 'say how much memory there really is', settings: [{ name: 'deviceMemory' }] };

const LARGEST_BLOCK = 2 ** 30;
const SMALLEST_BLOCK = 2 ** 26;

/**
 * Finds the bytes of device memory that were available before this program took any: the operator's number; else what the platform finds free; else what the
 * device gives when probed. The last two are increased by what has been taken already.
 */
export async function deviceMemory(device: Device, given?: number): Promise<DeviceMemory> {
  if (given !== undefined) return { bytes: given, from: 'as set' };
  const { bytes, from, sure } = await device.platform.memory(device.info);
  return { bytes: (sure ? bytes : await allocatable(device, bytes)) + device.stats.bufferBytes, from };
}

/** Runs `make`, which allocates. Throws EngineError('out_of_memory') if the device refuses, whatever its memory was said to be. */
export async function allocate<T>(device: Device, what: string, make: () => T | Promise<T>): Promise<T> {
  device.gpu.pushErrorScope('out-of-memory');
  const made = Promise.resolve().then(make);
  await made.catch(() => undefined);
  await checkScope(device, what);
  return made;
}

/** `allocate` for a step, which cannot wait: `made` is there at once, and `given` rejects when the device could not give it. */
export function allocateNow<T>(device: Device, what: string, make: () => T): { readonly made: T; readonly given: Promise<void> } {
  device.gpu.pushErrorScope('out-of-memory');
  const made = make();
  const given = checkScope(device, what);
  given.catch(() => undefined);
  return { made, given };
}

async function checkScope(device: Device, what: string): Promise<void> {
  const refused = await device.gpu.popErrorScope();
  if (!refused) return;
  const taken = formatBytes(device.stats.bufferBytes);
  throw new EngineError('out_of_memory', `the device ran out of memory at ${what}, with ${taken} taken (${refused.message})`, { remedies: [SAY_MEMORY] }); // prettier-ignore
}

/** Probes the free memory: allocates buffers, smaller ones after a failure, until the smallest fails or `most` bytes are held, and frees them all. */
async function allocatable(device: Device, most: number): Promise<number> {
  const { gpu, caps } = device;
  const held: GPUBuffer[] = [];
  let bytes = 0;
  let size = LARGEST_BLOCK;
  while (size > caps.maxBufferBytes) size /= 2;
  while (size >= SMALLEST_BLOCK) {
    if (bytes + size > most) {
      size /= 2;
      continue;
    }
    gpu.pushErrorScope('out-of-memory');
    const buffer = device.createBuffer('memory probe', size, GPUBufferUsage.STORAGE);
    const failed = await gpu.popErrorScope();
    if (failed) {
      device.destroyBuffer(buffer);
      size /= 2;
    } else {
      held.push(buffer);
      bytes += size;
    }
  }
  for (const buffer of held) device.destroyBuffer(buffer);
  return bytes;
}
