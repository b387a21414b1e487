/** Self-test cases of layers other than attention and dense MLPs: recurrent layers, and mixtures of experts. */
import type { Kernel } from '../gpu/kernel.ts';
import {
  COMBINE_ROWS,
  EXPERT_LINEAR,
  GROUP_ROWS,
  ROUTE_ROWS,
  combineRows,
  createRoutes,
  expertLinear,
  groupPairs,
  routeRows,
} from '../ops/experts.ts';
import type { Routes } from '../ops/experts.ts';
import {
  CAUSAL_CONV,
  GATED_DELTA_RULE,
  RMS_NORM_GATED,
  SELECTIVE_SCAN,
  causalConv,
  gatedDeltaRule,
  rmsNormGated,
  selectiveScan,
} from '../ops/recurrent.ts';
import type { Spans } from '../ops/recurrent.ts';
import { SPAN_WORDS, writeSpan } from '../ops/states.ts';
import { isBlockType } from '../weights/storage.ts';
import type { WeightType } from '../weights/storage.ts';
import * as experts from './plain/experts.ts';
import * as recurrent from './plain/recurrent.ts';
import { REDUCED_COLUMNS, checkedMatrix } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

/**
 * Rows of a sequence that begins with the state in slot 1, in two steps of which the second goes on from what the first leaves, and of one
 * that begins then.
 */
const RUNS = [3, 2, 2] as const;
const ROWS = 7;
const SLOTS = 3;

/** The spans of both steps. */
function spansOf(bench: Workbench): readonly Spans[] {
  const steps = [
    [{ first: 0, rows: RUNS[0], read: 1, write: 0 }],
    [{ first: RUNS[0], rows: RUNS[1], read: 0, write: 2 }, { first: RUNS[0] + RUNS[1], rows: RUNS[2], write: 1 }],
  ]; // prettier-ignore
  return steps.map((spans) => {
    const words = new Uint32Array(spans.length * SPAN_WORDS);
    spans.forEach((span, i) => writeSpan(words, i, span));
    return { words: bench.words([...words], [spans.length, SPAN_WORDS]), count: spans.length };
  });
}

/** Expected results of both sequences, from the state in slot 1 and from zeros. */
function walked(slots: Float32Array, of: (first: number, rows: number, state: ArrayLike<number>) => ArrayLike<number>): number[] {
  const size = slots.length / SLOTS;
  const first = RUNS[0] + RUNS[1];
  return [...Array.from(of(0, first, slots.subarray(size, 2 * size))), ...Array.from(of(first, RUNS[2], new Float32Array(size)))];
}

const checkConv: CheckMaker = ({ consts = {}, overrides = {} }, bench) => {
  const { TAPS: taps = 1 } = consts;
  const [channels, gated, hasBias] = [8, overrides['GATED'] === 1, overrides['HAS_BIAS'] === 1];
  const stride = gated ? 3 * channels : channels;
  const [x, weight, tails] = [
    bench.floats([ROWS, stride]),
    bench.floats([hasBias ? taps + 1 : taps, channels]),
    bench.floats([SLOTS, (taps - 1) * channels]),
  ];
  const [steps, out] = [spansOf(bench), bench.out([ROWS, channels])];
  const state = { tail: tails.tensor, matrix: tails.tensor };
  const given = Float32Array.from(tails.values);
  // Columns b, g and i of a gated one: what is convolved is b * i.
  const at = (row: number, column: number, c: number): number => x.values[row * stride + column * channels + c]!;
  return {
    record: (rec) => steps.forEach((spans) => causalConv(rec, { x: x.tensor, gated, hasBias, weight: weight.tensor, spans, state, out })),
    out,
    expected: walked(given, (first, rows, tail) => {
      const inputs = Float32Array.from({ length: rows * channels }, (_, i) => {
        const [row, c] = [first + Math.floor(i / channels), i % channels];
        return gated ? at(row, 0, c) * at(row, 2, c) : at(row, 0, c);
      });
      const biased = (sum: number, i: number): number => (hasBias ? sum + weight.values[taps * channels + (i % channels)]! : sum);
      const end = (sum: number, i: number): number =>
        gated ? biased(sum, i) * at(first + Math.floor(i / channels), 1, i % channels) : recurrent.silu(biased(sum, i));
      return recurrent.causalConv(inputs, weight.values, tail, channels, taps, end).out;
    }),
    tolerance: 1e-9,
  };
};

