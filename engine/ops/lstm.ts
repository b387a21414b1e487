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
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl'],
  consts: ['BLOCK'],
  bindings: { inputs: 'read', weight: 'read', out: 'write' },
  params: { steps: 'u32', out_stride: 'u32' },
  overrides: { WG: 'u32', HIDDEN: 'u32' },
});

/** A bidirectional LSTM layer on the device; gate order i, f, g, o. */
export interface LstmWeight {
  readonly hidden: number;
  /** [8H, I]: both directions' input projections. */
  readonly input: LinearWeight;
  /** [8H]: the sum of both biases. */
  readonly bias: Tensor;
  /** [8H, H] in floats: both directions' recurrent weights. */
  readonly recurrent: LinearPart;
}

/** A layer of weights [8H, I] and [8H, H], of both directions one below the other; H a multiple of 8. */
export function lstmWeight(
  label: string,
  { input, recurrent, bias }: { input: LinearWeight; recurrent: LinearWeight; bias: Tensor },
): LstmWeight {
  const { inFeatures: hidden, outFeatures, parts } = recurrent;
  assert(
    hidden % 8 === 0 && outFeatures === 8 * hidden,
    `${label}: recurrent weights [${outFeatures}, ${hidden}], expected 8 H of a multiple of 8`,
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
  const wg = rec.caps.family === 'cpu' ? 8 : Math.min(256, rec.caps.maxInvocations, hidden);
  const block = rec.caps.family === 'cpu' && hidden % 32 === 0 ? 4 : 1;
  const variant = { storage: weight.recurrent.dtype, consts: { BLOCK: block }, overrides: { WG: wg, HIDDEN: hidden } };
  rec.dispatch(LSTM, variant, { inputs, weight: weight.recurrent.weight, out }, { steps: rows, out_stride: outStride }, [2]);
}
