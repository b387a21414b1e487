import { adain, adainScratch } from '../../engine/ops/adain.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { convInput } from '../../engine/ops/conv.ts';
import { convTranspose1dDepthwise, packDepthwise } from '../../engine/ops/depthwise.ts';
import { createShortFourier, istftHead, polar, stftPolar } from '../../engine/ops/istft.ts';
import { lstm, lstmForward, lstmPlace, lstmWeight } from '../../engine/ops/lstm.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { spanRows } from '../../engine/ops/row-spans.ts';
import { averageLeaky, expandRows, mirrorAdd } from '../../engine/ops/rows.ts';
import { harmonicSource } from '../../engine/ops/source.ts';
import { alignUp } from '../../engine/util/math.ts';
import { adain as adainReference } from '../reference/adain.ts';
import { convTranspose1dDepthwise as depthwiseReference } from '../reference/conv.ts';
import { istftHead as istftReference, stft } from '../reference/istft.ts';
import { lstm as lstmReference } from '../reference/lstm.ts';
import { harmonicSource as sourceReference, normals } from '../reference/source.ts';
import { describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase, TensorData } from '../support/kernel-case.ts';

/** Rows of `channels` columns widened to `width` with zeros. */
function widen(values: ArrayLike<number>, rows: number, channels: number, width: number): TensorData {
  const out = new Float32Array(rows * width);
  for (let r = 0; r < rows; r++) for (let c = 0; c < channels; c++) out[r * width + c] = values[r * channels + c]!;
  return { dtype: 'f32', shape: [rows, width], values: out };
}

/** `compute` into what a convolution reads on this adapter, from where it is copied to `out` if that is a texture. */
function forConv(rec: Recorder, device: Device, out: Tensor, compute: (out: Tensor) => void): void {
  const rows = convInput(device, 'rows', out.size);
  compute(rows.texture ? rows.reshape(out.shape) : out);
  if (rows.texture) rec.spill(rows, out);
}

function adainCase(rows: number, channels: number, snake: boolean): KernelCase {
  return {
    name: `adain with ${snake ? 'snake' : 'leaky relu'} handles ${rows} rows of ${channels} channels`,
    build(rng) {
      const c = alignUp(channels, 4);
      const x = randomTensor(rng, [rows, channels], 2);
      // An offset makes a one-pass variance lose its digits; rows after `rows` must not count.
      for (let i = 0; i < x.values.length; i++) x.values[i]! += 30 + (i % channels);
      const scale = randomTensor(rng, [channels]).values;
      const shift = randomTensor(rng, [channels]).values;
      const alpha = randomTensor(rng, [channels]).values.map((v) => 0.3 + Math.abs(v));
      const style = new Float32Array(64 + 2 * c);
      style.set(scale, 64);
      style.set(shift, 64 + c);
      const alphas = new Float32Array(2 * c).fill(1);
      alphas.set(alpha, 0);
      alphas.set(alpha.map((a) => 1 / a), c); // prettier-ignore
      const expected = adainReference(x.values, scale, shift, snake ? alpha : undefined, rows, channels);
      return {
        inputs: {
          x: widen([...x.values, ...new Float32Array(5 * channels).fill(1e6)], rows + 5, channels, c + 8),
          style: { dtype: 'f32', shape: [style.length], values: style },
          alpha: { dtype: 'f32', shape: [2, c], values: alphas },
        },
        outputs: { out: { dtype: 'f32', shape: [rows, c] } },
        run(rec, t, device) {
          const common = { x: t['x']!, style: { tensor: t['style']!, row: 0 }, styleFirst: 64, channels, rows };
          const scratch = adainScratch(device, rows * c, c);
          forConv(rec, device, t['out']!, (out) => adain(rec, { ...common, out, scratch, alpha: snake ? t['alpha'] : undefined }));
        },
        expected: { out: widen(expected, rows, channels, c).values },
      };
    },
  };
}

