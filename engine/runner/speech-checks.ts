/** Self-test cases of kernels that only speech models need: styled norms, an LSTM, spectra, a source signal. */
import type { Kernel, Variant } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ACTIVATE, activate } from '../ops/activation.ts';
import { ADAIN, adain, adainScratch } from '../ops/adain.ts';
import { CONV_TRANSPOSE1D_DEPTHWISE, convTranspose1dDepthwise, packDepthwise } from '../ops/depthwise.ts';
import { POLAR, SPECTRUM, createShortFourier, istftHead, stftPolar } from '../ops/istft.ts';
import type { FourierScratch } from '../ops/istft.ts';
import { LSTM, LSTM_FORWARD, LSTM_TEXELS, lstm, lstmForward, lstmWeight } from '../ops/lstm.ts';
import { packLinear } from '../ops/pack-linear.ts';
import { spanRows } from '../ops/row-spans.ts';
import type { WordPlace } from '../ops/weight-place.ts';
import { AVERAGE_LEAKY, EXPAND_ROWS, MIRROR_ADD, averageLeaky, expandRows, mirrorAdd } from '../ops/rows.ts';
import { SOURCE, harmonicSource } from '../ops/source.ts';
import { alignUp, sizeOf } from '../util/math.ts';
import type { FloatType } from '../weights/storage.ts';
import * as plainFunctions from './plain.ts';
import { adain as plainAdain } from './plain/adain.ts';
import { convTranspose1dDepthwise as plainDepthwise } from './plain/depthwise.ts';
import { istftHead as plainIstft, stft } from './plain/istft.ts';
import { lstm as plainLstm } from './plain/lstm.ts';
import type { Direction } from './plain/lstm.ts';
import { harmonicSource as plainSource } from './plain/source.ts';
import { activationOf, storedAs } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

/** Channels of the cases, and rows of two sequences. */
const CHANNELS = 8;
const SEQUENCES = [3, 2] as const;
/** Rows before the last sequence in cases whose products have a row per frame, since a model has many frames. */
const MANY = 60;

/** Records what computes `out`; a variant that writes a texture gets one, which is copied there. */
function through(
  bench: Workbench,
  { texture }: Variant,
  out: Tensor,
  compute: (rec: Recorder, out: Tensor) => void,
): (rec: Recorder) => void {
  if (texture === undefined) return (rec) => compute(rec, out);
  const texels = bench.keep(bench.device.texels('check', out.shape));
  return (rec) => {
    compute(rec, texels);
    rec.spill(texels, out);
  };
}

const checkAdain: CheckMaker = (variant, bench) => {
  const { rows, ranges } = bench.runs(variant, [70, 5]);
  const [x, style] = [bench.floats([75, CHANNELS]), bench.floats([ranges.length, 2 * CHANNELS])];
  const out = bench.out([75, CHANNELS]);
  const alphas = variant.overrides?.['SNAKE'] === 1 ? Float32Array.from({ length: CHANNELS }, (_, c) => 0.5 + c / 4) : undefined;
  const alpha = alphas && bench.keep(bench.device.upload('check', 'f32', [2, CHANNELS], Float32Array.from([...alphas, ...alphas.map((a) => 1 / a)]))); // prettier-ignore
  const scratch = bench.keepAll(adainScratch(bench.device, 75 * CHANNELS, CHANNELS, ranges.length));
  const styles = { tensor: style.tensor, row: 0 };
  return {
    record: through(bench, variant, out, (rec, to) => adain(rec, { x: x.tensor, out: to, style: styles, styleFirst: 0, channels: CHANNELS, rows, scratch, alpha })), // prettier-ignore
    out,
    expected: ranges.flatMap(({ from, to }, s) => {
      const [scale, shift] = [0, 1].map((half) => style.values.subarray((2 * s + half) * CHANNELS, (2 * s + half + 1) * CHANNELS));
      return [...plainAdain(x.values.subarray(from * CHANNELS, to * CHANNELS), scale!, shift!, alphas, to - from, CHANNELS)];
    }),
    tolerance: 1e-9,
  };
};

/** Inputs of the LSTM: whole loads of its product. */
const FEATURES = 16;
/** Random values of a prime length, repeated: a layer of published size has a quarter of a million recurrent weights. */
const SOME = 1021;

