import { assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import { isBlockType } from '../weights/storage.ts';
import { linear } from './linear.ts';
import { avoids } from './replaceable.ts';
import { rowShape, styleAt } from './row-spans.ts';
import type { Rows, SequenceStyles } from './row-spans.ts';
import { hasShuffles } from './weight-place.ts';
import type { WordPlace } from './weight-place.ts';
import { floatFragment } from './weight.ts';
import type { LinearPart, LinearWeight } from './weight.ts';

export const LSTM = defineKernel({
  file: 'rnn/lstm.wgsl',
  // naga fails where the first thing that names an array with an overridden size comes before the first that names another override's type.
  fragments: (v) => ['lib/row_spans.wgsl', floatFragment(v), 'lib/activation.wgsl', 'lib/lstm_step.wgsl'],
  consts: ['DIRECTIONS'],
  bindings: { inputs: 'read', weight: 'read', style: 'read', spans: 'read', out: 'write' },
  params: { steps_unit: 'u32', steps: 'u32', out_stride: 'u32', style_first: 'u32', style_stride: 'u32' },
  overrides: { WG: 'u32', HIDDEN: 'u32', STYLED: 'bool', SPANS: 'bool' },
});

export const LSTM_TEXELS = defineKernel({
  file: 'rnn/lstm_texels.wgsl',
  fragments: () => ['lib/row_spans.wgsl'],
  consts: ['UNITS', 'SEQUENCES'],
  bindings: { inputs: 'read', weight: 'texels', style: 'read', spans: 'read', out: 'write' },
  params: { steps_unit: 'u32', steps: 'u32', out_stride: 'u32', style_first: 'u32', style_stride: 'u32', count: 'u32' },
  overrides: { STYLED: 'bool', SPANS: 'bool', HALF: 'bool' },
});

export const LSTM_FORWARD = defineKernel({
  file: 'rnn/lstm_forward.wgsl',
  fragments: (v) => [floatFragment(v), 'lib/activation.wgsl', 'lib/lstm_step.wgsl'],
  bindings: { inputs: 'read', weight: 'read', kept: 'update', out: 'write' },
  params: { steps: 'u32', out_stride: 'u32' },
  overrides: { WG: 'u32', HIDDEN: 'u32' },
});

/**
 * Sequences that LSTM_TEXELS processes at once. With one sequence it takes twice as long as a kernel for one, which is a hundredth of a
 * sentence's time and not worth another kernel to compile.
 */
const SEQUENCES = 4;
/** Units that its workgroup computes at once. */
const UNIT_BLOCK = 16;

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

/** Place of the recurrent weights of a bidirectional layer. */
export function lstmPlace(caps: Caps, hidden: number): WordPlace {
  const reads = hasShuffles(caps) && caps.maxTexels > 0 && hidden % UNIT_BLOCK === 0 && !avoids(caps, 'lstm_texels');
  return reads ? 'texture' : 'buffer';
}

/** Makes an LSTM layer of D directions from weights [4DH, I] and [4DH, H], stacked by direction; H a multiple of 8. */
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
    parts.length === 1 && !isBlockType(part.dtype) && (part.place === 'buffer' || directions === 2),
    `${label}: recurrent weights of ${directions} in ${parts.length} parts of ${part.dtype} in a ${part.place}, expected floats, of one in a buffer`,
  );
  return { hidden, input, bias, recurrent: part };
}

export interface LstmArgs {
  /** [T, I] f32; absent = `inputs` already has the input projection, with the layer's own bias. */
  readonly x?: Tensor | undefined;
  readonly weight: LstmWeight;
  /** [T, 2H] f32, or wider. */
  readonly out: Tensor;
  /** Scratch [T, 8H] f32. */
  readonly inputs: Tensor;
  readonly rows: Rows;
  /** Replaces the layer's own bias: biases per sequence, for a part of the input that is the same at all steps. */
  readonly style?: StyledBias;
}

/** Biases of a bidirectional LSTM that differ from sequence to sequence: values [first, first + 8H) of each row. */
export interface StyledBias {
  readonly of: SequenceStyles;
  readonly first: number;
}

