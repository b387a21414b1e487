/**
 * Layers whose state is of a fixed size, in f64 and in no hurry: one sequence from its beginning, or from what is left of its beginning.
 */

export const silu = (x: number): number => x / (1 + Math.exp(-x));

/**
 * Causal convolution with one filter a channel, and what `end` makes of element i; x [T, C], weight [taps, C], tail [taps - 1, C] the
 * inputs before x. Returns out [T, C] and the tail behind.
 */
export function causalConv(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  tail: ArrayLike<number>,
  channels: number,
  taps: number,
  end: (sum: number, i: number) => number = silu,
): { out: Float64Array; tail: Float64Array } {
  const inputs = Float64Array.from([...Array.from(tail), ...Array.from(x)]);
  const rows = x.length / channels;
  const out = new Float64Array(rows * channels);
  for (let t = 0; t < rows; t++) {
    for (let c = 0; c < channels; c++) {
      let sum = 0;
      for (let j = 0; j < taps; j++) sum += weight[j * channels + c]! * inputs[(t + j) * channels + c]!;
      out[t * channels + c] = end(sum, t * channels + c);
    }
  }
  return { out, tail: inputs.slice(rows * channels) };
}

export interface DeltaShape {
  readonly keyHeads: number;
  readonly heads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly isTiled?: boolean;
}

/**
 * The gated delta rule as transformers' torch_recurrent_gated_delta_rule has it; qkv [T, 2 Hk Dk + Hv Dv], beta and alpha [T, Hv], slope
 * and bias [Hv], state [Hv, Dv, Dk]. Returns out [T, Hv Dv] and the state behind.
 */
export function gatedDeltaRule(
  { keyHeads, heads, keyDim, valueDim, isTiled = false }: DeltaShape,
  {
    qkv,
    beta,
    alpha,
    slope,
    bias,
    state: before,
  }: Readonly<Record<'qkv' | 'beta' | 'alpha' | 'slope' | 'bias' | 'state', ArrayLike<number>>>,
): { out: Float64Array; state: Float64Array } {
  const width = 2 * keyHeads * keyDim + heads * valueDim;
  const rows = qkv.length / width;
  const state = Float64Array.from(before);
  const out = new Float64Array(rows * heads * valueDim);
  const unit = (first: number): number[] => {
    const values = Array.from({ length: keyDim }, (_, d) => qkv[first + d]!);
    const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) + 1e-6);
    return values.map((value) => value / length);
  };
  for (let t = 0; t < rows; t++) {
    for (let h = 0; h < heads; h++) {
      const keyHead = isTiled ? h % keyHeads : Math.floor(h / (heads / keyHeads));
      const q = unit(t * width + keyHead * keyDim).map((value) => value / Math.sqrt(keyDim));
      const k = unit(t * width + (keyHeads + keyHead) * keyDim);
      const decay = Math.exp(slope[h]! * Math.log1p(Math.exp(alpha[t * heads + h]! + bias[h]!)));
      const strength = 1 / (1 + Math.exp(-beta[t * heads + h]!));
      for (let c = 0; c < valueDim; c++) {
        const row = (h * valueDim + c) * keyDim;
        let known = 0;
        for (let d = 0; d < keyDim; d++) known += (state[row + d]! *= decay) * k[d]!;
        const change = (qkv[t * width + 2 * keyHeads * keyDim + h * valueDim + c]! - known) * strength;
        let sum = 0;
        for (let d = 0; d < keyDim; d++) sum += (state[row + d]! += change * k[d]!) * q[d]!;
        out[(t * heads + h) * valueDim + c] = sum;
      }
    }
  }
  return { out, state };
}

export interface ScanShape {
  readonly heads: number;
  readonly headDim: number;
  readonly groups: number;
  readonly stateDim: number;
}

/**
 * The selective scan as transformers' mamba2_selective_state_update has it; xbc [T, H P + 2 G N], steps [T, H], slope, bias and skip [H],
 * state [H, P, N]. Returns out [T, H P] and the state behind.
 */
export function selectiveScan(
  { heads, headDim, groups, stateDim }: ScanShape,
  {
    xbc,
    steps,
    slope,
    bias,
    skip,
    state: before,
  }: Readonly<Record<'xbc' | 'steps' | 'slope' | 'bias' | 'skip' | 'state', ArrayLike<number>>>,
): { out: Float64Array; state: Float64Array } {
  const inner = heads * headDim;
  const width = inner + 2 * groups * stateDim;
  const rows = xbc.length / width;
  const state = Float64Array.from(before);
  const out = new Float64Array(rows * inner);
  for (let t = 0; t < rows; t++) {
    for (let h = 0; h < heads; h++) {
      const b = t * width + inner + Math.floor(h / (heads / groups)) * stateDim;
      const c = b + groups * stateDim;
      const step = Math.log1p(Math.exp(steps[t * heads + h]! + bias[h]!));
      const factor = Math.exp(slope[h]! * step);
      for (let p = 0; p < headDim; p++) {
        const x = xbc[t * width + h * headDim + p]!;
        const row = (h * headDim + p) * stateDim;
        let sum = skip[h]! * x;
        for (let n = 0; n < stateDim; n++) {
          state[row + n] = state[row + n]! * factor + x * step * xbc[b + n]!;
          sum += state[row + n]! * xbc[c + n]!;
        }
        out[t * inner + h * headDim + p] = sum;
      }
    }
  }
  return { out, state };
}

/**
 * RMS norm of every head, times silu(gate), or `gateFirst` the norm of that product; x and gate [T H, D], weight [D], or [H D] of heads with
 * D given.
 */
export function rmsNormGated(
  values: ArrayLike<number>,
  weight: ArrayLike<number>,
  gate: ArrayLike<number>,
  eps: number,
  { gateFirst = false, columns = weight.length } = {},
): Float64Array {
  const x = Float64Array.from(values, (value, i) => (gateFirst ? value * silu(gate[i]!) : value));
  return Float64Array.from({ length: x.length }, (_, i) => {
    const row = i - (i % columns);
    let sum = 0;
    for (let c = 0; c < columns; c++) sum += x[row + c]! ** 2;
    return (x[i]! / Math.sqrt(sum / columns + eps)) * weight[i % weight.length]! * (gateFirst ? 1 : silu(gate[i]!));
  });
}