/** The weights of a layer, on the device and as what is stored there. */
function checkedLstm(bench: Workbench, dtype: FloatType, hidden: number, directions: 1 | 2, place: WordPlace = 'buffer') {
  const some = storedAs(dtype, bench.floats([SOME], 1 / Math.sqrt(hidden)).values);
  const values = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => some[i % SOME]!);
  const gates = 4 * directions * hidden;
  const [input, recurrent, bias] = [values(gates * FEATURES), values(gates * hidden), bench.floats([gates])];
  const matrix = (data: Float32Array, columns: number, at?: WordPlace) =>
    packLinear(bench.device, 'check', data, gates, columns, dtype, at);
  const weight = lstmWeight('check', { input: matrix(input, FEATURES), recurrent: matrix(recurrent, hidden, place), bias: bias.tensor }, directions); // prettier-ignore
  for (const part of weight.input.parts) bench.keep(part.weight);
  bench.keep(weight.recurrent.weight);
  const direction = (d: number, biases: Float32Array): Direction => ({
    input: input.subarray(d * 4 * hidden * FEATURES),
    recurrent: recurrent.subarray(d * 4 * hidden * hidden),
    bias: biases.subarray(d * 4 * hidden),
  });
  /**
   * The input projection of rows, with the bias where it is the layer's own. That product has cases of its own, and a variant does not say
   * where the matrix lies.
   */
  const projected = (x: Float32Array, rows: number, own: Float32Array | undefined): Tensor => {
    const sums = Float32Array.from({ length: rows * gates }, (_, i) => {
      const [row, n] = [Math.floor(i / gates), i % gates];
      let sum = own?.[n] ?? 0;
      for (let k = 0; k < FEATURES; k++) sum += input[n * FEATURES + k]! * x[row * FEATURES + k]!;
      return sum;
    });
    return bench.keep(bench.device.upload('check', 'f32', [rows, gates], sums));
  };
  return { weight, bias: bias.values, direction, projected };
}

const checkLstm: CheckMaker = (variant, bench) => {
  const { HIDDEN: hidden = 16 * variant.consts!['UNITS']!, HALF } = variant.overrides!;
  const [dtype, place] =
    HALF === undefined ? [variant.storage as FloatType, 'buffer' as const] : ([HALF === 1 ? 'f16' : 'f32', 'texture'] as const);
  const styled = variant.overrides!['STYLED'] === 1;
  const { rows, ranges } = bench.runs(variant, [2, 2], styled ? MANY : undefined);
  const steps = ranges.at(-1)!.to;
  const { weight, bias, direction, projected } = checkedLstm(bench, dtype, hidden, 2, place);
  const x = bench.floats([steps, FEATURES]);
  const styles = styled ? bench.floats([ranges.length, 8 * hidden]) : undefined;
  const [inputs, out] = [projected(x.values, steps, styled ? undefined : bias), bench.out([steps, 2 * hidden])];
  const style = styles && { of: { tensor: styles.tensor, row: 0 }, first: 0 };
  return {
    record: (rec) => lstm(rec, { weight, out, inputs, rows, ...(style && { style }) }),
    out,
    seen: (values) => ranges.flatMap(({ from, to }) => [...values.subarray(from * 2 * hidden, to * 2 * hidden)]),
    expected: ranges.flatMap(({ from, to }, s) => {
      const biases = styles?.values.subarray(s * 8 * hidden, (s + 1) * 8 * hidden) ?? bias;
      const directions = [direction(0, biases), direction(1, biases)];
      return [...plainLstm(x.values.subarray(from * FEATURES), directions, to - from, FEATURES, hidden)];
    }),
    tolerance: 1e-7,
  };
};

/** The first rows of many, from a state that is not zero. */
const checkForward: CheckMaker = (variant, bench) => {
  const hidden = variant.overrides!['HIDDEN']!;
  const [steps, rows] = [3, MANY];
  const { weight, bias, direction, projected } = checkedLstm(bench, variant.storage as FloatType, hidden, 1);
  const [x, kept] = [bench.floats([rows, FEATURES]), bench.floats([2, hidden], 0.5)];
  const [inputs, out] = [projected(x.values, rows, bias), bench.out([steps, hidden])];
  const state = { h: Float64Array.from(kept.values.subarray(0, hidden)), c: Float64Array.from(kept.values.subarray(hidden)) };
  return {
    record: (rec) => lstmForward(rec, { weight, kept: kept.tensor, out, inputs, rows, steps }),
    out,
    expected: plainLstm(x.values, [direction(0, bias)], steps, FEATURES, hidden, [state]),
    tolerance: 1e-7,
  };
};

/** Frames of the short transform, its window and its step. */
const [FRAMES, N_FFT, HOP] = [[9, 6], 8, 2] as const;
const BINS = N_FFT / 2 + 1;
const WIDTH = alignUp(2 * BINS, 4);

