/**
 * Kernels of a GPU one by one, in each of the ways in which they are offered to the autotune: products of one row and a few, products of many rows as tiles and as
 * subgroup matrices, attention of answers and of prompts, at the shapes of `parley bench --random`. Weights are more than a card's cache holds, unlike those that
 * `shapes` and the autotune repeat. `npm run bench -- card [few] [many] [attention]`. A software adapter gets the same kernels at small sizes, whose times say nothing.
 */
import { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { timeSteps } from '../../engine/gpu/stopwatch.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';
import { gatedLinear } from '../../engine/ops/fused-linear.ts';
import { createKVCache } from '../../engine/ops/kv.ts';
import { hasMatrices } from '../../engine/ops/linear-matrix.ts';
import { linear, productKey } from '../../engine/ops/linear.ts';
import { emptyLinear } from '../../engine/ops/pack-linear.ts';
import { ATTENTION_SPLIT, attentionTileRows, pagedAttention } from '../../engine/ops/paged-attention.ts';
import { productShapes } from '../../engine/ops/product-shapes.ts';
import { randomFloats } from '../../engine/ops/random-weights.ts';
import type { LinearWeight } from '../../engine/ops/weight.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ceilDiv, nextPowerOfTwo } from '../../engine/util/math.ts';
import { randomFloats as valuesFor } from '../../engine/weights/random/random-values.ts';
import { fixed, printMachine } from './harness.ts';

const platform = createNodePlatform({ log: () => undefined });
const name = process.env['PARLEY_ADAPTER'];
const asked = await Device.create(platform, { ...(name && { name }) });
const { software } = asked.caps;
const device = software ? await Device.create(platform, { ...(name && { name }), disable: ['software'] }) : asked;

/** Weights of a run, beyond what cards have as a cache. */
const COLD_BYTES = software ? 0 : 300e6;
const MOST_COPIES = 96;
const ROUNDS = 5;
const PAGE = 16;

interface Matrix {
  readonly type: 'f16' | 'Q4_K' | 'Q5_0' | 'Q8_0';
  readonly inputs: number;
  readonly outputs: number;
  /** Gates and ups, which have a kernel of their own. */
  readonly gated?: boolean;
}

const SMALL: readonly Matrix[] = [{ type: 'Q4_K', inputs: 512, outputs: 192, gated: true }];
const FEW: readonly Matrix[] = [
  { type: 'f16', inputs: 896, outputs: 896 },
  { type: 'f16', inputs: 4864, outputs: 896 },
  { type: 'f16', inputs: 896, outputs: 9728, gated: true },
  { type: 'f16', inputs: 896, outputs: 151936 },
  { type: 'Q5_0', inputs: 896, outputs: 9728, gated: true },
  { type: 'Q4_K', inputs: 4096, outputs: 4096 },
  { type: 'Q4_K', inputs: 14336, outputs: 4096 },
  { type: 'Q4_K', inputs: 4096, outputs: 6144 },
  { type: 'Q4_K', inputs: 4096, outputs: 28672, gated: true },
  { type: 'Q8_0', inputs: 4096, outputs: 4096 },
];
const MANY: readonly Matrix[] = [
  { type: 'f16', inputs: 896, outputs: 9728 },
  { type: 'Q4_K', inputs: 4096, outputs: 28672 },
  { type: 'Q4_K', inputs: 14336, outputs: 4096 },
  { type: 'Q4_K', inputs: 4096, outputs: 6144 },
];
/** Heads, those of keys and values, channels of each. */
const HEADS = software ? [[4, 2, 64]] : [[14, 2, 64], [32, 8, 128], [16, 16, 64], [8, 4, 256]]; // prettier-ignore
/** Sequences and positions of each. */
const TEXTS = software ? [[1, 600]] : [[1, 100], [1, 600], [1, 4096], [1, 32768], [32, 600], [128, 600]]; // prettier-ignore

/** Microseconds of one of `count` pieces of work that are recorded beside each other: median. */
async function microseconds(record: (rec: Recorder) => void, count: number): Promise<number> {
  device.compile(record);
  await device.pipelines.settled();
  const all: number[] = [];
  for (let round = 0; round < ROUNDS; round++) all.push(await timeSteps(device, record, 1));
  return (all.sort((a, b) => a - b)[ROUNDS >> 1]! * 1000) / count;
}

/** Fills words with pairs of halves, none of which is infinite or no number. */
function fill(tensor: Tensor): void {
  const rec = device.record('fill');
  randomFloats(rec, { raw: tensor, random: valuesFor(7, 4096), values: { from: 0, to: tensor.byteLength / 2 }, source: 'F16' });
  rec.submit();
}

function waves(label: string, shape: readonly number[]): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  return device.upload(
    label,
    'f32',
    shape,
    Float32Array.from({ length: size }, (_, i) => Math.sin(i)),
  );
}

