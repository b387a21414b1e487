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

/** Where they are read from; `path` is for messages. */
interface Source {
  readonly checkpoint: Checkpoint;
  readonly path: string;
  readonly scheme: CompressedScheme;
}

interface Sizes {
  readonly rows: number;
  readonly columns: number;
  readonly bits: number;
  readonly isPacked: boolean;
}

/** Finds the matrices of integers; others may be floats. */
export async function findCompressed(checkpoint: Checkpoint, path: string, scheme: CompressedScheme): Promise<Found> {
  const names = checkpoint.names();
  const isBytes = (name: string): boolean => name.endsWith('.weight') && checkpoint.tensor(name)!.dtype === 'I8';
  const found = names.filter((name) => name.endsWith(PACKED) || isBytes(name)).map(partsOf);
  const matrices = await Promise.all(
    found.map(async (parts) => [`${parts.module}.weight`, await matrixOf({ checkpoint, path, scheme }, parts)] as const),
  );
  const hidden = found.flatMap(({ codes, scales, zeros, shape, index }) => [codes, scales, zeros, shape, index]);
  return { matrices: new Map(matrices), hidden: [...hidden, ...names.filter((name) => OF_ACTIVATIONS.test(name))] };
}

function partsOf(codes: string): Parts {
  const module = codes.slice(0, -(codes.endsWith(PACKED) ? PACKED : '.weight').length);
  const named = (end: string): string => `${module}.weight_${end}`;
  return { module, codes, scales: named('scale'), zeros: named('zero_point'), shape: named('shape'), index: named('g_idx') };
}

async function matrixOf(source: Source, parts: Parts): Promise<IntegerMatrix> {
  const { checkpoint, path, scheme } = source;
  const sizes = await sizesOf(source, parts);
  const { rows, columns, bits } = sizes;
  const [one, middle] = [scalesOf(checkpoint, path, parts, rows), 2 ** (bits - 1)];
  const groups = await groupsOf(checkpoint, path, parts, sizes, one.groups);
  // Early versions of the package write zero points of symmetric weights, too.
  const hasZeros = !scheme.symmetric && checkpoint.tensor(parts.zeros) !== undefined;
  const readRows = async (range: Range): Promise<CodeRows> => {
    await expectShape(source, parts, sizes);
    return {
      unpack: await codesOf(checkpoint, parts, sizes, range),
      scales: await one.read(range),
      zeros: hasZeros ? await zerosOf(checkpoint, path, parts, sizes, groups.count, range) : undefined,
    };
  };
  const blocks = blocksOf({ bits, zero: hasZeros ? 'codes' : middle, perRow: groups.count === 1 }, columns, groups);
  return { dtype: `compressed-tensors ${bits}-bit`, blocks, shape: [rows, columns], groups, zero: middle, readRows };
}

/**
 * The sizes of a matrix. Where all have as many bits, the shapes of the tensors tell, so that a model is described by its headers alone, and
 * what the shape stored beside the codes says is compared when they are read.
 */
async function sizesOf(source: Source, parts: Parts): Promise<Sizes> {
  const { checkpoint, path, scheme } = source;
  const { codes } = parts;
  const info = checkpoint.tensor(codes)!;
  const [rows = 0, inRow = 0] = info.shape;
  if (info.shape.length !== 2) throw misfit(path, codes, `is ${info.dtype} [${info.shape.join(', ')}], expected a matrix`);
  if (info.dtype === 'I8') {
    if (inRow % 4 !== 0) throw misfit(path, codes, `has ${inRow} columns of bytes, expected a multiple of 4`);
    return { rows, columns: inRow, bits: 8, isPacked: false };
  }
  const [bits, ...others] = scheme.bits;
  if (others.length === 0) return { rows, columns: (inRow * 32) / bits!, bits: bits!, isPacked: true };
  const [, columns = 0] = await readShape(source, parts);
  const found = scheme.bits.find((count) => ceilDiv(columns * count, 32) === inRow);
  return { rows, columns, bits: found ?? bits!, isPacked: true };
}

async function readShape({ checkpoint, path }: Source, { codes, shape }: Parts): Promise<readonly number[]> {
  const [info, said] = [checkpoint.tensor(codes), checkpoint.tensor(shape)];
  if (info?.dtype !== 'I32' || !said || !/^I(?:32|64)$/.test(said.dtype) || product(said.shape) !== 2) {
    throw misfit(path, codes, `needs its shape beside it, two integers; ${spell(shape, said)}, ${spell(codes, info)}`);
  }
  const words = wordsOf(await bytesOf(checkpoint, shape, { from: 0, to: 2 }));
  return said.dtype === 'I32' ? [...words] : [words[0]!, words[2]!];
}

/** Throws unless the shape stored beside packed codes is the matrix'. */
async function expectShape(source: Source, parts: Parts, { rows, columns, bits, isPacked }: Sizes): Promise<void> {
  if (!isPacked) return;
  const [height = 0, width = 0] = await readShape(source, parts);
  const { shape } = source.checkpoint.tensor(parts.codes)!;
  if (height === rows && width === columns && ceilDiv(width * bits, 32) === shape[1] && columns % 4 === 0) return;
  throw misfit(
    source.path,
    parts.codes,
    `is I32 [${shape.join(', ')}], which does not hold ${height} x ${width} codes (${parts.shape}) of ${bits} bits`,
  );
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
  // The package's mark of columns in order.
  if (found.includes(-1)) return groupsInOrder(size, columns);
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
