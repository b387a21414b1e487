/** Self-test cases of products fused with the kernels around them. */
import type { Kernel } from '../gpu/kernel.ts';
import { LINEAR_FUSED, gatedLinear, normedLinear } from '../ops/fused-linear.ts';
import { NO_SLOT, createKVCache } from '../ops/kv.ts';
import { LINEAR_NORMED } from '../ops/linear-normed.ts';
import { PROJECT_HEADS, PROJECT_HEADS_MANY, projectHeads } from '../ops/project-heads.ts';
import { fusedShapes } from '../ops/product-shapes.ts';
import type { SplitShape } from '../ops/product-shapes.ts';
import { ropeFrequencies, ropeTable } from '../ops/rope.ts';
import { fromF16 } from '../util/f16.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import * as plain from './plain.ts';
import { activationOf, checkedMatrix } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

const COLUMNS = 40;
const EPS = 1e-5;

/** Inputs for which a variant is taken; undefined where blocks of the weight are longer. */
function inputsOf(storage: WeightType, consts: Readonly<Record<string, number>>): number | undefined {
  const { NORM_LANES, BLOCK_QUADS, SLICES } = consts;
  if (NORM_LANES === 64) return isBlockType(storage) ? undefined : 32 + oddInputs(BLOCK_QUADS);
  if (SLICES !== undefined) return splitInputs(consts);
  const whole = NORM_LANES === 256 ? 1280 : 256;
  return whole + (!isBlockType(storage) && BLOCK_QUADS === 1 ? 4 : 0);
}

/**
 * Inputs for which kernels of GPUs take a variant: as many chunks as it has slices for, and a quad or more beyond whole loads where it has
 * smaller ones.
 */
export function splitInputs({ SLICES, BLOCK_QUADS, NORM_LANES }: Readonly<Record<string, number>>): number {
  const isShort = NORM_LANES === undefined ? SLICES === 16 : NORM_LANES !== 256;
  return (isShort ? 256 : 1280) + oddInputs(BLOCK_QUADS);
}

/** How the workgroups of a GPU share a product, which depends on its size: here it is small. */
const shapeOf = ({ LANES, SLICES }: Readonly<Record<string, number>>, k: number): SplitShape | undefined =>
  fusedShapes(k / 4).find(({ lanes, slices }) => lanes === LANES && slices === SLICES);

/** Beyond whole eights of quads. */
const oddInputs = (quads: number | undefined): number => ({ 1: 4, 4: 16 })[quads!] ?? 0;

/** Rows, the norm before the product if there is one, and what the product reads. */
function checkedRows(bench: Workbench, rows: number, k: number, hasNorm: boolean) {
  const [x, norm] = [bench.floats([rows, k]), bench.floats([k])];
  const input = { x: x.tensor, norm: hasNorm ? norm.tensor : undefined, eps: EPS, normed: bench.out([rows, k]) };
  return { input, values: hasNorm ? plain.rmsNorm(x.values, norm.values, rows, k, EPS) : x.values };
}

const checkFused: CheckMaker = (variant, bench) => {
  const { storage, consts = {}, overrides = {} } = variant;
  const { ROWS: rows = 1, COLUMN_GROUPS, HELD } = consts;
  const k = inputsOf(storage as WeightType, consts);
  if (k === undefined) return undefined;
  // So many that tiles are wide or share a norm, where that is what the variant is for.
  const columns = HELD !== undefined ? 2048 : COLUMN_GROUPS === 4 ? 1024 : COLUMNS;
  return checkProduct(variant, bench, { rows, k, columns, gated: overrides['GATED'] === 1 });
};

/** Gates, or a product with a bias: the variant does both. */
const checkMany: CheckMaker = (variant, bench) => {
  const { consts = {}, overrides = {} } = variant;
  return checkProduct(variant, bench, {
    rows: manyRows(consts['ROW_BLOCKS']),
    k: 64,
    columns: COLUMNS,
    gated: overrides['HAS_BIAS'] !== 1,
  });
};

const manyRows = (blocks: number | undefined): number => (blocks === 2 ? 16 : 5);

interface CheckedProduct {
  readonly rows: number;
  readonly k: number;
  readonly columns: number;
  readonly gated: boolean;
}

function checkProduct(
  { storage, texture, consts = {}, overrides = {} }: Parameters<CheckMaker>[0],
  bench: Workbench,
  { rows, k, columns, gated }: CheckedProduct,
): ReturnType<CheckMaker> {
  const outputs = gated ? 2 * columns : columns;
  const shape = shapeOf(consts, k);
  const { weight, values, fill } = checkedMatrix(bench, { storage, texture }, outputs, k);
  const { input, values: read } = checkedRows(bench, rows, k, overrides['HAS_NORM'] === 1);
  const [bias, out, gateUp] = [bench.floats([columns]), bench.out([rows, columns]), bench.out([rows, outputs])];
  const activation = activationOf(overrides['ACTIVATION']);
  const hasBias = overrides['HAS_BIAS'] === 1;
  const sums = plain.linear(read, values, rows, outputs, k);
  return {
    record(rec) {
      fill(rec);
      if (gated) gatedLinear(rec, { input, weight, activation, gateUp, out, rows, shape });
      else normedLinear(rec, { input, weight, bias: hasBias ? bias.tensor : undefined, out, rows, shape });
    },
    out,
    expected: Float64Array.from({ length: rows * columns }, (_, i) => {
      const [row, column] = [Math.floor(i / columns), i % columns];
      const sum = sums[row * outputs + column]!;
      return gated
        ? plain.activation(activation, sum) * sums[row * outputs + columns + column]!
        : sum + (hasBias ? bias.values[column]! : 0);
    }),
    tolerance: 1e-6,
  };
}