/** As many copies of a matrix as no cache holds, and the bytes of one. */
function copiesOf({ type, inputs, outputs }: Matrix): { readonly weights: readonly LinearWeight[]; readonly bytes: number } {
  const make = (): LinearWeight => {
    const weight = emptyLinear(device, 'weight', outputs, inputs, type, 'buffer');
    for (const part of weight.parts) fill(part.weight);
    return weight;
  };
  const first = make();
  const bytes = first.parts.reduce((sum, part) => sum + part.weight.byteLength, 0);
  const count = Math.max(2, Math.min(MOST_COPIES, Math.ceil(COLD_BYTES / bytes)));
  return { weights: [first, ...Array.from({ length: count - 1 }, make)], bytes };
}

const free = (weights: readonly LinearWeight[]): void =>
  device.destroy(...weights.flatMap(({ parts }) => parts.map(({ weight }) => weight)));

/** Each way of a product of so many rows by all of `weights`. */
async function ways(
  { type, inputs, outputs }: Matrix,
  weights: readonly LinearWeight[],
  rows: number,
  told: (us: number) => string,
): Promise<void> {
  const x = waves('x', [rows, inputs]);
  const out = device.tensor('out', 'f32', [rows, outputs]);
  const key = productKey(type, rows, inputs, outputs);
  const found: string[] = [];
  const time = async (way: string, promptFrom?: number): Promise<void> => {
    const us = await microseconds((rec) => {
      for (const weight of weights) linear(rec, { x, weight, out, promptFrom });
    }, weights.length);
    found.push(`${way}: ${told(us)}`);
  };
  for (const { name: way } of productShapes(rows, inputs / 4)) {
    device.tuned.set(key, way);
    await time(way);
  }
  device.tuned.delete(key);
  if (rows > 32 && hasMatrices(device.caps)) await time('matrices', 0);
  console.log(`${type}, ${rows} x ${inputs} x ${outputs}: ${found.join('; ')}`);
  device.destroy(x, out);
}

async function few(): Promise<void> {
  console.log('\nProducts of few rows: us (GB/s of weights)');
  for (const matrix of software ? SMALL : FEW) {
    const { weights, bytes } = copiesOf(matrix);
    for (const rows of [1, 4, 8]) await ways(matrix, weights, rows, (us) => `${fixed(us, 1)} (${fixed(bytes / us / 1e3, 0)})`);
    if (matrix.gated) {
      const { inputs, outputs } = matrix;
      const [x, norm, normed] = [waves('x', [1, inputs]), waves('norm', [inputs]), device.tensor('normed', 'f32', [1, inputs])];
      const [gateUp, out] = [device.tensor('gates, ups', 'f32', [1, outputs]), device.tensor('out', 'f32', [1, outputs / 2])];
      const us = await microseconds((rec) => {
        for (const weight of weights)
          gatedLinear(rec, { input: { x, norm, eps: 1e-5, normed }, weight, activation: 'silu', gateUp, out, rows: 1 });
      }, weights.length);
      console.log(`  with norm and gates, one row: ${fixed(us, 1)} us (${fixed(bytes / us / 1e3, 0)})`);
      device.destroy(x, norm, normed, gateUp, out);
    }
    free(weights);
  }
}

async function many(): Promise<void> {
  console.log('\nProducts of many rows: TFLOP/s');
  for (const matrix of software ? SMALL : MANY) {
    const { weights } = copiesOf(matrix);
    const some = weights.slice(0, 4);
    for (const rows of software ? [40] : [16, 32, 64, 128, 512])
      await ways(matrix, some, rows, (us) => fixed((2 * rows * matrix.inputs * matrix.outputs) / us / 1e6, 1));
    free(weights);
  }
}

