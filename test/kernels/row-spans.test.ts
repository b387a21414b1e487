/** Kernels that compute several sequences of different lengths in one dispatch: each is what it is alone, and what lies between them is left as it was. */
import { adain, adainScratch } from '../../engine/ops/adain.ts';
import { conv1d, convInput, convPlace, convTranspose1d, convTransposeWeight, packConv1d } from '../../engine/ops/conv.ts';
import { convTranspose1dDepthwise, packDepthwise } from '../../engine/ops/depthwise.ts';
import { createShortFourier, istftHead } from '../../engine/ops/istft.ts';
import { lstm, lstmPlace, lstmWeight } from '../../engine/ops/lstm.ts';
import { styledLayerNorm } from '../../engine/ops/norm.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { spanRows } from '../../engine/ops/row-spans.ts';
import type { RowSpans } from '../../engine/ops/row-spans.ts';
import { mirrorAdd } from '../../engine/ops/rows.ts';
import { harmonicSource } from '../../engine/ops/source.ts';
import type { WordPlace } from '../../engine/ops/weight-place.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { alignUp } from '../../engine/util/math.ts';
import { adain as adainReference } from '../reference/adain.ts';
import * as conv from '../reference/conv.ts';
import { istftHead as istftReference } from '../reference/istft.ts';
import { lstm as lstmReference } from '../reference/lstm.ts';
import { layerNorm as layerNormReference } from '../reference/norm.ts';
import { transposedTapRows } from '../reference/pack-taps.ts';
import { harmonicSource as sourceReference, normals } from '../reference/source.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { CaseData, KernelCase, TensorData } from '../support/kernel-case.ts';

/** Units of the sequences, with one unit between two of them: one shorter than a tile, one that ends inside one. */
const UNITS = [37, 1, 5];
const FIRST = [0, 38, 40];
const END = 45;
/** Seeds and first samples. */
const KEYS = [
  [11, 0],
  [12, 7],
  [11, 500],
] as const;
/** Rows of the styles that belong to others. */
const STYLE_ROW = 2;

const TABLE: TensorData = {
  dtype: 'u32',
  shape: [3, 4],
  values: Uint32Array.from(UNITS.flatMap((units, s) => [FIRST[s]!, units, ...KEYS[s]!])),
};

function spansOf(table: Tensor): RowSpans {
  return { table, count: UNITS.length, longest: Math.max(...UNITS), end: END };
}

/** Rows of a tensor of all sequences, NaN where none is: reading there would show. */
function scatter(parts: readonly ArrayLike<number>[], unit: number, columns: number, rows: number, fill = NaN): Float32Array {
  const all = new Float32Array(rows * columns).fill(fill);
  parts.forEach((part, s) => all.set(Array.from(part), FIRST[s]! * unit * columns));
  return all;
}

/** One tensor with what each sequence has: `unit` rows a unit and `more`. */
function sequences(rng: Rng, unit: number, more: number, columns: number): { readonly parts: Float32Array[]; readonly tensor: TensorData } {
  const parts = UNITS.map((units) => randomTensor(rng, [units * unit + more, columns]).values);
  const rows = (END + 1) * unit;
  return { parts, tensor: { dtype: 'f32', shape: [rows, columns], values: scatter(parts, unit, columns, rows) } };
}

/** A case with one output whose gaps must stay as they were. */
function spanCase(name: string, build: (rng: Rng) => Omit<CaseData, 'outputs' | 'expected'> & { readonly expected: readonly ArrayLike<number>[]; readonly unit: number; readonly columns: number }): KernelCase {
  return {
    name: `${name} of three sequences at once`,
    tolerance: 1e-6,
    build(rng) {
      const { inputs, run, expected, unit, columns } = build(rng);
      const rows = (END + 1) * unit;
      const shape = columns === 1 ? [rows] : [rows, columns];
      return {
        inputs: { ...inputs, spans: TABLE },
        outputs: { out: { dtype: 'f32', shape, initial: new Float32Array(rows * columns).fill(7) } },
        run,
        expected: { out: scatter(expected, unit, columns, rows, 7) },
      };
    },
  };
} // prettier-ignore

