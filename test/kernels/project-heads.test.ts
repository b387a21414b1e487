/** Queries, keys and values in one dispatch: bit for bit what norm, product, norms of heads, rotation and store leave one after the other. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { normedLinear } from '../../engine/ops/fused-linear.ts';
import { NO_SLOT, createKVCache, ropeKVStore } from '../../engine/ops/kv.ts';
import type { KVType } from '../../engine/ops/kv.ts';
import { fewRows } from '../../engine/ops/few-rows.ts';
import { stackLinear } from '../../engine/ops/pack-linear.ts';
import { projectHeads } from '../../engine/ops/project-heads.ts';
import { qkNorm, ropeTable } from '../../engine/ops/rope.ts';
import { hasShuffles } from '../../engine/ops/weight-place.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import { anyWeight } from '../support/any-weight.ts';
import { testDevice } from '../support/device.ts';
import { GPUS_WITHOUT_SUBGROUPS, WEIGHT_FLAVOURS, randomTensor } from '../support/kernel-case.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { readPages, writePages } from '../support/pages.ts';

const PAGE = 16;
const PAGES = 4;
const EPS = 1e-6;

interface Shape {
  readonly name: string;
  readonly rows: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Of queries and keys, and of values where they are stored otherwise. */
  readonly dtype: WeightType;
  readonly values?: WeightType;
  readonly pages?: KVType;
  readonly bias?: boolean;
  readonly headNorm?: boolean;
  readonly queriesOnly?: boolean;
  readonly norm?: boolean;
}

const LLAMA = { rows: 1, hidden: 256, heads: 4, kvHeads: 2, headDim: 64 };
const FUSED: readonly Shape[] = [
  { name: 'llama', ...LLAMA, dtype: 'f16', pages: 'f16' },
  { name: 'llama, two rows', ...LLAMA, rows: 2, dtype: 'f16', pages: 'f16' },
  { name: 'pages of f32', ...LLAMA, dtype: 'f32' },
  { name: 'with bias (qwen2), Q8_0', ...LLAMA, dtype: 'Q8_0', pages: 'f16', bias: true },
  {
    name: 'norms of heads of 128 (qwen3), Q4_K and Q6_K',
    ...LLAMA,
    headDim: 128,
    dtype: 'Q4_K',
    values: 'Q6_K',
    pages: 'f16',
    headNorm: true,
  },
  {
    name: 'norms of heads of 256, two rows (gemma3)',
    ...LLAMA,
    rows: 2,
    heads: 2,
    kvHeads: 1,
    headDim: 256,
    dtype: 'f16',
    pages: 'f16',
    headNorm: true,
  },
  // So many heads that several share the norm of their rows.
  { name: 'heads that share a norm, with bias, Q4_K', ...LLAMA, heads: 12, kvHeads: 4, dtype: 'Q4_K', pages: 'f16', bias: true },
  {
    name: 'the same with norms of heads, two rows, Q8_0',
    ...LLAMA,
    rows: 2,
    heads: 20,
    kvHeads: 4,
    dtype: 'Q8_0',
    pages: 'f16',
    headNorm: true,
  },
  { name: 'the same of 2,048 inputs, Q4_0', ...LLAMA, hidden: 2048, heads: 12, kvHeads: 4, dtype: 'Q4_0', pages: 'f16' },
  // More rows than kernels of few have, of few inputs.
  { name: 'nine rows', ...LLAMA, rows: 9, dtype: 'f16', pages: 'f16' },
  { name: '35 rows with bias, heads of 128, pages of f32', ...LLAMA, rows: 35, headDim: 128, dtype: 'f32', bias: true },
  { name: 'three rows, queries alone, no norm before', ...LLAMA, rows: 3, dtype: 'f16', pages: 'f16', queriesOnly: true, norm: false },
  { name: 'queries alone, no norm before', ...LLAMA, dtype: 'f16', pages: 'f16', queriesOnly: true, norm: false },
];