/** Heads of queries over one of keys: the queries, then the key and the value of every row but the last of several, which is padding. */
const checkHeads: CheckMaker = ({ storage, texture, consts = {}, overrides = {} }, bench) => {
  const { ROW_BLOCKS: blocks, D8 = 8, PAGE = 16, HALF_PAGES, HELD } = consts;
  const rows = blocks === undefined ? consts['ROWS']! : manyRows(blocks);
  const k = blocks === undefined ? inputsOf(storage as WeightType, consts) : 64;
  if (k === undefined) return undefined;
  // So many that heads share a norm, where that is what the variant is for.
  const [heads, headDim] = [HELD === undefined || blocks !== undefined ? 2 : 14, 8 * D8];
  const width = (heads + 2) * headDim;
  const { weight, values, fill } = checkedMatrix(bench, { storage, texture }, width, k);
  const { input, values: read } = checkedRows(bench, rows, k, overrides['HAS_NORM'] === 1);
  const [bias, norms] = [bench.floats([width]), bench.floats([2, headDim])];
  const [hasBias, hasHeadNorm] = [overrides['HAS_BIAS'] === 1, overrides['HAS_HEAD_NORM'] === 1];
  const rope = { theta: 10_000, headDim, scaling: undefined };
  const cosSin = bench.keep(ropeTable(bench.device, rope, rows + 1));
  const positions = Array.from({ length: rows }, (_, row) => row + 1);
  const stored = positions.slice(0, Math.max(1, rows - 1));
  // As many pages as the last of them needs: they may be as short as a token.
  const count = Math.ceil((stored.length + 1) / PAGE);
  const kv = createKVCache(bench.device, { layers: [{ kvHeads: 1, headDim }], pageSize: PAGE, dtype: HALF_PAGES === 1 ? 'f16' : 'f32' }, count); // prettier-ignore
  const pages = [bench.keep(kv.layers[0]!.k), bench.keep(kv.layers[0]!.v)];
  const [where, slots] = [bench.words(positions), bench.words(positions.map((row, i) => (i < stored.length ? row : NO_SLOT)))];
  const q = bench.out([rows, heads * headDim]);
  const words = bench.out([pages[0]!.byteLength / 4]);
  const all = bench.out([q.size + 2 * words.size]);
  const sums = plain.linear(read, values, rows, width, k).map((sum, i) => sum + (hasBias ? bias.values[i % width]! : 0));
  const frequencies = Float32Array.from(ropeFrequencies(rope));
  const made = (row: number, index: number) => sums.slice(row * width + index * headDim, row * width + (index + 1) * headDim);
  const head = (row: number, index: number): readonly number[] => {
    const own = made(row, index);
    const norm = norms.values.subarray(index < heads ? 0 : headDim).subarray(0, headDim);
    return [...plain.rotate(hasHeadNorm ? plain.rmsNorm(own, norm, 1, headDim, EPS) : own, row + 1, frequencies)];
  };
  return {
    record(rec) {
      fill(rec);
      const added = { bias: hasBias ? bias.tensor : undefined, headNorm: hasHeadNorm ? norms.tensor : undefined };
      const given = { ...added, shape: shapeOf(consts, k) };
      projectHeads(rec, { input, weight, ...given, cosSin, positions: where, slots, q, kv, layer: 0, heads, rows });
      rec.copy(q, all);
      for (const [side, lying] of pages.entries()) {
        if (lying.texture) rec.spill(lying, words);
        rec.copy(lying.texture ? words : lying, all, words.byteLength, 0, q.byteLength + side * words.byteLength);
      }
    },
    out: all,
    seen({ buffer }) {
      const held = HALF_PAGES === 1 ? fromF16(new Uint16Array(buffer, q.byteLength)) : new Float32Array(buffer, q.byteLength);
      const sides = [held.subarray(0, held.length / 2), held.subarray(held.length / 2)];
      const places = pages[0]!.texture ? TEXTURE_QUADS : BUFFER_QUADS;
      const before = (slot: number) => Math.floor(slot / PAGE) * PAGE * 2 * D8;
      const quads = (slot: number) => sides.flatMap((side, i) => Array.from({ length: 2 * D8 }, (_, d) => side.subarray(4 * (before(slot) + places[i]!(slot % PAGE, d, D8, PAGE))).subarray(0, 4))); // prettier-ignore
      return [...new Float32Array(buffer, 0, q.size), ...stored.flatMap(quads).flatMap((quad) => [...quad])];
    },
    expected: [
      ...Array.from({ length: rows * heads }, (_, i) => head(Math.floor(i / heads), i % heads)).flat(),
      ...stored.flatMap((_, row) => [...head(row, heads), ...made(row, heads + 1)]),
    ],
    tolerance: 1e-6,
  };
};

type QuadPlace = (slot: number, quad: number, d8: number, page: number) => number;
/** Where a page of one head has the quads of keys, and of values: in a buffer, and in a texture (lib/store_pages*.wgsl). */
const BUFFER_QUADS: readonly QuadPlace[] = [(slot, d, _, page) => d * page + slot, (slot, d, d8) => slot * 2 * d8 + d];
const TEXTURE_QUADS: readonly QuadPlace[] = [
  (slot, d, _, page) => 2 * (Math.floor(d / 2) * page + slot) + (d % 2),
  (slot, d, d8) => 2 * (slot * d8 + (d % d8)) + Math.floor(d / d8),
];

/** Checks by kernel. */
export const FUSED_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [LINEAR_FUSED, checkFused],
  [LINEAR_NORMED, checkMany],
  [PROJECT_HEADS, checkHeads],
  [PROJECT_HEADS_MANY, checkHeads],
];