function convCase(unit: number, stride: number, more: number, place: WordPlace = 'buffer'): KernelCase {
  return spanCase(`conv1d of stride ${stride} by ${place}`, (rng) => {
    const shape = { inChannels: 8, outChannels: 12, kernel: 3 };
    const geometry = { stride, padding: 1, dilation: 1 };
    const weight = randomTensor(rng, [12, 8, 3], 0.3).values;
    const bias = randomTensor(rng, [12]).values;
    const x = sequences(rng, unit, more, 8);
    const residual = sequences(rng, unit / stride, more, 12);
    const expected = x.parts.map((part, s) =>
      conv.conv1d(part, weight, bias, { rows: part.length / 8, ...shape, ...geometry }).map((y, i) => y + residual.parts[s]![i]!),
    );
    return {
      inputs: { x: x.tensor, residual: residual.tensor },
      run(rec, t, device) {
        const at = place === 'texture' ? convPlace(device.caps) : place;
        const packed = packConv1d(device, 'w', weight, shape, bias, 'f32', at);
        const texels = convInput(device, 'rows', t['x']!.size);
        const rows = spanRows(spansOf(t['spans']!), unit, more);
        conv1d(rec, { x: t['x']!, texels, weight: packed, out: t['out']!, residual: t['residual']!, ...geometry, rows });
      },
      expected,
      unit: unit / stride,
      columns: 12,
    };
  });
}

function transposeCase(): KernelCase {
  return spanCase('transposed conv', (rng) => {
    const shape = { inChannels: 8, outChannels: 4, kernel: 8, stride: 4 };
    const weight = randomTensor(rng, [8, 4, 8], 0.3).values;
    const bias = randomTensor(rng, [4]).values;
    const x = sequences(rng, 2, 0, 8);
    const reference = { ...shape, padding: 2, outputPadding: 0 };
    const expected = x.parts.map((part) => conv.convTranspose1d(part, weight, bias, { rows: part.length / 8, ...reference }));
    return {
      inputs: { x: x.tensor },
      run(rec, t, device) {
        const taps = transposedTapRows(weight, reference);
        const packed = convTransposeWeight(device, 'w', packLinear(device, 'w', taps, 16, taps.length / 16), shape, bias);
        const rows = spanRows(spansOf(t['spans']!), 2);
        convTranspose1d(rec, { x: t['x']!, weight: packed, out: t['out']!, padding: 2, rows });
      },
      expected,
      unit: 8,
      columns: 4,
    };
  });
}

function depthwiseCase(): KernelCase {
  return spanCase('depthwise transposed conv', (rng) => {
    const shape = { channels: 8, kernel: 3, stride: 2, padding: 1, outputPadding: 1 };
    const weight = randomTensor(rng, [8, 1, 3]).values;
    const bias = randomTensor(rng, [8]).values;
    const x = sequences(rng, 1, 0, 8);
    return {
      inputs: { x: x.tensor },
      run(rec, t, device) {
        const packed = packDepthwise(device, 'w', weight, 8, 3, bias);
        const rows = spanRows(spansOf(t['spans']!), 1);
        convTranspose1dDepthwise(rec, { x: t['x']!, weight: packed, out: t['out']!, rows, stride: 2, padding: 1, outputPadding: 1 });
      },
      expected: x.parts.map((part) => conv.convTranspose1dDepthwise(part, weight, bias, { rows: part.length / 8, ...shape })),
      unit: 2,
      columns: 8,
    };
  });
}

