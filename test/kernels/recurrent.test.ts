import { causalConv, gatedDeltaRule, rmsNormGated, selectiveScan } from '../../engine/ops/recurrent.ts';
import { SPAN_WORDS, writeSpan } from '../../engine/ops/states.ts';
import type { Rng } from '../../engine/util/rng.ts';
import * as reference from '../reference/recurrent.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase, TensorData } from '../support/kernel-case.ts';

/** Rows of a sequence: how many, the slots its state is read from and left in, and of copies after some of them. */
interface Span {
  readonly rows: number;
  readonly read?: number;
  readonly write: number;
  readonly keep?: readonly [slot: number, rows: number];
  readonly certain?: readonly [slot: number, rows: number];
}

const SLOTS = 16;

/** A sequence's beginning, one that goes on in place with a copy on the way, one that goes on from a state it shares, padding, one row each way, and copies into the slot that is read. */
const SPANS: readonly Span[] = [
  { rows: 1, read: 0, write: 0 },
  { rows: 0, write: 0 },
  { rows: 1, write: 1, keep: [2, 1] },
  { rows: 9, read: 3, write: 3, keep: [4, 5] },
  { rows: 6, read: 5, write: 6 },
  { rows: 3, read: 5, write: 7 },
  { rows: 5, read: 8, write: 9, certain: [8, 1] },
  { rows: 6, read: 10, write: 11, certain: [10, 2], keep: [12, 4] },
  { rows: 4, read: 13, write: 14, certain: [13, 2], keep: [15, 2] },
];

function spanWords(spans: readonly Span[]): TensorData {
  let row = 0;
  const values = new Uint32Array(spans.length * SPAN_WORDS);
  const copyOf = (copy: Span['keep']) => copy && { slot: copy[0], after: copy[1] };
  spans.forEach(({ keep, certain, ...span }, index) => {
    writeSpan(values, index, { first: row, ...span, keep: copyOf(keep), certain: copyOf(certain) });
    row += span.rows;
  });
  return { dtype: 'u32', shape: [spans.length, SPAN_WORDS], values };
}

const rowsOf = (spans: readonly Span[]): number => spans.reduce((sum, { rows }) => sum + rows, 0);

/** Runs `step` over the rows of each span, cut where a copy is taken; returns the slots behind all of them. */
function walk(spans: readonly Span[], slots: Float32Array, size: number, step: (first: number, rows: number, state: Float64Array) => Float64Array): Float64Array {
  const after = Float64Array.from(slots);
  let first = 0;
  for (const { rows, read, write, keep, certain } of spans) {
    if (rows === 0) continue;
    let state: Float64Array = Float64Array.from(read === undefined ? new Float32Array(size) : slots.subarray(read * size, (read + 1) * size));
    let done = 0;
    const copies = [keep, certain].filter((copy) => copy !== undefined).sort((a, b) => a[1] - b[1]);
    for (const [slot, cut] of [...copies, [write, rows] as const]) {
      if (cut > done) state = step(first + done, cut - done, state);
      after.set(state, slot * size);
      done = cut;
    }
    first += rows;
  }
  return after;
} // prettier-ignore

function convCase(channels: number, taps: number, stride: number, hasBias = false): KernelCase {
  return {
    name: `causal_conv handles ${channels} of ${stride} channels with ${taps} taps${hasBias ? ' and a bias' : ''}`,
    build(rng) {
      const rows = rowsOf(SPANS);
      const x = randomTensor(rng, [rows, stride]);
      const weight = randomTensor(rng, [hasBias ? taps + 1 : taps, channels]);
      const end = (sum: number, i: number): number =>
        reference.silu(hasBias ? sum + weight.values[taps * channels + (i % channels)]! : sum);
      const size = (taps - 1) * channels;
      const tails = randomTensor(rng, [SLOTS, size]);
      const out = new Float64Array(rows * channels);
      const after = walk(SPANS, tails.values, size, (first, count, tail) => {
        const part = Float32Array.from({ length: count * channels }, (_, i) => x.values[(first + Math.floor(i / channels)) * stride + (i % channels)]!); // prettier-ignore
        const result = reference.causalConv(part, weight.values, tail, channels, taps, end);
        out.set(result.out, first * channels);
        return result.tail;
      });
      return {
        inputs: { x, weight, spans: spanWords(SPANS) },
        outputs: {
          out: { dtype: 'f32', shape: [rows, channels] },
          tails: { dtype: 'f32', shape: [SLOTS, size], initial: tails.values },
        },
        run(rec, t) {
          const state = { tail: t['tails']!, matrix: t['tails']! };
          causalConv(rec, {
            x: t['x']!,
            weight: t['weight']!,
            hasBias,
            spans: { words: t['spans']!, count: SPANS.length },
            state,
            out: t['out']!,
          });
        },
        expected: { out, tails: after },
      };
    },
  };
}

