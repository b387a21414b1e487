/** The rows of products that convolutions are: taps of channels padded to 4. */

interface Shape {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernel: number;
}

/** A Conv1d.weight [outChannels, inChannels, kernel] as [outChannels, kernel, inChannels padded]. */
export function tapRows(weight: Float32Array, { inChannels, outChannels, kernel }: Shape): Float32Array {
  const padded = Math.ceil(inChannels / 4) * 4;
  const rows = new Float32Array(outChannels * kernel * padded);
  for (let n = 0; n < outChannels; n++)
    for (let t = 0; t < kernel; t++)
      for (let c = 0; c < inChannels; c++) rows[(n * kernel + t) * padded + c] = weight[(n * inChannels + c) * kernel + t]!;
  return rows;
}

/** A ConvTranspose1d.weight [inChannels, outChannels, kernel] as [stride, outChannels, ceil(kernel / stride), inChannels padded]: position k is tap k / stride from the end. */
export function transposedTapRows(
  weight: Float32Array,
  { inChannels, outChannels, kernel, stride }: Shape & { readonly stride: number },
): Float32Array {
  const padded = Math.ceil(inChannels / 4) * 4;
  const taps = Math.ceil(kernel / stride);
  const rows = new Float32Array(stride * outChannels * taps * padded);
  for (let k = 0; k < kernel; k++) {
    for (let o = 0; o < outChannels; o++) {
      const row = (((k % stride) * outChannels + o) * taps + taps - 1 - Math.floor(k / stride)) * padded;
      for (let c = 0; c < inChannels; c++) rows[row + c] = weight[(c * outChannels + o) * kernel + k]!;
    }
  }
  return rows;
}