/** Two heads of values over one of keys. */
const checkDelta: CheckMaker = ({ consts = {} }, bench) => {
  const shape = { keyHeads: 1, heads: 2, keyDim: 4 * consts['D4']!, valueDim: 8 };
  const { heads, keyDim, valueDim } = shape;
  const width = 2 * keyDim + heads * valueDim;
  const [qkv, gates, decay] = [bench.floats([ROWS, width]), bench.floats([ROWS, 2 * heads]), bench.floats([2, heads])];
  // -exp(A_log) is below zero.
  const slopes = decay.values.map((value, i) => (i < heads ? -Math.abs(value) : value));
  bench.device.write(decay.tensor, slopes);
  const states = bench.floats([SLOTS, heads * valueDim * keyDim]);
  const [steps, out] = [spansOf(bench), bench.out([ROWS, heads * valueDim])];
  const state = { tail: states.tensor, matrix: states.tensor };
  const given = { qkv: qkv.tensor, gates: gates.tensor, betaColumn: 0, alphaColumn: heads, decay: decay.tensor, state, out };
  const column = (first: number, rows: number, from: number): Float32Array =>
    Float32Array.from({ length: rows * heads }, (_, i) => gates.values[(first + Math.floor(i / heads)) * 2 * heads + from + (i % heads)]!);
  return {
    record: (rec) => steps.forEach((spans) => gatedDeltaRule(rec, { ...shape, ...given, spans })),
    out,
    expected: walked(Float32Array.from(states.values), (first, rows, before) => {
      const own = { qkv: qkv.values.subarray(first * width, (first + rows) * width), slope: slopes.subarray(0, heads), bias: slopes.subarray(heads), state: before }; // prettier-ignore
      return recurrent.gatedDeltaRule(shape, { ...own, beta: column(first, rows, 0), alpha: column(first, rows, heads) }).out;
    }),
    tolerance: 1e-8,
  };
};

/** Two heads in a group. */
const checkScan: CheckMaker = ({ consts = {} }, bench) => {
  const shape = { heads: 2, headDim: 8, groups: 1, stateDim: 4 * consts['D4']! };
  const { heads, headDim, stateDim } = shape;
  const [inner, width] = [heads * headDim, heads * headDim + 2 * stateDim];
  const [xbc, steps, ofHeads] = [bench.floats([ROWS, width]), bench.floats([ROWS, heads]), bench.floats([3, heads])];
  // -exp(A_log) is below zero.
  const numbers = ofHeads.values.map((value, i) => (i < heads ? -Math.abs(value) : value));
  bench.device.write(ofHeads.tensor, numbers);
  const states = bench.floats([SLOTS, inner * stateDim]);
  const [runs, out] = [spansOf(bench), bench.out([ROWS, inner])];
  const state = { tail: states.tensor, matrix: states.tensor };
  const given = { xbc: xbc.tensor, steps: steps.tensor, stepColumn: 0, ofHeads: ofHeads.tensor, state, out };
  const [slope, bias, skip] = [0, 1, 2].map((i) => numbers.subarray(i * heads, (i + 1) * heads)) as [Float32Array, Float32Array, Float32Array]; // prettier-ignore
  return {
    record: (rec) => runs.forEach((spans) => selectiveScan(rec, { ...shape, ...given, spans })),
    out,
    expected: walked(Float32Array.from(states.values), (first, rows, before) => {
      const part = (values: Float32Array, columns: number): Float32Array => values.subarray(first * columns, (first + rows) * columns);
      const own = { xbc: part(xbc.values, width), steps: part(steps.values, heads), slope, bias, skip, state: before };
      return recurrent.selectiveScan(shape, own).out;
    }),
    tolerance: 1e-8,
  };
};

const checkGatedNorm: CheckMaker = ({ overrides = {} }, bench) => {
  const columns = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const [rows, width, eps, gateFirst] = [2, 2 * columns, 1e-6, overrides['GATE_FIRST'] === 1];
  const [x, weight, gate, out] = [bench.floats([rows, width]), bench.floats([columns]), bench.floats([rows, width]), bench.out([rows, width])]; // prettier-ignore
  return {
    record: (rec) => rmsNormGated(rec, { x: x.tensor, weight: weight.tensor, gateFirst, gate: gate.tensor, gateColumn: 0, out, eps, rows }),
    out,
    expected: recurrent.rmsNormGated(x.values, weight.values, gate.values, eps, { gateFirst }),
    tolerance: 1e-8,
  };
};

