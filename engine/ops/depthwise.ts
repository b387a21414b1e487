import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, ceilDiv } from '../util/math.ts';
import { outputRows, rowShape } from './row-spans.ts';
import type { Rows, SpanRows } from './row-spans.ts';

const WG = 64;

export const CONV_TRANSPOSE1D_DEPTHWISE = defineKernel({
  file: 'conv/conv_transpose1d_depthwise.wgsl',
  fragments: () => ['lib/grid.wgsl', 'lib/row_spans.wgsl'],
  bindings: { x: 'read', weight: 'read', bias: 'read', spans: 'read', out: 'write' },
  params: { rows_unit: 'u32', rows: 'u32', rows_in_unit: 'u32', rows_in: 'u32', c4: 'u32', taps: 'u32', stride: 'u32', padding: 'u32' },
  overrides: { WG: 'u32', SPANS: 'bool' },
});

/** Depthwise transposed convolution: [kernel][C padded to 4] and bias, f32. */
export interface DepthwiseWeight {
  readonly channels: number;
  readonly kernel: number;
  readonly weight: Tensor;
  readonly bias: Tensor;
}

/** Uploads a checkpoint's ConvTranspose1d.weight [channels, 1, kernel] with groups = channels. */
export function packDepthwise(
  device: Device,
  label: string,
  data: Float32Array,
  channels: number,
  kernel: number,
  bias: Float32Array,
): DepthwiseWeight {
  assert(data.length === channels * kernel, `${label}: ${data.length} weights for [${channels}, 1, ${kernel}]`);
  const padded = alignUp(channels, 4);
  const packed = new Float32Array(kernel * padded);
  for (let c = 0; c < channels; c++) for (let t = 0; t < kernel; t++) packed[t * padded + c] = data[c * kernel + t]!;
  const biases = new Float32Array(padded);
  biases.set(bias);
  return {
    channels,
    kernel,
    weight: device.upload(label, 'f32', [kernel, padded], packed),
    bias: device.upload(`${label} bias`, 'f32', [padded], biases),
  };
}

export interface DepthwiseArgs {
  /** [L, C padded to 4] f32. */
  readonly x: Tensor;
  readonly weight: DepthwiseWeight;
  /** [L', C padded to 4] f32. */
  readonly out: Tensor;
  readonly rows: Rows;
  readonly stride: number;
  readonly padding: number;
  readonly outputPadding: number;
}

/** Depthwise transposed convolution; returns the output rows. */
export function convTranspose1dDepthwise(rec: Recorder, args: DepthwiseArgs & { readonly rows: SpanRows }): SpanRows;
export function convTranspose1dDepthwise(rec: Recorder, args: DepthwiseArgs & { readonly rows: number }): number;
export function convTranspose1dDepthwise(rec: Recorder, { x, weight, out, rows, stride, padding, outputPadding }: DepthwiseArgs): Rows {
  const outRows = outputRows(rows, (count) => (count - 1) * stride - 2 * padding + weight.kernel + outputPadding, stride);
  const [shape, input] = [rowShape(outRows), rowShape(rows)];
  const c = alignUp(weight.channels, 4);
  assert(x.shape.at(-1) === c && out.shape.at(-1) === c, `depthwise: ${x.label} and ${out.label} must have ${c} columns`);
  assert(shape.end <= (out.shape[0] ?? 0), `depthwise: ${shape.end} output rows for ${out.label} [${out.shape.join(', ')}]`);
  const heights = { rows_unit: shape.unit, rows: shape.rows, rows_in_unit: input.unit, rows_in: input.rows };
  const params = { ...heights, c4: c / 4, taps: weight.kernel, stride, padding };
  const bindings = { x, weight: weight.weight, bias: weight.bias, spans: shape.table ?? x, out };
  const variant = { overrides: { WG, SPANS: shape.table ? 1 : 0 } };
  rec.dispatch(CONV_TRANSPOSE1D_DEPTHWISE, variant, bindings, params, [ceilDiv((shape.longest * c) / 4, WG), 1, shape.count]);
  return outRows;
}
