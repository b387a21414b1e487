/** Instance norm over time with style scale and shift, then leaky ReLU (0.2) or Snake, in f64; x [rows, channels]. */
export function adain(
  x: ArrayLike<number>,
  scale: ArrayLike<number>,
  shift: ArrayLike<number>,
  alpha: ArrayLike<number> | undefined,
  rows: number,
  channels: number,
): Float64Array {
  const out = new Float64Array(rows * channels);
  for (let c = 0; c < channels; c++) {
    let mean = 0;
    for (let l = 0; l < rows; l++) mean += x[l * channels + c]! / rows;
    let variance = 0;
    for (let l = 0; l < rows; l++) variance += (x[l * channels + c]! - mean) ** 2 / rows;
    for (let l = 0; l < rows; l++) {
      const y = (scale[c]! * (x[l * channels + c]! - mean)) / Math.sqrt(variance + 1e-5) + shift[c]!;
      out[l * channels + c] = alpha ? y + Math.sin(alpha[c]! * y) ** 2 / alpha[c]! : y >= 0 ? y : 0.2 * y;
    }
  }
  return out;
}
