/** Floats as files store them become weights on the device, to the bit as packLinear makes them of values on the host. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { emptyLinear, packLinear } from '../../engine/ops/pack-linear.ts';
import { packFloats } from '../../engine/ops/pack-floats.ts';
import { f16BitsToF32, fromBF16, fromF16 } from '../../engine/util/f16.ts';
import { createRng } from '../../engine/util/rng.ts';
import { testDevice } from '../support/device.ts';

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
      const shared = { raw, source, width, column, columns, part, flags, tensor: 1 };
      packFloats(rec, { ...shared, firstRow: 0, rows: half, outColumn: 0 });
      packFloats(rec, { ...shared, firstRow: half, rows: rows - half, outColumn: half });
      rec.submit();
      const bits = async (tensor: typeof part.weight): Promise<Uint8Array> => new Uint8Array((await device.read(tensor)).buffer);
      expect(await bits(part.weight)).toEqual(await bits(expected.weight));
      expect(await device.read(flags)).toEqual(new Uint32Array(3));
      device.destroy(part.weight, expected.weight, raw, flags);
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
      packFloats(rec, { raw, source, width: 4, firstRow: 0, rows: 4, column: 0, columns: 4, part: part!, outColumn: 0, flags, tensor: 1 });
      rec.submit();
      const most = dtype === 'f16' ? LARGEST_F16 : Number.MAX_VALUE;
      expect(await device.read(flags)).toEqual(Uint32Array.of(0, Math.abs(stands) <= most ? 0 : 1));
      device.destroy(part!.weight, raw, flags);
    }
  });
});