/** `asModel`: the recurrent weights lie where a model has them on this adapter, instead of in a buffer. */
function lstmCase(steps: number, inFeatures: number, hidden: number, dtype: 'f32' | 'f16' = 'f32', asModel = false): KernelCase {
  return {
    name: `lstm ${dtype} walks ${steps} steps of ${inFeatures} features with ${hidden} units${asModel ? ', weights as a model has them' : ''}`,
    build(rng) {
      const x = randomTensor(rng, [steps, inFeatures]);
      const directions = [0, 1].map(() => ({
        input: randomTensor(rng, [4 * hidden, inFeatures], 1 / Math.sqrt(inFeatures)).values,
        recurrent: randomTensor(rng, [4 * hidden, hidden], 1 / Math.sqrt(hidden)).values,
        bias: randomTensor(rng, [4 * hidden], 0.3).values,
      }));
      const stored =
        dtype === 'f16' ? directions.map((d) => ({ ...d, input: roundToF16(d.input), recurrent: roundToF16(d.recurrent) })) : directions;
      const expected = lstmReference(x.values, stored, steps, inFeatures, hidden);
      return {
        inputs: { x, inputs: { dtype: 'f32', shape: [steps, 8 * hidden], values: new Float32Array(steps * 8 * hidden) } },
        outputs: { out: { dtype: 'f32', shape: [steps, 2 * hidden] } },
        run(rec, t, device) {
          const both = (part: 'input' | 'recurrent' | 'bias'): Float32Array => Float32Array.from(directions.flatMap((d) => [...d[part]]));
          const place = asModel ? lstmPlace(device.caps, hidden) : 'buffer';
          const weight = lstmWeight('lstm', {
            input: packLinear(device, 'input', both('input'), 8 * hidden, inFeatures, dtype),
            recurrent: packLinear(device, 'recurrent', both('recurrent'), 8 * hidden, hidden, dtype, place),
            bias: device.upload('bias', 'f32', [8 * hidden], both('bias')),
          });
          lstm(rec, { x: t['x']!, weight, out: t['out']!, inputs: t['inputs']!, rows: steps });
        },
        expected: { out: expected },
      };
    },
  };
}

/** More sequences than a workgroup walks, one behind the other, of which some end long before others. */
function lstmBatchCase(lengths: readonly number[], hidden: number): KernelCase {
  const inFeatures = 12;
  const first = lengths.map((_, s) => lengths.slice(0, s).reduce((a, b) => a + b, 0));
  const end = first.at(-1)! + lengths.at(-1)!;
  return {
    name: `lstm walks ${lengths.join(', ')} steps at once with ${hidden} units`,
    build(rng) {
      const x = randomTensor(rng, [end, inFeatures]);
      const directions = [0, 1].map(() => ({
        input: randomTensor(rng, [4 * hidden, inFeatures], 0.3).values,
        recurrent: randomTensor(rng, [4 * hidden, hidden], 1 / Math.sqrt(hidden)).values,
        bias: randomTensor(rng, [4 * hidden], 0.3).values,
      }));
      const table = Uint32Array.from(lengths.flatMap((length, s) => [first[s]!, length, 0, 0]));
      const expected = lengths.flatMap((length, s) => [...lstmReference(x.values.subarray(first[s]! * inFeatures), directions, length, inFeatures, hidden)]); // prettier-ignore
      return {
        inputs: {
          x,
          spans: { dtype: 'u32', shape: [lengths.length, 4], values: table },
          inputs: { dtype: 'f32', shape: [end, 8 * hidden], values: new Float32Array(end * 8 * hidden) },
        },
        // How many steps there are, only the device knows.
        outputs: { out: { dtype: 'f32', shape: [end, 2 * hidden], initial: new Float32Array(end * 2 * hidden).fill(7) } },
        run(rec, t, device) {
          const both = (part: 'input' | 'recurrent' | 'bias'): Float32Array => Float32Array.from(directions.flatMap((d) => [...d[part]]));
          const weight = lstmWeight('lstm', {
            input: packLinear(device, 'input', both('input'), 8 * hidden, inFeatures),
            recurrent: packLinear(device, 'recurrent', both('recurrent'), 8 * hidden, hidden, 'f32', lstmPlace(device.caps, hidden)),
            bias: device.upload('bias', 'f32', [8 * hidden], both('bias')),
          });
          const rows = spanRows({ table: t['spans']!, count: lengths.length, longest: Math.max(...lengths), end }, 1);
          lstm(rec, { x: t['x']!, weight, out: t['out']!, inputs: t['inputs']!, rows });
        },
        expected: { out: Float64Array.from(expected) },
      };
    },
  };
}

