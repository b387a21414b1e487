/** Floats as files store them become weights on the device, to the bit as plain loops and packLinear make them of values on the host. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { emptyLinear, packLinear } from '../../engine/ops/pack-linear.ts';
import { packFloats, packTaps } from '../../engine/ops/pack-floats.ts';
import { tapsOf, transposedTaps } from '../../engine/ops/conv.ts';
import { TapFill, WeightFill, targetIn } from '../../engine/ops/weight-fill.ts';
import type { LinearPart } from '../../engine/ops/weight.ts';
import { f16BitsToF32, fromBF16, fromF16, toF16 } from '../../engine/util/f16.ts';
import { createRng } from '../../engine/util/rng.ts';
import { tapRows, transposedTapRows } from '../reference/pack-taps.ts';
import { quantizeRows } from '../reference/quantize.ts';
import { testDevice } from '../support/device.ts';
import { packStored } from '../support/pack-stored.ts';
import { wordsOf } from '../support/words-of.ts';

const LARGEST_F16 = 65519;

const bitsOf = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0]!;
/** Where rounding to f16 is delicate: ties, the edge of the subnormals, what is too small, the largest, zeros of both signs. */
const DELICATE = [0, -0, 1 + 2 ** -11, 1 + 3 * 2 ** -11, -(1 + 2 ** -11 + 2 ** -20), 2 ** -14, 2 ** -15 + 2 ** -25, 3 * 2 ** -26, 2 ** -25, 2 ** -26, 65504, -65519, 1e-40]; // prettier-ignore

/** A matrix as a file stores it, and its values: random bits of every exponent that f16 can hold, and the delicate ones. */
function stored(
  source: 'F32' | 'F16' | 'BF16',
  rows: number,
  width: number,
): { readonly bytes: Uint8Array; readonly values: Float32Array } {
  const rng = createRng(rows * width);
  const size = rows * width;
  if (source === 'F16') {
    const bits = Uint16Array.from({ length: size }, () => {
      const word = rng.integer(65536);
      return (word & 0x7c00) === 0x7c00 ? word & 0x83ff : word;
    });
    return { bytes: new Uint8Array(bits.buffer), values: fromF16(bits) };
  }
  const random = (): number => {
    const value = (rng.uniform() < 0.5 ? -1 : 1) * (1 + rng.uniform()) * 2 ** (rng.integer(46) - 31);
    return Math.abs(value) > LARGEST_F16 ? 1 : value;
  };
  const values = Float32Array.from({ length: size }, (_, i) => DELICATE[i] ?? random());
  if (source === 'F32') return { bytes: new Uint8Array(values.buffer), values };
  const bits = Uint16Array.from(values, (value) => bitsOf(value) >>> 16);
  return { bytes: new Uint8Array(bits.buffer), values: fromBF16(bits) };
}

/** Blocks of 32 of which each is delicate to quantise, and blocks of values of one size. */
function delicateBlocks(blocks: number): Float32Array {
  const rng = createRng(blocks);
  const kinds: readonly ((i: number) => number)[] = [
    (i) => (i % 2 === 0 ? 0 : -0),
    // Halves of the step in Q8_0, and of that in Q4_0, with their neighbours in f32.
    (i) => (i === 0 ? 127 : i === 1 ? -127 : Math.sign(i - 16) * (i + 0.5) * (1 + (i % 3) * 2 ** -23)),
    (i) => (i === 0 ? -8 : (i / 4 - 4) * (1 + (i % 3) * 2 ** -23)),
    // The first of equal extremes decides the sign.
    (i) => (i === 5 ? 3 : i === 6 ? -3 : i / 100),
    (i) => (i === 5 ? -3 : i === 6 ? 3 : -i / 100),
    // Scales that are denormal in f16, and zero there.
    (i) => (i - 15) * 2e-7,
    (i) => (i - 15) * 1e-10,
    // Numbers that are denormal in f32, and scales whose inverse is not finite or that are zero themselves.
    (i) => (i - 15) * 2 ** -126,
    (i) => (i - 15) * 2 ** -131,
    (i) => (i - 15) * 2 ** -140,
    (i) => (i - 15) * 2 ** -149,
    (i) => (i === 9 ? -LARGEST_F16 : i * 1000),
  ];
  return Float32Array.from({ length: blocks * 32 }, (_, at) => {
    const kind = kinds[Math.floor(at / 32)];
    return kind ? kind(at % 32) : rng.normal() * 2 ** (Math.floor(at / 32) % 12);
  });
}

