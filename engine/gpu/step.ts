import { TEXEL_BYTES, TEXEL_ROW } from './tensor.ts';

/** The parts of a recording: dispatches, copies and plans. */
export type Step = DispatchStep | CopyStep | FillStep | SpillStep | TexelStep;

export interface DispatchStep {
  readonly kind: 'dispatch';
  readonly label: string;
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly offsets: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly z: number;
  /** Work of the dispatch; absent unless profiling counted it at recording. */
  readonly work?: StepWork | undefined;
}

/** Bytes that a dispatch reads and writes, and its operations. `...APosition` is what each position of its sequences adds, if only the device knows their number. */
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

/** A copy between rows of texels of a texture and a buffer. */
interface TexelRows {
  readonly buffer: GPUBuffer;
  readonly byte: number;
  readonly texture: GPUTexture;
  readonly firstRow: number;
  readonly width: number;
  readonly rows: number;
}

/** A copy of a whole texture to the start of another. */
interface TexelStep {
  readonly kind: 'texels';
  readonly from: GPUTexture;
  readonly to: GPUTexture;
}

interface FillStep extends TexelRows {
  readonly kind: 'fill';
}

/** A copy from a texture to a buffer. */
interface SpillStep extends TexelRows {
  readonly kind: 'spill';
}

/** Splits a copy of `texels` texels, from row `firstRow` on, into one of whole rows and one of the rest. */
export function texelRows(
  kind: 'fill' | 'spill',
  texels: number,
  { buffer, byte, texture, firstRow }: Omit<TexelRows, 'width' | 'rows'>,
): Step[] {
  const whole = Math.floor(texels / TEXEL_ROW);
  const rest = texels % TEXEL_ROW;
  const steps: Step[] = [];
  if (whole > 0) steps.push({ kind, buffer, byte, texture, firstRow, width: TEXEL_ROW, rows: whole });
  if (rest > 0) steps.push({ kind, buffer, byte: byte + whole * TEXEL_ROW * TEXEL_BYTES, texture, firstRow: firstRow + whole, width: rest, rows: 1 }); // prettier-ignore
  return steps;
}

/** Encodes a copy. */
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
  const { buffer, byte, texture, firstRow, width, rows } = step;
  const linear = { buffer, offset: byte, ...(rows > 1 && { bytesPerRow: width * TEXEL_BYTES }) };
  const texels = { texture, origin: [0, firstRow] };
  if (step.kind === 'fill') encoder.copyBufferToTexture(linear, texels, [width, rows]);
  else encoder.copyTextureToBuffer(texels, linear, [width, rows]);
}
