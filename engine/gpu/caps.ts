import type { AdapterInfo } from '../api.ts';

/** What the adapter can do; ops choose their variants from it. */
export interface Caps {
  readonly subgroups: boolean;
  readonly subgroupMinSize: number;
  readonly subgroupMaxSize: number;
  /** A kernel can say how large its subgroups are, between the two. */
  readonly subgroupSizeControl: boolean;
  /** Rows, columns and depth of the subgroup matrices that kernels may take (gpu/matrices.ts); 0 = there are none. */
  readonly matrixSize: number;
  readonly timestamps: boolean;
  readonly software: boolean;
  readonly family: AdapterInfo['family'];
  readonly maxBindingBytes: number;
  readonly maxBufferBytes: number;
  /** Texels of four words that a storage texture holds which kernels read; 0 = there are none. */
  readonly maxTexels: number;
  readonly maxWorkgroupBytes: number;
  /** Storage buffers that a kernel may bind. */
  readonly maxStorageBuffers: number;
  readonly maxInvocations: number;
  /** Kernels and fragments that are not used here, by name, because they failed (ops/replaceable.ts). */
  readonly avoid: ReadonlySet<string>;
  /** The candidate that the autotune chose, by key (gpu/tuning.ts). */
  readonly tuned: ReadonlyMap<string, string>;
}

/** What an adapter may lack; every kernel has a path without. Without `software` a software adapter gets the kernels that GPUs get. */
export const OPTIONAL_FEATURES = ['subgroups', 'timestamps', 'software', 'textures'] as const;
export type OptionalFeature = (typeof OPTIONAL_FEATURES)[number];

/** The capabilities of the same adapter without these. */
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

/** Counters since creation and gauges; the engine's snapshot is made of them. */
export interface DeviceStats {
  buffers: number;
  bufferBytes: number;
  bindGroups: number;
  pipelines: number;
  dispatches: number;
  submits: number;
  bytesRead: number;
  /** Writes of host data into buffers. */
  uploads: number;
  bytesWritten: number;
  /** performance.now() of the last completed readback. */
  lastProgress: number;
  /** Submissions whose completion has been awaited and not yet seen. */
  pending: number;
}
