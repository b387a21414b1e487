/** Routing, sorting and the grouped product of mixtures of experts. */
import { gateMul } from '../../engine/ops/activation.ts';
import { combineRows, createRoutes, expertLinear, routeRows } from '../../engine/ops/experts.ts';
import { packLinear, stackLinear } from '../../engine/ops/pack-linear.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Rng } from '../../engine/util/rng.ts';
import { isBlockType } from '../../engine/weights/storage.ts';
import type { WeightType } from '../../engine/weights/storage.ts';
import * as reference from '../reference/experts.ts';
import { WEIGHT_FLAVOURS, describeKernels, randomTensor, roundToF16 } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';
import { randomBlocks } from '../support/random-blocks.ts';
import { packStored } from '../support/pack-stored.ts';

const NO_EXPERT = 0xffffffff;
/** Pairs of a tile. */
const TILE = 4;

interface Shape {
  readonly rows: number;
  readonly experts: number;
  readonly k: number;
  /** Held by this rank; default all. */
  readonly held?: { readonly from: number; readonly to: number };
}

/** Every row's logits are others, or those of few experts only: then most have no rows. */
function routeCase({ rows, experts, k, held = { from: 0, to: experts } }: Shape, ties = false, cutoff?: number): KernelCase {
  const extras = [
    ties && 'equal logits',
    cutoff !== undefined && `shares among logits within ${cutoff}`,
    held.to - held.from < experts && `${held.from} to ${held.to} of them here`,
  ].filter(Boolean);
  return {
    name: `routes ${rows} rows to ${k} of ${experts} experts${extras.map((extra) => `, ${extra}`).join('')}`,
    build(rng) {
      const logits = randomTensor(rng, [rows, experts], 2);
      if (ties) logits.values.forEach((value, i) => (logits.values[i] = Math.round(value)));
      const { chosen, shares } = reference.routes(logits.values, experts, k, { cutoff });
      const tiles = Math.min(rows * k, Math.ceil((rows * k) / TILE) + held.to - held.from);
      const sorted = rows * k > experts;
      const wanted = reference.tileExperts(chosen, held, TILE);
      return {
        inputs: { logits },
        outputs: {
          chosen: { dtype: 'u32', shape: [rows * k] },
          shares: { dtype: 'f32', shape: [rows * k] },
          tileExperts: { dtype: 'u32', shape: [tiles], initial: new Uint32Array(tiles) },
        },
        run(rec, t, device) {
          const made = createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), { count: experts, perRow: k, held }, rows);
          routeRows(rec, { logits: t['logits']!, routes: { ...made, chosen: t['chosen']!, shares: t['shares']!, tileExperts: t['tileExperts']! }, rows, cutoff }); // prettier-ignore
        },
        expected: { chosen, shares, tileExperts: Array.from({ length: tiles }, (_, i) => (sorted ? (wanted[i] ?? NO_EXPERT) : 0)) },
      };
    },
  };
}

interface Product extends Shape {
  readonly width: number;
  readonly columns: number;
  /** A matrix of each expert, or two stored as types of their own. */
  readonly types: readonly WeightType[];
  readonly ofPairs?: boolean;
  /** The first binding of the weight ends after this many rows. */
  readonly cut?: number;
  readonly hasBias?: boolean;
}

/** A matrix [rows, width] of all experts, and its values as they are stored. */
function randomWeight(
  rng: Rng,
  type: WeightType,
  rows: number,
  width: number,
  cut = rows,
): { values: Float32Array; pack: (device: Device) => LinearWeight } {
  if (isBlockType(type)) {
    const { bytes, values } = randomBlocks(rng, type, rows * width);
    return { values, pack: (device) => packStored(device, type, bytes, rows, width, type) };
  }
  const { values } = randomTensor(rng, [rows, width], 1 / Math.sqrt(width));
  const part = (device: Device, from: number, to: number) =>
    packLinear(device, type, values.subarray(from * width, to * width), to - from, width, type === 'f16' ? 'f16' : 'f32');
  return {
    values: type === 'f16' ? roundToF16(values) : values,
    pack: (device) => (cut < rows ? stackLinear([part(device, 0, cut), part(device, cut, rows)]) : part(device, 0, rows)),
  };
}