/** Sequences of as many positions, each with pages of its own, and what attention reads of them. */
function textsOf(kvHeads: number, headDim: number, sequences: number, positions: number) {
  const pages = ceilDiv(positions, PAGE);
  const kv = createKVCache(device, { pageSize: PAGE, dtype: 'f16', layers: [{ kvHeads, headDim }] }, pages * sequences);
  const { k, v } = kv.layers[0]!;
  for (const side of [k, v]) fill(side);
  const words = Uint32Array.from({ length: pages * sequences }, (_, i) => i);
  return { kv, blockTable: device.upload('pages', 'u32', [sequences, pages], words), held: [k, v] };
}

async function attention(): Promise<void> {
  console.log('\nAttention: us');
  for (const [heads = 0, kvHeads = 0, headDim = 0] of HEADS) {
    for (const [sequences = 0, positions = 0] of TEXTS) await answers({ heads, kvHeads, headDim }, sequences, positions);
    await prompt({ heads, kvHeads, headDim }, software ? 16 : 512);
  }
}

interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** One token of each sequence, with its positions spread over workgroups and without. */
async function answers({ heads, kvHeads, headDim }: Heads, sequences: number, positions: number): Promise<void> {
  const { kv, blockTable, held } = textsOf(kvHeads, headDim, sequences, positions);
  const [q, out] = [waves('q', [sequences, heads * headDim]), device.tensor('out', 'f32', [sequences, heads * headDim])];
  const words = Array.from({ length: sequences }, (_, i) => [i, 1, i, positions - 1]).flat();
  const tiles = device.upload('tiles', 'u32', [sequences, 4], Uint32Array.from(words));
  const last = device.upload('positions', 'u32', [sequences], new Uint32Array(sequences).fill(positions - 1));
  const parts = nextPowerOfTwo(ceilDiv(positions, ATTENTION_SPLIT));
  const partials = device.tensor('partials', 'f32', [sequences * heads * parts * (headDim + 4)]);
  const found: string[] = [];
  for (const some of parts > 1 && positions < 8192 ? [parts, 1] : [parts]) {
    const split = some > 1 ? { partials, positions: last, parts: some, rows: sequences } : undefined;
    const us = await microseconds((rec) => {
      for (let i = 0; i < 8; i++) pagedAttention(rec, { q, kv, layer: 0, blockTable, tiles, firstTile: 0, tileCount: sequences, tileRows: 1, out, heads, split }); // prettier-ignore
    }, 8);
    found.push(`${some} ${some > 1 ? 'parts' : 'part'} ${fixed(us, 1)}`);
  }
  const read = sequences * positions * kvHeads * headDim * 4;
  console.log(
    `${sequences} at ${positions}, ${heads} over ${kvHeads} heads of ${headDim}, ${fixed(read / 1e6, 1)} MB: ${found.join('; ')}`,
  );
  device.destroy(q, out, tiles, last, partials, blockTable, ...held);
}

async function prompt({ heads, kvHeads, headDim }: Heads, rows: number): Promise<void> {
  const { kv, blockTable, held } = textsOf(kvHeads, headDim, 1, rows);
  const [q, out] = [waves('q', [rows, heads * headDim]), device.tensor('out', 'f32', [rows, heads * headDim])];
  const tileRows = attentionTileRows(device.caps, heads, { kvHeads, headDim });
  const tileCount = ceilDiv(rows, tileRows);
  const words = Array.from({ length: tileCount }, (_, i) => [
    i * tileRows,
    Math.min(tileRows, rows - i * tileRows),
    0,
    i * tileRows,
  ]).flat();
  const tiles = device.upload('tiles', 'u32', [tileCount, 4], Uint32Array.from(words));
  const us = await microseconds((rec) => pagedAttention(rec, { q, kv, layer: 0, blockTable, tiles, firstTile: 0, tileCount, tileRows, out, heads }), 1); // prettier-ignore
  console.log(`a prompt of ${rows}, ${heads} over ${kvHeads} heads of ${headDim}, ${tileRows} rows a tile: ${fixed(us, 1)}`);
  device.destroy(q, out, tiles, blockTable, ...held);
}

const PARTS: Readonly<Record<string, () => Promise<void>>> = { few, many, attention };
printMachine(device);
if (software) console.log('A software adapter: small sizes, and times that say nothing of a card.');
const chosen = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(PARTS);
for (const part of chosen) {
  if (!PARTS[part]) throw new Error(`card has no part ${part}; it has ${Object.keys(PARTS).join(', ')}`);
  await PARTS[part]();
}
for (const error of device.errors) console.log(`ERROR ${error}`);
process.exit(device.errors.length > 0 ? 1 : 0);
