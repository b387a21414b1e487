/** One small self-test case for each essential kernel, made for a compiled pipeline. */
import type { Kernel } from '../gpu/kernel.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { GATE_MUL, gateMul } from '../ops/activation.ts';
import { EMBEDDING, embedding } from '../ops/embedding.ts';
import { NO_SLOT, createKVCache, ropeKVStore } from '../ops/kv.ts';
import type { KVType } from '../ops/kv.ts';
import {
  LINEAR_BLOCK,
  LINEAR_BROADCAST,
  LINEAR_QUAD,
  LINEAR_ROWS,
  LINEAR_SPLIT,
  LINEAR_TEXELS,
  LINEAR_TILE,
  WIDE,
  linear,
} from '../ops/linear.ts';
import { LINEAR_MATRIX } from '../ops/linear-matrix.ts';
import { LAYER_NORM, RMS_NORM, layerNorm, rmsNorm } from '../ops/norm.ts';
import { ATTENTION_SPLIT, PAGED_ATTENTION, PAGED_ATTENTION_WIDE, pagedAttention } from '../ops/paged-attention.ts';
import { productShapes, rowsOfBlock } from '../ops/product-shapes.ts';
import { ropeFrequencies, ropeTable } from '../ops/rope.ts';
import { ARGMAX_BLOCKS, SAMPLE_THRESHOLD, SLICE_THRESHOLD, sample, sampleScratch } from '../ops/sample.ts';
import { SAMPLING_ROW_WORDS, writeSamplingRow } from '../ops/sampling-row.ts';
import { GREEDY_SAMPLING } from '../sampling.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import { AUDIO_CHECKS } from './audio-checks.ts';
import { FUSED_CHECKS, splitInputs } from './fused-checks.ts';
import { HEARING_CHECKS } from './hearing-checks.ts';
import { LATENT_CHECKS, checkLatentAttention } from './latent-checks.ts';
import { LAYER_CHECKS } from './layer-checks.ts';
import { LOAD_CHECKS } from './load-checks.ts';
import { LORA_CHECKS } from './lora-checks.ts';
import { MIXER_CHECKS } from './mixer-checks.ts';
import * as plain from './plain.ts';
import { SPEECH_CHECKS } from './speech-checks.ts';
import { REDUCED_COLUMNS, activationOf, checkedMatrix } from './workbench.ts';
import type { CheckMaker } from './workbench.ts';

/** The number of rows with which `linear` takes a variant with these constants; undefined where it takes it for none by default. */
const LINEAR_TAKES: readonly (readonly [Kernel, (consts: Readonly<Record<string, number>>) => number | undefined])[] = [
  [LINEAR_TILE, ({ TILE_M }) => (TILE_M === 1 ? 1 : 4)],
  [LINEAR_ROWS, ({ ROWS }) => ROWS!],
  [LINEAR_BROADCAST, ({ ROW_BLOCKS, LANES }) => (ROW_BLOCKS === 1 ? 3 : 2 * LANES!)],
  [LINEAR_TEXELS, ({ ROW_BLOCKS, LANES }) => (ROW_BLOCKS === 2 ? LANES! + 1 : 3)],
  [LINEAR_QUAD, ({ ROWS }) => ({ 1: 1, 4: 2 })[ROWS!] ?? 5],
  [LINEAR_SPLIT, ({ ROWS }) => ROWS!],
  // More rows than a tile.
  [LINEAR_MATRIX, ({ SIZE, SIDE_M }) => 2 * SIZE! * SIDE_M! + 3],
  [LINEAR_BLOCK, ({ TILE_M, TILE_N, SIDE }) => rowsOfBlock(TILE_M!, TILE_N!, SIDE!)],
];

const COLUMNS = 40;

