import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { APART_CHANNELS, createKVCache } from '../../engine/ops/kv.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { KVCache, KVType } from '../../engine/ops/kv.ts';
import { ATTENTION_SPLIT, attentionTileRows, pagedAttention } from '../../engine/ops/paged-attention.ts';
import type { AttentionScores } from '../../engine/ops/paged-attention.ts';
import { toF16 } from '../../engine/util/f16.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { ceilDiv } from '../../engine/util/math.ts';
import { int8Pages } from '../reference/kv.ts';
import type { Int8Pages, KVLayout } from '../reference/kv.ts';
import * as reference from '../reference/paged-attention.ts';
import { testDevice } from '../support/device.ts';
import { describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import { unlessPassed } from '../support/known-cases.ts';
import type { KernelCase, TensorData } from '../support/kernel-case.ts';

const PAGE = 16;

interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Values are the first so many channels of their keys. */
  readonly valuesInKeys?: number;
}

/** Rows [from, to) of a sequence are computed; what lies before is in the cache. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** Pages of every sequence in no order, and tiles of at most `tileRows` rows. */
function layOut(
  rng: Rng,
  spans: readonly Span[],
  tileRows: number,
): { table: number[]; stride: number; pages: number; tiles: number[]; rows: { pages: number[]; position: number }[] } {
  const counts = spans.map(({ to }) => ceilDiv(to, PAGE));
  const stride = Math.max(...counts) + 1;
  const total = counts.reduce((a, b) => a + b, 0);
  const free = Array.from({ length: total }, (_, i) => i).sort(() => rng.uniform() - 0.5);
  const table: number[] = [];
  const tiles: number[] = [];
  const rows: { pages: number[]; position: number }[] = [];
  spans.forEach(({ from, to }, sequence) => {
    const pages = free.splice(0, counts[sequence]);
    table.push(...pages, ...new Array<number>(stride - pages.length).fill(0));
    for (let position = from; position < to; position += tileRows) {
      tiles.push(rows.length, Math.min(tileRows, to - position), sequence, position);
      for (let p = position; p < Math.min(to, position + tileRows); p++) rows.push({ pages, position: p });
    }
  });
  return { table, stride, pages: total, tiles, rows };
}

interface StoredPages {
  readonly stored: TensorData;
  readonly read: Float32Array;
  /** Of int8 keys. */
  readonly counts?: Int8Pages['counts'];
}

/** Pages as a cache of that type holds them, and what a kernel reads in them. */
function storedPages(rng: Rng, side: 'key' | 'value', shape: readonly number[], layout: KVLayout, dtype: KVType): StoredPages {
  const { values } = randomTensor(rng, shape);
  if (dtype !== 'int8') return { stored: { dtype, shape, values }, read: dtype === 'f16' ? roundToF16(values) : values };
  const { words, values: read, counts } = int8Pages(layout, side, values, () => rng.integer(32) - 16);
  return { stored: { dtype: 'u32', shape: [words.length], values: words }, read, counts };
}

/** Queries as attention reads them: over int8 pages each has room behind its channels for those that keys keep apart, counted in tenths here. */
function storedQueries(
  rng: Rng,
  count: number,
  headDim: number,
  dtype: KVType,
): { q: Float32Array; apart: Float32Array; columns: number; stored: Float32Array } {
  const q = randomTensor(rng, [count * headDim], 2).values;
  const apart = randomTensor(rng, [count * APART_CHANNELS], 0.1).values;
  if (dtype !== 'int8') return { q, apart, columns: headDim, stored: q };
  const columns = headDim + APART_CHANNELS;
  const stored = new Float32Array(count * columns);
  for (let i = 0; i < count; i++) {
    stored.set(q.subarray(i * headDim, (i + 1) * headDim), i * columns);
    stored.set(apart.subarray(i * APART_CHANNELS, (i + 1) * APART_CHANNELS), i * columns + headDim);
  }
  return { q, apart, columns, stored };
}

