/** Self-test cases of kernels that some families of chat models need: norms of heads, other gates, streams, and gathering rows. */
import type { Kernel } from '../gpu/kernel.ts';
import { GATE_CLAMPED, GATE_SLICE, GATE_SPARSE, MUL_SIGMOID, SOFT_CAP, XIELU, gateClamped, gateSlice, gateSparse, mulSigmoid, softCap, xielu } from '../ops/activation.ts'; // prettier-ignore
import { BINARY, add, mul } from '../ops/elementwise.ts';
import { MATCH_RMS, matchRms } from '../ops/norm.ts';
import { QK_NORM, ROPE_NORM, qkNorm, ropeFrequencies, ropeNorm, ropeTable } from '../ops/rope.ts';
import { COPY_ROWS, FROM_DEVICE, GATHER_ROWS, RESOLVE_TOKENS, copyRows, gatherRows, resolveTokens } from '../ops/sample.ts';
import { CORRECT_STREAMS, PREDICT_STREAMS, correctFirst, correctStreams, predictStreams } from '../ops/streams.ts';
import * as plain from './plain.ts';
import * as layers from './plain/layers.ts';
import * as streams from './plain/streams.ts';
import { REDUCED_COLUMNS, activationOf } from './workbench.ts';
import type { CheckMaker } from './workbench.ts';

const EPS = 1e-5;
const [ROWS, COLUMNS] = [3, 8] as const;

/** Two heads of queries and one of keys; values are left as they are. */
const checkHeadNorm: CheckMaker = ({ overrides = {} }, bench) => {
  const headDim = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const shape = { rows: 2, heads: 2, kvHeads: 1, headDim, eps: EPS, full: false };
  const [qkv, weight] = [bench.floats([2, 4 * headDim]), bench.floats([2, headDim])];
  const expected = layers.qkNorm(qkv.values, weight.values, shape);
  return { record: (rec) => qkNorm(rec, { ...shape, qkv: qkv.tensor, weight: weight.tensor }), out: qkv.tensor, expected, tolerance: 1e-9 };
};

/** As checkHeadNorm, of heads that are rotated first. */
const checkRopeNorm: CheckMaker = ({ overrides = {} }, bench) => {
  const headDim = 8 * overrides['D8']!;
  const shape = { rows: 2, heads: 2, kvHeads: 1, headDim, eps: EPS };
  const rope = { theta: 10_000, headDim, scaling: undefined };
  const [qkv, weight, places] = [bench.floats([2, 4 * headDim]), bench.floats([2, headDim]), [5, 2]];
  const given = {
    qkv: qkv.tensor,
    weight: weight.tensor,
    cosSin: bench.keep(ropeTable(bench.device, rope, 6)),
    positions: bench.words(places),
  };
  const expected = layers.ropeNorm(qkv.values, weight.values, shape, places, Float32Array.from(ropeFrequencies(rope)));
  return { record: (rec) => ropeNorm(rec, { ...shape, ...given }), out: qkv.tensor, expected, tolerance: 1e-8 };
};

const checkMatchRms: CheckMaker = ({ overrides = {} }, bench) => {
  const columns = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const [x, like, residual] = [0, 1, 2].map(() => bench.floats([ROWS, columns]));
  const hasResidual = overrides['HAS_RESIDUAL'] === 1;
  const out = bench.out([ROWS, columns]);
  const floor = 1e-5;
  const given = { x: x!.tensor, like: like!.tensor, out, floor, rows: ROWS, ...(hasResidual && { residual: residual!.tensor }) };
  return {
    record: (rec) => matchRms(rec, given),
    out,
    expected: layers
      .matchRms(x!.values, like!.values, ROWS, columns, floor)
      .map((value, i) => value + (hasResidual ? residual!.values[i]! : 0)),
    tolerance: 1e-9,
  };
};