function checkLinear(kernel: Kernel, rowsOf: (consts: Readonly<Record<string, number>>) => number | undefined): CheckMaker {
  return ({ storage, texture, consts = {}, overrides = {} }, bench) => {
    const n = kernel === LINEAR_ROWS && consts['TILE_N']! > 8 ? WIDE : COLUMNS;
    const k = kernel === LINEAR_SPLIT ? splitInputs(consts) : 256 + (kernel === LINEAR_TILE && !isBlockType(storage as WeightType) ? 4 : 0);
    // No case for a shape that the autotuner chose: it compared the bits with those of the default, which has a case.
    const m = rowsOf(consts);
    if (m === undefined) return undefined;
    if (kernel === LINEAR_SPLIT && !isFirstShape(consts, m, k)) return undefined;
    const { weight, values, fill } = checkedMatrix(bench, { storage, texture }, n, k);
    const x = bench.floats([m, k]);
    const bias = bench.floats([n]);
    const residual = bench.floats([m, n]);
    const out = bench.out([m, n]);
    const activation = activationOf(overrides['ACTIVATION']);
    const [hasBias, hasResidual] = [overrides['HAS_BIAS'] === 1, overrides['HAS_RESIDUAL'] === 1];
    const expected = plain
      .linear(x.values, values, m, n, k)
      .map((sum, i) => plain.activation(activation, sum + (hasBias ? bias.values[i % n]! : 0)) + (hasResidual ? residual.values[i]! : 0));
    const given = { ...(hasBias && { bias: bias.tensor }), ...(hasResidual && { residual: residual.tensor }) };
    return {
      record(rec) {
        fill(rec);
        const { SIDE_M: sideM = 0, SIDE_N: sideN = 0, STEP } = consts;
        const matrices = kernel === LINEAR_MATRIX && { promptFrom: 0, tile: { sideM, sideN, step: STEP === 4 ? 4 : 8 } as const };
        linear(rec, { x: x.tensor, weight, out, activation, ...given, ...matrices, texels: kernel === LINEAR_TEXELS });
      },
      out,
      expected,
      tolerance: 1e-6,
    };
  };
}

/** Whether these are the constants of LINEAR_SPLIT's default shape for `m` rows. */
function isFirstShape({ LANES, SLICES, TILE_N }: Readonly<Record<string, number>>, m: number, k: number): boolean {
  const [first] = productShapes(m, k / 4);
  return first.kind === 'split' && LANES === first.lanes && SLICES === first.slices && TILE_N === first.tileN;
}

const checkEmbedding: CheckMaker = ({ storage, texture, overrides = {} }, bench) => {
  if (overrides['CLEAR'] === 1) return undefined;
  const { weight: table, values, fill } = checkedMatrix(bench, { storage, texture }, COLUMNS, 256);
  const chosen = [3, 0, COLUMNS - 1, 3];
  const out = bench.out([chosen.length, 256]);
  const ids = bench.words(chosen);
  const taken = [2, 0, 1, 2];
  const learned = overrides['HAS_POSITIONS'] === 1 ? bench.floats([3, 256]) : undefined;
  const positions = learned && { table: learned.tensor, places: bench.words(taken) };
  return {
    record(rec) {
      fill(rec);
      embedding(rec, { ids, table, positions, out });
    },
    out,
    expected: chosen.flatMap((id, row) =>
      [...values.subarray(id * 256, (id + 1) * 256)].map((value, i) => value + (learned?.values[taken[row]! * 256 + i] ?? 0)),
    ),
    tolerance: 1e-10,
  };
};

const EPS = 1e-5;

const checkRmsNorm: CheckMaker = ({ overrides = {} }, bench) => {
  const columns = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const hasResidual = overrides['HAS_RESIDUAL'] === 1;
  const [x, weight, residual, out] = [bench.floats([3, columns]), bench.floats([columns]), bench.floats([3, columns]), bench.out([3, columns])]; // prettier-ignore
  return {
    record: (rec) => rmsNorm(rec, { x: x.tensor, weight: weight.tensor, out, eps: EPS, ...(hasResidual && { residual: residual.tensor }) }),
    out,
    expected: plain.rmsNorm(x.values, weight.values, 3, columns, EPS).map((value, i) => value + (hasResidual ? residual.values[i]! : 0)),
    tolerance: 1e-9,
  };
};

const checkLayerNorm: CheckMaker = ({ overrides = {} }, bench) => {
  const columns = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const [x, weight, bias, out] = [bench.floats([3, columns]), bench.floats([columns]), bench.floats([columns]), bench.out([3, columns])];
  const rows = overrides['SPANS'] === 1 ? bench.spans([2, 1]) : 3;
  return {
    record: (rec) => layerNorm(rec, { x: x.tensor, weight: weight.tensor, bias: bias.tensor, out, eps: EPS, rows }),
    out,
    expected: plain.layerNorm(x.values, weight.values, bias.values, 3, columns, EPS),
    tolerance: 1e-9,
  };
};

