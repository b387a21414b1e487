import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { NO_SLOT, createKVCache, ropeKVStore } from '../../engine/ops/kv.ts';
import type { KVCache } from '../../engine/ops/kv.ts';
import { qkNorm, ropeFrequencies, ropeTable } from '../../engine/ops/rope.ts';
import { createRng } from '../../engine/util/rng.ts';
import * as kvReference from '../reference/kv.ts';
import * as ropeReference from '../reference/rope.ts';
import { expectClose } from '../support/compare.ts';
import { testDevice } from '../support/device.ts';
import { describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const PAGE = 16;
const PAGES = 6;

interface Shape {
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

function storeCase({ rows, heads, kvHeads, headDim }: Shape, dtype: 'f32' | 'f16'): KernelCase {
  return {
    name: `rope_kv_store ${dtype} handles ${rows} rows of ${heads} over ${kvHeads} heads of ${headDim}`,
    // A half has 11 bits: the rounding of an element is at most 2^-12 of it.
    tolerance: dtype === 'f16' ? 1e-6 : 1e-7,
    build(rng) {
      const qkv = randomTensor(rng, [rows, (heads + 2 * kvHeads) * headDim]);
      // Slots in no order, the second row is padding, positions far apart.
      const slots = Array.from({ length: rows }, (_, t) => (t === 1 ? undefined : (t * 7) % (PAGES * PAGE)));
      const positions = Array.from({ length: rows }, (_, t) => (t * 37) % 500);
      const initial = randomTensor(rng, [PAGES, kvHeads, headDim, PAGE]).values;
      const before = dtype === 'f16' ? roundToF16(initial) : initial;
      const [k, v] = [Float64Array.from(before), Float64Array.from(before)];
      const frequencies = Float32Array.from(ropeFrequencies({ theta: 10000, headDim, scaling: undefined }));
      const q = kvReference.ropeKVStore({ qkv: qkv.values, heads, kvHeads, headDim, pageSize: PAGE, positions, slots, frequencies }, k, v);
      const pages = { dtype, shape: [PAGES, kvHeads, headDim, PAGE], initial };
      return {
        inputs: {
          qkv,
          positions: { dtype: 'u32', shape: [rows], values: positions },
          slots: { dtype: 'u32', shape: [rows], values: slots.map((slot) => slot ?? NO_SLOT) },
        },
        outputs: { q: { dtype: 'f32', shape: [rows, heads * headDim] }, k: pages, v: pages },
        run(rec, t, device) {
          const cosSin = ropeTable(device, { theta: 10000, headDim, scaling: undefined }, 500);
          const kv: KVCache = { dtype, pages: PAGES, pageSize: PAGE, kvHeads, headDim, layers: [{ k: t['k']!, v: t['v']! }] };
          const { qkv, positions, slots, q } = t as Record<string, NonNullable<(typeof t)[string]>>;
          ropeKVStore(rec, { qkv: qkv!, cosSin, positions: positions!, slots: slots!, q: q!, kv, layer: 0, heads, rows });
        },
        expected: { q, k, v },
      };
    },
  };
}

function qkNormCase({ rows, heads, kvHeads, headDim }: Shape): KernelCase {
  return {
    name: `qk_norm handles ${rows} rows of ${heads} over ${kvHeads} heads of ${headDim}`,
    build(rng) {
      const shape = [rows, (heads + 2 * kvHeads) * headDim];
      const qkv = randomTensor(rng, shape, 3);
      const weight = randomTensor(rng, [2, headDim]);
      return {
        inputs: { weight },
        outputs: { qkv: { dtype: 'f32', shape, initial: qkv.values } },
        run: (rec, t) => qkNorm(rec, { qkv: t['qkv']!, weight: t['weight']!, heads, kvHeads, eps: 1e-6, rows }),
        expected: { qkv: ropeReference.qkNorm(qkv.values, weight.values, { rows, heads, kvHeads, headDim, eps: 1e-6 }) },
      };
    },
  };
}

const shapes: Shape[] = [
  { rows: 1, heads: 1, kvHeads: 1, headDim: 8 },
  { rows: 3, heads: 4, kvHeads: 2, headDim: 64 },
  { rows: 63, heads: 6, kvHeads: 3, headDim: 16 },
  { rows: 65, heads: 2, kvHeads: 1, headDim: 80 },
];

/** Stores rotated keys and values as bytes, and reads them back as what they stand for. */
async function storeInt8(device: Device, { rows, heads, kvHeads, headDim }: Shape): Promise<void> {
  const rng = createRng(rows);
  const layout = { kvHeads, headDim, pageSize: PAGE };
  const qkv = randomTensor(rng, [rows, (heads + 2 * kvHeads) * headDim]);
  // One head is all zeros: its scale is 0.
  qkv.values.fill(0, heads * headDim, (heads + 1) * headDim);
  const slots = Array.from({ length: rows }, (_, t) => (t === 1 ? undefined : (t * 7) % (PAGES * PAGE)));
  const positions = Array.from({ length: rows }, (_, t) => (t * 37) % 500);
  const frequencies = Float32Array.from(ropeFrequencies({ theta: 10000, headDim, scaling: undefined }));
  const size = PAGES * kvHeads * headDim * PAGE;
  const [k, v] = [new Float64Array(size).fill(NaN), new Float64Array(size).fill(NaN)];
  const wantedQ = kvReference.ropeKVStore({ ...layout, qkv: qkv.values, heads, positions, slots, frequencies }, k, v);
  const kv = createKVCache(device, { ...layout, layers: 1, dtype: 'int8' }, PAGES);
  const q = device.tensor('q', 'f32', [rows, heads * headDim]);
  const words = (values: readonly number[]) => device.upload('rows', 'u32', [rows], Uint32Array.from(values));
  const rec = device.record('store');
  const cosSin = ropeTable(device, { theta: 10000, headDim, scaling: undefined }, 500);
  const input = { qkv: device.upload('qkv', 'f32', qkv.shape, qkv.values), cosSin, positions: words(positions), slots: words(slots.map((slot) => slot ?? NO_SLOT)) }; // prettier-ignore
  ropeKVStore(rec, { ...input, q, kv, layer: 0, heads, rows });
  rec.submit();
  for (let at = 0; at < wantedQ.length; at += headDim) wantedQ.set(kvReference.spreadChannels([...wantedQ.slice(at, at + headDim)]), at);
  expectClose('q', await device.read(q), wantedQ, 1e-7);
  const at = kvReference.int8Words(layout);
  for (const [side, exact, tensor] of [
    ['key', k, kv.layers[0]!.k],
    ['value', v, kv.layers[0]!.v],
  ] as const) {
    const pages = await device.read(tensor);
    expect(pages.length).toBe(PAGES * at.count);
    const [bytes, scales] = [new Int8Array(pages.buffer), new Float32Array(pages.buffer)];
    const index = side === 'key' ? kvReference.keyIndex : kvReference.valueIndex;
    const wrong: string[] = [];
    for (let slot = 0; slot < PAGES * PAGE; slot++) {
      for (let head = 0; head < kvHeads; head++) {
        const given = Array.from({ length: headDim }, (_, d) => exact[index(layout, slot, head, d)]!);
        const wanted = side === 'key' ? kvReference.spreadChannels(given) : given;
        const stored = wanted.map((_, d) => bytes[at[side](slot, head, d >> 2) * 4 + (d & 3)]!);
        const scale = scales[at.scale(slot, head)]!;
        const largest = Math.max(...wanted.map(Math.abs));
        // Half a step of rounding, and the f32 rotation before it.
        const worst = Math.max(...wanted.map((value, d) => Math.abs((stored[d]! / 127) * scale - value)));
        const untouched = Number.isNaN(wanted[0]);
        const right = untouched
          ? [scale, ...stored].every((value) => value === 0)
          : Math.abs(scale - largest) <= 1e-5 * largest && worst <= (0.501 * largest) / 127;
        if (!right) wrong.push(`${side} of slot ${slot}, head ${head}: off by ${worst}, scale ${scale} for ${largest}`);
      }
    }
    expect(wrong).toEqual([]);
  }
}

const flavours = [{ title: 'all features', disable: [] }, { title: 'no subgroups', disable: ['subgroups'] }] as const; // prettier-ignore
describe.each(flavours)('int8 pages ($title)', ({ disable }) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice({ disable });
  });
  afterAll(() => device.close());

  const wider = { rows: 5, heads: 2, kvHeads: 2, headDim: 128 };
  const thirds = { rows: 2, heads: 1, kvHeads: 1, headDim: 96 };
  const named = [...shapes, wider, thirds].map((shape) => [Object.values(shape).join(' x '), shape] as const);
  test.each(named)('hold every channel to half a step: %s', async (_, shape) => {
    await storeInt8(device, shape);
    expect(device.errors).toEqual([]);
  });
});

