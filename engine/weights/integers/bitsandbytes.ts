/**
 * bitsandbytes: 4-bit codes of a table (NF4, FP4), which no type of blocks has, so that they are loaded as floats; and LLM.int8, signed
 * bytes with a scale for each row.
 */
import type { BitsAndBytesScheme } from '../../util/integer-config.ts';
import { parseJsonObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { ceilDiv, product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { blocksOf, groupsInOrder, misfit, spell } from './integer-matrix.ts';
import type { CodeRows, Found, IntegerMatrix } from './integer-matrix.ts';
import { bytesOf, wordsOf } from './stored-numbers.ts';
import { unpackByteRows } from './unpack-codes.ts';

const STATE = /^(.*)\.quant_state\.bitsandbytes__(?:nf4|fp4)$/;
/** Bytes of an element of the types that codes may be stored as, whatever they are. */
const BYTES: Readonly<Record<string, number>> = { U8: 1, I8: 1, F16: 2, BF16: 2, F32: 4 };
const SIGNS = 0x80808080;
/** LLM.int8 stores the largest value of a row, which is code 127. */
const MOST = 127;

/** Finds the matrices of bitsandbytes. */
export async function findBitsAndBytes(checkpoint: Checkpoint, path: string, _scheme: BitsAndBytesScheme): Promise<Found> {
  const names = checkpoint.names();
  const tables = names.flatMap((state) => {
    const name = STATE.exec(state)?.[1];
    return name === undefined ? [] : [{ name, state }];
  });
  const bytes = names.filter((name) => name.endsWith('.SCB')).map((scales) => scales.replace(/\.SCB$/, '.weight'));
  const matrices = await Promise.all([
    ...tables.map(async ({ name, state }) => [name, await tableMatrix(checkpoint, path, name, state)] as const),
    ...bytes.map(async (name) => [name, await byteMatrix(checkpoint, path, name)] as const),
  ]);
  const isPart = (name: string): boolean => tables.some((one) => name.startsWith(`${one.name}.`));
  const beside = bytes.flatMap((name) => [name.replace(/weight$/, 'SCB'), `${name}_format`]);
  return { matrices: new Map(matrices), hidden: [...names.filter(isPart), ...beside] };
}

/** LLM.int8: `weight` of I8 [rows, columns], and the largest value of each row in `SCB`. */
async function byteMatrix(checkpoint: Checkpoint, path: string, codes: string): Promise<IntegerMatrix> {
  const [scales, format] = [codes.replace(/weight$/, 'SCB'), `${codes}_format`];
  const [info, most] = [checkpoint.tensor(codes), checkpoint.tensor(scales)!];
  const [rows = 0, columns = 0] = info?.shape ?? [];
  if (info?.dtype !== 'I8' || info.shape.length !== 2 || columns % 4 !== 0 || most.dtype !== 'F32' || product(most.shape) !== rows) {
    throw misfit(path, codes, `is to be I8 [rows, columns], and its scales F32 [rows]; ${spell(codes, info)}, ${spell(scales, most)}`);
  }
  const order = checkpoint.tensor(format) ? (await bytesOf(checkpoint, format, { from: 0, to: 1 }))[0]! : 0;
  if (order !== 0) throw misfit(path, format, `says layout ${order}, and only rows (0) are read`);
  const groups = groupsInOrder(columns, columns);
  const readRows = async ({ from, to }: Range): Promise<CodeRows> => ({
    unpack: unpackByteRows(wordsOf(await bytesOf(checkpoint, codes, { from: from * columns, to: to * columns })), columns / 4, SIGNS),
    scales: (await checkpoint.read(scales, { from, to })).map((value) => value / MOST),
  });
  const blocks = blocksOf({ bits: 8, zero: 128, perRow: true }, columns, groups);
  return { dtype: 'bitsandbytes 8-bit', blocks, shape: [rows, columns], groups, zero: 128, readRows };
}

/** A matrix of codes of a table, two per byte, the first in the high bits; a scale for each `blocksize` values, which may be codes too. */
async function tableMatrix(checkpoint: Checkpoint, path: string, codes: string, state: string): Promise<IntegerMatrix> {
  const stateInfo = checkpoint.tensor(state)!;
  const settings = parseJsonObject(`${path}: tensor ${state}`, await bytesOf(checkpoint, state, { from: 0, to: product(stateInfo.shape) }));
  const { shape, blocksize } = settings;
  const [rows, columns] =
    Array.isArray(shape) && shape.length === 2 && shape.every(Number.isSafeInteger) ? (shape as [number, number]) : [0, 0];
  const info = checkpoint.tensor(codes);
  const size = info && BYTES[info.dtype];
  if (
    !size ||
    product(info.shape) * size !== (rows * columns) / 2 ||
    typeof blocksize !== 'number' ||
    !(blocksize > 0) ||
    columns % 8 !== 0
  ) {
    throw misfit(path, codes, `does not hold the codes that ${state} describes; ${spell(codes, info)}`);
  }
  if (columns % blocksize !== 0)
    throw misfit(path, codes, `has rows of ${columns} values, expected a multiple of its blocksize ${blocksize}`);
  const map = checkpoint.tensor(`${codes}.quant_map`);
  if (!map || product(map.shape) !== 16) throw misfit(path, codes, `needs the values of 16 codes; ${spell(`${codes}.quant_map`, map)}`);
  const groups = groupsInOrder(blocksize, columns);
  const readScales = scaleReader(checkpoint, path, codes, settings, rows * groups.count);
  const readRows = async (range: Range): Promise<CodeRows> => {
    const elements = { from: (range.from * columns) / 2 / size, to: (range.to * columns) / 2 / size };
    const bytes = await bytesOf(checkpoint, codes, elements);
    return {
      unpack: unpackHighFirst(bytes, columns),
      scales: await readScales({ from: range.from * groups.count, to: range.to * groups.count }),
    };
  };
  const table = await checkpoint.read(`${codes}.quant_map`);
  return { dtype: 'bitsandbytes 4-bit', shape: [rows, columns], groups, zero: 0, table, readRows };
}

/** A reader of scales [from, to). Scales of scales are values of a table times a scale of their own, plus the mean. */
function scaleReader(
  checkpoint: Checkpoint,
  path: string,
  codes: string,
  settings: Json,
  count: number,
): (range: Range) => Promise<Float32Array> {
  const names = { scales: `${codes}.absmax`, outer: `${codes}.nested_absmax`, table: `${codes}.nested_quant_map` };
  const info = checkpoint.tensor(names.scales);
  if (!info || product(info.shape) !== count) throw misfit(path, codes, `needs ${count} scales; ${spell(names.scales, info)}`);
  const { nested_offset: offset, nested_blocksize: size } = settings;
  if (info.dtype !== 'U8') return (range) => checkpoint.read(names.scales, range);
  const [outer, table] = [checkpoint.tensor(names.outer), checkpoint.tensor(names.table)];
  const fits = typeof size === 'number' && typeof offset === 'number' && outer && product(outer.shape) === ceilDiv(count, size);
  if (!fits || !table || product(table.shape) !== 256) {
    throw misfit(
      path,
      names.scales,
      `is quantised, and needs scales and a table; ${spell(names.outer, outer)}, ${spell(names.table, table)}`,
    );
  }
  return async (range) => {
    const [values, steps] = [await checkpoint.read(names.table), await checkpoint.read(names.outer)];
    const found = await bytesOf(checkpoint, names.scales, range);
    return Float32Array.from(found, (code, i) => Math.fround(values[code]! * steps[Math.floor((range.from + i) / size)]!) + offset);
  };
}

/** Rows of `columns` codes, two per byte, the first in the high bits. */
function unpackHighFirst(bytes: Uint8Array, columns: number): CodeRows['unpack'] {
  return (codes, pitch, first, count) => {
    for (let row = 0; row < count; row++) {
      for (let i = 0, at = ((first + row) * columns) / 2; i < columns / 4; i++, at += 2) {
        const a = bytes[at]!;
        const b = bytes[at + 1]!;
        codes[row * pitch + i] = (a >> 4) | ((a & 15) << 8) | ((b >> 4) << 16) | ((b & 15) << 24);
      }
    }
  };
}
