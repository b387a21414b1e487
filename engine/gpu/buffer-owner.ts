import type { Caps, DeviceStats } from './caps.ts';
import type { QueueWaits } from './queue-waits.ts';

/** What the parts of a device need of it: its buffers are counted where they are made. */
export interface BufferOwner {
  readonly gpu: GPUDevice;
  readonly caps: Caps;
  readonly stats: DeviceStats;
  /** Whatever waits for the queue does so by this. */
  readonly waits: QueueWaits;
  /** Bytes that dynamic offsets of uniforms are multiples of. */
  readonly uniformAlignment: number;
  readonly pipelines: {
    /** A new part of a bind group's key. */
    nextUniformId(): number;
    /** Drops the bind groups that hold this buffer. */
    forget(bufferId: string): void;
  };
  createBuffer(label: string, size: number, usage: GPUBufferUsageFlags): GPUBuffer;
  destroyBuffer(buffer: GPUBuffer): void;
}