const checkGate: CheckMaker = ({ overrides = {} }, bench) => {
  const activation = activationOf(overrides['ACTIVATION']);
  const [rows, columns] = [3, 72];
  const gateUp = bench.floats([rows, 2 * columns]);
  const out = bench.out([rows, columns]);
  return {
    record: (rec) => gateMul(rec, { gateUp: gateUp.tensor, out, activation }),
    out,
    expected: plain.gated(activation, gateUp.values, rows),
    tolerance: 1e-8,
  };
};

/** Positions of the test sequence of attention: more than one page and one part. */
const POSITIONS = ATTENTION_SPLIT + 45;
/** Tolerances by KV type: int8 rounds the most. */
const KV_TOLERANCE: Readonly<Record<KVType, number>> = { f32: 1e-8, f16: 1e-6, int8: 1e-3 };

/**
 * Checks rotary embeddings, storing in pages and attention over them: as a prefill tile, or as decodes, whose parts are reduced in the
 * kernel or after it.
 */
const checkAttention: CheckMaker = ({ storage, consts = {}, overrides = {} }, bench) => {
  const { PAGE = 16, D4 = 8, GROUP = 1, SHARES = 1, QUERIES = 1 } = consts;
  const dtype = (storage ?? 'f32') as KVType;
  const { device } = bench;
  const [heads, headDim, tileRows] = [GROUP * SHARES, 4 * D4, QUERIES / GROUP];
  const softCap = overrides['HAS_CAP'] === 1 ? 2 : undefined;
  const sinks = overrides['HAS_SINK'] === 1 ? bench.floats([heads]) : undefined;
  const positions = POSITIONS;
  const rows = Math.min(tileRows, positions);
  const width = (heads + 2) * headDim;
  const rope = { theta: 10_000, headDim, scaling: undefined };
  const cosSin = bench.keep(ropeTable(device, rope, positions));
  const kv = createKVCache(device, { layers: [{ kvHeads: 1, headDim }], pageSize: PAGE, dtype }, Math.ceil(positions / PAGE));
  for (const { k, v, plan } of kv.layers) for (const tensor of [k, v, ...(plan ? [plan] : [])]) bench.keep(tensor);
  const qkv = bench.floats([positions, width]);
  const last = bench.keep(device.upload('check', 'f32', [rows, width], qkv.values.slice(-rows * width)));
  const queries = (count: number): Tensor => bench.out([count, heads * (headDim + (dtype === 'int8' ? 4 : 0))]);
  const [allQueries, q] = [queries(positions), queries(rows)];
  const count = (length: number, from = 0): number[] => Array.from({ length }, (_, i) => from + i);
  const [everywhere, lastPositions] = [bench.words(count(positions)), bench.words(count(rows, positions - rows))];
  const nowhere = bench.words(new Array<number>(rows).fill(NO_SLOT));
  const blockTable = bench.words(count(kv.pages), [1, kv.pages]);
  const tiles = bench.words([0, rows, 0, positions - rows], [1, 4]);
  const [parts, out] = [2, bench.out([rows, heads * headDim])];
  const split = { partials: bench.out([rows * heads * parts, headDim + 4]), positions: lastPositions, parts, rows };
  // Only decodes are split.
  const ways = tileRows === 1 ? [undefined, split] : [undefined];
  const all = bench.out([ways.length * rows, heads * headDim]);
  const frequencies = Float32Array.from(ropeFrequencies(rope));
  const expected = [...plainAttention(qkv.values, positions, rows, heads, frequencies, { softCap, sinks: sinks?.values })];
  return {
    record(rec) {
      const common = { cosSin, kv, layer: 0, heads };
      ropeKVStore(rec, { ...common, qkv: qkv.tensor, positions: everywhere, slots: everywhere, q: allQueries, rows: positions });
      ropeKVStore(rec, { ...common, qkv: last, positions: lastPositions, slots: nowhere, q, rows });
      const scores = softCap === undefined ? {} : { softCap };
      const attended = {
        q,
        kv,
        layer: 0,
        blockTable,
        tiles,
        firstTile: 0,
        tileCount: 1,
        tileRows,
        out,
        heads,
        scores,
        sinks: sinks?.tensor,
      };
      for (const [way, parted] of ways.entries()) {
        pagedAttention(rec, { ...attended, split: parted });
        rec.copy(out, all, out.byteLength, 0, way * out.byteLength);
      }
    },
    out: all,
    expected: ways.flatMap(() => expected),
    tolerance: KV_TOLERANCE[dtype],
  };
};

