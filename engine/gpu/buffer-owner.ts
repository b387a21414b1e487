import type { Caps, DeviceStats } from './caps.ts';
import type { QueueWaits } from './queue-waits.ts';

/** The side of a Device that its parts see. Buffers are made through it, so that they are counted. */
export interface BufferOwner {
  readonly gpu: GPUDevice;
  readonly caps: Caps;
  readonly stats: DeviceStats;
  /** How to wait for the queue. */
  readonly waits: QueueWaits;
  /** Alignment of dynamic uniform offsets, in bytes. */
  readonly uniformAlignment: number;
  readonly pipelines: {
    /** Returns a new id for the keys of bind groups. */
    nextUniformId(): number;
    /** Drops the bind groups that contain this buffer. */
    forget(bufferId: string): void;
  };
  createBuffer(label: string, size: number, usage: GPUBufferUsageFlags): GPUBuffer;
  destroyBuffer(buffer: GPUBuffer): void;
}
