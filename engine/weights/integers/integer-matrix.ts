/** Matrices of integer codes as published checkpoints store them: value = scale * (code - zero) + offset, for groups of columns. */
import { EngineError } from '../../errors.ts';
import type { Range } from '../../util/math.ts';
import { BLOCK } from '../block-format.ts';
import type { BlockType } from '../block-types.ts';
import type { TensorInfo } from '../checkpoint.ts';

/** Codes of rows of a matrix, and what they stand for. */
export interface CodeRows {
  /**
   * Writes the codes of `count` rows from row `first` of these on, unsigned, four to a word, the first in the lowest byte; a row begins
   * every `pitch` words.
   */
  unpack(codes: Uint32Array, pitch: number, first: number, count: number): void;
  /** [rows, groups] */
  readonly scales: Float32Array;
  /** [rows, groups]: the code that means zero; absent = the matrix' own for all. */
  readonly zeros?: Uint8Array | undefined;
  /** [rows, groups]; absent = 0. */
  readonly offsets?: Float32Array | undefined;
}

/** How the columns of a row share scales. */
export interface Groups {
  readonly count: number;
  of(column: number): number;
}

/** A matrix [rows, columns]; `blocks` is the type whose blocks hold it, absent where none does and it is loaded as floats. */
export interface IntegerMatrix extends TensorInfo {
  readonly shape: readonly [number, number];
  readonly groups: Groups;
  /** The code that means zero, where there are neither zeros nor offsets of groups. */
  readonly zero: number;
  /** Values of the codes, where these are no numbers; a scale multiplies them. */
  readonly table?: Float32Array | undefined;
  readRows(rows: Range): Promise<CodeRows>;
  /** Writes rows in stored blocks; absent where encodeRows makes them. */
  readonly readBlocks?: ((rows: Range, out: Uint8Array) => Promise<void>) | undefined;
}

/** What a method's tensors amount to. */
export interface Found {
  readonly matrices: ReadonlyMap<string, IntegerMatrix>;
  /** Tensors that these are made of, or that weights do not need. */
  readonly hidden: Iterable<string>;
  /** Tensors that a model may take and need not. */
  readonly optional?: Iterable<string>;
}

/** Codes of a matrix by what is known of it before it is read. */
export interface Codes {
  readonly bits: number;
  /** What zero is: one code, a code of each group, or an offset of each group. */
  readonly zero: number | 'codes' | 'offsets';
  /** All columns share a scale, which may need more than f16 has. */
  readonly perRow?: boolean;
}

/**
 * The type of blocks that holds codes as they are; undefined where none does. Codes less a zero point of their group have a bit more than
 * the codes, and their type has it: an offset of f16 would round the product of zero point and scale.
 */
export function blocksOf({ bits, zero, perRow = false }: Codes, columns: number, groups: Groups): BlockType | undefined {
  if (columns % BLOCK !== 0) return undefined;
  for (let column = 0; column < columns; column++) if (groups.of(column) !== groups.of(column - (column % BLOCK))) return undefined;
  if (zero === 'offsets') return bits <= 4 ? 'Q4_1' : bits === 5 ? 'Q5_1' : 'U8';
  if (zero === 'codes') return bits === 4 ? 'Q5_0' : undefined;
  if (bits === 4) return 'Q4_0';
  return perRow ? 'I8' : 'Q8_0';
}

/** Groups of `size` columns that follow one another. */
export function groupsInOrder(size: number, columns: number): Groups {
  return { count: Math.ceil(columns / size), of: (column) => Math.floor(column / size) };
}

/** Groups of columns as `index` says: act-order. */
export function groupsByIndex(index: Int32Array, count: number): Groups {
  return { count, of: (column) => index[column]! };
}

/**
 * Columns per group, by the number of groups and the size that config.json says (-1 = one group); undefined where the two do not fit.
 * A module may have a size of its own, of which config.json speaks in patterns: then it divides the columns.
 */
export function groupSize(columns: number, count: number, said: number): number | undefined {
  if (count === 1) return columns;
  if (said > 0 && Math.ceil(columns / said) === count) return said;
  return count > 0 && columns % count === 0 ? columns / count : undefined;
}

/** An error about a checkpoint's tensor, in one line. */
export function misfit(path: string, name: string, why: string): EngineError {
  return new EngineError('invalid_model', `${path}: tensor ${name} ${why}`);
}

/** A tensor in a few words, for messages. */
export function spell(name: string, info: TensorInfo | undefined): string {
  return info ? `${name} is ${info.dtype} [${info.shape.join(', ')}]` : `${name} is missing`;
}