function productCase({
  rows,
  experts,
  k,
  held = { from: 0, to: experts },
  width,
  columns,
  types,
  ofPairs = false,
  cut,
  hasBias = false,
}: Product): KernelCase {
  const extras = [
    ofPairs && 'of pairs',
    hasBias && 'with a bias',
    cut && `cut at ${cut}`,
    held.to - held.from < experts && `${held.from} to ${held.to} of them here`,
  ].filter(Boolean);
  return {
    name: `expert_linear ${types.join(' and ')}: ${rows} rows of ${width}, ${k} of ${experts} experts, ${columns} columns${extras.map((extra) => `, ${extra}`).join('')}`,
    // Sums of f32 in another order.
    tolerance: 1e-11,
    build(rng) {
      const logits = randomTensor(rng, [rows, experts]);
      const x = randomTensor(rng, [ofPairs ? rows * k : rows, width]);
      const count = held.to - held.from;
      const weights = types.map((type) => randomWeight(rng, type, count * columns, width, cut));
      const bias = randomTensor(rng, [types.length * count * columns]);
      const { chosen } = reference.routes(logits.values, experts, k);
      const wide = columns * types.length;
      const initial = new Float32Array(rows * k * wide).fill(7);
      const isHeld = (expert: number): boolean => expert >= held.from && expert < held.to;
      const expected = Float64Array.from(initial);
      const paired = Float32Array.from({ length: rows * k * width }, (_, i) => {
        const pair = Math.floor(i / width);
        return x.values[(ofPairs ? pair : Math.floor(pair / k)) * width + (i % width)]!;
      });
      weights.forEach(({ values }, segment) => {
        const of = (expert: number) => values.subarray((expert - held.from) * columns * width, (expert - held.from + 1) * columns * width);
        const here = chosen.map((expert) => (isHeld(expert) ? expert : held.from));
        reference.expertLinear(paired, here, of, columns, width).forEach((row, pair) => {
          const first = (segment * count + chosen[pair]! - held.from) * columns;
          const whole = hasBias ? row.map((value, n) => value + bias.values[first + n]!) : row;
          if (isHeld(chosen[pair]!)) expected.set(whole, pair * wide + segment * columns);
        });
      });
      return {
        inputs: { logits, x, bias },
        outputs: { out: { dtype: 'f32', shape: [rows * k, wide], initial } },
        run(rec, t, device) {
          const routes = createRoutes(
            (label, dtype, shape) => device.tensor(label, dtype, shape),
            { count: experts, perRow: k, held },
            rows,
          );
          routeRows(rec, { logits: t['logits']!, routes, rows });
          const weight = stackLinear(weights.map(({ pack }) => pack(device)));
          expertLinear(rec, {
            x: t['x']!,
            weight,
            bias: hasBias ? t['bias'] : undefined,
            segments: types.length,
            routes,
            out: t['out']!,
            ofPairs,
            rows,
          });
        },
        expected: { out: expected },
      };
    },
  };
}

interface Choice {
  readonly sigmoid?: boolean;
  readonly hasBias?: boolean;
  readonly groups?: { readonly count: number; readonly kept: number };
}