/** Values as files of 16 bits have them. */
function halves(values: Float32Array): { readonly bytes: Uint8Array; readonly values: Float32Array } {
  const bits = toF16(values);
  return { bytes: new Uint8Array(bits.buffer), values: fromF16(bits) };
}

function brains(values: Float32Array): { readonly bytes: Uint8Array; readonly values: Float32Array } {
  const bits = Uint16Array.from(values, (value) => bitsOf(value) >>> 16);
  return { bytes: new Uint8Array(bits.buffer), values: fromBF16(bits) };
}

describe.each([{ source: 'F32' }, { source: 'F16' }, { source: 'BF16' }] as const)('pack_floats of $source', ({ source }) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => {
    expect(device.errors).toEqual([]);
    device.close();
  });

  test.each([
    { rows: 24, width: 64 },
    { rows: 9, width: 70 },
    { rows: 7, width: 33 },
    { rows: 11, width: 48, column: 7, columns: 30 },
  ])('$rows rows of $width come out as from the host', async ({ rows, width, column = 0, columns = width }) => {
    const { bytes, values } = stored(source, rows, width);
    const kept = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) kept.set(values.subarray(row * width + column, row * width + column + columns), row * columns);
    for (const dtype of ['f16', 'f32'] as const) {
      const expected = packLinear(device, 'expected', kept, rows, columns, dtype).parts[0]!;
      const [part] = emptyLinear(device, 'packed', rows, columns, dtype).parts as [typeof expected];
      const raw = device.tensor('raw', 'u32', [Math.ceil(bytes.length / 4)]);
      device.write(raw, bytes);
      const flags = device.tensor('flags', 'u32', [3]);
      const rec = device.record('pack');
      // In two pieces, as of two chunks.
      const half = Math.floor(rows / 2);
      const shared = { raw, source, width, column, columns, flags, tensor: 1 };
      packFloats(rec, { ...shared, firstRow: 0, rows: half, into: targetIn(part, 0) });
      packFloats(rec, { ...shared, firstRow: half, rows: rows - half, into: targetIn(part, half) });
      rec.submit();
      const bits = async (tensor: typeof part.weight): Promise<Uint8Array> => new Uint8Array((await device.read(tensor)).buffer);
      expect(await bits(part.weight)).toEqual(await bits(expected.weight));
      expect(await device.read(flags)).toEqual(new Uint32Array(3));
      device.destroy(part.weight, expected.weight, raw, flags);
    }
  });

  test.each([
    { rows: 70, width: 64 },
    { rows: 2300, width: 9, column: 2, columns: 6 },
  ])('$rows rows of $width come into a texture as from the host', async ({ rows, width, column = 0, columns = width }) => {
    if (device.caps.maxTexels === 0) return console.log('skipped: kernels cannot read storage textures here');
    const { bytes, values } = stored(source, rows, width);
    const kept = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) kept.set(values.subarray(row * width + column, row * width + column + columns), row * columns);
    const expected = packLinear(device, 'expected', kept, rows, columns, 'f16', 'texture').parts[0]!;
    const weight = emptyLinear(device, 'packed', rows, columns, 'f16', 'texture');
    const raw = device.tensor('raw', 'u32', [Math.ceil(bytes.length / 4)]);
    device.write(raw, bytes);
    const flags = device.tensor('flags', 'u32', [1]);
    const fill = new WeightFill(device, weight);
    // In two pieces, as of two chunks.
    const half = Math.floor(rows / 2);
    for (const [begin, end] of [
      [0, half],
      [half, rows],
    ] as const) {
      const rec = device.record('pack');
      for (const { into, from, count } of fill.pieces(rec, begin, end)) {
        packFloats(rec, { raw, source, width, firstRow: from, rows: count, column, columns, into, flags, tensor: 0 });
      }
      rec.submit();
    }
    fill.finish();
    const words = await wordsOf(device, weight.parts[0]!.weight);
    expect(words).toEqual(await wordsOf(device, expected.weight));
    expect(words.some((word) => word !== 0)).toBe(true);
    device.destroy(weight.parts[0]!.weight, expected.weight, raw, flags);
  });

  test.each([
    { rows: 24, width: 64 },
    { rows: 9, width: 96 },
    { rows: 11, width: 97, column: 33, columns: 64 },
  ])('$rows rows of $width become the blocks that gguf makes of them', async ({ rows, width, column = 0, columns = width }) => {
    const delicate = delicateBlocks(Math.ceil((rows * width) / 32)).subarray(0, rows * width);
    const { bytes, values } =
      source === 'F16' ? halves(delicate) : source === 'F32' ? { bytes: new Uint8Array(delicate.slice().buffer), values: delicate } : brains(delicate); // prettier-ignore
    const kept = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) kept.set(values.subarray(row * width + column, row * width + column + columns), row * columns);
    for (const dtype of ['Q8_0', 'Q4_0'] as const) {
      const expected = packStored(device, 'expected', quantizeRows(kept, dtype), rows, columns, dtype, 'buffer').parts[0]!;
      const [part] = emptyLinear(device, 'packed', rows, columns, dtype, 'buffer').parts as [LinearPart];
      const raw = device.tensor('raw', 'u32', [Math.ceil(bytes.length / 4)]);
      device.write(raw, bytes);
      const flags = device.tensor('flags', 'u32', [1]);
      const rec = device.record('quantise');
      const half = Math.floor(rows / 2);
      const shared = { raw, source, width, column, columns, flags, tensor: 0 };
      packFloats(rec, { ...shared, firstRow: 0, rows: half, into: targetIn(part, 0) });
      packFloats(rec, { ...shared, firstRow: half, rows: rows - half, into: targetIn(part, half) });
      rec.submit();
      const [found, wanted] = [await device.read(part.weight), await device.read(expected.weight)];
      // The padding is zeros on one side and codes of nothing on the other; no kernel keeps what it gives.
      const inside = (words: typeof found): number[] => [...words].filter((_, i) => i % part.padded < rows);
      expect(inside(found)).toEqual(inside(wanted));
      expect(await device.read(flags)).toEqual(new Uint32Array(1));
      device.destroy(part.weight, expected.weight, raw, flags);
    }
  });

  test.each([
    { inChannels: 5, outChannels: 9, kernel: 3 },
    { inChannels: 8, outChannels: 6, kernel: 1 },
    { inChannels: 10, outChannels: 3, kernel: 20, stride: 10 },
    { inChannels: 6, outChannels: 5, kernel: 5, stride: 2 },
  ])('taps of $inChannels to $outChannels channels by $kernel, stride $stride, come out as from the host', async (shape) => {
    const { bytes, values } = stored(source, shape.outChannels, shape.inChannels * shape.kernel);
    const { stride } = shape;
    const order = stride === undefined ? tapsOf(shape) : transposedTaps({ ...shape, stride });
    const rows = stride === undefined ? tapRows(values, shape) : transposedTapRows(values, { ...shape, stride });
    for (const dtype of ['f16', 'f32'] as const) {
      const expected = packLinear(device, 'expected', rows, order.columns, order.depth, dtype).parts[0]!;
      const [part] = emptyLinear(device, 'packed', order.columns, order.depth, dtype).parts as [LinearPart];
      const flags = device.tensor('flags', 'u32', [1]);
      // In two chunks of the file.
      for (const chunk of [{ from: 0, to: 4 }, { from: 4, to: order.fileRows }].filter(({ from, to }) => from < to && to <= order.fileRows)) {
        const raw = device.tensor('raw', 'u32', [Math.ceil(bytes.length / 4)]);
        const each = bytes.length / order.fileRows;
        device.write(raw, bytes.slice(chunk.from * each, chunk.to * each));
        const rec = device.record('taps');
        const { outColumn, ...layout } = order.of(chunk);
        packTaps(rec, { raw, source, into: targetIn(part, outColumn), flags, tensor: 0, ...layout });
        rec.submit();
      } // prettier-ignore
      const bits = async (tensor: typeof part.weight): Promise<Uint8Array> => new Uint8Array((await device.read(tensor)).buffer);
      expect(await bits(part.weight)).toEqual(await bits(expected.weight));
      expect(await device.read(flags)).toEqual(new Uint32Array(1));
      device.destroy(part.weight, expected.weight, flags);
    }
  });

  test('taps in a texture come out as from the host', async () => {
    // More columns than a group, whose channels come in two chunks.
    const shape = { inChannels: 8, outChannels: 13, kernel: 10, stride: 5 };
    const { bytes, values } = stored(source, shape.inChannels, shape.outChannels * shape.kernel);
    const order = transposedTaps(shape);
    const rows = transposedTapRows(values, shape);
    for (const dtype of ['f16', 'f32'] as const) {
      const expected = packLinear(device, 'expected', rows, order.columns, order.depth, dtype, 'texture').parts[0]!;
      const weight = emptyLinear(device, 'packed', order.columns, order.depth, dtype, 'texture');
      const fill = new TapFill(device, weight);
      const flags = device.tensor('flags', 'u32', [1]);
      for (const chunk of [
        { from: 0, to: 4 },
        { from: 4, to: 8 },
      ]) {
        const raw = device.tensor('raw', 'u32', [bytes.length / 4]);
        const each = bytes.length / order.fileRows;
        device.write(raw, bytes.slice(chunk.from * each, chunk.to * each));
        const rec = device.record('taps');
        const { outColumn, ...layout } = order.of(chunk);
        for (const into of fill.targets(outColumn)) packTaps(rec, { raw, source, into, flags, tensor: 0, ...layout });
        rec.submit();
      }
      fill.finish();
      const words = await wordsOf(device, weight.parts[0]!.weight);
      expect(words).toEqual(await wordsOf(device, expected.weight));
      expect(words.some((word) => word !== 0)).toBe(true);
      device.destroy(weight.parts[0]!.weight, expected.weight, flags);
    }
  });

  const bad = source === 'F16' ? [Infinity, NaN] : [Infinity, NaN, 65520, -1e20];
  test.each(bad)('%s is flagged, in f32 only when it is not finite', async (value) => {
    const words = source === 'F32' ? 1 : 2;
    const bytes = new Uint8Array(16 * (4 / words));
    const [sample] = [value].map((v) => (source === 'F32' ? bitsOf(v) : source === 'BF16' ? (bitsOf(v) >>> 16) + 1 : Number.isNaN(v) ? 0x7e00 : 0x7c00)); // prettier-ignore
    if (source === 'F32') new Uint32Array(bytes.buffer)[13] = sample!;
    else new Uint16Array(bytes.buffer)[13] = sample!;
    const stands = source === 'F32' ? new Float32Array(bytes.buffer)[13]! : source === 'BF16' ? fromBF16(new Uint16Array(bytes.buffer))[13]! : f16BitsToF32(sample!); // prettier-ignore
    for (const dtype of ['f16', 'f32'] as const) {
      const [part] = emptyLinear(device, 'packed', 4, 4, dtype).parts;
      const raw = device.tensor('raw', 'u32', [bytes.length / 4]);
      device.write(raw, bytes);
      const flags = device.tensor('flags', 'u32', [2]);
      const rec = device.record('pack');
      packFloats(rec, { raw, source, width: 4, firstRow: 0, rows: 4, column: 0, columns: 4, into: targetIn(part!, 0), flags, tensor: 1 });
      rec.submit();
      const most = dtype === 'f16' ? LARGEST_F16 : Number.MAX_VALUE;
      expect(await device.read(flags)).toEqual(Uint32Array.of(0, Math.abs(stands) <= most ? 0 : 1));
      device.destroy(part!.weight, raw, flags);
    }
  });
});