/** Bidirectional LSTM from a zero state: out[t] = [forward h, backward h]. */
export function lstm(rec: Recorder, { x, weight, out, inputs, rows, style }: LstmArgs): void {
  const { hidden } = weight;
  const outStride = out.shape.at(-1) ?? 0;
  assert(
    outStride >= 2 * hidden && inputs.shape.at(-1) === 8 * hidden,
    `lstm: ${out.label} or ${inputs.label} is too narrow for ${hidden} units`,
  );
  const { unit, rows: steps, end, count, table } = rowShape(rows);
  if (x) linear(rec, { x, weight: weight.input, bias: style ? undefined : weight.bias, out: inputs, rows: end });
  const known = { STYLED: style ? 1 : 0, SPANS: table ? 1 : 0 };
  const bindings = { inputs, weight: weight.recurrent.weight, style: style?.of.tensor ?? inputs, spans: table ?? inputs, out };
  const where = style ? styleAt(style.of, style.first) : { first: 0, stride: 0 };
  const params = { steps_unit: unit, steps, out_stride: outStride, style_first: where.first, style_stride: where.stride };
  if (weight.recurrent.place === 'texture') {
    assert(
      outStride % 2 === 0 && where.first % 2 === 0 && where.stride % 2 === 0,
      `lstm: odd rows of ${out.label} or ${bindings.style.label}`,
    );
    const variant = {
      consts: { UNITS: hidden / UNIT_BLOCK, SEQUENCES },
      overrides: { ...known, HALF: weight.recurrent.dtype === 'f16' ? 1 : 0 },
      subgroups: true,
    };
    rec.dispatch(LSTM_TEXELS, variant, bindings, { ...params, count }, [2, 1, ceilDiv(count, SEQUENCES)]);
    return;
  }
  const { storage, consts, overrides } = variantOf(rec, weight, 2);
  rec.dispatch(LSTM, { storage, consts, overrides: { ...overrides, ...known } }, bindings, params, [2, 1, count]);
}

export interface LstmForwardArgs {
  /** [T, I] f32; absent = `inputs` already has the input projection, with the layer's own bias. */
  readonly x?: Tensor | undefined;
  /** A layer of one direction. */
  readonly weight: LstmWeight;
  /** [2, H] f32: the state h and c, which the layer begins from and which it updates. */
  readonly kept: Tensor;
  /** [T, H] f32. */
  readonly out: Tensor;
  /** Scratch [T, 4H] f32. */
  readonly inputs: Tensor;
  /** Rows of `x` that are projected; only the first `steps` are processed. */
  readonly rows: number;
  readonly steps: number;
}

/** A forward LSTM: out[t] = h after row t. Rows split over several calls give the same bits as in one. */
export function lstmForward(rec: Recorder, { x, weight, kept, out, inputs, rows, steps }: LstmForwardArgs): void {
  const { hidden, input, bias, recurrent } = weight;
  const outStride = out.shape.at(-1) ?? 0;
  assert(
    outStride >= hidden && inputs.shape.at(-1) === 4 * hidden && kept.size === 2 * hidden && steps <= rows,
    `lstm forward: ${out.label}, ${inputs.label} or ${kept.label} does not fit ${hidden} units and ${steps} of ${rows} rows`,
  );
  if (x) linear(rec, { x, weight: input, bias, out: inputs, rows });
  rec.dispatch(
    LSTM_FORWARD,
    variantOf(rec, weight, 1),
    { inputs, weight: recurrent.weight, kept, out },
    { steps, out_stride: outStride },
    [1],
  );
}

/** Workgroup size: as wide as the layer where possible; one SIMD register on software adapters, where blocks of units take turns. */
function variantOf({ caps }: Recorder, { hidden, recurrent }: LstmWeight, directions: 1 | 2) {
  const wg = caps.family === 'cpu' ? 8 : Math.min(256, caps.maxInvocations, hidden);
  const block = caps.family === 'cpu' && hidden % 32 === 0 ? 4 : 1;
  return { storage: recurrent.dtype, consts: { BLOCK: block, DIRECTIONS: directions }, overrides: { WG: wg, HIDDEN: hidden } };
}
