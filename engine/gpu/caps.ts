import type { AdapterInfo } from '../api.ts';

/** What the adapter can do; ops choose their variants from it. */
export interface Caps {
  readonly subgroups: boolean;
  readonly subgroupMinSize: number;
  readonly subgroupMaxSize: number;
  readonly timestamps: boolean;
  readonly software: boolean;
  readonly family: AdapterInfo['family'];
  readonly maxBindingBytes: number;
  readonly maxBufferBytes: number;
  readonly maxWorkgroupBytes: number;
  readonly maxInvocations: number;
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
  bytesWritten: number;
  /** performance.now() of the last completed readback. */
  lastProgress: number;
  /** Submissions whose completion has been awaited and not yet seen. */
  pending: number;
}
