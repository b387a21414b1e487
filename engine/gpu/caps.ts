import type { AdapterInfo } from '../api.ts';

/** Capabilities of the adapter, by which ops choose their kernels and variants. */
export interface Caps {
  readonly subgroups: boolean;
  readonly subgroupMinSize: number;
  readonly subgroupMaxSize: number;
  /** Whether a kernel can set its subgroup size, between `subgroupMinSize` and `subgroupMaxSize`. */
  readonly subgroupSizeControl: boolean;
  /** M = N = K of the subgroup matrices that kernels may use (gpu/matrices.ts); 0 = none. */
  readonly matrixSize: number;
  readonly timestamps: boolean;
  readonly software: boolean;
  readonly family: AdapterInfo['family'];
  readonly maxBindingBytes: number;
  readonly maxBufferBytes: number;
  /** Most texels (four u32 each) of a storage texture that kernels can read; 0 = kernels cannot read storage textures. */
  readonly maxTexels: number;
  readonly maxWorkgroupBytes: number;
  /** Most storage buffers that a kernel may bind. */
  readonly maxStorageBuffers: number;
  readonly maxInvocations: number;
  /** Names of the kernels and fragments to do without, because they failed on this adapter (ops/replaceable.ts). */
  readonly avoid: ReadonlySet<string>;
  /** The candidate that the autotune chose, by key (gpu/tuning.ts). */
  readonly tuned: ReadonlyMap<string, string>;
}

/** Features that an adapter may lack; there are kernels without each. Without `software` a software adapter gets the kernels of GPUs. */
export const OPTIONAL_FEATURES = ['subgroups', 'timestamps', 'software', 'textures'] as const;
export type OptionalFeature = (typeof OPTIONAL_FEATURES)[number];

/** Capabilities of the same adapter if it lacked these features. */
export function capsWithout(caps: Caps, features: readonly OptionalFeature[]): Caps {
  const lacks = new Set(features);
  return {
    ...caps,
    ...(lacks.has('subgroups') && { subgroups: false, subgroupMinSize: 1, subgroupMaxSize: 1, subgroupSizeControl: false, matrixSize: 0 }),
    ...(lacks.has('timestamps') && { timestamps: false }),
    ...(lacks.has('textures') && { maxTexels: 0 }),
    ...(lacks.has('software') && { software: false, family: 'generic' }),
  };
}

/** Counters since the device was created, and gauges, from which EngineStatus is made. */
export interface DeviceStats {
  buffers: number;
  bufferBytes: number;
  bindGroups: number;
  pipelines: number;
  dispatches: number;
  submits: number;
  bytesRead: number;
  /** Number of writes of host data into buffers. */
  uploads: number;
  bytesWritten: number;
  /** performance.now() of the last completed readback. */
  lastProgress: number;
  /** Submissions that are awaited and not completed. */
  pending: number;
}
