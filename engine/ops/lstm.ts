import { assert } from '../errors.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { isBlockType } from '../weights/storage.ts';
import { linear } from './linear.ts';
import { floatFragment } from './weight.ts';
import type { LinearPart, LinearWeight } from './weight.ts';

export const LSTM = defineKernel({
  file: 'rnn/lstm.wgsl',
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl', 'lib/lstm_step.wgsl'],
  consts: ['DIRECTIONS'],
  bindings: { inputs: 'read', weight: 'read', out: 'write' },
  params: { steps: 'u32', out_stride: 'u32' },
  overrides: { WG: 'u32', HIDDEN: 'u32' },
});

export const LSTM_FORWARD = defineKernel({
  file: 'rnn/lstm_forward.wgsl',
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl', 'lib/lstm_step.wgsl'],
  bindings: { inputs: 'read', weight: 'read', kept: 'update', out: 'write' },
  params: { steps: 'u32', out_stride: 'u32' },
  overrides: { WG: 'u32', HIDDEN: 'u32' },
});

/** An LSTM layer on the device, of D directions (1 or 2); gate order i, f, g, o. */
export interface LstmWeight {
  readonly hidden: number;
  /** [4DH, I]: the directions' input projections. */
  readonly input: LinearWeight;
  /** [4DH]: the sum of both biases. */
  readonly bias: Tensor;
  /** [4DH, H] in floats: the directions' recurrent weights. */
  readonly recurrent: LinearPart;
}

/** A layer of weights [4DH, I] and [4DH, H], of both directions one below the other; H a multiple of 8. */
export function lstmWeight(
  label: string,
  { input, recurrent, bias }: { input: LinearWeight; recurrent: LinearWeight; bias: Tensor },
  directions: 1 | 2 = 2,
): LstmWeight {
  const { inFeatures: hidden, outFeatures, parts } = recurrent;
  assert(
    hidden % 8 === 0 && outFeatures === 4 * directions * hidden,
    `${label}: recurrent weights [${outFeatures}, ${hidden}], expected ${4 * directions} H of a multiple of 8`,
  );
  const [part] = parts as [LinearPart];
  assert(
    parts.length === 1 && !isBlockType(part.dtype),
    `${label}: recurrent weights in ${parts.length} parts of ${part.dtype}, expected floats`,
  );
  return { hidden, input, bias, recurrent: part };
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
  const { recurrent } = weight;
  rec.dispatch(LSTM, variantOf(rec, weight, 2), { inputs, weight: recurrent.weight, out }, { steps: rows, out_stride: outStride }, [2]);
}

export interface LstmForwardArgs {
  /** [T, I] f32. */
  readonly x: Tensor;
  /** Of one direction. */
  readonly weight: LstmWeight;
  /** [2, H] f32: h and c, from which the layer begins, and which it leaves at its end. */
  readonly kept: Tensor;
  /** [T, H] f32. */
  readonly out: Tensor;
  /** Scratch [T, 4H] f32. */
  readonly inputs: Tensor;
  /** Rows of `x` that are projected; of these only the first `steps` are walked. */
  readonly rows: number;
  readonly steps: number;
}

/** LSTM in the direction of time: out[t] = h after row t. What comes in several calls has the bits of what comes in one. */
export function lstmForward(rec: Recorder, { x, weight, kept, out, inputs, rows, steps }: LstmForwardArgs): void {
  const { hidden, input, bias, recurrent } = weight;
  const outStride = out.shape.at(-1) ?? 0;
  assert(
    outStride >= hidden && inputs.shape.at(-1) === 4 * hidden && kept.size === 2 * hidden && steps <= rows,
    `lstm forward: ${out.label}, ${inputs.label} or ${kept.label} does not fit ${hidden} units and ${steps} of ${rows} rows`,
  );
  linear(rec, { x, weight: input, bias, out: inputs, rows });
  rec.dispatch(
    LSTM_FORWARD,
    variantOf(rec, weight, 1),
    { inputs, weight: recurrent.weight, kept, out },
    { steps, out_stride: outStride },
    [1],
  );
}

/** A workgroup as wide as the layer where there is room; a SIMD register on software adapters, whose units take turns in blocks. */
function variantOf({ caps }: Recorder, { hidden, recurrent }: LstmWeight, directions: 1 | 2) {
  const wg = caps.family === 'cpu' ? 8 : Math.min(256, caps.maxInvocations, hidden);
  const block = caps.family === 'cpu' && hidden % 32 === 0 ? 4 : 1;
  return { storage: recurrent.dtype, consts: { BLOCK: block, DIRECTIONS: directions }, overrides: { WG: wg, HIDDEN: hidden } };
}