/** Statistics are taken over chunks of 64 rows: some of these begin and end inside one. */
function adainCase(unit: number): KernelCase {
  return spanCase(`adain of ${unit} rows a unit`, (rng) => {
    const styles = randomTensor(rng, [STYLE_ROW + 3, 64]);
    const x = sequences(rng, unit, 1, 12);
    const expected = x.parts.map((part, s) => {
      const at = (STYLE_ROW + s) * 64 + 8;
      return adainReference(part, styles.values.subarray(at, at + 12), styles.values.subarray(at + 12, at + 24), undefined, part.length / 12, 12);
    }); // prettier-ignore
    return {
      inputs: { x: x.tensor, styles },
      run(rec, t, device) {
        const rows = spanRows(spansOf(t['spans']!), unit, 1);
        const style = { tensor: t['styles']!, row: STYLE_ROW };
        const scratch = adainScratch(device, (END + 1) * unit * 12, 12, UNITS.length);
        adain(rec, { x: t['x']!, out: t['out']!, style, styleFirst: 8, channels: 12, rows, scratch });
      },
      expected,
      unit,
      columns: 12,
    };
  });
}

function normCase(): KernelCase {
  return spanCase('styled layer norm', (rng) => {
    const styles = randomTensor(rng, [STYLE_ROW + 3, 128]);
    const x = sequences(rng, 1, 0, 40);
    const part = (s: number, first: number): Float32Array => styles.values.subarray((STYLE_ROW + s) * 128 + first, (STYLE_ROW + s) * 128 + first + 40); // prettier-ignore
    return {
      inputs: { x: x.tensor, styles },
      run(rec, t) {
        const rows = spanRows(spansOf(t['spans']!), 1);
        const style = { tensor: t['styles']!, row: STYLE_ROW };
        styledLayerNorm(rec, { x: t['x']!, style, weightFirst: 0, biasFirst: 64, out: t['out']!, eps: 1e-5, rows });
      },
      expected: x.parts.map((rows, s) => layerNormReference(rows, part(s, 0), part(s, 64), rows.length / 40, 40, 1e-5)),
      unit: 1,
      columns: 40,
    };
  });
}

function lstmCase(hidden: number): KernelCase {
  return spanCase(`lstm of ${hidden} units with biases of their own`, (rng) => {
    const [inFeatures, width] = [12, 64 + 8 * hidden];
    const x = sequences(rng, 1, 0, inFeatures);
    const styles = randomTensor(rng, [STYLE_ROW + 3, width], 0.3);
    const parts = [0, 1].map(() => ({
      input: randomTensor(rng, [4 * hidden, inFeatures], 0.3).values,
      recurrent: randomTensor(rng, [4 * hidden, hidden], 0.3).values,
    }));
    const both = (part: 'input' | 'recurrent'): Float32Array => Float32Array.from(parts.flatMap((d) => [...d[part]]));
    const expected = x.parts.map((rows, s) => {
      const at = (STYLE_ROW + s) * width + 64;
      const bias = (d: number): Float32Array => styles.values.slice(at + d * 4 * hidden, at + (d + 1) * 4 * hidden);
      return lstmReference(rows, parts.map((part, d) => ({ ...part, bias: bias(d) })), rows.length / inFeatures, inFeatures, hidden); // prettier-ignore
    });
    return {
      inputs: { x: x.tensor, styles, inputs: { dtype: 'f32', shape: [END, 8 * hidden], values: new Float32Array(END * 8 * hidden) } },
      run(rec, t, device) {
        const weight = lstmWeight('lstm', {
          input: packLinear(device, 'input', both('input'), 8 * hidden, inFeatures),
          recurrent: packLinear(device, 'recurrent', both('recurrent'), 8 * hidden, hidden, 'f32', lstmPlace(device.caps, hidden)),
          bias: device.upload('bias', 'f32', [8 * hidden], new Float32Array(8 * hidden).fill(NaN)),
        });
        const style = { of: { tensor: t['styles']!, row: STYLE_ROW }, first: 64 };
        lstm(rec, { x: t['x']!, weight, out: t['out']!, inputs: t['inputs']!, rows: spanRows(spansOf(t['spans']!), 1), style });
      },
      expected,
      unit: 1,
      columns: 2 * hidden,
    };
  });
}

