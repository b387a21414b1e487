/**
 * GPTQ and AWQ (AutoGPTQ, GPTQModel, AutoAWQ): matrices lie with their columns first. GPTQ has qweight [columns * bits / 32, rows] and a
 * group for each column (g_idx); AWQ has qweight [columns, rows / 8]. Both have scales [groups, rows] and qzeros [groups, rows * bits / 32].
 */
import type { AwqScheme, GptqScheme } from '../../util/integer-config.ts';
import { ceilDiv, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { blocksOf, groupSize, groupsByIndex, groupsInOrder, misfit, spell } from './integer-matrix.ts';
import type { CodeRows, Found, Groups, IntegerMatrix } from './integer-matrix.ts';
import { ColumnReader, readTurned } from './stored-numbers.ts';
import { AWQ_NIBBLES, unpackAwq, unpackGptq } from './unpack-codes.ts';

const FLOATS = /^(?:F16|BF16|F32)$/;

/** The tensors of a module. */
interface Parts {
  readonly codes: string;
  readonly scales: string;
  readonly zeros: string;
  readonly index: string;
  readonly bias: string;
}

const partsOf = (codes: string): Parts => {
  const module = codes.replace(/\.qweight$/, '');
  return { codes, scales: `${module}.scales`, zeros: `${module}.qzeros`, index: `${module}.g_idx`, bias: `${module}.bias` };
};

/** Where they are read from; `path` is for messages. */
interface Source {
  readonly checkpoint: Checkpoint;
  readonly path: string;
  readonly columns: ColumnReader;
}

const sourceOf = (checkpoint: Checkpoint, path: string): Source => ({ checkpoint, path, columns: new ColumnReader(checkpoint) });

/** The sizes that the tensors' shapes tell. */
interface Sizes {
  readonly rows: number;
  readonly columns: number;
  readonly bits: number;
  readonly groups: number;
}

/** Finds GPTQ's matrices. */
export async function findGptq(checkpoint: Checkpoint, path: string, scheme: GptqScheme): Promise<Found> {
  const source = sourceOf(checkpoint, path);
  const found = modules(checkpoint).map((parts) => ({ parts, sizes: gptqSizes(source, parts) }));
  const matrices = await Promise.all(
    found.map(async ({ parts, sizes }) => {
      const groups = await gptqGroups(source, parts, sizes, scheme);
      return [nameOf(parts), gptqMatrix(source, parts, sizes, groups, scheme)] as const;
    }),
  );
  const hidden = found.flatMap(({ parts: { codes, scales, zeros, index } }) => [codes, scales, zeros, index]);
  return { matrices: new Map(matrices), hidden, optional: await emptyBiases(checkpoint, found) };
}

/** Finds AWQ's matrices. */
export function findAwq(checkpoint: Checkpoint, path: string, scheme: AwqScheme): Found {
  const [source, found] = [sourceOf(checkpoint, path), modules(checkpoint)];
  const matrices = new Map(found.map((parts) => [nameOf(parts), awqMatrix(source, parts, scheme)] as const));
  return { matrices, hidden: found.flatMap(({ codes, scales, zeros }) => [codes, scales, zeros]) };
}

const modules = (checkpoint: Checkpoint): Parts[] =>
  checkpoint
    .names()
    .filter((name) => name.endsWith('.qweight'))
    .map(partsOf);

const nameOf = ({ codes }: Parts): string => codes.replace(/\.qweight$/, '.weight');

/**
 * AutoGPTQ writes a bias of zeros for layers without one, which a model need not take: it then writes one for each. They are read only in that
 * case, because a model far away is described by its headers.
 */
async function emptyBiases(checkpoint: Checkpoint, found: readonly { readonly parts: Parts }[]): Promise<readonly string[]> {
  const biases = found.map(({ parts }) => parts.bias);
  if (!biases.every((name) => checkpoint.tensor(name))) return [];
  const empty = await Promise.all(biases.map(async (name) => (await checkpoint.read(name)).every((value) => value === 0)));
  return biases.filter((_, i) => empty[i]);
}

/** Sizes by the shapes of scales and codes, as a function of the packed axis; throws where they do not fit. */
function checked(
  { checkpoint, path }: Source,
  { codes, scales, zeros }: Parts,
  read: readonly number[],
  sizesOf: (codes: Shape, zeros: Shape) => Omit<Sizes, 'groups'>,
): Sizes {
  const [words, steps, middles] = [codes, scales, zeros].map((name) => checkpoint.tensor(name));
  const isPair = (name: string): boolean => checkpoint.tensor(name)?.shape.length === 2;
  const refuse = (why: string): never => {
    throw misfit(path, codes, `needs ${why}; ${spell(scales, steps)}, ${spell(zeros, middles)}, ${spell(codes, words)}`);
  };
  if (!words || !steps || !middles || ![codes, scales, zeros].every(isPair)) return refuse('scales and zero points beside it');
  if (words.dtype !== 'I32' || middles.dtype !== 'I32' || !FLOATS.test(steps.dtype))
    return refuse('codes and zero points of I32 and scales of F16, BF16 or F32');
  const sizes = { ...sizesOf(words.shape as Shape, middles.shape as Shape), groups: steps.shape[0]! };
  if (!read.includes(sizes.bits))
    throw misfit(
      path,
      codes,
      `has codes of ${Number(sizes.bits.toFixed(2))} bits by the shapes of its zero points; read are ${read.join(' and ')}`,
    );
  const fits = steps.shape[1] === sizes.rows && middles.shape[0] === sizes.groups && sizes.columns % 4 === 0;
  return fits ? sizes : refuse('a scale and a zero point for each group and row');
}

type Shape = readonly [number, number];

const gptqSizes = (source: Source, parts: Parts): Sizes =>
  checked(source, parts, [4, 8], ([words, rows], [, middles]) => {
    const bits = (middles * 32) / rows;
    return { rows, bits, columns: (words * 32) / bits };
  });

const awqSizes = (source: Source, parts: Parts): Sizes =>
  checked(source, parts, [4], ([columns, words], [, middles]) => {
    const rows = source.checkpoint.tensor(parts.scales)!.shape[1]!;
    return { rows, bits: words === middles ? (words * 32) / rows : Number.NaN, columns };
  });

function sized({ path }: Source, { codes }: Parts, { columns, groups }: Sizes, said: number): Groups {
  const size = groupSize(columns, groups, said);
  if (size === undefined) throw misfit(path, codes, `has ${groups} groups for ${columns} columns; config.json says group_size ${said}`);
  return groupsInOrder(size, columns);
}

/** The groups of columns. Without act-order they are in order, which is checked when the matrix is read (ordered). */
async function gptqGroups(source: Source, parts: Parts, sizes: Sizes, scheme: GptqScheme): Promise<Groups> {
  const inOrder = sized(source, parts, sizes, scheme.groupSize);
  if (!scheme.actOrder || sizes.groups === 1) return inOrder;
  const index = await readIndex(source, parts, sizes);
  if (!index) throw misfit(source.path, parts.codes, `was quantised out of order (desc_act), and ${parts.index} is missing beside it`);
  return groupsByIndex(index, sizes.groups);
}

/** Reads g_idx; undefined where there is none. */
async function readIndex({ checkpoint, path }: Source, { index }: Parts, { columns, groups }: Sizes): Promise<Int32Array | undefined> {
  const info = checkpoint.tensor(index);
  if (!info) return undefined;
  if (info.dtype !== 'I32' || info.shape.join() !== String(columns)) {
    throw misfit(path, index, `is ${info.dtype} [${info.shape.join(', ')}], expected I32 [${columns}]`);
  }
  const found = await checkpoint.readIds(index);
  const wrong = found.findIndex((group) => group < 0 || group >= groups);
  if (wrong >= 0) throw misfit(path, index, `puts column ${wrong} in group ${found[wrong]}, of ${groups} groups`);
  return found;
}

function gptqMatrix(source: Source, parts: Parts, sizes: Sizes, groups: Groups, scheme: GptqScheme): IntegerMatrix {
  const { rows: height, columns, bits } = sizes;
  const middle = 2 ** (bits - 1);
  const isMiddle = scheme.symmetric;
  const read = async (rows: Range): Promise<CodeRows> => {
    await inOrder(source, parts, sizes, groups);
    const zeros = await gptqZeros(source, parts, sizes, rows, scheme.zerosBelow);
    const other = isMiddle ? zeros.find((zero) => zero !== middle) : undefined;
    if (other !== undefined) {
      throw misfit(
        source.path,
        parts.zeros,
        `has a zero point of ${other}, and config.json says sym, which is ${middle}; with "sym": false there it is read`,
      );
    }
    const words = await source.columns.words(parts.codes, rows);
    return {
      unpack: unpackGptq(words, sizeOf(rows), bits),
      scales: await readTurned(source.checkpoint, parts.scales, rows),
      zeros: isMiddle ? undefined : zeros,
    };
  };
  const blocks = blocksOf({ bits, zero: isMiddle ? middle : 'codes' }, columns, groups);
  return { dtype: `GPTQ ${bits}-bit`, blocks, shape: [height, columns], groups, zero: middle, readRows: read };
}

/** Throws where config.json says nothing of act-order and the groups are out of order all the same. */
async function inOrder(source: Source, parts: Parts, sizes: Sizes, groups: Groups): Promise<void> {
  const index = await readIndex(source, parts, sizes);
  const wrong = index?.findIndex((group, column) => group !== groups.of(column)) ?? -1;
  if (wrong >= 0) {
    throw misfit(
      source.path,
      parts.index,
      `puts column ${wrong} in group ${index![wrong]}, out of order, and config.json does not say desc_act; with "desc_act": true there it is read`,
    );
  }
}

/** Zero points of rows, [rows, groups]. One is added to all of a word at once, as GPTQModel does: it carries where it was borrowed. */
async function gptqZeros(
  { columns }: Source,
  { zeros }: Parts,
  { bits, groups }: Sizes,
  rows: Range,
  isBelow: boolean,
): Promise<Uint8Array> {
  const inWord = 32 / bits;
  const words = { from: Math.floor(rows.from / inWord), to: ceilDiv(rows.to, inWord) };
  const packed = await columns.words(zeros, words);
  const one = bits === 4 ? 0x11111111 : 0x01010101;
  const whole = isBelow ? packed.map((word) => word + one) : packed;
  return middlesOf(whole, sizeOf(words), groups, rows, inWord, (i) => i);
}

/** Takes zero points of rows out of words [groups, words of rows]; `placeOf` says where in a word a row's is. */
function middlesOf(
  words: Uint32Array,
  across: number,
  groups: number,
  rows: Range,
  inWord: number,
  placeOf: (i: number) => number,
): Uint8Array {
  const out = new Uint8Array(sizeOf(rows) * groups);
  const [bits, skipped] = [32 / inWord, rows.from - (rows.from % inWord)];
  for (let row = rows.from; row < rows.to; row++) {
    const [word, shift] = [Math.floor((row - skipped) / inWord), placeOf(row % inWord) * bits];
    for (let group = 0; group < groups; group++) {
      out[(row - rows.from) * groups + group] = (words[group * across + word]! >>> shift) & (2 ** bits - 1);
    }
  }
  return out;
}

function awqMatrix(source: Source, parts: Parts, scheme: AwqScheme): IntegerMatrix {
  const sizes = awqSizes(source, parts);
  const { rows: height, columns, bits, groups: count } = sizes;
  const groups = sized(source, parts, sizes, scheme.groupSize);
  const inWord = AWQ_NIBBLES.length;
  const readRows = async (rows: Range): Promise<CodeRows> => {
    const words = { from: Math.floor(rows.from / inWord), to: ceilDiv(rows.to, inWord) };
    const codes = await source.columns.words(parts.codes, words);
    const zeros = await source.columns.words(parts.zeros, words);
    return {
      unpack: unpackAwq(codes, sizeOf(words), rows.from % inWord),
      scales: await readTurned(source.checkpoint, parts.scales, rows),
      zeros: middlesOf(zeros, sizeOf(words), count, rows, inWord, (i) => AWQ_NIBBLES[i]!),
    };
  };
  const blocks = blocksOf({ bits, zero: 'codes' }, columns, groups);
  return { dtype: 'AWQ 4-bit', blocks, shape: [height, columns], groups, zero: 8, readRows };
}
