/** What a recording is made of. */
export type Step = DispatchStep | CopyStep;

export interface DispatchStep {
  readonly kind: 'dispatch';
  readonly label: string;
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly offsets: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

interface CopyStep {
  readonly kind: 'copy';
  readonly from: GPUBuffer;
  readonly fromByte: number;
  readonly to: GPUBuffer;
  readonly toByte: number;
  readonly bytes: number;
}