describe('spreading the channels of keys and queries', () => {
  const rng = createRng(7);
  const head = (size: number): number[] => Array.from({ length: size }, () => rng.normal());
  const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

  test.each([8, 16, 64, 80, 96, 128])('%i channels: products stay, and one large channel becomes many small ones', (size) => {
    const [q, k] = [head(size), head(size)];
    expect(dot(kvReference.spreadChannels(q), kvReference.spreadChannels(k))).toBeCloseTo(dot(q, k), 9);
    const largest = Math.max(...kvReference.spreadChannels(k.map((_, d) => (d === 3 ? 100 : 0))).map(Math.abs));
    expect(largest).toBeLessThan(size % 5 === 0 || size % 3 === 0 ? 25 : 100 / Math.sqrt(size) + 1e-9);
  });

  // Scores of queries against keys with one large channel: what is stored under the scale of the largest alone loses the others.
  test.each([64, 80, 96, 128])('%i channels: a key bias of 100 costs scores a thirtieth of what it did', (size) => {
    const errors = [0, 0];
    let power = 0;
    for (let i = 0; i < 200; i++) {
      const [q, k] = [head(size), head(size).map((value, d) => (d === 5 ? value + 100 : value))];
      // The bias is the same for all keys, and a softmax does not see it: what counts is the error beside the scores without it.
      power += (dot(q, k) - 100 * q[5]!) ** 2;
      [false, true].forEach((spread, at) => {
        const [query, key] = spread ? [kvReference.spreadChannels(q), kvReference.spreadChannels(k)] : [q, k];
        const { bytes, scale } = kvReference.quantizeHead(key);
        errors[at]! +=
          (dot(
            query,
            [...bytes].map((byte) => (byte / 127) * scale),
          ) -
            dot(q, k)) **
          2;
      });
    }
    console.log(
      `${size} channels: NMSE ${(errors[0]! / power).toExponential(1)} as they are, ${(errors[1]! / power).toExponential(1)} spread`,
    );
    // A byte for each channel of N(0, 1) and one of 100 cannot do better than 100^2 / (12 * 127^2 * channels), 8e-4 for 64.
    expect(errors[1]!).toBeLessThan(errors[0]! / 25);
    expect(errors[1]! / power).toBeLessThan(2e-3);
  });
});

describeKernels('kv', [...shapes.flatMap((shape) => [storeCase(shape, 'f32'), storeCase(shape, 'f16')]), ...shapes.map(qkNormCase)]);
