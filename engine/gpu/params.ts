import type { BufferOwner } from './buffer-owner.ts';
import type { ScalarType } from './kernel.ts';
import { alignUp } from '../util/math.ts';

/** Where a dispatch's params lie: a chunk's uniform buffer and the dynamic offset into it. */
export interface ParamsSlot {
  readonly buffer: GPUBuffer;
  /** Part of the bind group cache's key. */
  readonly bufferId: string;
  readonly offset: number;
}

interface Chunk {
  readonly buffer: GPUBuffer;
  readonly id: string;
  readonly host: DataView;
  used: number;
}

const CHUNK_BYTES = 64 * 1024;

/**
 * Uniform memory of one step. Params are collected in host memory and written once per chunk at submit; the queue's
 * order makes reuse in the next step safe. A fixed sequence of dispatches gets the same slots every step, so its bind
 * groups stay cached.
 */
export class ParamsArena {
  readonly #device: BufferOwner;
  readonly #label: string;
  readonly #chunks: Chunk[] = [];
  #current = 0;

  constructor(device: BufferOwner, label: string) {
    this.#device = device;
    this.#label = label;
  }

  allocate(fields: Readonly<Record<string, ScalarType>>, values: Readonly<Record<string, number>>): ParamsSlot {
    let count = 0;
    for (const _ in fields) count++;
    const bytes = alignUp(count * 4, Math.max(16, this.#device.uniformAlignment));
    let chunk = this.#chunks[this.#current];
    if (chunk && chunk.used + bytes > CHUNK_BYTES) chunk = this.#chunks[++this.#current];
    if (!chunk) {
      const label = `${this.#label} ${this.#chunks.length}`;
      const buffer = this.#device.createBuffer(label, CHUNK_BYTES, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
      chunk = { buffer, id: `u${this.#device.pipelines.nextUniformId()}`, host: new DataView(new ArrayBuffer(CHUNK_BYTES)), used: 0 };
      this.#chunks.push(chunk);
    }
    const slot = { buffer: chunk.buffer, bufferId: chunk.id, offset: chunk.used };
    let at = chunk.used;
    for (const name in fields) {
      const value = values[name];
      if (value === undefined) throw new Error(`params field ${name} is missing`);
      if (fields[name] === 'f32') chunk.host.setFloat32(at, value, true);
      else if (fields[name] === 'i32') chunk.host.setInt32(at, value, true);
      else chunk.host.setUint32(at, value, true);
      at += 4;
    }
    chunk.used += bytes;
    return slot;
  }

  /** Writes what was collected to the device and starts over. */
  flush(): void {
    for (const chunk of this.#chunks) {
      if (chunk.used === 0) continue;
      this.#device.stats.bytesWritten += chunk.used;
      this.#device.gpu.queue.writeBuffer(chunk.buffer, 0, chunk.host.buffer, 0, chunk.used);
      chunk.used = 0;
    }
    this.#current = 0;
  }

  destroy(): void {
    for (const chunk of this.#chunks) {
      this.#device.pipelines.forget(chunk.id);
      this.#device.destroyBuffer(chunk.buffer);
    }
    this.#chunks.length = 0;
  }
}
