/**
 * Self-test cases of kernels that pack weights: the packed words are compared to the bit. The model's own weights are packed by then:
 * nothing can replace a kernel that fails, so the start is refused.
 */
import type { Kernel } from '../gpu/kernel.ts';
import { PACK_BLOCKS, packBlocks } from '../ops/pack-blocks.ts';
import { PACK_FLOATS, PACK_TAPS, QUANTIZE_FLOATS, packFloats, packTaps } from '../ops/pack-floats.ts';
import { emptyLinear } from '../ops/pack-linear.ts';
import { RANDOM_BLOCKS, RANDOM_FLOATS, randomBlocks, randomFloats } from '../ops/random-weights.ts';
import { targetIn } from '../ops/weight-fill.ts';
import { f32ToF16Bits } from '../util/f16.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { BlockType } from '../weights/block-types.ts';
import type { StoredFloat } from '../weights/checkpoint.ts';
import { blocksOf, floatsOf, randomBlocks as blocksFor, randomFloats as floatsFor } from '../weights/random/random-values.ts';
import { packBlocks as plainBlocks } from './plain/pack-blocks.ts';
import { quantizeRows } from './plain/quantize.ts';
import { someBlocks, storedAs, wordsOf } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

const ROWS = 24;
const SOURCES: readonly StoredFloat[] = ['F32', 'F16', 'BF16'];

/** Values as a file stores them, and what they are there. */
function storedFloats(bench: Workbench, count: number, source: StoredFloat) {
  const given = Float32Array.from({ length: count }, () => bench.rng.normal());
  const bits = new Uint32Array(given.buffer);
  // BF16 is the upper half of an f32.
  const values = source === 'BF16' ? new Float32Array(bits.map((word) => word & 0xffff0000).buffer) : storedAs(source === 'F16' ? 'f16' : 'f32', given); // prettier-ignore
  const words = storedAsWords(given, source);
  return { values, raw: bench.keep(bench.device.upload('check', 'u32', [words.length], words)) };
}

/** Values as a file stores them; BF16 is cut off. */
function storedAsWords(values: Float32Array, source: StoredFloat): Uint32Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  if (source === 'F32') return bits;
  return wordsOf(new Uint8Array(Uint16Array.from(values, (value, i) => (source === 'F16' ? f32ToF16Bits(value) : bits[i]! >>> 16)).buffer));
}

/** A matrix [ROWS, columns] that is to be filled; `at` is the place of a value in it. */
function emptyPart(bench: Workbench, columns: number, dtype: 'f32' | 'f16' | BlockType) {
  const part = emptyLinear(bench.device, 'check', ROWS, columns, dtype, 'buffer').parts[0]!;
  bench.keep(part.weight);
  const at = (row: number, column: number): number => ((column >> 2) * part.padded + row) * 4 + (column & 3);
  return { part, into: targetIn(part, 0), at, flags: bench.words([0]) };
}

const bitsOf = (dtype: 'f32' | 'f16', value: number): number => (dtype === 'f16' ? f32ToF16Bits(value) : value);

/** Rows of an odd length where values are not read in pairs. */
const checkFloats: CheckMaker = ({ overrides = {} }, bench) => {
  const source = SOURCES[overrides['SOURCE']!]!;
  const dtype = overrides['HALF'] === 1 ? 'f16' : 'f32';
  const columns = overrides['PAIRS'] === 1 ? 36 : 37;
  const { values, raw } = storedFloats(bench, ROWS * columns, source);
  const { part, into, at, flags } = emptyPart(bench, columns, dtype);
  const expected = new Float64Array(part.weight.size);
  values.forEach((value, i) => (expected[at(Math.floor(i / columns), i % columns)] = bitsOf(dtype, value)));
  const chunk = { width: columns, firstRow: 0, rows: ROWS, column: 0, columns, tensor: 0 };
  return { record: (rec) => packFloats(rec, { raw, source, into, flags, ...chunk }), out: part.weight, expected, tolerance: 0 };
};