/** The two experts of each of five rows. */
const CHOSEN = [0, 2, 1, 0, 0, 1, 2, 0, 0, 1];
const [PER_ROW, EXPERTS, PAIRS] = [2, 3, CHOSEN.length];
const NONE = 0xffffffff;
const TILE = 4;

/** Pairs by expert, in tiles; `experts` as each tile's. */
function tilesOf(chosen: readonly number[], count: number): { readonly experts: number[]; readonly pairs: number[] } {
  const pairsOf = (expert: number): number[] => chosen.flatMap((other, pair) => (other === expert ? [pair] : []));
  const tiles = Array.from({ length: count }, (_, expert) => {
    const own = pairsOf(expert);
    return Array.from({ length: Math.ceil(own.length / TILE) }, (_, i) =>
      Array.from({ length: TILE }, (_, p) => own[i * TILE + p] ?? NONE),
    );
  });
  return { experts: tiles.flatMap((own, expert) => own.map(() => expert)), pairs: tiles.flat(2) };
}

function routesOf(bench: Workbench, chosen: readonly number[], shares: Float32Array): Routes {
  const shape = { count: EXPERTS, perRow: PER_ROW, held: { from: 0, to: EXPERTS } };
  const tiles = tilesOf(chosen, EXPERTS);
  const empty = Math.min(chosen.length, Math.ceil(chosen.length / TILE) + EXPERTS) - tiles.experts.length;
  const none = (length: number): number[] => Array<number>(length).fill(NONE);
  return {
    shape,
    chosen: bench.words(chosen),
    shares: bench.keep(bench.device.upload('check', 'f32', [shares.length], shares)),
    tileExperts: bench.words([...tiles.experts, ...none(empty)]),
    tilePairs: bench.words([...tiles.pairs, ...none(empty * TILE)], [tiles.experts.length + empty, TILE]),
  };
}

/** Routing of fewer pairs than experts, so that nothing is sorted; the shares are compared. */
const checkRoutes: CheckMaker = ({ overrides = {} }, bench) => {
  const [rows, count, perRow] = [2, 6, 2];
  const [sigmoid, hasBias] = [overrides['SIGMOID'] === 1, overrides['HAS_BIAS'] === 1];
  const groups = overrides['HAS_GROUPS'] === 1 ? { groups: { count: 3, kept: 2 } } : {};
  const near = overrides['SPARSE'] === 1 ? { cutoff: 1 } : {};
  const [logits, drawn] = [bench.floats([rows, count]), bench.floats([count])];
  // Probabilities are small, and are to decide too.
  const values = drawn.values.map((value) => (sigmoid ? value : value / 20));
  const bias = bench.keep(bench.device.upload('check', 'f32', [count], values));
  const shape = { count, perRow, held: { from: 0, to: count } };
  const routes = createRoutes((_, dtype, size) => (dtype === 'f32' ? bench.out(size) : bench.words(Array<number>(size.reduce((a, b) => a * b)).fill(0), size)), shape, rows); // prettier-ignore
  const { shares } = experts.routes(logits.values, count, perRow, { sigmoid, ...(hasBias && { bias: values }), ...groups, ...near });
  return {
    record: (rec) => routeRows(rec, { logits: logits.tensor, routes, rows, sigmoid, bias: hasBias ? bias : undefined, ...groups, ...near }),
    out: routes.shares,
    expected: shares,
    tolerance: 1e-9,
  };
};

/** Which pairs of an expert share a tile is left to chance: those of an expert are compared in order. */
const checkGroups: CheckMaker = ({ consts = {} }, bench) => {
  const { EXPERTS: count = 1 } = consts;
  // All experts but the first have a pair, and the last one has five.
  const chosen = [...Array.from({ length: count - 1 }, (_, i) => i + 1), ...Array<number>(4).fill(count - 1)];
  const { shape, ...tensors } = createRoutes(
    (_, dtype, size) => (dtype === 'f32' ? bench.out(size) : bench.words(Array<number>(size.reduce((a, b) => a * b)).fill(0), size)),
    { count, perRow: 1, held: { from: 0, to: count } },
    chosen.length,
  );
  const routes = { shape, ...tensors, chosen: bench.words(chosen) };
  const tiles = tilesOf(chosen, count);
  const { length } = tiles.experts;
  const out = bench.words(Array<number>(length * (1 + TILE)).fill(0));
  return {
    record(rec) {
      groupPairs(rec, routes, chosen.length);
      rec.copy(routes.tileExperts, out, length * 4);
      rec.copy(routes.tilePairs, out, length * TILE * 4, 0, length * 4);
    },
    out,
    seen(values) {
      const pairs = [...values].slice(length);
      const own = (expert: number): number[] => pairs.filter((_, i) => tiles.experts[Math.floor(i / TILE)] === expert);
      return [...values.subarray(0, length), ...new Set(tiles.experts)].flatMap((value, i) => (i < length ? value : own(value).sort((a, b) => a - b))); // prettier-ignore
    },
    expected: [...tiles.experts, ...tiles.pairs],
    tolerance: 0,
  };
};

