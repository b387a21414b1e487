import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { planKeys } from '../../engine/ops/key-plan.ts';
import { APART_CHANNELS, NO_SLOT, createKVCache, growKVCache, pageBytes, ropeKVStore } from '../../engine/ops/kv.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import type { KVCache } from '../../engine/ops/kv.ts';
import { qkNorm, ropeFrequencies, ropeNorm, ropeTable } from '../../engine/ops/rope.ts';
import { createRng } from '../../engine/util/rng.ts';
import * as kvReference from '../reference/kv.ts';
import * as ropeReference from '../reference/rope.ts';
import { expectClose } from '../support/compare.ts';
import { testDevice } from '../support/device.ts';
import { FLAVOURS, describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const PAGE = 16;
const PAGES = 6;

interface Shape {
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

function storeCase({ rows, heads, kvHeads, headDim }: Shape, dtype: 'f32' | 'f16', queriesOnly = false): KernelCase {
  const newHeads = queriesOnly ? 0 : kvHeads;
  return {
    name: `rope_kv_store ${dtype} handles ${rows} rows of ${heads} over ${kvHeads} heads of ${headDim}${queriesOnly ? ', queries alone' : ''}`,
    // A half has 11 bits: the rounding of an element is at most 2^-12 of it.
    tolerance: dtype === 'f16' ? 1e-6 : 1e-7,
    build(rng) {
      const qkv = randomTensor(rng, [rows, (heads + 2 * newHeads) * headDim]);
      // Slots in no order, the second row is padding, positions far apart.
      const slots = Array.from({ length: rows }, (_, t) => (t === 1 ? undefined : (t * 7) % (PAGES * PAGE)));
      const positions = Array.from({ length: rows }, (_, t) => (t * 37) % 500);
      const initial = randomTensor(rng, [PAGES, kvHeads, headDim, PAGE]).values;
      const before = dtype === 'f16' ? roundToF16(initial) : initial;
      const [k, v] = [Float64Array.from(before), Float64Array.from(before)];
      const frequencies = Float32Array.from(ropeFrequencies({ theta: 10000, headDim, scaling: undefined }));
      const q = kvReference.ropeKVStore(
        { qkv: qkv.values, heads, kvHeads: newHeads, headDim, pageSize: PAGE, positions, slots, frequencies },
        k,
        v,
      );
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
          const kv: KVCache = { dtype, pages: PAGES, limit: PAGES, pageSize: PAGE, layers: [{ kvHeads, headDim, k: t['k']!, v: t['v']! }] };
          const { qkv, positions, slots, q } = t as Record<string, NonNullable<(typeof t)[string]>>;
          ropeKVStore(rec, { qkv: qkv!, cosSin, positions: positions!, slots: slots!, q: q!, queriesOnly, kv, layer: 0, heads, rows });
        },
        expected: { q, k, v },
      };
    },
  };
}

function qkNormCase({ rows, heads, kvHeads, headDim }: Shape, { full = false, values = false }): KernelCase {
  return {
    name: `qk_norm handles ${rows} rows of ${heads} over ${kvHeads} heads of ${headDim}${full ? ', all at once' : ''}${values ? ', and values' : ''}`,
    build(rng) {
      const shape = [rows, (heads + 2 * kvHeads) * headDim];
      const qkv = randomTensor(rng, shape, 3);
      const weight = randomTensor(rng, [full ? heads + kvHeads : kvHeads > 0 ? 2 : 1, headDim]);
      return {
        inputs: { weight },
        outputs: { qkv: { dtype: 'f32', shape, initial: qkv.values } },
        run: (rec, t) => qkNorm(rec, { qkv: t['qkv']!, weight: t['weight']!, full, values, heads, kvHeads, eps: 1e-6, rows }),
        expected: { qkv: ropeReference.qkNorm(qkv.values, weight.values, { rows, heads, kvHeads, headDim, eps: 1e-6, full, values }) },
      };
    },
  };
}