/** Shares that are sigmoids, or not, of logits with a column more, with a bias that chooses or without, of all groups or some. */
function choiceCase({ rows, experts, k }: Shape, { hasBias = false, groups, sigmoid = true }: Choice = {}): KernelCase {
  const by = [sigmoid ? 'sigmoids' : 'a softmax', hasBias && 'a bias', groups && `${groups.kept} of ${groups.count} groups`].filter(
    Boolean,
  );
  return {
    name: `routes ${rows} rows to ${k} of ${experts} experts by ${by.join(' and ')}`,
    build(rng) {
      const logits = randomTensor(rng, [rows, experts + 1], 2);
      const bias = randomTensor(rng, [experts]);
      const found = reference.routes(logits.values, experts, k, {
        stride: experts + 1,
        sigmoid,
        ...(hasBias && { bias: bias.values }),
        ...(groups && { groups }),
      });
      return {
        inputs: { logits, bias },
        outputs: { chosen: { dtype: 'u32', shape: [rows * k] }, shares: { dtype: 'f32', shape: [rows * k] } },
        run(rec, t, device) {
          const shape = { count: experts, perRow: k, held: { from: 0, to: experts } };
          const made = createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), shape, rows);
          const routes = { ...made, chosen: t['chosen']!, shares: t['shares']! };
          routeRows(rec, { logits: t['logits']!, routes, rows, sigmoid, bias: hasBias ? t['bias']! : undefined, groups });
        },
        expected: found,
      };
    },
  };
}

/** An expert of all rows beside the chosen ones, whose shares have a floor and a scale. */
function sharedCase({ rows, experts, k }: Shape, columns: number): KernelCase {
  return {
    name: `combine_rows sums ${k} of ${experts} experts of ${rows} rows of ${columns}, scaled, and one of all rows`,
    build(rng) {
      const [y, residual, shared] = [[rows * k, columns], [rows, columns], [rows, columns]].map((shape) => randomTensor(rng, shape)) as [Random, Random, Random]; // prettier-ignore
      const logits = randomTensor(rng, [rows, experts + 1]);
      const scales = randomTensor(rng, [experts]);
      const routes = reference.routes(logits.values, experts, k, { stride: experts + 1 });
      const gates = Float32Array.from({ length: rows }, (_, row) => logits.values[row * (experts + 1) + experts]!);
      const rule = { normalised: true, floor: 0.25, scale: 1.5 };
      return {
        inputs: {
          y,
          residual,
          shared,
          scales,
          logits,
          chosen: { dtype: 'u32', shape: [rows * k], values: routes.chosen },
          shares: { dtype: 'f32', shape: [rows * k], values: routes.shares },
        },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run(rec, t, device) {
          const shape = { count: experts, perRow: k, held: { from: 0, to: experts } };
          const made = createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), shape, rows);
          const own = { ...made, chosen: t['chosen']!, shares: t['shares']! };
          const ofAll = { rows: t['shared']!, gates: t['logits']!, column: experts };
          combineRows(rec, {
            y: t['y']!,
            routes: own,
            shares: rule,
            scales: t['scales']!,
            shared: ofAll,
            residual: t['residual']!,
            out: t['out']!,
            rows,
          });
        },
        expected: {
          out: reference.combine(y.values, residual.values, routes, {
            k, columns, ...rule, scales: scales.values, shared: { rows: shared.values, gates }, isHeld: () => true,
          }), // prettier-ignore
        },
      };
    },
  };
}

/** Shares of rows whose sum is less than what they are divided by at least, and of others. */
function leastCase({ rows, experts, k }: Shape, columns: number): KernelCase {
  return {
    name: `combine_rows sums ${k} of ${experts} experts of ${rows} rows of ${columns}, divided by a half at least`,
    build(rng) {
      const [y, residual] = [randomTensor(rng, [rows * k, columns]), randomTensor(rng, [rows, columns])];
      const { chosen, shares } = reference.routes(randomTensor(rng, [rows, experts]).values, experts, k);
      const rule = { normalised: true, least: 0.5 };
      // The sums of every other row are small.
      const some = Float32Array.from(shares, (share, pair) => (Math.floor(pair / k) % 2 === 0 ? share : share / 4));
      return {
        inputs: {
          y,
          residual,
          chosen: { dtype: 'u32', shape: [rows * k], values: chosen },
          shares: { dtype: 'f32', shape: [rows * k], values: some },
        },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run(rec, t, device) {
          const shape = { count: experts, perRow: k, held: { from: 0, to: experts } };
          const made = createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), shape, rows);
          const routes = { ...made, chosen: t['chosen']!, shares: t['shares']! };
          combineRows(rec, { y: t['y']!, routes, shares: rule, residual: t['residual']!, out: t['out']!, rows });
        },
        expected: {
          out: reference.combine(y.values, residual.values, { chosen, shares: some }, { k, columns, ...rule, isHeld: () => true }),
        },
      };
    },
  };
}

