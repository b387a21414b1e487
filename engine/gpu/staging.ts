import { nextPowerOfTwo } from '../util/math.ts';
import type { BufferOwner } from './buffer-owner.ts';
import type { Tensor } from './tensor.ts';

/** A readback from the device. */
export interface Readback {
  /** Resolves once the submission that holds the copy has completed. Call it once, after submit. */
  data(): Promise<ArrayBuffer>;
  /** Like `data`, but copies the bytes into the caller's memory, which threads may share. */
  into(target: Uint8Array): Promise<void>;
}

/** A pool of MAP_READ buffers, so that a step in steady state creates none. */
export class StagingRing {
  readonly #device: BufferOwner;
  readonly #free = new Map<number, GPUBuffer[]>();

  constructor(device: BufferOwner) {
    this.#device = device;
  }

  /** Returns a staging buffer of at least `bytes` and its Readback. */
  take(tensor: Tensor, bytes: number): { buffer: GPUBuffer; readback: Readback } {
    const size = Math.max(256, nextPowerOfTwo(bytes));
    const list = this.#free.get(size) ?? [];
    this.#free.set(size, list);
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const buffer = list.pop() ?? this.#device.createBuffer(`staging ${size}`, size, usage);
    const { stats, waits } = this.#device;
    const mapped = async <T>(take: (range: ArrayBuffer) => T): Promise<T> => {
      stats.pending++;
      try {
        await waits.until(buffer.mapAsync(GPUMapMode.READ, 0, bytes));
      } finally {
        stats.pending--;
      }
      const taken = take(buffer.getMappedRange(0, bytes));
      buffer.unmap();
      list.push(buffer);
      stats.bytesRead += bytes;
      stats.lastProgress = performance.now();
      return taken;
    };
    const readback: Readback = {
      data: () => mapped((range) => range.slice(0)),
      into: (target) => mapped((range) => target.set(new Uint8Array(range))),
    };
    return { buffer, readback };
  }
}