function gatedConvCase(channels: number, taps: number): KernelCase {
  return {
    name: `causal_conv handles ${channels} gated channels with ${taps} taps`,
    build(rng) {
      const rows = rowsOf(SPANS);
      const x = randomTensor(rng, [rows, 3 * channels]);
      const part = (first: number, count: number, column: number): Float32Array =>
        Float32Array.from({ length: count * channels }, (_, i) => x.values[(first + Math.floor(i / channels)) * 3 * channels + column * channels + (i % channels)]!); // prettier-ignore
      const weight = randomTensor(rng, [taps, channels]);
      const size = (taps - 1) * channels;
      const tails = randomTensor(rng, [SLOTS, size]);
      const out = new Float64Array(rows * channels);
      const after = walk(SPANS, tails.values, size, (first, count, tail) => {
        const [before, behind, inputs] = [0, 1, 2].map((column) => part(first, count, column)) as [
          Float32Array,
          Float32Array,
          Float32Array,
        ];
        const products = Float64Array.from(inputs, (value, i) => value * before[i]!);
        const result = reference.causalConv(products, weight.values, tail, channels, taps, (sum, i) => sum * behind[i]!);
        out.set(result.out, first * channels);
        return result.tail;
      });
      return {
        inputs: { x, weight, spans: spanWords(SPANS) },
        outputs: {
          out: { dtype: 'f32', shape: [rows, channels] },
          tails: { dtype: 'f32', shape: [SLOTS, size], initial: tails.values },
        },
        run(rec, t) {
          const state = { tail: t['tails']!, matrix: t['tails']! };
          const spans = { words: t['spans']!, count: SPANS.length };
          causalConv(rec, { x: t['x']!, gated: true, weight: t['weight']!, spans, state, out: t['out']! });
        },
        expected: { out, tails: after },
      };
    },
  };
}

/** Gates from far below to far above, where what is forgotten is nothing and everything. */
const wide = (rng: Rng, count: number): Float32Array => Float32Array.from({ length: count }, () => 30 * rng.uniform() - 15);

function deltaCase(shape: reference.DeltaShape, spans = SPANS): KernelCase {
  const { keyHeads, heads, keyDim, valueDim } = shape;
  return {
    name: `gated_delta_rule handles ${rowsOf(spans)} rows of ${heads} heads of ${valueDim} over ${keyHeads} of ${keyDim}${shape.isTiled ? ', tiled' : ''}`,
    build(rng) {
      const rows = rowsOf(spans);
      const width = 2 * keyHeads * keyDim + heads * valueDim;
      const qkv = randomTensor(rng, [rows, width]);
      const [beta, alpha] = [wide(rng, rows * heads), wide(rng, rows * heads)];
      // Between two other columns and behind one.
      const stride = 2 * heads + 3;
      const gates = new Float32Array(rows * stride);
      for (let t = 0; t < rows; t++) {
        gates.set(beta.subarray(t * heads, (t + 1) * heads), t * stride + 1);
        gates.set(alpha.subarray(t * heads, (t + 1) * heads), t * stride + 2 + heads);
      }
      const slope = Float32Array.from({ length: heads }, () => -Math.exp(2 * rng.normal() - 2));
      const bias = randomTensor(rng, [heads]).values;
      const size = heads * valueDim * keyDim;
      const states = randomTensor(rng, [SLOTS, size], 0.3);
      const out = new Float64Array(rows * heads * valueDim);
      const after = walk(spans, states.values, size, (first, count, state) => {
        const part = (values: Float32Array, columns: number): Float32Array => values.subarray(first * columns, (first + count) * columns);
        const result = reference.gatedDeltaRule(shape, { qkv: part(qkv.values, width), beta: part(beta, heads), alpha: part(alpha, heads), slope, bias, state }); // prettier-ignore
        out.set(result.out, first * heads * valueDim);
        return result.state;
      });
      return {
        inputs: {
          qkv,
          gates: { dtype: 'f32', shape: [rows, stride], values: gates },
          decay: { dtype: 'f32', shape: [2, heads], values: [...slope, ...bias] },
          spans: spanWords(spans),
        },
        outputs: {
          out: { dtype: 'f32', shape: [rows, heads * valueDim] },
          states: { dtype: 'f32', shape: [SLOTS, size], initial: states.values },
        },
        run(rec, t) {
          const state = { tail: t['states']!, matrix: t['states']! };
          const columns = { betaColumn: 1, alphaColumn: 2 + heads };
          const tensors = { qkv: t['qkv']!, gates: t['gates']!, decay: t['decay']!, out: t['out']! };
          gatedDeltaRule(rec, { ...shape, ...tensors, ...columns, spans: { words: t['spans']!, count: spans.length }, state });
        },
        expected: { out, states: after },
      };
    },
  };
}

