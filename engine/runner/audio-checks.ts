/** Self-test cases of kernels that speech and transcription need beyond chat: convolutions, and attention without pages. */
import type { Kernel } from '../gpu/kernel.ts';
import { CONV1D_BROADCAST, CONV1D_QUAD, CONV1D_TEXELS, CONV1D_TILE, conv1d, convInput, packConv1d } from '../ops/conv.ts';
import {
  DENSE_ATTENTION, DENSE_ATTENTION_BROADCAST, DENSE_ATTENTION_QUAD, DENSE_ATTENTION_TEXELS, denseAttention,
} from '../ops/dense-attention.ts'; // prettier-ignore
import { inTexels } from '../ops/texels.ts';
import { isQuad } from '../ops/weight-place.ts';
import type { WordPlace } from '../ops/weight-place.ts';
import type { FloatType } from '../weights/storage.ts';
import * as plain from './plain.ts';
import { activationOf, storedAs } from './workbench.ts';
import type { CheckMaker } from './workbench.ts';

const [ROWS, CHANNELS, TAPS] = [21, 12, 3] as const;
/** The rows as two sequences: the number of rows of each. */
const SEQUENCES = [8, 13] as const;

/** Three taps, whose first and last positions hang over, of one sequence or of two. */
const checkConv =
  (place: WordPlace): CheckMaker =>
  ({ storage, consts = {}, overrides = {} }, bench) => {
    // The narrowest tile is taken for few columns.
    const columns = (consts['LANES'] ?? overrides['WG'] ?? 8) * (consts['TILE_N'] ?? 1);
    const shape = { outChannels: columns, inChannels: CHANNELS, kernel: TAPS };
    const floats = bench.floats([columns, CHANNELS, TAPS], 0.2).values;
    const [x, bias, residual] = [bench.floats([ROWS, CHANNELS]), bench.floats([columns]), bench.floats([ROWS, columns])];
    const [hasBias, hasResidual] = [overrides['HAS_BIAS'] === 1, overrides['HAS_RESIDUAL'] === 1];
    const weight = packConv1d(bench.device, 'check', floats, shape, hasBias ? bias.values : undefined, storage as FloatType, place);
    for (const tensor of [...weight.matrix.parts.map((part) => part.weight), ...(weight.bias ? [weight.bias] : [])]) bench.keep(tensor);
    const out = bench.out([ROWS, columns]);
    const activation = activationOf(overrides['ACTIVATION']);
    const values = storedAs(storage, floats);
    const several = overrides['SPANS'] === 1;
    const rows = several ? bench.spans(SEQUENCES) : ROWS;
    const isOtherSequence = (l: number, other: number): boolean => several && l < SEQUENCES[0] !== other < SEQUENCES[0];
    // Row l of the product: what the taps of position l see, channel by channel.
    const seen = Float32Array.from({ length: ROWS * CHANNELS * TAPS }, (_, i) => {
      const [l, c, t] = [Math.floor(i / (CHANNELS * TAPS)), Math.floor(i / TAPS) % CHANNELS, i % TAPS];
      return isOtherSequence(l, l + t - 1) ? 0 : (x.values[(l + t - 1) * CHANNELS + c] ?? 0);
    });
    const texels = bench.keep(convInput(bench.device, 'check', ROWS * CHANNELS));
    const args = { x: x.tensor, texels, weight, out, padding: 1, activation, ...(hasResidual && { residual: residual.tensor }) };
    return {
      record: (rec) => void (typeof rows === 'number' ? conv1d(rec, { ...args, rows }) : conv1d(rec, { ...args, rows })),
      out,
      expected: plain
        .linear(seen, values, ROWS, columns, CHANNELS * TAPS)
        .map(
          (sum, i) =>
            plain.activation(activation, sum + (hasBias ? bias.values[i % columns]! : 0)) + (hasResidual ? residual.values[i]! : 0),
        ),
      tolerance: 1e-6,
    };
  };

const [KEYS, HEADS] = [37, 2] as const;

/** Attention with enough queries for the kernel, unless the variant is that for one. */
const checkDense =
  (most: number): CheckMaker =>
  ({ consts = {} }, bench) => {
    const headDim = 4 * consts['D4']!;
    const queries = consts['QUERIES'] === 1 ? 1 : most;
    // One sequence takes another kernel here; only tiles take this one.
    const tiled = consts['QUERIES'] !== undefined && queries > 1 && isQuad(bench.device.caps);
    const over = tiled ? { tiles: bench.words([0, KEYS, 0, queries], [1, 4]), count: 1, rows: queries } : { queries, keys: KEYS };
    const width = HEADS * headDim;
    const [q, k, v] = [bench.floats([queries, width]), bench.floats([KEYS, width]), bench.floats([KEYS, width])];
    const out = bench.out([queries, width]);
    const head = (values: Float32Array, index: number): number[] =>
      [...values].filter((_, i) => Math.floor((i % width) / headDim) === index);
    const columns = Array.from({ length: HEADS }, (_, h) => [head(k.values, h), head(v.values, h)] as const);
    const expected = Array.from({ length: queries * HEADS }, (_, i) => {
      const [keys, values] = columns[i % HEADS]!;
      return [...plain.attend(q.values.subarray(i * headDim, (i + 1) * headDim), keys, values, KEYS)];
    }).flat();
    const given = { q: { tensor: q.tensor }, k: { tensor: k.tensor }, v: { tensor: v.tensor }, out, heads: HEADS, headDim };
    return { record: (rec) => denseAttention(rec, { ...given, over }), out, expected, tolerance: 1e-8 };
  };

/** Attention over a cache with keys and values side by side, behind rows of another window. */
const checkCached: CheckMaker = ({ consts = {} }, bench) => {
  const headDim = 4 * consts['D4']!;
  const queries = consts['QUERIES'] === 1 ? 1 : 4;
  const [width, before] = [HEADS * headDim, 3];
  const [q, cache] = [bench.floats([queries, width]), bench.floats([before + KEYS, 2 * width])];
  const out = bench.out([queries, width]);
  const part = (first: number): number[] =>
    [...cache.values].filter((_, i) => i >= before * 2 * width && i % (2 * width) >= first && i % (2 * width) < first + headDim);
  const heads = Array.from({ length: HEADS }, (_, h) => [part(h * headDim), part(width + h * headDim)] as const);
  const expected = Array.from({ length: queries * HEADS }, (_, i) => {
    const [keys, values] = heads[i % HEADS]!;
    return [...plain.attend(q.values.subarray(i * headDim, (i + 1) * headDim), keys, values, KEYS)];
  }).flat();
  const tensor = bench.keep(inTexels(bench.device, cache.tensor));
  const over = { tiles: bench.words([before, KEYS, 0, queries], [1, 4]), count: 1, rows: queries };
  const given = { q: { tensor: q.tensor }, k: { tensor }, v: { tensor, column: width }, out, heads: HEADS, headDim };
  return { record: (rec) => denseAttention(rec, { ...given, over }), out, expected, tolerance: 1e-8 };
};

/** Checks by kernel. */
export const AUDIO_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [CONV1D_TILE, checkConv('buffer')],
  [CONV1D_BROADCAST, checkConv('buffer')],
  [CONV1D_TEXELS, checkConv('texture')],
  [CONV1D_QUAD, checkConv('buffer')],
  [DENSE_ATTENTION, checkDense(4)],
  [DENSE_ATTENTION_TEXELS, checkCached],
  [DENSE_ATTENTION_BROADCAST, checkDense(29)],
  [DENSE_ATTENTION_QUAD, checkDense(4)],
];