/** In two calls, of which the second goes on from what the first left, and projects a row that it does not walk. */
function lstmForwardCase(first: number, second: number, hidden: number, dtype: 'f32' | 'f16'): KernelCase {
  const inFeatures = 12;
  return {
    name: `lstm forward ${dtype} walks ${first} and ${second} steps with ${hidden} units`,
    build(rng) {
      const steps = first + second;
      const x = randomTensor(rng, [steps + 1, inFeatures]);
      const input = randomTensor(rng, [4 * hidden, inFeatures], 1 / Math.sqrt(inFeatures)).values;
      const recurrent = randomTensor(rng, [4 * hidden, hidden], 1 / Math.sqrt(hidden)).values;
      const bias = randomTensor(rng, [4 * hidden], 0.3).values;
      const kept = randomTensor(rng, [2, hidden], 0.5);
      const stored = dtype === 'f16' ? { input: roundToF16(input), recurrent: roundToF16(recurrent), bias } : { input, recurrent, bias };
      const state = { h: Float64Array.from(kept.values.subarray(0, hidden)), c: Float64Array.from(kept.values.subarray(hidden)) };
      const expected = lstmReference(x.values, [stored], steps, inFeatures, hidden, [state]);
      const tensor = (rows: number, columns: number): TensorData => ({
        dtype: 'f32',
        shape: [rows, columns],
        values: new Float32Array(rows * columns),
      });
      const part = (from: number, to: number): TensorData => ({
        dtype: 'f32',
        shape: [to - from, inFeatures],
        values: x.values.slice(from * inFeatures, to * inFeatures),
      });
      return {
        inputs: { first: part(0, first), second: part(first, steps + 1), kept, inputs: tensor(steps + 1, 4 * hidden) },
        outputs: {
          one: { dtype: 'f32', shape: [first, hidden] },
          two: { dtype: 'f32', shape: [second, hidden] },
        },
        run(rec, t, device) {
          const weight = lstmWeight(
            'lstm',
            {
              input: packLinear(device, 'input', input, 4 * hidden, inFeatures, dtype),
              recurrent: packLinear(device, 'recurrent', recurrent, 4 * hidden, hidden, dtype),
              bias: device.upload('bias', 'f32', [4 * hidden], bias),
            },
            1,
          );
          const shared = { weight, kept: t['kept']!, inputs: t['inputs']! };
          lstmForward(rec, { ...shared, x: t['first']!, out: t['one']!, rows: first, steps: first });
          lstmForward(rec, { ...shared, x: t['second']!, out: t['two']!, rows: second + 1, steps: second });
        },
        expected: {
          one: expected.subarray(0, first * hidden),
          two: expected.subarray(first * hidden),
        },
      };
    },
  };
}

function sourceCase(frames: number, samplesPerFrame: number, noise: boolean): KernelCase {
  const harmonics = 9;
  const sampleRate = 24000;
  return {
    name: `source makes ${frames} frames of ${samplesPerFrame} samples ${noise ? 'with' : 'without'} noise`,
    // Phases are f32 a frame and f64 in the reference.
    tolerance: 1e-6,
    build(rng) {
      const f0 = Float32Array.from({ length: frames }, (_, i) => (i % 17 < 4 ? rng.normal() * 3 : 180 + 40 * rng.normal()));
      const merge = randomTensor(rng, [harmonics + 1]);
      const samples = frames * samplesPerFrame;
      const firstSample = 7;
      const draws = normals(1234, (samples + firstSample) * harmonics);
      const shape = { frames, samplesPerFrame, sampleRate, harmonics };
      const draw = (i: number): number => draws[firstSample * harmonics + i]!;
      const expected = sourceReference(f0, merge.values, merge.values[harmonics]!, shape, noise ? draw : undefined);
      return {
        inputs: {
          f0: widen(f0, frames, 1, 4),
          merge,
          phase: { dtype: 'f32', shape: [frames, harmonics], values: new Float32Array(frames * harmonics) },
        },
        outputs: { out: { dtype: 'f32', shape: [samples] } },
        run(rec, t) {
          const tensors = { f0: t['f0']!, phase: t['phase']!, merge: t['merge']!, out: t['out']! };
          harmonicSource(rec, {
            ...tensors,
            frames,
            samplesPerFrame,
            sampleRate,
            noise: { seed: 1234, firstSample, scale: noise ? 1 : 0 },
          });
        },
        expected: { out: expected },
      };
    },
  };
}

