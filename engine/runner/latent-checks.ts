/** Self-test cases of multi-head latent attention. */
import type { Kernel } from '../gpu/kernel.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { createKVCache } from '../ops/kv.ts';
import type { KVCache, KVType } from '../ops/kv.ts';
import { LATENT_QUERIES, LATENT_STORE, latentQueries, latentStore } from '../ops/latent.ts';
import type { LatentSizes } from '../ops/latent.ts';
import { ATTENTION_SPLIT, pagedAttention } from '../ops/paged-attention.ts';
import { ropeFrequencies, ropeTable } from '../ops/rope.ts';
import { fromF16 } from '../util/f16.ts';
import * as plain from './plain/latent.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

const EPS = 1e-6;
/** Tolerances by KV type. */
const TOLERANCE = { f32: 1e-8, f16: 1e-6 } as const;

const count = (length: number, from = 0): number[] => Array.from({ length }, (_, i) => from + i);

/** A rotation of P channels and its frequencies. */
function rotation(bench: Workbench, headDim: number, positions: number): { readonly cosSin: Tensor; readonly frequencies: Float32Array } {
  const rope = { theta: 10_000, headDim, scaling: undefined };
  return { cosSin: bench.keep(ropeTable(bench.device, rope, positions)), frequencies: Float32Array.from(ropeFrequencies(rope)) };
}

function pagesOf(bench: Workbench, { rank, rotary }: LatentSizes, pageSize: number, dtype: KVType, pages: number): KVCache {
  const layer = { kvHeads: 1, headDim: rank + rotary, valuesInKeys: rank };
  const kv = createKVCache(bench.device, { layers: [layer], pageSize, dtype }, pages);
  bench.keep(kv.layers[0]!.k);
  return kv;
}

/** Two heads of three rows. */
const checkQueries: CheckMaker = ({ overrides = {} }, bench) => {
  const sizes = { rank: 4 * overrides['R4']!, rotary: 8 * overrides['D8']! };
  const [heads, places] = [2, [5, 0, 2]];
  const rows = places.length;
  const { cosSin, frequencies } = rotation(bench, sizes.rotary, 6);
  const [latent, rotary] = [bench.floats([rows, heads * sizes.rank]), bench.floats([rows, heads * sizes.rotary])];
  const out = bench.out([rows, heads * (sizes.rank + sizes.rotary)]);
  const positions = bench.words(places);
  return {
    record: (rec) => latentQueries(rec, { sizes, latent: latent.tensor, rotary: rotary.tensor, cosSin, positions, q: out, heads, rows }),
    out,
    expected: plain.latentQueries(latent.values, rotary.values, sizes, places, frequencies),
    tolerance: 1e-8,
  };
};

/** Three rows of a page, in no order. */
const checkStore: CheckMaker = ({ storage, consts = {}, overrides = {} }, bench) => {
  const sizes = { rank: 4 * overrides['R4']!, rotary: 8 * overrides['D8']! };
  const dtype = storage === 'f16' ? 'f16' : 'f32';
  const { PAGE: pageSize = 16 } = consts;
  const [places, offsets] = [[5, 0, 2], [1, pageSize - 1, 0]]; // prettier-ignore
  const { cosSin, frequencies } = rotation(bench, sizes.rotary, 6);
  const columns = sizes.rank + sizes.rotary;
  const [x, norm] = [bench.floats([places.length, columns]), bench.floats([sizes.rank])];
  const kv = pagesOf(bench, sizes, pageSize, dtype, 1);
  const keys = plain.latentKeys(x.values, norm.values, sizes, { positions: places, frequencies, eps: EPS });
  const expected = new Float64Array(columns * pageSize);
  offsets.forEach((offset, t) => {
    for (let d = 0; d < columns; d++) expected[(Math.floor(d / 4) * pageSize + offset) * 4 + (d % 4)] = keys[t * columns + d]!;
  });
  const given = { sizes, x: x.tensor, norm: norm.tensor, eps: EPS, cosSin, positions: bench.words(places), slots: bench.words(offsets) };
  return {
    record: (rec) => latentStore(rec, { ...given, kv, layer: 0, rows: places.length }),
    out: kv.layers[0]!.k,
    ...(dtype === 'f16' && { seen: (values) => fromF16(values as Uint16Array) }),
    expected,
    tolerance: TOLERANCE[dtype],
  };
};

