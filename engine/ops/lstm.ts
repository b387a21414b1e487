import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { toF16 } from '../util/f16.ts';
import { packLinear } from './pack-linear.ts';
import { linear } from './linear.ts';
import { floatFragment } from './weight.ts';
import type { LinearWeight } from './weight.ts';

export const LSTM = defineKernel({
  file: 'rnn/lstm.wgsl',
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl'],
  consts: ['BLOCK'],
  bindings: { inputs: 'read', weight: 'read', out: 'write' },
  params: { steps: 'u32', out_stride: 'u32' },
  overrides: { WG: 'u32', HIDDEN: 'u32' },
});

/** One direction as a checkpoint has it: weights [4H, I] and [4H, H], the sum of both biases [4H]; gate order i, f, g, o. */
export interface LstmDirection {
  readonly input: Float32Array;
  readonly recurrent: Float32Array;
  readonly bias: Float32Array;
}

/** A bidirectional LSTM layer on the device. */
export interface LstmWeight {
  readonly hidden: number;
  /** [8H, I]: both directions' input projections. */
  readonly input: LinearWeight;
  /** [8H]. */
  readonly bias: Tensor;
  /** [2][H/4][4H] of 4 values along H. */
  readonly recurrent: Tensor;
  readonly dtype: 'f32' | 'f16';
}

/** Uploads forward and backward weights in kernel layout; `inFeatures` I, `hidden` H (a multiple of 8). */
export function packLstm(
  device: Device,
  label: string,
  directions: readonly [LstmDirection, LstmDirection],
  { inFeatures, hidden }: { readonly inFeatures: number; readonly hidden: number },
  dtype: 'f32' | 'f16' = 'f32',
): LstmWeight {
  assert(hidden % 8 === 0, `${label}: ${hidden} hidden units, expected a multiple of 8`);
  const gates = 4 * hidden;
  const input = new Float32Array(2 * gates * inFeatures);
  const bias = new Float32Array(2 * gates);
  const recurrent = new Float32Array(2 * gates * hidden);
  directions.forEach((direction, d) => {
    input.set(direction.input, d * gates * inFeatures);
    bias.set(direction.bias, d * gates);
    for (let n = 0; n < gates; n++) {
      for (let k = 0; k < hidden; k++) {
        recurrent[d * gates * hidden + ((k >> 2) * gates + n) * 4 + (k & 3)] = direction.recurrent[n * hidden + k]!;
      }
    }
  });
  return {
    hidden,
    input: packLinear(device, `${label} input`, input, 2 * gates, inFeatures, dtype),
    bias: device.upload(`${label} bias`, 'f32', [2 * gates], bias),
    recurrent: device.upload(`${label} recurrent`, dtype, [2, hidden / 4, gates, 4], dtype === 'f16' ? toF16(recurrent) : recurrent),
    dtype,
  };
}

export interface LstmArgs {
  /** [T, I] f32. */
  readonly x: Tensor;
  readonly weight: LstmWeight;
  /** [T, 2H] f32, or wider. */
  readonly out: Tensor;
  /** Scratch [T, 8H] f32. */
  readonly inputs: Tensor;
  readonly rows: number;
  /** [8H] f32 instead of the layer's own bias: a caller that knows a constant part of the input folds it in. */
  readonly bias?: Tensor;
}

/** Bidirectional LSTM from a zero state: out[t] = [forward h, backward h]. */
export function lstm(rec: Recorder, { x, weight, out, inputs, rows, bias = weight.bias }: LstmArgs): void {
  const { hidden } = weight;
  const outStride = out.shape.at(-1) ?? 0;
  assert(
    outStride >= 2 * hidden && inputs.shape.at(-1) === 8 * hidden,
    `lstm: ${out.label} or ${inputs.label} is too narrow for ${hidden} units`,
  );
  linear(rec, { x, weight: weight.input, bias, out: inputs, rows });
  const wg = rec.caps.family === 'cpu' ? 8 : Math.min(256, rec.caps.maxInvocations, hidden);
  const block = rec.caps.family === 'cpu' && hidden % 32 === 0 ? 4 : 1;
  const variant = { storage: weight.dtype, consts: { BLOCK: block }, overrides: { WG: wg, HIDDEN: hidden } };
  rec.dispatch(LSTM, variant, { inputs, weight: weight.recurrent, out }, { steps: rows, out_stride: outStride }, [2]);
}