function ropeNormCase({ rows, heads, kvHeads, headDim }: Shape): KernelCase {
  return {
    name: `rope_norm handles ${rows} rows of ${heads} over ${kvHeads} heads of ${headDim}`,
    build(rng) {
      const shape = [rows, (heads + 2 * kvHeads) * headDim];
      const qkv = randomTensor(rng, shape, 3);
      const weight = randomTensor(rng, [kvHeads > 0 ? 2 : 1, headDim]);
      const positions = Uint32Array.from({ length: rows }, (_, i) => (37 * i + 3) % 500);
      const rope = { theta: 10000, headDim, scaling: undefined };
      const sizes = { rows, heads, kvHeads, headDim, eps: 1e-6 };
      return {
        inputs: { weight, positions: { dtype: 'u32', shape: [rows], values: positions } },
        outputs: { qkv: { dtype: 'f32', shape, initial: qkv.values } },
        run(rec, t, device) {
          const cosSin = ropeTable(device, rope, 500);
          ropeNorm(rec, { ...sizes, qkv: t['qkv']!, weight: t['weight']!, positions: t['positions']!, cosSin });
        },
        expected: { qkv: ropeReference.ropeNorm(qkv.values, weight.values, sizes, positions, Float32Array.from(ropeFrequencies(rope))) },
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

/** Pairs of a head that are kept apart: other ones in each head, of which a unit is so small that counts end at their limits, and one is nothing. */
function somePairs(head: number, headDim: number): kvReference.Apart {
  const pair = (i: number): number => (head + i) % (headDim / 2);
  return [
    { pair: pair(1), unit: 0.05 },
    { pair: pair(headDim / 2 - 2), unit: head % 2 === 0 ? 0.3 : 0 },
  ];
}

/** What is wrong with a stored key, if anything: its counts, its scale or a byte. */
function keyProblem(key: readonly number[], apart: kvReference.Apart, word: number, bytes: readonly number[]): string | undefined {
  const { scale, counts } = kvReference.unpackKeyWord(word);
  const channels = kvReference.apartChannels(apart, key.length);
  const counted = channels.every(({ channel, unit }, i) => {
    const wanted = unit === 0 ? 0 : Math.min(15, Math.max(-16, key[channel]! / unit));
    return Math.abs(counts[i]! - wanted) <= 0.5001;
  });
  if (!counted) return `counts ${counts.join(' ')} of ${channels.map(({ channel, unit }) => `${key[channel]!} / ${unit}`).join(', ')}`;
  const rest = kvReference.spreadChannels(kvReference.withoutCounts(key, apart, counts));
  const largest = Math.max(...rest.map(Math.abs));
  // Four bits of mantissa, and the f32 rotation before them.
  if (scale < largest * (1 - 1e-5) || scale > largest * (17 / 16 + 1e-5)) return `scale ${scale} for ${largest}`;
  const worst = Math.max(...rest.map((value, d) => Math.abs((bytes[d]! / 127) * scale - value)));
  return worst <= (0.501 * scale) / 127 ? undefined : `off by ${worst} with scale ${scale}`;
}

/** What is wrong with a stored value, if anything. */
function valueProblem(value: readonly number[], scale: number, bytes: readonly number[]): string | undefined {
  const largest = Math.max(...value.map(Math.abs));
  const worst = Math.max(...value.map((channel, d) => Math.abs((bytes[d]! / 127) * scale - channel)));
  // Half a step of rounding.
  return Math.abs(scale - largest) <= 1e-6 * largest && worst <= (0.501 * largest) / 127
    ? undefined
    : `off by ${worst}, scale ${scale} for ${largest}`;
}

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
  const kv = createKVCache(device, { layers: [layout], pageSize: PAGE, dtype: 'int8' }, PAGES);
  const apart = Array.from({ length: kvHeads }, (_, head) => somePairs(head, headDim));
  const centres = apart.map(() => Float32Array.from({ length: headDim }, () => rng.normal()));
  const plan = apart.flatMap((pairs, head) => [...pairs.flatMap(({ pair, unit }) => [pair, unit]), ...centres[head]!]);
  device.write(kv.layers[0]!.plan!, Float32Array.from(plan));
  const columns = headDim + APART_CHANNELS;
  const q = device.tensor('q', 'f32', [rows, heads * columns]);
  const words = (values: readonly number[]) => device.upload('rows', 'u32', [rows], Uint32Array.from(values));
  const rec = device.record('store');
  const cosSin = ropeTable(device, { theta: 10000, headDim, scaling: undefined }, 500);
  const input = { qkv: device.upload('qkv', 'f32', qkv.shape, qkv.values), cosSin, positions: words(positions), slots: words(slots.map((slot) => slot ?? NO_SLOT)) }; // prettier-ignore
  ropeKVStore(rec, { ...input, q, kv, layer: 0, heads, rows });
  rec.submit();
  const spreadQ = Array.from({ length: rows * heads }, (_, i) => {
    const head = Math.floor((i % heads) / (heads / kvHeads));
    return kvReference.spreadQuery([...wantedQ.slice(i * headDim, (i + 1) * headDim)], apart[head]!);
  });
  expectClose('q', await device.read(q), spreadQ.flat(), 1e-7);
  // A layer that reads these pages has queries alone.
  const width = (heads + 2 * kvHeads) * headDim;
  const queries = Float32Array.from({ length: rows * heads * headDim }, (_, i) => qkv.values[Math.floor(i / (heads * headDim)) * width + (i % (heads * headDim))]!); // prettier-ignore
  const alone = device.tensor('q alone', 'f32', [rows, heads * columns]);
  const more = device.record('queries');
  ropeKVStore(more, { ...input, qkv: device.upload('queries', 'f32', [rows, heads * headDim], queries), queriesOnly: true, q: alone, kv, layer: 0, heads, rows }); // prettier-ignore
  more.submit();
  expect(await device.read(alone)).toEqual(await device.read(q));
  const at = kvReference.int8Words(layout);
  for (const [side, exact, tensor] of [
    ['key', k, kv.layers[0]!.k],
    ['value', v, kv.layers[0]!.v],
  ] as const) {
    const pages = await device.read(tensor);
    expect(pages.length).toBe(PAGES * at.count);
    const [words, bytes, scales] = [new Uint32Array(pages.buffer), new Int8Array(pages.buffer), new Float32Array(pages.buffer)];
    const index = side === 'key' ? kvReference.keyIndex : kvReference.valueIndex;
    const wrong: string[] = [];
    for (let slot = 0; slot < PAGES * PAGE; slot++) {
      for (let head = 0; head < kvHeads; head++) {
        const given = Array.from({ length: headDim }, (_, d) => exact[index(layout, slot, head, d)]!);
        const stored = given.map((_, d) => bytes[at[side](slot, head, d >> 2) * 4 + (d & 3)]!);
        const last = at.last(slot, head);
        const problem = Number.isNaN(given[0])
          ? [words[last]!, ...stored].some((value) => value !== 0) && 'no padding'
          : side === 'key'
            ? keyProblem(
                given.map((value, d) => value - centres[head]![d]!),
                apart[head]!,
                words[last]!,
                stored,
              )
            : valueProblem(given, scales[last]!, stored);
        if (problem) wrong.push(`${side} of slot ${slot}, head ${head}: ${problem}`);
      }
    }
    expect(wrong).toEqual([]);
  }
}

describe('int8 pages', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  const wider = { rows: 5, heads: 2, kvHeads: 2, headDim: 128 };
  const thirds = { rows: 2, heads: 1, kvHeads: 1, headDim: 96 };
  const named = [...shapes, wider, thirds].map((shape) => [Object.values(shape).join(' x '), shape] as const);
  for (const { title, disable } of FLAVOURS) {
    test.each(named)(`hold every channel to half a step: %s (${title})`, async (_, shape) => {
      device.pretend(disable);
      await storeInt8(device, shape);
      expect(device.errors).toEqual([]);
    });
  }
});

describe('the plan for keys', () => {
  const [headDim, heads, kvHeads, rows] = [64, 2, 2, 32];
  const frequencies = ropeFrequencies({ theta: 1e6, headDim, scaling: undefined });
  const planOf = (large: readonly (readonly [head: number, channel: number, bias: number, gain: number])[]) => {
    const rng = createRng(5);
    const columns = (heads + 2 * kvHeads) * headDim;
    const { values: qkv } = randomTensor(rng, [rows, columns]);
    for (const [head, channel, bias, gain] of large) {
      for (let row = 0; row < rows; row++) {
        const at = row * columns + (heads + head) * headDim + channel;
        qkv[at] = qkv[at]! * gain + bias;
      }
    }
    const plan = planKeys({ qkv, rows, heads, kvHeads, headDim, frequencies });
    return Array.from({ length: kvHeads }, (_, head) => {
      const at = head * (APART_CHANNELS + headDim);
      const [first, firstUnit, second, secondUnit] = plan.subarray(at, at + APART_CHANNELS);
      const centre = plan.subarray(at + APART_CHANNELS, at + APART_CHANNELS + headDim);
      return { pairs: [first!, second!], units: [firstUnit!, secondUnit!], centre };
    });
  };

  test('keeps apart what is large and turns, whether a bias or the weights make it so', () => {
    const [first, second] = planOf([[0, 4, 100, 1], [0, 41, 0, 30], [1, 2, 50, 1], [1, 3, -90, 1]]); // prettier-ignore
    expect(first!.pairs).toEqual([4, 9]);
    expect(second!.pairs).toEqual([3, 2]);
    // 15 units reach the largest example.
    expect(first!.units[0]).toBeGreaterThan(100 / 15);
    expect(first!.units[0]).toBeLessThan(106 / 15);
  });

  test('takes a bias off the channels that hardly turn', () => {
    const [first, second] = planOf([[0, 31, 200, 1], [0, 62, -100, 1], [1, 4, 100, 1], [1, 5, 100, 1]]); // prettier-ignore
    expect([first!.centre[31]! / 200, first!.centre[62]! / -100].every((ratio) => ratio > 0.99 && ratio < 1.01)).toBe(true);
    expect(first!.pairs.some((pair) => pair === 31 || pair === 30)).toBe(false);
    // Fast channels have no centre: they point everywhere.
    expect(Math.max(...second!.centre.subarray(0, 8).map(Math.abs))).toBeLessThan(1);
  });
});

describeKernels('kv', [
  ...shapes.flatMap((shape) => [storeCase(shape, 'f32'), storeCase(shape, 'f16')]),
  ...shapes.flatMap((shape) => [qkNormCase(shape, {}), qkNormCase(shape, { full: true })]),
  qkNormCase({ rows: 3, heads: 5, kvHeads: 2, headDim: 80 }, { values: true }),
  ...shapes.map(ropeNormCase),
  // The queries of a layer that has no keys of its own.
  ropeNormCase({ rows: 3, heads: 5, kvHeads: 0, headDim: 24 }),
  qkNormCase({ rows: 3, heads: 5, kvHeads: 0, headDim: 24 }, {}),
  ...(['f32', 'f16'] as const).map((dtype) => storeCase({ rows: 3, heads: 6, kvHeads: 2, headDim: 24 }, dtype, true)),
]);

test('a page takes what the heads of every layer take', () => {
  const layers = [{ kvHeads: 2, headDim: 8 }, { kvHeads: 1, headDim: 24 }]; // prettier-ignore
  expect(pageBytes({ layers, pageSize: PAGE, dtype: 'f16' })).toEqual({ all: 2 * 2 * PAGE * (16 + 24), largest: 2 * PAGE * 24 });
  expect(pageBytes({ layers, pageSize: PAGE, dtype: 'int8' })).toEqual({ all: 2 * PAGE * (2 * 12 + 28), largest: PAGE * 28 });
});

test('more pages hold what the first ones held; the old buffers are given back', async () => {
  // Layers may have heads of their own.
  const shape = { layers: [{ kvHeads: 2, headDim: 8 }, { kvHeads: 1, headDim: 16 }], pageSize: PAGE, dtype: 'f16' } as const; // prettier-ignore
  const device = await testDevice();
  // Pages in textures: test/engine/page-textures.test.ts.
  device.pretend(['textures']);
  const kv = createKVCache(device, shape, 7, 2);
  const tensors = (): Tensor[] => kv.layers.flatMap(({ k, v }) => [k, v]);
  const filled = tensors().map((tensor, i) => new Uint16Array(tensor.size).map((_, at) => 7 * at + i));
  tensors().forEach((tensor, i) => device.write(tensor, filled[i]!));
  const { buffers } = device.stats;
  expect(growKVCache(device, kv, 2)).toBe(false);
  // At least twice as many, and never more than there may be.
  for (const [needed, pages] of [[3, 4], [5, 7]] as const) {
    expect(growKVCache(device, kv, needed)).toBe(true);
    expect(kv.pages).toBe(pages);
    for (const [i, tensor] of tensors().entries()) {
      const values = await device.read(tensor);
      expect(values.slice(0, filled[i]!.length)).toEqual(filled[i]);
      expect(values.slice(filled[i]!.length).every((value) => value === 0)).toBe(true);
    }
  } // prettier-ignore
  // Those of this many tensors, and staging for two sizes of reads.
  expect(device.stats.buffers - buffers).toBeLessThanOrEqual(2);
  expect(() => growKVCache(device, kv, 8)).toThrow(/at most 7/);
  device.close();
});
