/** Depthwise scatter form: x [L, C], weight [C, kernel] -> [(L - 1) stride - 2 padding + kernel + outputPadding, C]. */
export function convTranspose1dDepthwise(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  bias: ArrayLike<number>,
  {
    rows,
    channels,
    kernel,
    stride,
    padding,
    outputPadding,
  }: Record<'rows' | 'channels' | 'kernel' | 'stride' | 'padding' | 'outputPadding', number>,
): Float64Array {
  const outRows = (rows - 1) * stride - 2 * padding + kernel + outputPadding;
  const out = Float64Array.from({ length: outRows * channels }, (_, i) => bias[i % channels]!);
  for (let l = 0; l < rows; l++) {
    for (let t = 0; t < kernel; t++) {
      const to = l * stride + t - padding;
      if (to < 0 || to >= outRows) continue;
      for (let c = 0; c < channels; c++) out[to * channels + c]! += x[l * channels + c]! * weight[c * kernel + t]!;
    }
  }
  return out;
}