const checkSparse: CheckMaker = ({ overrides = {} }, bench) => {
  const columns = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const activation = activationOf(overrides['ACTIVATION']);
  const [gateUp, out] = [bench.floats([ROWS, 2 * columns]), bench.out([ROWS, columns])];
  const deviations = 0.5;
  return {
    record: (rec) => gateSparse(rec, { gateUp: gateUp.tensor, out, activation, rows: ROWS, deviations }),
    out,
    expected: Array.from({ length: ROWS }, (_, row) => {
      const at = (from: number): number[] => [...gateUp.values.subarray(2 * row * columns + from).subarray(0, columns)];
      const ups = at(columns);
      return layers.sparseGates(at(0), deviations).map((gate, c) => plain.activation(activation, gate) * ups[c]!);
    }).flat(),
    tolerance: 1e-8,
  };
};

const checkSlice: CheckMaker = ({ overrides = {} }, bench) => {
  const activation = activationOf(overrides['ACTIVATION']);
  const [gate, x, out] = [bench.floats([ROWS, COLUMNS]), bench.floats([ROWS, 3 * COLUMNS]), bench.out([ROWS, COLUMNS])];
  const expected = gate.values.map((value, i) => plain.activation(activation, value) * x.values[Math.floor(i / COLUMNS) * 3 * COLUMNS + COLUMNS + (i % COLUMNS)]!); // prettier-ignore
  return {
    record: (rec) => gateSlice(rec, { gate: gate.tensor, x: x.tensor, first: COLUMNS, out, activation, rows: ROWS }),
    out,
    expected,
    tolerance: 1e-8,
  };
};

const checkClamped: CheckMaker = ({ overrides = {} }, bench) => {
  const alternating = overrides['ALTERNATING'] === 1;
  const clamp = { alpha: 1.7, limit: 1 };
  const [gateUp, out] = [bench.floats([ROWS, 2 * COLUMNS]), bench.out([ROWS, COLUMNS])];
  return {
    record: (rec) => gateClamped(rec, { gateUp: gateUp.tensor, out, rows: ROWS, alternating, ...clamp }),
    out,
    expected: Float64Array.from({ length: ROWS * COLUMNS }, (_, i) => {
      const [from, c] = [Math.floor(i / COLUMNS) * 2 * COLUMNS, i % COLUMNS];
      const [gate, up] = alternating ? [from + 2 * c, from + 2 * c + 1] : [from + c, from + COLUMNS + c];
      return layers.clampedGate(gateUp.values[gate]!, gateUp.values[up]!, clamp);
    }),
    tolerance: 1e-8,
  };
};

const checkSigmoid: CheckMaker = (_, bench) => {
  const [x, gate] = [bench.floats([ROWS, COLUMNS]), bench.floats([ROWS, COLUMNS])];
  const expected = x.values.map((value, i) => value / (1 + Math.exp(-gate.values[i]!)));
  return { record: (rec) => mulSigmoid(rec, { x: x.tensor, gate: gate.tensor, rows: ROWS }), out: x.tensor, expected, tolerance: 1e-8 };
};

const checkCap: CheckMaker = (_, bench) => {
  const [x, cap] = [bench.floats([ROWS * COLUMNS], 3), 2];
  const expected = x.values.map((value) => cap * Math.tanh(value / cap));
  return { record: (rec) => softCap(rec, { x: x.tensor, cap }), out: x.tensor, expected, tolerance: 1e-8 };
};

const checkXielu: CheckMaker = (_, bench) => {
  const [x, curve] = [bench.floats([ROWS * COLUMNS], 3), { alphaP: 0.8, alphaN: 0.9, beta: 0.5, eps: -1e-6 }];
  const expected = x.values.map((value) => layers.xielu(value, curve));
  return { record: (rec) => xielu(rec, { x: x.tensor, ...curve }), out: x.tensor, expected, tolerance: 1e-8 };
};

/** The second operand is a row that repeats. */
const checkBinary: CheckMaker = ({ overrides = {} }, bench) => {
  const [a, b, out] = [bench.floats([ROWS, COLUMNS]), bench.floats([COLUMNS]), bench.out([ROWS, COLUMNS])];
  const [op, of] = overrides['OP'] === 0 ? [add, (x: number, y: number) => x + y] : [mul, (x: number, y: number) => x * y];
  const expected = Float64Array.from(a.values, (value, i) => of(value, b.values[i % COLUMNS]!));
  return { record: (rec) => op(rec, { a: a.tensor, b: b.tensor, out }), out, expected, tolerance: 1e-12 };
};