function attentionCase(
  name: string,
  shape: Heads,
  spans: readonly Span[],
  mode: 'decode' | 'prefill' | 'split',
  dtype: KVType = 'f32',
  scores?: AttentionScores,
  hasSinks = false,
): KernelCase {
  const { heads, kvHeads, headDim, valuesInKeys } = shape;
  const valueDim = valuesInKeys ?? headDim;
  return {
    name: `paged_attention ${dtype} ${mode} handles ${name} with ${heads} over ${kvHeads} heads of ${headDim}${valuesInKeys ? `, ${valuesInKeys} of them values` : ''}${scores ? ` and ${JSON.stringify(scores)}` : ''}${hasSinks ? ' and sinks' : ''}`,
    tolerance: dtype === 'f16' ? 1e-6 : 1e-7,
    build(rng) {
      const tileRows = mode === 'prefill' ? Math.max(1, Math.floor((8 * kvHeads) / heads)) : 1;
      const { table, stride, pages, tiles, rows } = layOut(rng, spans, tileRows);
      const { q, apart, columns, stored } = storedQueries(rng, rows.length * heads, headDim, dtype);
      const shape = [pages, kvHeads, headDim, PAGE];
      const k = storedPages(rng, 'key', shape, { kvHeads, headDim, pageSize: PAGE }, dtype);
      const v = valuesInKeys ? k : storedPages(rng, 'value', shape, { kvHeads, headDim, pageSize: PAGE }, dtype);
      const sinks = hasSinks ? randomTensor(rng, [heads], 4) : undefined;
      const parts = ceilDiv(Math.max(...spans.map(({ to }) => to)), ATTENTION_SPLIT) + 1;
      return {
        inputs: {
          q: { dtype: 'f32', shape: [rows.length, heads * columns], values: stored },
          k: k.stored,
          v: v.stored,
          table: { dtype: 'u32', shape: [spans.length, stride], values: table },
          tiles: { dtype: 'u32', shape: [tiles.length / 4, 4], values: tiles },
          positions: { dtype: 'u32', shape: [rows.length], values: rows.map(({ position }) => position) },
          ...(sinks && { sinks }),
        },
        outputs: { out: { dtype: 'f32', shape: [rows.length, heads * valueDim] } },
        run(rec, t, device) {
          const [keys, values] = [t['k']!, valuesInKeys ? t['k']! : t['v']!];
          const kv: KVCache = {
            dtype,
            pages,
            limit: pages,
            pageSize: PAGE,
            layers: [{ kvHeads, headDim, valuesInKeys, k: keys, v: values }],
          };
          const partials = mode === 'split' ? device.tensor('partials', 'f32', [rows.length * heads * parts, valueDim + 4]) : undefined;
          pagedAttention(rec, {
            q: t['q']!, kv, layer: 0, blockTable: t['table']!, tiles: t['tiles']!, firstTile: 0, tileCount: tiles.length / 4, tileRows, out: t['out']!, heads, scores, sinks: t['sinks'],
            split: partials && { partials, positions: t['positions']!, parts, rows: rows.length },
          }); // prettier-ignore
        },
        expected: {
          out: reference.pagedAttention({
            q,
            k: k.read,
            v: v.read,
            apart: k.counts && { q: apart, key: (slot, head) => k.counts!.get(`${slot} ${head}`)! },
            heads,
            kvHeads,
            headDim,
            valuesInKeys,
            pageSize: PAGE,
            scores,
            sinks: sinks?.values,
            rows,
          }),
        },
      };
    },
  };
}