/** Records one way of it and reads what it left: queries, and pages that began with numbers of their own. Undefined where no kernel does it at once. */
async function run(device: Device, shape: Shape, fused: boolean): Promise<readonly unknown[] | undefined> {
  const { rows, hidden, heads, kvHeads, headDim, dtype, values = dtype, pages = 'f32', queriesOnly = false, norm: hasNorm = true } = shape;
  const rng = createRng(5);
  const upload = (label: string, shape: readonly number[], scale = 1): Tensor => device.upload(label, 'f32', shape, randomTensor(rng, shape, scale).values); // prettier-ignore
  const newHeads = queriesOnly ? 0 : kvHeads;
  const parts = [
    anyWeight(rng, dtype, (heads + newHeads) * headDim, hidden),
    ...(queriesOnly ? [] : [anyWeight(rng, values, kvHeads * headDim, hidden)]),
  ];
  const weight = stackLinear(parts.map((part) => part.pack(device)));
  const bias = shape.bias ? upload('bias', [weight.outFeatures]) : undefined;
  const headNorm = shape.headNorm ? upload('norms', [queriesOnly ? 1 : 2, headDim]) : undefined;
  const norm = hasNorm ? upload('norm', [hidden]) : undefined;
  const input = { x: upload('x', [rows, hidden], 3), norm, eps: EPS, normed: device.tensor('normed', 'f32', [rows, hidden]) };
  const kv = createKVCache(device, { layers: [{ kvHeads, headDim }], pageSize: PAGE, dtype: pages }, PAGES);
  const { k, v } = kv.layers[0]!;
  for (const tensor of [k, v])
    writePages(
      device,
      tensor,
      Uint32Array.from({ length: tensor.byteLength / 4 }, (_, i) => i),
    );
  const q = device.tensor('q', 'f32', [rows, heads * (headDim + 4)]);
  const places = {
    // The last of several rows is padding.
    slots: device.upload(
      'slots',
      'u32',
      [rows],
      Uint32Array.from({ length: rows }, (_, t) => (t > 0 && t === rows - 1 ? NO_SLOT : 7 + 20 * t)),
    ),
    positions: device.upload(
      'positions',
      'u32',
      [rows],
      Uint32Array.from({ length: rows }, (_, t) => 40 + 31 * t),
    ),
    cosSin: ropeTable(device, { theta: 10000, headDim, scaling: undefined }, 400),
    ...{ q, kv, layer: 0, heads, rows, queriesOnly },
  };
  const rec = device.record('heads');
  if (fused) {
    if (!projectHeads(rec, { input, weight, bias, headNorm, ...places })) return undefined;
  } else {
    const qkv = device.tensor('qkv', 'f32', [rows, weight.outFeatures]);
    normedLinear(rec, { input, weight, bias, out: qkv, rows });
    if (headNorm) qkNorm(rec, { qkv, weight: headNorm, heads, kvHeads: newHeads, eps: EPS, rows });
    ropeKVStore(rec, { qkv, ...places });
  }
  rec.submit();
  return [await device.read(q), await readPages(device, k), await readPages(device, v)];
}

describe('project_heads', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  const ways = WEIGHT_FLAVOURS.filter(({ title }) => title !== 'no subgroups').map((flavour) => ({ ...flavour, shapes: FUSED }));
  // Norms of rows by workgroup memory alone.
  const several = FUSED.filter(({ rows, headNorm }) => rows === 2 && !headNorm);
  const oneWay = GPUS_WITHOUT_SUBGROUPS.map((flavour) => ({ ...flavour, shapes: several.slice(0, 1) }));
  for (const { title, disable, shapes } of [...ways, ...oneWay]) {
    test.each(shapes)(`$name has the bits of one after the other (${title})`, async (shape) => {
      device.pretend(disable);
      // Adapters in whose registers no workgroup holds few rows (SwiftShader, software without subgroups) have no such kernel.
      const few = fewRows(device.caps, { dtype: shape.dtype, place: 'buffer' }, { rows: shape.rows, k4: shape.hidden / 4, count: 0 });
      const isFused = Boolean(few) || (shape.rows > 2 && hasShuffles(device.caps));
      await unlessPassed(
        device,
        { expected: [isFused] },
        async (on) => [await run(on, shape, true), isFused ? await run(on, shape, false) : undefined],
        ([fused, apart]) => expect(fused).toEqual(apart),
      );
      expect(device.errors).toEqual([]);
    });
  }

  test.each([
    { what: 'many rows of blocks', change: { rows: 9, dtype: 'Q8_0' } },
    { what: 'int8 pages', change: { pages: 'int8' } },
    { what: 'bias and norms of heads', change: { bias: true, headNorm: true } },
    { what: 'heads that are no whole groups of columns', change: { headDim: 80 } },
  ] as const)('leaves $what to the others', async ({ change }) => {
    device.pretend([]);
    expect(await run(device, { name: '', ...LLAMA, dtype: 'f16', ...change }, true)).toBeUndefined();
  });
});
