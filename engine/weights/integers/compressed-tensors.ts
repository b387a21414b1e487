/**
 * Integers of compressed-tensors: `weight_packed` [rows, columns * bits / 32], codes that begin at the least value, or `weight` of signed
 * bytes; scales [rows, groups], [rows, 1] or [1]. What is said of activations is not needed.
 */
import type { CompressedScheme } from '../../util/integer-config.ts';
import { ceilDiv, product, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { blocksOf, groupSize, groupsByIndex, groupsInOrder, misfit, spell } from './integer-matrix.ts';
import type { CodeRows, Found, Groups, IntegerMatrix } from './integer-matrix.ts';
import { bytesOf, wordsOf } from './stored-numbers.ts';
import { unpackByteRows, unpackRows } from './unpack-codes.ts';

const FLOATS = /^(?:F16|BF16|F32)$/;
/** Scales and zero points of activations and of the KV cache. */
const OF_ACTIVATIONS = /\.(?:(?:input|output)_(?:scale|zero_point|global_scale)|[kqv]_(?:scale|zero_point))$/;
const PACKED = '.weight_packed';
/** Turns the sign bits of four signed bytes, which makes them codes with 128 for zero. */
const SIGNS = 0x80808080;

/** The tensors of a module. */
interface Parts {
  readonly module: string;
  readonly codes: string;
  readonly scales: string;
  readonly zeros: string;
  readonly shape: string;
  readonly index: string;
}

interface Sizes {
  readonly rows: number;
  readonly columns: number;
  readonly bits: 4 | 8;
  readonly isPacked: boolean;
}

/** Finds the matrices of integers; others may be floats. */
export async function findCompressed(checkpoint: Checkpoint, path: string, _scheme: CompressedScheme): Promise<Found> {
  const names = checkpoint.names();
  const isBytes = (name: string): boolean => name.endsWith('.weight') && checkpoint.tensor(name)!.dtype === 'I8';
  const found = names.filter((name) => name.endsWith(PACKED) || isBytes(name)).map(partsOf);
  const matrices = await Promise.all(
    found.map(async (parts) => [`${parts.module}.weight`, await matrixOf(checkpoint, path, parts)] as const),
  );
  const hidden = found.flatMap(({ codes, scales, zeros, shape, index }) => [codes, scales, zeros, shape, index]);
  return { matrices: new Map(matrices), hidden: [...hidden, ...names.filter((name) => OF_ACTIVATIONS.test(name))] };
}

function partsOf(codes: string): Parts {
  const module = codes.slice(0, -(codes.endsWith(PACKED) ? PACKED : '.weight').length);
  const named = (end: string): string => `${module}.weight_${end}`;
  return { module, codes, scales: named('scale'), zeros: named('zero_point'), shape: named('shape'), index: named('g_idx') };
}

async function matrixOf(checkpoint: Checkpoint, path: string, parts: Parts): Promise<IntegerMatrix> {
  const sizes = await sizesOf(checkpoint, path, parts);
  const { rows, columns, bits } = sizes;
  const [one, middle] = [scalesOf(checkpoint, path, parts, rows), 2 ** (bits - 1)];
  const groups = await groupsOf(checkpoint, path, parts, sizes, one.groups);
  const hasZeros = checkpoint.tensor(parts.zeros) !== undefined;
  const readRows = async (range: Range): Promise<CodeRows> => ({
    unpack: await codesOf(checkpoint, parts, sizes, range),
    scales: await one.read(range),
    zeros: hasZeros ? await zerosOf(checkpoint, path, parts, sizes, groups.count, range) : undefined,
  });
  const blocks = blocksOf({ bits, zero: hasZeros ? 'codes' : middle, perRow: groups.count === 1 }, columns, groups);
  return { dtype: `compressed-tensors ${bits}-bit`, blocks, shape: [rows, columns], groups, zero: middle, readRows };
}

async function sizesOf(checkpoint: Checkpoint, path: string, { codes, shape }: Parts): Promise<Sizes> {
  const info = checkpoint.tensor(codes)!;
  const [rows = 0, inRow = 0] = info.shape;
  if (info.shape.length !== 2) throw misfit(path, codes, `is ${info.dtype} [${info.shape.join(', ')}], expected a matrix`);
  if (info.dtype === 'I8') {
    if (inRow % 4 !== 0) throw misfit(path, codes, `has ${inRow} columns of bytes, expected a multiple of 4`);
    return { rows, columns: inRow, bits: 8, isPacked: false };
  }
  const said = checkpoint.tensor(shape);
  if (info.dtype !== 'I32' || !said || !/^I(?:32|64)$/.test(said.dtype) || product(said.shape) !== 2) {
    throw misfit(path, codes, `needs its shape beside it, two integers; ${spell(shape, said)}, ${spell(codes, info)}`);
  }
  const bytes = await bytesOf(checkpoint, shape, { from: 0, to: 2 });
  const sizes = said.dtype === 'I32' ? [...wordsOf(bytes)] : [...wordsOf(bytes)].filter((_, i) => i % 2 === 0);
  const [height = 0, columns = 0] = sizes;
  const bits = ([4, 8] as const).find((count) => ceilDiv(columns * count, 32) === inRow);
  if (height !== rows || bits === undefined || columns % 4 !== 0) {
    throw misfit(
      path,
      codes,
      `is I32 [${info.shape.join(', ')}], which does not hold ${height} x ${columns} codes (${shape}) of 4 or 8 bits`,
    );
  }
  return { rows, columns, bits, isPacked: true };
}

/** The scales of rows: groups, and a reader of [rows, groups]. One for the matrix is read for each row. */
function scalesOf(checkpoint: Checkpoint, path: string, { codes, scales }: Parts, rows: number) {
  const info = checkpoint.tensor(scales);
  const [height = 1, groups = 1] = info?.shape ?? [];
  const isOne = info && product(info.shape) === 1;
  if (!info || !FLOATS.test(info.dtype) || (!isOne && (height !== rows || product(info.shape) !== rows * groups))) {
    throw misfit(path, codes, `needs scales beside it, floats [${rows}, groups] or one; ${spell(scales, info)}`);
  }
  const read = async ({ from, to }: Range): Promise<Float32Array> =>
    isOne
      ? new Float32Array(to - from).fill((await checkpoint.read(scales))[0]!)
      : checkpoint.read(scales, { from: from * groups, to: to * groups });
  return { groups: isOne ? 1 : groups, read };
}

async function groupsOf(checkpoint: Checkpoint, path: string, { codes, index }: Parts, { columns }: Sizes, count: number): Promise<Groups> {
  const size = groupSize(columns, count, -1);
  if (size === undefined) throw misfit(path, codes, `has ${count} groups for ${columns} columns`);
  const info = checkpoint.tensor(index);
  if (!info) return groupsInOrder(size, columns);
  if (info.dtype !== 'I32' || info.shape.join() !== String(columns)) {
    throw misfit(path, index, `is ${info.dtype} [${info.shape.join(', ')}], expected I32 [${columns}]`);
  }
  const found = await checkpoint.readIds(index);
  const wrong = found.findIndex((group) => group < 0 || group >= count);
  if (wrong >= 0) throw misfit(path, index, `puts column ${wrong} in group ${found[wrong]}, of ${count} groups`);
  return groupsByIndex(found, count);
}

async function codesOf(
  checkpoint: Checkpoint,
  { codes }: Parts,
  { bits, isPacked }: Sizes,
  { from, to }: Range,
): Promise<CodeRows['unpack']> {
  const inRow = checkpoint.tensor(codes)!.shape[1]!;
  const words = wordsOf(await bytesOf(checkpoint, codes, { from: from * inRow, to: to * inRow }));
  return isPacked ? unpackRows(words, inRow, bits) : unpackByteRows(words, inRow / 4, SIGNS);
}

/** Zero points of rows as codes, [rows, groups]: signed bytes [rows, groups], or packed like codes, but in words along the rows. */
async function zerosOf(
  checkpoint: Checkpoint,
  path: string,
  { zeros }: Parts,
  { rows, bits }: Sizes,
  groups: number,
  range: Range,
): Promise<Uint8Array> {
  const info = checkpoint.tensor(zeros)!;
  const inWord = 32 / bits;
  const isBytes = info.dtype === 'I8';
  const height = isBytes ? rows : ceilDiv(rows, inWord);
  const fits = isBytes || info.dtype === 'I32';
  if (!fits || info.shape[0] !== height || product(info.shape) !== height * groups) {
    throw misfit(
      path,
      zeros,
      `is ${info.dtype} [${info.shape.join(', ')}], expected I8 [${rows}, ${groups}] or I32 [${ceilDiv(rows, inWord)}, ${groups}]`,
    );
  }
  const out = new Uint8Array(sizeOf(range) * groups);
  if (isBytes) {
    const signed = new Int8Array(await bytesOf(checkpoint, zeros, { from: range.from * groups, to: range.to * groups }));
    return out.map((_, i) => signed[i]! + 2 ** (bits - 1));
  }
  const first = Math.floor(range.from / inWord);
  const words = wordsOf(await bytesOf(checkpoint, zeros, { from: first * groups, to: ceilDiv(range.to, inWord) * groups }));
  return out.map((_, i) => {
    const row = range.from + Math.floor(i / groups);
    const word = words[(Math.floor(row / inWord) - first) * groups + (i % groups)]!;
    return (word >>> ((row % inWord) * bits)) & (2 ** bits - 1);
  });
}
