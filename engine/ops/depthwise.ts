import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, ceilDiv } from '../util/math.ts';

const WG = 64;

export const CONV_TRANSPOSE1D_DEPTHWISE = defineKernel({
  file: 'conv/conv_transpose1d_depthwise.wgsl',
  fragments: () => ['lib/grid.wgsl'],
  bindings: { x: 'read', weight: 'read', bias: 'read', out: 'write' },
  params: { rows: 'u32', rows_in: 'u32', c4: 'u32', taps: 'u32', stride: 'u32', padding: 'u32' },
  overrides: { WG: 'u32' },
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
  readonly rows: number;
  readonly stride: number;
  readonly padding: number;
  readonly outputPadding: number;
}

/** Depthwise transposed convolution; returns the number of output rows. */
export function convTranspose1dDepthwise(rec: Recorder, { x, weight, out, rows, stride, padding, outputPadding }: DepthwiseArgs): number {
  const outRows = (rows - 1) * stride - 2 * padding + weight.kernel + outputPadding;
  const c = alignUp(weight.channels, 4);
  assert(x.shape.at(-1) === c && out.shape.at(-1) === c, `depthwise: ${x.label} and ${out.label} must have ${c} columns`);
  assert(outRows <= (out.shape[0] ?? 0), `depthwise: ${outRows} output rows for ${out.label} [${out.shape.join(', ')}]`);
  const params = { rows: outRows, rows_in: rows, c4: c / 4, taps: weight.kernel, stride, padding };
  const bindings = { x, weight: weight.weight, bias: weight.bias, out };
  rec.dispatch(CONV_TRANSPOSE1D_DEPTHWISE, { overrides: { WG } }, bindings, params, [ceilDiv((outRows * c) / 4, WG)]);
  return outRows;
}