/**
 * Attention over latent keys, which are values too: the last rows of a sequence of more than one page and one part, as a prefill tile, or as
 * decodes, whose parts are reduced in the kernel or after it.
 */
export const checkLatentAttention: CheckMaker = ({ storage, consts = {} }, bench) => {
  const { PAGE = 16, D4 = 4, VALUE4 = 2, GROUP = 1, SHARES = 1, QUERIES = 1 } = consts;
  const sizes = { rank: 4 * VALUE4, rotary: 4 * (D4 - VALUE4) };
  const [dtype, heads, tileRows] = [storage === 'f16' ? 'f16' : 'f32', GROUP * SHARES, QUERIES / GROUP] as const;
  const total = ATTENTION_SPLIT + 45;
  const rows = Math.min(tileRows, total);
  const { cosSin, frequencies } = rotation(bench, sizes.rotary, total);
  const columns = sizes.rank + sizes.rotary;
  const kv = pagesOf(bench, sizes, PAGE, dtype, Math.ceil(total / PAGE));
  const [x, norm] = [bench.floats([total, columns]), bench.floats([sizes.rank])];
  const [latent, rotary] = [bench.floats([rows, heads * sizes.rank]), bench.floats([rows, heads * sizes.rotary])];
  const [everywhere, last] = [bench.words(count(total)), bench.words(count(rows, total - rows))];
  const [blockTable, tiles] = [bench.words(count(kv.pages), [1, kv.pages]), bench.words([0, rows, 0, total - rows], [1, 4])];
  const [q, out] = [bench.out([rows, heads * columns]), bench.out([rows, heads * sizes.rank])];
  const parts = 2;
  const split = { partials: bench.out([rows * heads * parts, sizes.rank + 4]), positions: last, parts, rows };
  // Only decodes are split.
  const ways = tileRows === 1 ? [undefined, split] : [undefined];
  const all = bench.out([ways.length * rows, heads * sizes.rank]);
  const queries = plain.latentQueries(latent.values, rotary.values, sizes, count(rows, total - rows), frequencies);
  const keys = plain.latentKeys(x.values, norm.values, sizes, { positions: count(total), frequencies, eps: EPS });
  const expected = Array.from({ length: rows * heads }, (_, i) => {
    const query = queries.slice(i * columns, (i + 1) * columns);
    return [...plain.attendLatent(query, keys, total - rows + Math.floor(i / heads) + 1, sizes.rank)];
  }).flat();
  return {
    record(rec) {
      const common = { sizes, cosSin };
      latentStore(rec, { ...common, x: x.tensor, norm: norm.tensor, eps: EPS, positions: everywhere, slots: everywhere, kv, layer: 0, rows: total }); // prettier-ignore
      latentQueries(rec, { ...common, latent: latent.tensor, rotary: rotary.tensor, positions: last, q, heads, rows });
      for (const [way, parted] of ways.entries()) {
        pagedAttention(rec, { q, kv, layer: 0, blockTable, tiles, firstTile: 0, tileCount: 1, tileRows, out, heads, split: parted });
        rec.copy(out, all, out.byteLength, 0, way * out.byteLength);
      }
    },
    out: all,
    expected: ways.flatMap(() => expected),
    tolerance: TOLERANCE[dtype],
  };
};

/** Checks by kernel. */
export const LATENT_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [LATENT_QUERIES, checkQueries],
  [LATENT_STORE, checkStore],
];
