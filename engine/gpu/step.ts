import { TEXEL_BYTES } from './tensor.ts';

/** What a recording is made of. */
export type Step = DispatchStep | CopyStep | FillStep | TexelStep;

export interface DispatchStep {
  readonly kind: 'dispatch';
  readonly label: string;
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly offsets: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly z: number;
  /** Absent where nobody asked for it when it was recorded. */
  readonly work?: StepWork | undefined;
}

/** What a dispatch reads and writes, in bytes, and computes; and what of it each position of its sequences adds, where only the device knows how many there are. */
export interface StepWork {
  readonly read: number;
  readonly written: number;
  readonly operations: number;
  readonly readAPosition: number;
  readonly operationsAPosition: number;
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

/** All of a texture, to the start of another. */
interface TexelStep {
  readonly kind: 'texels';
  readonly from: GPUTexture;
  readonly to: GPUTexture;
}

/** Encodes what is no dispatch. */
export function encodeCopy(encoder: GPUCommandEncoder, step: Exclude<Step, DispatchStep>): void {
  if (step.kind === 'texels') {
    const { from, to } = step;
    encoder.copyTextureToTexture({ texture: from }, { texture: to }, [from.width, from.height]);
    return;
  }
  if (step.kind === 'copy') {
    encoder.copyBufferToBuffer(step.from, step.fromByte, step.to, step.toByte, step.bytes);
    return;
  }
  const { from, fromByte, to, firstRow, width, rows } = step;
  const source = { buffer: from, offset: fromByte, ...(rows > 1 && { bytesPerRow: width * TEXEL_BYTES }) };
  encoder.copyBufferToTexture(source, { texture: to, origin: [0, firstRow] }, [width, rows]);
}