const decodes = [1, 3, 63, 64, 65, 257].map((length) => ({ from: length - 1, to: length }));
const cases: KernelCase[] = [
  attentionCase('one token', { heads: 1, kvHeads: 1, headDim: 8 }, [{ from: 0, to: 1 }], 'decode'),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'decode'),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'split'),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'decode', 'f16'),
  attentionCase('a long sequence', { heads: 7, kvHeads: 1, headDim: 16 }, [{ from: 1022, to: 1024 }], 'split'),
  attentionCase('a whole prompt', { heads: 4, kvHeads: 2, headDim: 64 }, [{ from: 0, to: 65 }], 'prefill'),
  attentionCase('chunks of prompts', { heads: 6, kvHeads: 3, headDim: 16 }, [{ from: 250, to: 263 }, { from: 0, to: 3 }, { from: 16, to: 17 }], 'prefill'),
  attentionCase('chunks of prompts', { heads: 2, kvHeads: 2, headDim: 80 }, [{ from: 31, to: 50 }], 'prefill', 'f16'),
  attentionCase('one token', { heads: 1, kvHeads: 1, headDim: 8 }, [{ from: 0, to: 1 }], 'decode', 'int8'),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'decode', 'int8'),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'split', 'int8'),
  attentionCase('chunks of prompts', { heads: 6, kvHeads: 3, headDim: 16 }, [{ from: 250, to: 263 }, { from: 0, to: 3 }, { from: 16, to: 17 }], 'prefill', 'int8'),
  attentionCase('chunks of prompts', { heads: 2, kvHeads: 2, headDim: 80 }, [{ from: 31, to: 50 }], 'prefill', 'int8'),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'decode', 'f32', { window: 20, softCap: 1.5 }),
  attentionCase('a long sequence', { heads: 4, kvHeads: 1, headDim: 256 }, [{ from: 598, to: 600 }], 'split', 'f32', { window: 300, scale: 0.2 }),
  attentionCase('chunks of prompts', { heads: 8, kvHeads: 1, headDim: 512 }, [{ from: 30, to: 35 }], 'prefill', 'f16', { scale: 1 / 8 }),
  attentionCase('a long sequence', { heads: 4, kvHeads: 1, headDim: 16 }, [{ from: 598, to: 600 }], 'split', 'int8', { window: 17, softCap: 2 }),
  attentionCase('chunks of prompts', { heads: 6, kvHeads: 3, headDim: 16 }, [{ from: 250, to: 263 }, { from: 0, to: 30 }], 'prefill', 'f32', { window: 5, scale: 0.5 }),
  attentionCase('chunks of prompts', { heads: 6, kvHeads: 3, headDim: 16 }, [{ from: 250, to: 263 }, { from: 0, to: 30 }], 'prefill', 'f32', { growth: { rate: 0.4, span: 9 } }),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'split', 'int8', { growth: { rate: 0.4, span: 32 } }),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 2, headDim: 64 }, decodes, 'decode', 'f32', undefined, true),
  attentionCase('a long sequence', { heads: 8, kvHeads: 1, headDim: 64 }, [{ from: 598, to: 600 }], 'split', 'int8', { window: 128 }, true),
  attentionCase('chunks of prompts', { heads: 6, kvHeads: 3, headDim: 16 }, [{ from: 250, to: 263 }, { from: 0, to: 30 }], 'prefill', 'f32', { window: 5 }, true),
  attentionCase('sequences of odd lengths', { heads: 4, kvHeads: 1, headDim: 40, valuesInKeys: 32 }, decodes, 'decode'),
  attentionCase('a long sequence', { heads: 5, kvHeads: 1, headDim: 576, valuesInKeys: 512 }, [{ from: 598, to: 600 }], 'split', 'f16'),
  attentionCase('chunks of prompts', { heads: 6, kvHeads: 1, headDim: 576, valuesInKeys: 512 }, [{ from: 250, to: 263 }, { from: 0, to: 3 }], 'prefill', 'f32', { scale: 0.1 }),
]; // prettier-ignore

describeKernels('paged attention', cases);

interface Bits extends Heads {
  readonly dtype: KVType;
  readonly window?: number;
  readonly hasSinks?: boolean;
}

const usual = { heads: 4, kvHeads: 2, headDim: 64 };

