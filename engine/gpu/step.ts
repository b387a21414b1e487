import { TEXEL_BYTES } from './tensor.ts';

/** What a recording is made of. */
export type Step = DispatchStep | CopyStep | FillStep;

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

/** Rows of texels. */
interface FillStep {
  readonly kind: 'fill';
  readonly from: GPUBuffer;
  readonly fromByte: number;
  readonly to: GPUTexture;
  readonly firstRow: number;
  readonly width: number;
  readonly rows: number;
}

/** Encodes what is no dispatch. */
export function encodeCopy(encoder: GPUCommandEncoder, step: CopyStep | FillStep): void {
  if (step.kind === 'copy') {
    encoder.copyBufferToBuffer(step.from, step.fromByte, step.to, step.toByte, step.bytes);
    return;
  }
  const { from, fromByte, to, firstRow, width, rows } = step;
  const source = { buffer: from, offset: fromByte, ...(rows > 1 && { bytesPerRow: width * TEXEL_BYTES }) };
  encoder.copyBufferToTexture(source, { texture: to, origin: [0, firstRow] }, [width, rows]);
}