type Random = ReturnType<typeof randomTensor>;

function combineCase({ rows, experts, k, held = { from: 0, to: experts } }: Shape, columns: number, normalised: boolean): KernelCase {
  const extras = [normalised && 'normalised', held.to - held.from < experts && `${held.from} to ${held.to} of them here`].filter(Boolean);
  return {
    name: `combine_rows sums ${k} of ${experts} experts of ${rows} rows of ${columns}${extras.map((extra) => `, ${extra}`).join('')}`,
    build(rng) {
      const [y, residual] = [randomTensor(rng, [rows * k, columns]), randomTensor(rng, [rows, columns])];
      const { chosen, shares } = reference.routes(randomTensor(rng, [rows, experts]).values, experts, k);
      const isHeld = (expert: number): boolean => expert >= held.from && expert < held.to;
      const expected = reference.combine(y.values, residual.values, { chosen, shares }, { k, columns, normalised, isHeld });
      // Nobody writes the rows of experts that are elsewhere.
      chosen.forEach((expert, pair) => isHeld(expert) || y.values.fill(NaN, pair * columns, (pair + 1) * columns));
      return {
        inputs: {
          y,
          residual,
          chosen: { dtype: 'u32', shape: [rows * k], values: chosen },
          shares: { dtype: 'f32', shape: [rows * k], values: shares },
        },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run(rec, t, device) {
          const made = createRoutes((label, dtype, shape) => device.tensor(label, dtype, shape), { count: experts, perRow: k, held }, rows);
          const routes = { ...made, chosen: t['chosen']!, shares: t['shares']! };
          combineRows(rec, { y: t['y']!, routes, shares: { normalised }, residual: t['residual']!, out: t['out']!, rows });
        },
        expected: { out: expected },
      };
    },
  };
}

/** Pairs are more than a grid has workgroups in one direction. */
const gateCase: KernelCase = {
  name: 'gate_mul of 66000 rows',
  build(rng) {
    const gateUp = randomTensor(rng, [66000, 8]);
    const at = (row: number, column: number): number => gateUp.values[row * 8 + column]!;
    const silu = (value: number): number => value / (1 + Math.exp(-value));
    return {
      inputs: { gateUp },
      outputs: { out: { dtype: 'f32', shape: [66000, 4] } },
      run: (rec, t) => gateMul(rec, { gateUp: t['gateUp']!, out: t['out']!, activation: 'silu' }),
      expected: { out: Float64Array.from({ length: 66000 * 4 }, (_, i) => silu(at(i >> 2, i & 3)) * at(i >> 2, 4 + (i & 3))) },
    };
  },
};

