import { NO_SLOT, ropeKVStore } from '../../engine/ops/kv.ts';
import type { KVCache, KVType } from '../../engine/ops/kv.ts';
import { qkNorm, ropeFrequencies, ropeTable } from '../../engine/ops/rope.ts';
import * as kvReference from '../reference/kv.ts';
import * as ropeReference from '../reference/rope.ts';
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

function storeCase({ rows, heads, kvHeads, headDim }: Shape, dtype: KVType): KernelCase {
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

describeKernels('kv', [...shapes.flatMap((shape) => [storeCase(shape, 'f32'), storeCase(shape, 'f16')]), ...shapes.map(qkNormCase)]);