function mirrorCase(): KernelCase {
  return spanCase('mirrored rows and others', (rng) => {
    const x = sequences(rng, 2, 0, 4);
    const y = sequences(rng, 2, 1, 4);
    return {
      inputs: { x: x.tensor, y: y.tensor },
      run: (rec, t) => mirrorAdd(rec, { x: t['x']!, y: t['y']!, out: t['out']!, rows: spanRows(spansOf(t['spans']!), 2, 1), pad: 1 }),
      expected: y.parts.map((part, s) => part.map((v, i) => v + x.parts[s]![Math.abs(Math.floor(i / 4) - 1) * 4 + (i % 4)]!)),
      unit: 2,
      columns: 4,
    };
  });
}

function sourceCase(): KernelCase {
  return spanCase('harmonic source with seeds of their own', (rng) => {
    const harmonics = 9;
    const shape = { samplesPerFrame: 24, sampleRate: 24000, harmonics };
    const f0 = UNITS.map((units) => Float32Array.from({ length: units }, (_, i) => (i % 5 === 3 ? 0 : 180 + 40 * rng.normal())));
    const wide = f0.map((part) => Float32Array.from({ length: part.length * 4 }, (_, i) => (i % 4 === 0 ? part[i / 4]! : 0)));
    const merge = randomTensor(rng, [harmonics + 1]);
    const expected = f0.map((part, s) => {
      const [seed, first] = KEYS[s]!;
      const draws = normals(seed, (part.length * 24 + first) * harmonics);
      const known = { ...shape, frames: part.length };
      return sourceReference(part, merge.values, merge.values[harmonics]!, known, (i) => draws[first * harmonics + i]!);
    });
    return {
      inputs: {
        f0: { dtype: 'f32', shape: [END + 1, 4], values: scatter(wide, 1, 4, END + 1) },
        merge,
        phase: { dtype: 'f32', shape: [END, harmonics], values: new Float32Array(END * harmonics) },
      },
      run(rec, t) {
        const tensors = { f0: t['f0']!, phase: t['phase']!, merge: t['merge']!, out: t['out']! };
        const noise = { seed: 0, firstSample: 0, scale: 1 };
        harmonicSource(rec, { ...tensors, frames: spanRows(spansOf(t['spans']!), 1), samplesPerFrame: 24, sampleRate: 24000, noise });
      },
      expected,
      unit: 24,
      columns: 1,
    };
  });
}

function istftCase(): KernelCase {
  return spanCase('istft', (rng) => {
    const [nFft, hop] = [40, 10];
    const [columns, width] = [nFft + 2, alignUp(nFft + 2, 4)];
    const x = UNITS.map((units) => randomTensor(rng, [4 * units + 1, columns], 2).values);
    const rows = (END + 1) * 4;
    const wide = x.map((part) => {
      const out = new Float32Array((part.length / columns) * width);
      for (let i = 0; i < part.length; i++) out[Math.floor(i / columns) * width + (i % columns)] = part[i]!;
      return out;
    });
    const zeros = (last: number): TensorData => ({ dtype: 'f32', shape: [rows, last], values: new Float32Array(rows * last) });
    return {
      inputs: { x: { dtype: 'f32', shape: [rows, width], values: scatter(wide, 4, width, rows, 0) }, frames: zeros(nFft), spectrum: zeros(width) },
      run(rec, t, device) {
        const scratch = { frames: t['frames']!, spectrum: t['spectrum']! };
        istftHead(rec, createShortFourier(device, nFft, hop), { x: t['x']!, frames: spanRows(spansOf(t['spans']!), 4, 1), out: t['out']!, scratch });
      },
      expected: x.map((part) => istftReference(part, part.length / columns, nFft, hop)),
      unit: 4 * hop,
      columns: 1,
    };
  }); // prettier-ignore
}

const cases = [
  convCase(2, 1, 1), convCase(4, 2, 1), convCase(2, 1, 1, 'texture'), convCase(4, 2, 1, 'texture'), transposeCase(), depthwiseCase(), adainCase(3), adainCase(64), normCase(), lstmCase(8), lstmCase(16), mirrorCase(), sourceCase(), istftCase(),
]; // prettier-ignore
describeKernels('row spans', cases, { every: true });
