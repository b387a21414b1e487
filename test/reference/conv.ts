/** Convolutions over NLC data by their definition, in f64. */
export interface ConvShape {
  readonly rows: number;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernel: number;
  readonly stride: number;
  readonly padding: number;
  readonly dilation: number;
}

/** x [L, Cin], weight [Cout, Cin, kernel] -> [L', Cout]. */
export function conv1d(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  bias: ArrayLike<number> | undefined,
  shape: ConvShape,
): Float64Array {
  const { rows, inChannels, outChannels, kernel, stride, padding, dilation } = shape;
  const outRows = Math.floor((rows + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1;
  const out = new Float64Array(outRows * outChannels);
  for (let l = 0; l < outRows; l++) {
    for (let n = 0; n < outChannels; n++) {
      let sum = bias ? bias[n]! : 0;
      for (let t = 0; t < kernel; t++) {
        const from = l * stride + t * dilation - padding;
        if (from < 0 || from >= rows) continue;
        for (let c = 0; c < inChannels; c++) sum += x[from * inChannels + c]! * weight[(n * inChannels + c) * kernel + t]!;
      }
      out[l * outChannels + n] = sum;
    }
  }
  return out;
}

/** Scatter form: x [L, Cin], weight [Cin, Cout, kernel] -> [(L - 1) stride - 2 padding + kernel + outputPadding, Cout]. */
export function convTranspose1d(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  bias: ArrayLike<number> | undefined,
  { rows, inChannels, outChannels, kernel, stride, padding, outputPadding }: Omit<ConvShape, 'dilation'> & { outputPadding: number },
): Float64Array {
  const outRows = (rows - 1) * stride - 2 * padding + kernel + outputPadding;
  const out = new Float64Array(outRows * outChannels);
  for (let i = 0; i < out.length; i++) out[i] = bias ? bias[i % outChannels]! : 0;
  for (let l = 0; l < rows; l++) {
    for (let t = 0; t < kernel; t++) {
      const to = l * stride + t - padding;
      if (to < 0 || to >= outRows) continue;
      for (let n = 0; n < outChannels; n++) {
        for (let c = 0; c < inChannels; c++) {
          out[to * outChannels + n]! += x[l * inChannels + c]! * weight[(c * outChannels + n) * kernel + t]!;
        }
      }
    }
  }
  return out;
}

export { convTranspose1dDepthwise } from '../../engine/runner/plain/depthwise.ts';