/** Values that are channels of keys are a case of their own. */
const checkPages: CheckMaker = (variant, bench) => {
  const { D4, VALUE4 } = variant.consts ?? {};
  return (D4 === VALUE4 ? checkAttention : checkLatentAttention)(variant, bench);
};

/** Attention in plain loops: the last `rows` rows of a sequence with one head of keys, from its merged projection `qkv`. */
function plainAttention(
  qkv: Float32Array,
  positions: number,
  rows: number,
  heads: number,
  frequencies: Float32Array,
  { softCap, sinks }: { readonly softCap: number | undefined; readonly sinks: Float32Array | undefined },
): number[] {
  const headDim = 2 * frequencies.length;
  const head = (position: number, index: number): Float32Array =>
    qkv.subarray((position * (heads + 2) + index) * headDim).subarray(0, headDim);
  const keys = Array.from({ length: positions }, (_, s) => [...plain.rotate(head(s, heads), s, frequencies)]).flat();
  const values = Array.from({ length: positions }, (_, s) => [...head(s, heads + 1)]).flat();
  return Array.from({ length: rows * heads }, (_, i) => {
    const position = positions - rows + Math.floor(i / heads);
    return [
      ...plain.attend(
        plain.rotate(head(position, i % heads), position, frequencies),
        keys,
        values,
        position + 1,
        softCap,
        sinks?.[i % heads],
      ),
    ];
  }).flat();
}

/** Rows with only one possible token: the largest logit, or cuts that leave no other. */
function checkSampling(vocabulary: number): CheckMaker {
  return ({ overrides = {} }, bench) => {
    const { device } = bench;
    const rows = [GREEDY_SAMPLING, { ...GREEDY_SAMPLING, temperature: 1, topK: 1 }, { ...GREEDY_SAMPLING, temperature: 0.5, topP: 1e-6 }];
    // With noise, the argmax kernel is checked in the threshold kernels' case.
    if (overrides['NOISE'] === 1) return undefined;
    const greedy = overrides['NOISE'] === 0;
    const words = new Uint32Array(rows.length * SAMPLING_ROW_WORDS);
    rows.forEach((row, i) => writeSamplingRow(words, i, { ...(greedy ? GREEDY_SAMPLING : row), choice: 0, position: 5, slot: i }));
    const logits = bench.floats([rows.length, vocabulary], 3);
    const scratch = sampleScratch(device, vocabulary, rows.length);
    for (const tensor of [scratch.thresholds, scratch.best, ...(scratch.slices ? [scratch.slices.sorted, scratch.slices.stats] : [])]) bench.keep(tensor); // prettier-ignore
    const settings = bench.words([...words], [rows.length, SAMPLING_ROW_WORDS]);
    const [sampled, lastTokens] = [bench.words([0, 0, 0]), bench.words([0, 0, 0])];
    return {
      record: (rec) =>
        sample(rec, { logits: logits.tensor, vocabulary, settings, scratch, sampled, lastTokens, rows: rows.length, greedy }),
      out: sampled,
      expected: rows.map((_, b) => {
        const row = logits.values.subarray(b * vocabulary, (b + 1) * vocabulary);
        return row.indexOf(row.reduce((a, c) => Math.max(a, c)));
      }),
      tolerance: 0,
    };
  };
}

/** Checks by kernel. A kernel that only runs after another is checked in that one's case. */
export const KERNEL_CHECKS: ReadonlyMap<Kernel, CheckMaker> = new Map<Kernel, CheckMaker>([
  ...LINEAR_TAKES.map(([kernel, rowsOf]) => [kernel, checkLinear(kernel, rowsOf)] as const),
  [EMBEDDING, checkEmbedding],
  [RMS_NORM, checkRmsNorm],
  [LAYER_NORM, checkLayerNorm],
  [GATE_MUL, checkGate],
  [PAGED_ATTENTION, checkPages],
  [PAGED_ATTENTION_WIDE, checkPages],
  [ARGMAX_BLOCKS, checkSampling(1500)],
  [SAMPLE_THRESHOLD, checkSampling(1500)],
  [SLICE_THRESHOLD, checkSampling(5000)],
  ...FUSED_CHECKS,
  ...AUDIO_CHECKS,
  ...SPEECH_CHECKS,
  ...HEARING_CHECKS,
  ...LAYER_CHECKS,
  ...LATENT_CHECKS,
  ...MIXER_CHECKS,
  ...LOAD_CHECKS,
  ...LORA_CHECKS,
]);