const PRODUCTS: readonly Product[] = [
  ...[1, 2, 3, 37].map((rows) => ({ rows, experts: 5, k: 2, width: 36, columns: 20, types: ['f32', 'f32'] }) as const),
  { rows: 37, experts: 5, k: 2, width: 20, columns: 36, types: ['f32'], ofPairs: true },
  { rows: 70, experts: 128, k: 8, width: 64, columns: 65, types: ['f16'] },
  { rows: 9, experts: 1, k: 1, width: 16, columns: 9, types: ['f32'] },
  // A binding that ends within an expert.
  { rows: 21, experts: 7, k: 3, width: 32, columns: 24, types: ['f32'], cut: 60 },
  { rows: 2, experts: 7, k: 3, width: 32, columns: 24, types: ['f32'], cut: 60 },
  // Tiles are more than a grid has workgroups in one direction.
  { rows: 16_400, experts: 16, k: 16, width: 4, columns: 4, types: ['f32'] },
  // Gates and ups of two types, as files in Q4_K_M have downs.
  ...[1, 30].map((rows) => ({ rows, experts: 6, k: 2, width: 256, columns: 32, types: ['Q4_K', 'Q6_K'] }) as const),
  // As files in IQ2_M have them.
  ...[1, 30].map((rows) => ({ rows, experts: 6, k: 2, width: 256, columns: 24, types: ['IQ2_XXS', 'IQ3_S'] }) as const),
  ...[1, 30].map((rows) => ({ rows, experts: 6, k: 2, width: 96, columns: 24, types: ['Q8_0', 'Q8_0'] }) as const),
  // gpt-oss's: MXFP4, biases, a binding that ends within an expert.
  ...[1, 30].map((rows) => ({ rows, experts: 6, k: 2, width: 96, columns: 24, types: ['MXFP4', 'MXFP4'], hasBias: true }) as const),
  { rows: 21, experts: 7, k: 3, held: { from: 1, to: 6 }, width: 32, columns: 24, types: ['f32'], cut: 60, hasBias: true },
  ...[1, 30].map((rows) => ({ rows, experts: 7, k: 3, held: { from: 2, to: 5 }, width: 32, columns: 16, types: ['f16', 'f16'] }) as const),
];

const HERE: Shape = { rows: 40, experts: 7, k: 3, held: { from: 2, to: 5 } };

describeKernels('experts of rows', PRODUCTS.map(productCase), { flavours: WEIGHT_FLAVOURS });
describeKernels('experts', [
  ...[1, 3, 65].map((rows) => routeCase({ rows, experts: 5, k: 2 })),
  routeCase({ rows: 33, experts: 128, k: 8 }),
  routeCase({ rows: 2, experts: 1, k: 1 }),
  routeCase({ rows: 9, experts: 4, k: 4 }),
  routeCase({ rows: 50, experts: 9, k: 3 }, true),
  routeCase({ rows: 65, experts: 16, k: 2 }, false, 0.5),
  routeCase({ rows: 50, experts: 9, k: 3 }, true, 0.5),
  routeCase({ rows: 3, experts: 257, k: 2 }, false, 0.02),
  routeCase(HERE),
  choiceCase({ rows: 9, experts: 5, k: 2 }),
  choiceCase({ rows: 33, experts: 32, k: 4 }, { hasBias: true }),
  choiceCase({ rows: 33, experts: 64, k: 6 }, { sigmoid: false, hasBias: true }),
  choiceCase({ rows: 2, experts: 70, k: 8 }, { sigmoid: false, hasBias: true }),
  choiceCase({ rows: 9, experts: 8, k: 3 }, { hasBias: true, groups: { count: 4, kept: 2 } }),
  choiceCase({ rows: 33, experts: 256, k: 8 }, { hasBias: true, groups: { count: 8, kept: 4 } }),
  choiceCase({ rows: 3, experts: 64, k: 5 }, { groups: { count: 32, kept: 3 } }),
  choiceCase({ rows: 33, experts: 160, k: 6 }, { sigmoid: false, groups: { count: 8, kept: 3 } }),
  combineCase({ rows: 5, experts: 5, k: 2 }, 36, true),
  combineCase({ rows: 3, experts: 7, k: 3 }, 260, false),
  combineCase(HERE, 12, true),
  sharedCase({ rows: 5, experts: 5, k: 2 }, 36),
  leastCase({ rows: 9, experts: 7, k: 3 }, 36),
  gateCase,
]);