function scanCase(shape: reference.ScanShape, spans = SPANS): KernelCase {
  const { heads, headDim, groups, stateDim } = shape;
  return {
    name: `selective_scan handles ${rowsOf(spans)} rows of ${heads} heads of ${headDim} over ${groups} groups of ${stateDim}`,
    build(rng) {
      const rows = rowsOf(spans);
      const [inner, width] = [heads * headDim, heads * headDim + 2 * groups * stateDim];
      const xbc = randomTensor(rng, [rows, width]);
      const raw = wide(rng, rows * heads);
      // Between a column before and two behind.
      const stride = heads + 3;
      const steps = new Float32Array(rows * stride);
      for (let t = 0; t < rows; t++) steps.set(raw.subarray(t * heads, (t + 1) * heads), t * stride + 1);
      const slope = Float32Array.from({ length: heads }, () => -Math.exp(2 * rng.normal() - 2));
      const [bias, skip] = [randomTensor(rng, [heads]).values, randomTensor(rng, [heads]).values];
      const size = inner * stateDim;
      const states = randomTensor(rng, [SLOTS, size], 0.3);
      const out = new Float64Array(rows * inner);
      const after = walk(spans, states.values, size, (first, count, state) => {
        const part = (values: Float32Array, columns: number): Float32Array => values.subarray(first * columns, (first + count) * columns);
        const result = reference.selectiveScan(shape, { xbc: part(xbc.values, width), steps: part(raw, heads), slope, bias, skip, state });
        out.set(result.out, first * inner);
        return result.state;
      });
      return {
        inputs: {
          xbc,
          steps: { dtype: 'f32', shape: [rows, stride], values: steps },
          of_heads: { dtype: 'f32', shape: [3, heads], values: [...slope, ...bias, ...skip] },
          spans: spanWords(spans),
        },
        outputs: {
          out: { dtype: 'f32', shape: [rows, inner] },
          states: { dtype: 'f32', shape: [SLOTS, size], initial: states.values },
        },
        run(rec, t) {
          const state = { tail: t['states']!, matrix: t['states']! };
          const tensors = { xbc: t['xbc']!, steps: t['steps']!, stepColumn: 1, ofHeads: t['of_heads']!, out: t['out']! };
          selectiveScan(rec, { ...shape, ...tensors, spans: { words: t['spans']!, count: spans.length }, state });
        },
        expected: { out, states: after },
      };
    },
  };
}

function normCase(rows: number, heads: number, columns: number, gateFirst = false): KernelCase {
  return {
    name: `rms_norm_gated handles ${rows} rows of ${heads} heads of ${columns}${gateFirst ? ' with weights of their own, gated first' : ''}`,
    build(rng) {
      const x = randomTensor(rng, [rows, heads * columns], 3);
      const weight = randomTensor(rng, [gateFirst ? heads * columns : columns]);
      const stride = heads * columns + 7;
      const gate = randomTensor(rng, [rows, stride], 5);
      const gates = Float32Array.from(x.values, (_, i) => gate.values[Math.floor(i / (heads * columns)) * stride + 5 + (i % (heads * columns))]!); // prettier-ignore
      return {
        inputs: { x, weight, gate },
        outputs: { out: { dtype: 'f32', shape: [rows, heads * columns] } },
        run: (rec, t) => rmsNormGated(rec, { x: t['x']!, weight: t['weight']!, columns, gateFirst, gate: t['gate']!, gateColumn: 5, out: t['out']!, eps: 1e-6, rows }), // prettier-ignore
        expected: { out: reference.rmsNormGated(x.values, weight.values, gates, 1e-6, { gateFirst, columns }) },
      };
    },
  };
}

describeKernels('recurrent', [
  convCase(64, 4, 64),
  convCase(260, 4, 300),
  convCase(4, 2, 8),
  convCase(68, 4, 80, true),
  gatedConvCase(68, 3),
  deltaCase({ keyHeads: 2, heads: 6, keyDim: 24, valueDim: 20 }),
  deltaCase({ keyHeads: 2, heads: 6, keyDim: 24, valueDim: 20, isTiled: true }),
  deltaCase({ keyHeads: 1, heads: 1, keyDim: 4, valueDim: 4 }),
  deltaCase({ keyHeads: 2, heads: 2, keyDim: 128, valueDim: 128 }),
  deltaCase({ keyHeads: 1, heads: 3, keyDim: 36, valueDim: 64 }),
  // Long enough that errors of what is forgotten would add up.
  deltaCase({ keyHeads: 1, heads: 2, keyDim: 32, valueDim: 16 }, [{ rows: 300, write: 0, keep: [1, 256] }]),
  scanCase({ heads: 6, headDim: 20, groups: 2, stateDim: 24 }),
  scanCase({ heads: 1, headDim: 4, groups: 1, stateDim: 4 }),
  scanCase({ heads: 3, headDim: 64, groups: 1, stateDim: 128 }),
  scanCase({ heads: 3, headDim: 12, groups: 3, stateDim: 36 }),
  scanCase({ heads: 2, headDim: 16, groups: 1, stateDim: 32 }, [{ rows: 300, write: 0, keep: [1, 256] }]),
  normCase(3, 2, 1),
  normCase(3, 5, 64),
  normCase(65, 3, 128),
  normCase(3, 2, 40, true),
  normCase(5, 1, 260, true),
]);