function fourierOf(bench: Workbench, frames: number) {
  const fourier = bench.keepAll(createShortFourier(bench.device, N_FFT, HOP));
  const scratch: FourierScratch = { frames: bench.out([frames, N_FFT]), spectrum: bench.floats([frames, WIDTH], 0).tensor };
  return { fourier, scratch };
}

/** Compares complex numbers, because angles jump at pi. */
const checkStft: CheckMaker = (variant, bench) => {
  const { rows: frames, ranges } = bench.runs({ ...variant, overrides: { SPANS: 1 } }, FRAMES, MANY);
  const count = ranges.at(-1)!.to;
  const signal = bench.floats([count * HOP]);
  const { fourier, scratch } = fourierOf(bench, count);
  const out = bench.out([count, WIDTH]);
  const cells = Array.from({ length: count * BINS }, (_, i) => Math.floor(i / BINS) * WIDTH + (i % BINS));
  return {
    record: (rec) => stftPolar(rec, fourier, { signal: signal.tensor, frames, out, scratch }),
    out,
    seen: (values) =>
      ranges
        .flatMap(({ from, to }) => cells.slice(from * BINS, to * BINS))
        .flatMap((at) => [values[at]! * Math.cos(values[at + BINS]!), values[at]! * Math.sin(values[at + BINS]!)]),
    expected: ranges.flatMap(({ from, to }) => {
      const spectrum = stft(signal.values.subarray(from * HOP, (to - 1) * HOP), N_FFT, HOP);
      return Array.from({ length: (to - from) * BINS }, (_, i) => {
        const at = Math.floor(i / BINS) * 2 * BINS + (i % BINS);
        return [spectrum[at]!, spectrum[at + BINS]!];
      }).flat();
    }),
    tolerance: 1e-9,
  };
};

/** Samples between two sequences belong to neither. */
const checkIstft: CheckMaker = (variant, bench) => {
  const { rows: frames, ranges } = bench.runs({ ...variant, overrides: { SPANS: 1 } }, FRAMES, MANY);
  const count = ranges.at(-1)!.to;
  const x = bench.floats([count, WIDTH]);
  const { fourier, scratch } = fourierOf(bench, count);
  const out = bench.out([count * HOP]);
  return {
    record: (rec) => istftHead(rec, fourier, { x: x.tensor, frames, out, scratch }),
    out,
    seen: (values) => ranges.flatMap(({ from, to }) => [...values.subarray(from * HOP, (to - 1) * HOP)]),
    expected: ranges.flatMap(({ from, to }) => {
      const own = Float32Array.from({ length: (to - from) * 2 * BINS }, (_, i) => x.values[(from + Math.floor(i / (2 * BINS))) * WIDTH + (i % (2 * BINS))]!); // prettier-ignore
      return [...plainIstft(own, to - from, N_FFT, HOP)];
    }),
    tolerance: 1e-8,
  };
};

/** Voiced and unvoiced frames, without noise, whose numbers the sampler's cases compare. */
const checkSource: CheckMaker = (variant, bench) => {
  const { rows: frames, ranges } = bench.runs(variant, SEQUENCES);
  const [count, samplesPerFrame, sampleRate, harmonics] = [ranges.at(-1)!.to, 16, 24_000, variant.consts!['HARMONICS']!];
  const hertz = Float32Array.from({ length: count }, (_, i) => (i === 1 ? 0 : 180 + 30 * i));
  const f0 = bench.keep(bench.device.upload('check', 'f32', [count, 1], hertz));
  const merge = bench.floats([harmonics + 1]);
  const [phase, out] = [bench.out([count, harmonics]), bench.out([count * samplesPerFrame])];
  const noise = { seed: 1, firstSample: 0, scale: 0 };
  return {
    record: (rec) => harmonicSource(rec, { f0, frames, phase, merge: merge.tensor, out, samplesPerFrame, sampleRate, noise }),
    out,
    expected: ranges.flatMap((range) => {
      const shape = { frames: sizeOf(range), samplesPerFrame, sampleRate, harmonics };
      return [...plainSource(hertz.subarray(range.from, range.to), merge.values, merge.values[harmonics]!, shape)];
    }),
    tolerance: 1e-8,
  };
};