function fourierScratch(frames: number, nFft: number): Record<'frames' | 'spectrum', TensorData> {
  const width = alignUp(nFft + 2, 4);
  return {
    frames: { dtype: 'f32', shape: [frames, nFft], values: new Float32Array(frames * nFft) },
    spectrum: { dtype: 'f32', shape: [frames, width], values: new Float32Array(frames * width) },
  };
}

function stftCase(samples: number, nFft: number, hop: number): KernelCase {
  return {
    name: `stft takes ${samples} samples apart (n_fft ${nFft}, hop ${hop})`,
    build(rng) {
      const signal = randomTensor(rng, [samples]);
      const frames = Math.floor(samples / hop) + 1;
      const width = alignUp(nFft + 2, 4);
      const { frames: framed, spectrum } = fourierScratch(frames, nFft);
      return {
        // Angles are compared below: those of a mirrored (real) first frame hang on the last bit of a zero.
        inputs: { signal, framed, angles: spectrum },
        outputs: { spectrum: { dtype: 'f32', shape: [frames, width], initial: spectrum.values } },
        run(rec, t, device) {
          const scratch = { frames: t['framed']!, spectrum: t['spectrum']! };
          stftPolar(rec, createShortFourier(device, nFft, hop), { signal: t['signal']!, frames, out: t['angles']!, scratch });
        },
        expected: { spectrum: widen(stft(signal.values, nFft, hop), frames, nFft + 2, width).values },
      };
    },
  };
}

function polarCase(frames: number, bins: number): KernelCase {
  return {
    name: `polar turns ${frames} frames of ${bins} bins`,
    build(rng) {
      const x = randomTensor(rng, [frames, 2 * bins]);
      // The axes: zero, the negative reals (+pi), both imaginary directions.
      [[0, 0], [-1, 0], [1, 0], [0, 1], [0, -1]].slice(0, bins).forEach(([re, im], k) => { x.values[k] = re!; x.values[bins + k] = im!; }); // prettier-ignore
      const expected = new Float64Array(x.values.length);
      for (let f = 0; f < frames; f++) {
        for (let k = 0; k < bins; k++) {
          const at = f * 2 * bins + k;
          expected[at] = Math.hypot(x.values[at]!, x.values[at + bins]!);
          expected[at + bins] = Math.atan2(x.values[at + bins]!, x.values[at]!);
        }
      }
      return {
        inputs: { x },
        outputs: { out: { dtype: 'f32', shape: [frames, 2 * bins] } },
        run: (rec, t) => polar(rec, { x: t['x']!, out: t['out']!, frames, bins }),
        expected: { out: expected },
      };
    },
  };
}

function istftCase(frames: number, nFft: number, hop: number): KernelCase {
  return {
    name: `istft puts ${frames} frames together (n_fft ${nFft}, hop ${hop})`,
    build(rng) {
      const columns = nFft + 2;
      const x = randomTensor(rng, [frames, columns], 2);
      return {
        inputs: { x: widen(x.values, frames, columns, alignUp(columns, 4)), ...fourierScratch(frames, nFft) },
        outputs: { out: { dtype: 'f32', shape: [(frames - 1) * hop] } },
        run(rec, t, device) {
          const scratch = { frames: t['frames']!, spectrum: t['spectrum']! };
          istftHead(rec, createShortFourier(device, nFft, hop), { x: t['x']!, frames, out: t['out']!, scratch });
        },
        expected: { out: istftReference(x.values, frames, nFft, hop) },
      };
    },
  };
}

function depthwiseCase(rows: number, channels: number, kernel: number, stride: number, padding: number, outputPadding: number): KernelCase {
  return {
    name: `depthwise transposed conv ${JSON.stringify({ rows, channels, kernel, stride, padding, outputPadding })}`,
    build(rng) {
      const x = randomTensor(rng, [rows, channels]);
      const weight = randomTensor(rng, [channels, kernel]);
      const bias = randomTensor(rng, [channels]);
      const expected = depthwiseReference(x.values, weight.values, bias.values, { rows, channels, kernel, stride, padding, outputPadding });
      const outRows = expected.length / channels;
      const c = alignUp(channels, 4);
      return {
        inputs: { x: widen(x.values, rows, channels, c) },
        outputs: { out: { dtype: 'f32', shape: [outRows, c] } },
        run(rec, t, device) {
          const packed = packDepthwise(device, 'w', weight.values, channels, kernel, bias.values);
          convTranspose1dDepthwise(rec, { x: t['x']!, weight: packed, out: t['out']!, rows, stride, padding, outputPadding });
        },
        expected: { out: widen(expected, outRows, channels, c).values },
      };
    },
  };
}