describe.each([
  ['the adapter as it is', []],
  ['as on a GPU', ['software']],
] as const)('paged attention gives the same bits, %s', (_, disable) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice({ disable });
  });
  afterAll(() => device.close());

  test.each<Bits>([
    { dtype: 'f32', ...usual },
    { dtype: 'int8', ...usual },
    { dtype: 'f32', window: 261, ...usual },
    { dtype: 'f32', window: 261, hasSinks: true, ...usual },
    // Tiles of one row; of eight, and invocations that are none of a group's.
    { dtype: 'f32', heads: 7, kvHeads: 1, headDim: 64 },
    { dtype: 'f32', window: 300, heads: 1, kvHeads: 1, headDim: 80 },
    // Heads that two workgroups share.
    { dtype: 'int8', heads: 12, kvHeads: 1, headDim: 64 },
    // Values in keys.
    { dtype: 'f16', heads: 6, kvHeads: 1, headDim: 96, valuesInKeys: 64 },
  ])('whether rows are computed in tiles, one by one or in parts (%o)', async (bits) => {
    await unlessPassed(
      device,
      { expected: [] },
      (on) => waysOf(on, bits),
      ([tiled, ...others]) => {
        const differing = (other: Uint32Array): number => other.reduce((count, word, i) => count + (word === tiled![i] ? 0 : 1), 0);
        expect(tiled!.some((word) => word !== 0)).toBe(true);
        expect(others.map(differing)).toEqual([0, 0, 0, 0]);
      },
    );
    expect(device.errors).toEqual([]);
  });
});

/** Attention over 600 positions, computed in tiles, in tiles of which the first has one row, row by row, and in three and eight parts. */
async function waysOf(
  device: Device,
  { dtype, window, hasSinks, heads, kvHeads, headDim, valuesInKeys }: Bits,
): Promise<readonly Uint32Array[]> {
  const [length, stride] = [600, 40];
  const rng = createRng(11);
  const valueDim = valuesInKeys ?? headDim;
  const kv = createKVCache(device, { layers: [{ kvHeads, headDim, valuesInKeys }], pageSize: PAGE, dtype }, stride);
  for (const [side, pages] of [
    ['key', kv.layers[0]!.k],
    ['value', kv.layers[0]!.v],
  ] as const) {
    const { stored } = storedPages(rng, side, [stride * kvHeads * headDim * PAGE], { kvHeads, headDim, pageSize: PAGE }, dtype);
    if (dtype === 'f16') device.write(pages, toF16(stored.values));
    else device.write(pages, dtype === 'int8' ? Uint32Array.from(stored.values) : Float32Array.from(stored.values));
  }
  const queries = storedQueries(rng, length * heads, headDim, dtype);
  const q = device.upload('q', 'f32', [length, heads * queries.columns], queries.stored);
  const words = (name: string, count: number, value: (i: number) => number, width = 1) =>
    device.upload(
      name,
      'u32',
      [count / width, width],
      Uint32Array.from({ length: count }, (__, i) => value(i)),
    );
  const blockTable = words('table', stride, (i) => stride - 1 - i, stride);
  const positions = words('positions', length, (i) => i);
  const sinks = hasSinks ? device.upload('sinks', 'f32', [heads], randomTensor(rng, [heads], 4).values) : undefined;
  // Tiles of so many rows, of which the first has fewer.
  const compute = async (tileRows: number, parts: number, first = tileRows): Promise<Uint32Array> => {
    const begins = [0];
    for (let row = first; row < length; row += tileRows) begins.push(row);
    const cut = begins.flatMap((row, i) => [row, (begins[i + 1] ?? length) - row, 0, row]);
    const tiles = words('tiles', cut.length, (i) => cut[i]!, 4);
    const out = device.tensor('out', 'f32', [length, heads * valueDim]);
    const partials = parts > 0 ? device.tensor('partials', 'f32', [length * heads * parts, valueDim + 4]) : undefined;
    const rec = device.record('attention');
    const split = partials && { partials, positions, parts, rows: length };
    pagedAttention(rec, { q, kv, layer: 0, blockTable, tiles, firstTile: 0, tileCount: begins.length, tileRows, out, heads, scores: { window }, sinks, split }); // prettier-ignore
    rec.submit();
    const values = await device.read(out);
    return new Uint32Array(values.buffer, 0, values.length);
  };
  const tileRows = attentionTileRows(device.caps, heads, { kvHeads, headDim, valuesInKeys });
  const ways = [];
  for (const [rows, parts, first] of [[tileRows, 0], [tileRows, 0, 1], [1, 0], [1, 3], [1, 8]] as const) ways.push(await compute(rows, parts, first)); // prettier-ignore
  return ways;
}