const checkDepthwise: CheckMaker = (variant, bench) => {
  const { rows, ranges } = bench.runs(variant, SEQUENCES);
  const [kernel, stride, padding, outputPadding] = [3, 2, 1, 1];
  const total = ranges.at(-1)!.to;
  const [x, taps, bias] = [bench.floats([total, CHANNELS]), bench.floats([CHANNELS, kernel]), bench.floats([CHANNELS])];
  const weight = bench.keepAll(packDepthwise(bench.device, 'check', taps.values, CHANNELS, kernel, bias.values));
  const out = bench.out([total * stride, CHANNELS]);
  const args = { x: x.tensor, weight, out, stride, padding, outputPadding };
  return {
    record: (rec) => void (typeof rows === 'number' ? convTranspose1dDepthwise(rec, { ...args, rows }) : convTranspose1dDepthwise(rec, { ...args, rows })), // prettier-ignore
    out,
    expected: ranges.flatMap(({ from, to }) => {
      const shape = { rows: to - from, channels: CHANNELS, kernel, stride, padding, outputPadding };
      return [...plainDepthwise(x.values.subarray(from * CHANNELS, to * CHANNELS), taps.values, bias.values, shape)];
    }),
    tolerance: 1e-10,
  };
};

const checkActivate: CheckMaker = ({ overrides = {} }, bench) => {
  const activation = activationOf(overrides['ACTIVATION']);
  const [x, out] = [bench.floats([5, CHANNELS]), bench.out([5, CHANNELS])];
  const expected = Float64Array.from(x.values, (value) => plainFunctions.activation(activation, value));
  return { record: (rec) => activate(rec, { x: x.tensor, out, activation }), out, expected, tolerance: 1e-8 };
};

const checkAverage: CheckMaker = (variant, bench) => {
  const { PARTS: count = 1 } = variant.overrides ?? {};
  const [rows, slope] = [5, 0.1];
  const [parts, out] = [bench.floats([count, rows, CHANNELS]), bench.out([rows, CHANNELS])];
  const expected = Float64Array.from({ length: rows * CHANNELS }, (_, i) => {
    let mean = 0;
    for (let p = 0; p < count; p++) mean += parts.values[p * rows * CHANNELS + i]! / count;
    return mean >= 0 ? mean : slope * mean;
  });
  return {
    record: through(bench, variant, out, (rec, to) => averageLeaky(rec, { parts: parts.tensor, out: to, rows, slope })),
    out,
    expected,
    tolerance: 1e-10,
  };
};

const checkExpand: CheckMaker = (_, bench) => {
  const [x, chosen, out] = [bench.floats([3, CHANNELS]), [2, 0, 0, 1, 2], bench.out([5, CHANNELS])];
  const index = bench.words(chosen);
  const expected = chosen.flatMap((row) => [...x.values.subarray(row * CHANNELS, (row + 1) * CHANNELS)]);
  return { record: (rec) => expandRows(rec, { x: x.tensor, index, out, rows: chosen.length }), out, expected, tolerance: 0 };
};

/** Each sequence gets a row in front, a copy of its second. */
const checkMirror: CheckMaker = (variant, bench) => {
  const { rows: inner, ranges } = bench.runs(variant, [4, 4]);
  const pad = 1;
  const unit = 4 + pad;
  const one = bench.runs(variant, [1, 1]).rows;
  const rows = typeof inner === 'number' ? inner + pad : spanRows((one as typeof inner).spans, unit);
  const total = typeof inner === 'number' ? inner + pad : ranges.length * unit;
  const [x, y, out] = [bench.floats([total, CHANNELS]), bench.floats([total, CHANNELS]), bench.out([total, CHANNELS])];
  const length = total / ranges.length;
  return {
    record: (rec) => mirrorAdd(rec, { x: x.tensor, y: y.tensor, out, rows, pad }),
    out,
    expected: Float64Array.from({ length: total * CHANNELS }, (_, i) => {
      const [row, c] = [Math.floor(i / CHANNELS), i % CHANNELS];
      const [first, at] = [row - (row % length), row % length];
      return x.values[(first + Math.abs(at - pad)) * CHANNELS + c]! + y.values[i]!;
    }),
    tolerance: 1e-12,
  };
};

/** Checks by kernel. */
export const SPEECH_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [ADAIN, checkAdain],
  [LSTM, checkLstm],
  [LSTM_TEXELS, checkLstm],
  [LSTM_FORWARD, checkForward],
  [POLAR, checkStft],
  [SPECTRUM, checkIstft],
  [SOURCE, checkSource],
  [CONV_TRANSPOSE1D_DEPTHWISE, checkDepthwise],
  [ACTIVATE, checkActivate],
  [AVERAGE_LEAKY, checkAverage],
  [EXPAND_ROWS, checkExpand],
  [MIRROR_ADD, checkMirror],
];