function rowsCase(rows: number, channels: number): KernelCase {
  return {
    name: `gather, mirror and average ${rows} rows of ${channels} channels`,
    build(rng) {
      const parts = randomTensor(rng, [3, rows + 2, channels]);
      const y = randomTensor(rng, [rows + 1, channels]);
      const index = Uint32Array.from({ length: rows }, () => rng.integer(rows + 2));
      const gathered = new Float32Array(rows * (channels + 3)).fill(7);
      const averaged = new Float64Array(rows * channels);
      const mirrored = new Float64Array((rows + 1) * channels);
      const size = (rows + 2) * channels;
      for (let l = 0; l <= rows; l++) {
        for (let c = 0; c < channels; c++) {
          mirrored[l * channels + c] = parts.values[Math.abs(l - 1) * channels + c]! + y.values[l * channels + c]!;
          if (l === rows) continue;
          gathered[l * (channels + 3) + 2 + c] = parts.values[index[l]! * channels + c]!;
          const mean = [0, 1, 2].reduce((sum, j) => sum + parts.values[j * size + l * channels + c]! / 3, 0);
          averaged[l * channels + c] = mean >= 0 ? mean : 0.01 * mean;
        }
      }
      return {
        inputs: { parts, y, index: { dtype: 'u32', shape: [rows], values: index } },
        outputs: {
          gathered: { dtype: 'f32', shape: [rows, channels + 3], initial: new Float32Array(rows * (channels + 3)).fill(7) },
          averaged: { dtype: 'f32', shape: [rows, channels] },
          mirrored: { dtype: 'f32', shape: [rows + 1, channels] },
        },
        run(rec, t, device) {
          const first = t['parts']!.reshape([rows + 2, channels]);
          expandRows(rec, { x: first, index: t['index']!, out: t['gathered']!, rows, outColumn: 2 });
          forConv(rec, device, t['averaged']!, (out) => averageLeaky(rec, { parts: t['parts']!, out, rows, slope: 0.01 }));
          mirrorAdd(rec, { x: first, y: t['y']!, out: t['mirrored']!, rows: rows + 1, pad: 1 });
        },
        expected: { gathered, averaged, mirrored },
      };
    },
  };
}

const cases: KernelCase[] = [];
for (const rows of [1, 3, 63, 64, 65, 257]) cases.push(adainCase(rows, 8, true), rowsCase(rows, 12));
for (const channels of [1, 3, 63, 65, 130]) cases.push(adainCase(70, channels, true), adainCase(70, channels, false));
cases.push(
  lstmCase(1, 12, 8),
  lstmCase(3, 192, 64),
  lstmCase(65, 24, 32),
  lstmCase(17, 20, 40),
  lstmCase(17, 192, 64, 'f16'),
  lstmCase(9, 64, 256),
  lstmBatchCase([2, 5, 1, 9, 3, 4], 32),
  lstmBatchCase([7, 7, 7, 7], 16),
  lstmForwardCase(1, 2, 8, 'f32'),
  lstmForwardCase(17, 64, 128, 'f16'),
);
for (const [steps, hidden] of [[1, 16], [3, 48], [65, 64], [9, 256]] as const) cases.push(lstmCase(steps, 12, hidden, 'f32', true), lstmCase(steps, 12, hidden, 'f16', true)); // prettier-ignore
for (const noise of [false, true]) cases.push(sourceCase(1, 240, noise), sourceCase(65, 240, noise), sourceCase(40, 300, noise));
cases.push(sourceCase(1500, 24, false));
for (const [nFft, hop] of [[40, 10], [20, 5]] as const) cases.push(stftCase(nFft / 2 + hop, nFft, hop), stftCase(2400, nFft, hop), istftCase(3, nFft, hop), istftCase(257, nFft, hop)); // prettier-ignore
for (const rows of [1, 3, 65]) cases.push(depthwiseCase(rows, 6, 3, 2, 1, 1), depthwiseCase(rows, 64, 3, 2, 1, 1));
cases.push(polarCase(1, 5), polarCase(65, 21), polarCase(257, 11));
cases.push(depthwiseCase(9, 5, 5, 3, 0, 0));

describeKernels('speech', cases);