const checkPredict: CheckMaker = ({ consts = {} }, bench) => {
  const { STREAMS: count = 1 } = consts;
  const [x, coefs, predicted] = [bench.floats([count, ROWS, COLUMNS]), bench.floats([ROWS, count * count]), bench.out([count, ROWS, COLUMNS])]; // prettier-ignore
  const expected = streams.predictStreams({ values: x.values, streams: count, room: ROWS, columns: COLUMNS }, coefs.values, ROWS);
  return {
    record: (rec) => predictStreams(rec, { x: x.tensor, coefs: coefs.tensor, predicted, rows: ROWS }),
    out: predicted,
    expected,
    tolerance: 1e-10,
  };
};

const checkCorrect: CheckMaker = ({ consts = {}, overrides = {} }, bench) => {
  const { STREAMS: count = 1 } = consts;
  const first = overrides['FIRST'] === 1;
  const [x, passed, coefs, other] = [bench.floats([count, ROWS, COLUMNS]), bench.floats([ROWS, COLUMNS]), bench.floats([ROWS, count]), bench.floats(first ? [COLUMNS] : [ROWS, COLUMNS])]; // prettier-ignore
  const out = bench.out(first ? [ROWS, COLUMNS] : [count, ROWS, COLUMNS]);
  const args = { predicted: x.tensor, passed: passed.tensor, coefs: coefs.tensor, rows: ROWS, out };
  const all = streams.correctStreams({ values: x.values, streams: count, room: ROWS, columns: COLUMNS }, passed.values, coefs.values, other.values, ROWS); // prettier-ignore
  return {
    record: (rec) => (first ? correctFirst(rec, { ...args, scale: other.tensor }) : correctStreams(rec, { ...args, added: other.tensor })),
    out,
    expected: first ? all.subarray(0, ROWS * COLUMNS).map((value, i) => value * other.values[i % COLUMNS]!) : all,
    tolerance: 1e-10,
  };
};

const checkGather: CheckMaker = (_, bench) => {
  const [x, chosen, out] = [bench.floats([ROWS, COLUMNS]), [2, 0], bench.out([2, COLUMNS])];
  const indices = bench.words(chosen);
  const expected = chosen.flatMap((row) => [...x.values.subarray(row * COLUMNS, (row + 1) * COLUMNS)]);
  return { record: (rec) => gatherRows(rec, { x: x.tensor, indices, out, rows: 2 }), out, expected, tolerance: 0 };
};

/** The first rows of a tensor get the last ones, in another order. */
const checkCopyRows: CheckMaker = (_, bench) => {
  const x = bench.floats([2 + ROWS, COLUMNS]);
  const chosen = [[4, 0], [2, 1]] as const; // prettier-ignore
  const expected = x.values.slice();
  for (const [from, to] of chosen) expected.set(x.values.subarray(from * COLUMNS, (from + 1) * COLUMNS), to * COLUMNS);
  const pairs = bench.words(chosen.flat());
  return { record: (rec) => copyRows(rec, { x: x.tensor, pairs, count: chosen.length }), out: x.tensor, expected, tolerance: 0 };
};

const checkResolve: CheckMaker = (_, bench) => {
  const [tokens, lastTokens, ids] = [bench.words([7, FROM_DEVICE + 1, 9]), bench.words([3, 4]), bench.words([0, 0, 0])];
  return { record: (rec) => resolveTokens(rec, { tokens, lastTokens, ids, rows: 3 }), out: ids, expected: [7, 4, 9], tolerance: 0 };
};

/** Checks by kernel. */
export const LAYER_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [QK_NORM, checkHeadNorm],
  [ROPE_NORM, checkRopeNorm],
  [MATCH_RMS, checkMatchRms],
  [GATE_SPARSE, checkSparse],
  [GATE_SLICE, checkSlice],
  [GATE_CLAMPED, checkClamped],
  [MUL_SIGMOID, checkSigmoid],
  [SOFT_CAP, checkCap],
  [XIELU, checkXielu],
  [BINARY, checkBinary],
  [PREDICT_STREAMS, checkPredict],
  [CORRECT_STREAMS, checkCorrect],
  [GATHER_ROWS, checkGather],
  [COPY_ROWS, checkCopyRows],
  [RESOLVE_TOKENS, checkResolve],
];