const checkExperts: CheckMaker = ({ storage, texture, overrides = {} }, bench) => {
  const chosen = overrides['HAS_TILES'] === 1 ? CHOSEN : CHOSEN.slice(0, PER_ROW);
  const rows = chosen.length / PER_ROW;
  const [n, k] = [24, isBlockType(storage as WeightType) ? 256 : 36];
  const { weight, values, fill } = checkedMatrix(bench, { storage, texture }, EXPERTS * n, k);
  const [x, bias, out] = [bench.floats([rows, k]), bench.floats([EXPERTS * n]), bench.out([chosen.length, n])];
  const hasBias = overrides['HAS_BIAS'] === 1;
  const routes = routesOf(bench, chosen, new Float32Array(chosen.length));
  const ofPairs = Float32Array.from({ length: chosen.length * k }, (_, i) => x.values[Math.floor(i / k / PER_ROW) * k + (i % k)]!);
  const sums = experts.expertLinear(ofPairs, chosen, (expert) => values.subarray(expert * n * k, (expert + 1) * n * k), n, k);
  return {
    record(rec) {
      fill(rec);
      expertLinear(rec, { x: x.tensor, weight, bias: hasBias ? bias.tensor : undefined, routes, out, ofPairs: false, rows });
    },
    out,
    expected: sums.flatMap((row, pair) => Array.from(row, (sum, c) => sum + (hasBias ? bias.values[chosen[pair]! * n + c]! : 0))),
    tolerance: 1e-6,
  };
};

const checkCombine: CheckMaker = ({ overrides = {} }, bench) => {
  const is = (name: string): boolean => overrides[name] === 1;
  const [rows, columns] = [PAIRS / PER_ROW, 8];
  const shares = Float32Array.from({ length: PAIRS }, (_, i) => 0.1 + i / 20);
  const routes = routesOf(bench, CHOSEN, shares);
  const [y, residual, scales] = [bench.floats([PAIRS, columns]), bench.floats([rows, columns]), bench.floats([EXPERTS])];
  const [sharedRows, gates, out] = [bench.floats([rows, columns]), bench.floats([rows, 2]), bench.out([rows, columns])];
  const normalised = is('NORMALISED');
  const before = is('HAS_RESIDUAL') ? residual.values : new Float32Array(rows * columns);
  const shared = { rows: sharedRows.values, gates: Float32Array.from({ length: rows }, (_, t) => gates.values[2 * t + 1]!) };
  // Two rows have shares of a smaller sum.
  const rule = { normalised, least: 0.5 };
  const options = { k: PER_ROW, columns, ...rule, isHeld: () => true, ...(is('HAS_SCALES') && { scales: scales.values }), ...(is('HAS_SHARED') && { shared }) }; // prettier-ignore
  return {
    record: (rec) =>
      combineRows(rec, {
        y: y.tensor,
        routes,
        shares: rule,
        scales: is('HAS_SCALES') ? scales.tensor : undefined,
        shared: is('HAS_SHARED') ? { rows: sharedRows.tensor, gates: gates.tensor, column: 1 } : undefined,
        residual: is('HAS_RESIDUAL') ? residual.tensor : undefined,
        out,
        rows,
      }),
    out,
    expected: experts.combine(y.values, before, { chosen: CHOSEN, shares }, options),
    tolerance: 1e-9,
  };
};

/** Checks by kernel. */
export const MIXER_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [CAUSAL_CONV, checkConv],
  [GATED_DELTA_RULE, checkDelta],
  [SELECTIVE_SCAN, checkScan],
  [RMS_NORM_GATED, checkGatedNorm],
  [ROUTE_ROWS, checkRoutes],
  [GROUP_ROWS, checkGroups],
  [EXPERT_LINEAR, checkExperts],
  [COMBINE_ROWS, checkCombine],
];