/** Three taps of six channels, which are padded to eight. */
const checkTaps: CheckMaker = ({ overrides = {} }, bench) => {
  const source = SOURCES[overrides['SOURCE']!]!;
  const dtype = overrides['HALF'] === 1 ? 'f16' : 'f32';
  const [channels, padded, taps] = [6, 8, 3];
  const { values, raw } = storedFloats(bench, ROWS * channels * taps, source);
  const { part, into, at, flags } = emptyPart(bench, taps * padded, dtype);
  const expected = new Float64Array(part.weight.size);
  values.forEach((value, i) => {
    const [row, channel, tap] = [Math.floor(i / channels / taps), Math.floor(i / taps) % channels, i % taps];
    expected[at(row, tap * padded + channel)] = bitsOf(dtype, value);
  });
  const layout = { rows: ROWS, taps, kernel: taps, group: ROWS, kFirst: 0, kStep: 1, rowStride: channels * taps, channelStride: taps, inChannels: channels, firstChannel: 0, channels }; // prettier-ignore
  return {
    record: (rec) => packTaps(rec, { raw, source, into, flags, tensor: 0, ...layout }),
    out: part.weight,
    expected,
    tolerance: 0,
  };
};

const checkQuantize: CheckMaker = ({ overrides = {} }, bench) => {
  const source = SOURCES[overrides['SOURCE']!]!;
  const type = overrides['NIBBLES'] === 1 ? 'Q4_0' : 'Q8_0';
  const pairs = overrides['PAIRS'] === 1;
  const columns = 64;
  // Rows of an odd length have a value more, which is left out.
  const width = pairs || source === 'F32' ? columns : columns + 1;
  const { values, raw } = storedFloats(bench, ROWS * width, source);
  const { part, into, flags } = emptyPart(bench, columns, type);
  const kept = values.filter((_, i) => i % width < columns);
  const chunk = { width, firstRow: 0, rows: ROWS, column: 0, columns, tensor: 0 };
  return {
    record: (rec) => packFloats(rec, { raw, source, into, flags, ...chunk }),
    out: part.weight,
    expected: plainBlocks(BLOCK_FORMATS[type], quantizeRows(kept, type), ROWS, columns, part.padded),
    tolerance: 0,
  };
};

const checkBlocks: CheckMaker = ({ storage }, bench) => {
  const type = storage as BlockType;
  const columns = 256;
  const bytes = someBlocks(bench.rng, type, ROWS * columns);
  const words = wordsOf(bytes);
  const raw = bench.keep(bench.device.upload('check', 'u32', [words.length], words));
  const { part, into, flags } = emptyPart(bench, columns, type);
  const grid = bench.grid(type);
  const chunk = { width: columns, firstRow: 0, rows: ROWS, column: 0, columns, tensor: 0 };
  return {
    record: (rec) => packBlocks(rec, { raw, grid, into, flags, ...chunk }),
    out: part.weight,
    expected: plainBlocks(BLOCK_FORMATS[type], bytes, ROWS, columns, part.padded),
    tolerance: 0,
  };
};

/** From the middle of a tensor on. */
const checkRandomFloats: CheckMaker = ({ overrides = {} }, bench) => {
  const source = SOURCES[overrides['SOURCE']!]!;
  const random = floatsFor(1, 64);
  const values = { from: 7, to: 7 + 96 };
  const out = bench.words(new Array<number>(source === 'F32' ? 96 : 48).fill(0));
  const expected = storedAsWords(floatsOf(random, values), source);
  return { record: (rec) => randomFloats(rec, { raw: out, random, values, source }), out, expected, tolerance: 0 };
};

const checkRandomBlocks: CheckMaker = ({ storage }, bench) => {
  const random = blocksFor(1, storage as BlockType, 256);
  const blocks = { from: 3, to: 15 };
  const expected = wordsOf(blocksOf(random, blocks));
  const out = bench.words(new Array<number>(expected.length).fill(0));
  return { record: (rec) => randomBlocks(rec, { raw: out, random, blocks }), out, expected, tolerance: 0 };
};

/** Checks by kernel. */
export const LOAD_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [PACK_FLOATS, checkFloats],
  [PACK_TAPS, checkTaps],
  [QUANTIZE_FLOATS, checkQuantize],
  [PACK_BLOCKS, checkBlocks],
  [RANDOM_FLOATS, checkRandomFloats],
  [RANDOM_BLOCKS, checkRandomBlocks],
];
