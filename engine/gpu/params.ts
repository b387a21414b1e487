import type { BufferOwner } from './buffer-owner.ts';
import type { ScalarType } from './kernel.ts';
import { alignUp } from '../util/math.ts';

/** Place of a dispatch's params: a uniform buffer and the dynamic offset into it. */
export interface ParamsSlot {
  readonly buffer: GPUBuffer;
  /** Id of the buffer in the keys of bind groups. */
  readonly bufferId: string;
  readonly offset: number;
}

interface Chunk {
  readonly buffer: GPUBuffer;
  readonly id: string;
  readonly host: DataView;
  used: number;
  /** Bytes of it that were written to the device. */
  written: number;
}

const CHUNK_BYTES = 64 * 1024;
/** Size of a chunk for plans. A large model's plans have a few hundred different sets of params, and those in one buffer can share bind groups. */
const PLAN_CHUNK_BYTES = 256 * 1024;

/** The source of memory for the params of a recording's dispatches. */
export interface ParamsStore {
  allocate(fields: Readonly<Record<string, ScalarType>>, values: Readonly<Record<string, number>>): ParamsSlot;
  /** Writes the collected params to the device. */
  flush(): void;
}

/** Uniform memory in chunks, collected on the host. */
class Chunks {
  readonly #device: BufferOwner;
  readonly #label: string;
  readonly #bytes: number;
  readonly #chunks: Chunk[] = [];
  #current = 0;

  constructor(device: BufferOwner, label: string, bytes: number) {
    this.#device = device;
    this.#label = label;
    this.#bytes = bytes;
  }

  /** Takes room for these fields, and writes their values there. */
  take(fields: Readonly<Record<string, ScalarType>>, values: Readonly<Record<string, number>>): ParamsSlot {
    let count = 0;
    for (const _ in fields) count++;
    const bytes = alignUp(count * 4, Math.max(16, this.#device.uniformAlignment));
    let chunk = this.#chunks[this.#current];
    if (chunk && chunk.used + bytes > this.#bytes) chunk = this.#chunks[++this.#current];
    if (!chunk) {
      const label = `${this.#label} ${this.#chunks.length}`;
      const buffer = this.#device.createBuffer(label, this.#bytes, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
      const id = `u${this.#device.pipelines.nextUniformId()}`;
      chunk = { buffer, id, host: new DataView(new ArrayBuffer(this.#bytes)), used: 0, written: 0 };
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

  /** Writes the params that the device does not have yet. */
  write(): void {
    for (const chunk of this.#chunks) {
      const bytes = chunk.used - chunk.written;
      if (bytes === 0) continue;
      this.#device.stats.uploads++;
      this.#device.stats.bytesWritten += bytes;
      this.#device.gpu.queue.writeBuffer(chunk.buffer, chunk.written, chunk.host.buffer, chunk.written, bytes);
      chunk.written = chunk.used;
    }
  }

  /** Marks all room as free. */
  clear(): void {
    for (const chunk of this.#chunks) {
      chunk.used = 0;
      chunk.written = 0;
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

/**
 * Uniform memory of one step. Params are collected in host memory and written once per chunk at submit; the queue's
 * order makes reuse in the next step safe. A fixed sequence of dispatches gets the same slots every step, so its bind
 * groups stay cached.
 */
export class ParamsArena implements ParamsStore {
  readonly #chunks: Chunks;

  constructor(device: BufferOwner, label: string) {
    this.#chunks = new Chunks(device, label, CHUNK_BYTES);
  }

  allocate(fields: Readonly<Record<string, ScalarType>>, values: Readonly<Record<string, number>>): ParamsSlot {
    return this.#chunks.take(fields, values);
  }

  /** Writes the collected params to the device, and frees their room for the next step. */
  flush(): void {
    this.#chunks.write();
    this.#chunks.clear();
  }

  destroy(): void {
    this.#chunks.destroy();
  }
}

/**
 * Uniform memory of all captured plans of a device. The params of a plan never change, so equal ones are stored once, and dispatches of different plans with the
 * same tensors share one bind group.
 */
export class PlanParams implements ParamsStore {
  readonly #chunks: Chunks;
  /** Slots by the types and values of their fields. */
  readonly #slots = new Map<string, ParamsSlot>();

  constructor(device: BufferOwner) {
    this.#chunks = new Chunks(device, 'plan params', PLAN_CHUNK_BYTES);
  }

  allocate(fields: Readonly<Record<string, ScalarType>>, values: Readonly<Record<string, number>>): ParamsSlot {
    let key = '';
    for (const name in fields) key += `${fields[name]} ${values[name]},`;
    let slot = this.#slots.get(key);
    if (!slot) {
      slot = this.#chunks.take(fields, values);
      this.#slots.set(key, slot);
    }
    return slot;
  }

  flush(): void {
    this.#chunks.write();
  }
}
