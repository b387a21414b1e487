import { assert } from '../errors.ts';
import type { Tensor } from '../gpu/tensor.ts';

/** Sequences that lie one behind the other in tensors of a batch, each with a whole number of units: phonemes, frames. */
export interface RowSpans {
  /** [>= count, 4] u32: first unit, units, and two numbers that a kernel may want of its sequence. */
  readonly table: Tensor;
  readonly count: number;
  /** Units of the longest. */
  readonly longest: number;
  /** Units from the first of the first sequence to the last of the last. */
  readonly end: number;
}

/** Rows of each sequence of a batch in one tensor: sequence s begins at row `first unit * unit` and has `units * unit + more`. */
export interface SpanRows {
  readonly spans: RowSpans;
  readonly unit: number;
  readonly more: number;
}

/** Values of each sequence of a batch, in rows of a tensor [>= row + sequences, S]: sequence s has row `row + s`. */
export interface SequenceStyles {
  readonly tensor: Tensor;
  readonly row: number;
}

/** Where values `first` and after of the first sequence lie, and how far it is to those of the next. */
export function styleAt({ tensor, row }: SequenceStyles, first: number): { readonly first: number; readonly stride: number } {
  const stride = tensor.shape.at(-1) ?? 0;
  return { first: row * stride + first, stride };
}

/** How many rows there are: of one sequence, or of each of several. */
export type Rows = number | SpanRows;

/** What a kernel with lib/row_spans.wgsl is given: its grid has `count` in z, and `longest` is what its rows are in x. */
export interface RowShape {
  readonly unit: number;
  readonly rows: number;
  readonly longest: number;
  /** Rows to the end of the last sequence. */
  readonly end: number;
  readonly count: number;
  readonly table: Tensor | undefined;
}

/** One unit after the other of a batch of sequences: rows for `unit` and `more` of each. */
export function spanRows(spans: RowSpans, unit: number, more = 0): SpanRows {
  return { spans, unit, more };
}

/** The same sequences in a tensor with `factor` times the rows. */
export function scaleRows({ spans, unit, more }: SpanRows, factor: number): SpanRows {
  return { spans, unit: unit * factor, more: more * factor };
}

/** Rows after a layer that makes `of(n)` of n: `factor` of each, whatever there is at the ends. */
export function outputRows(rows: Rows, of: (rows: number) => number, factor: number): Rows {
  if (typeof rows === 'number') return of(rows);
  const unit = rows.unit * factor;
  assert(Number.isInteger(unit), `${rows.unit} rows a unit make ${unit}`);
  return { spans: rows.spans, unit, more: of(rows.unit + rows.more) - unit };
}

/** Rows as kernels take them. */
export function rowShape(rows: Rows): RowShape {
  if (typeof rows === 'number') return { unit: 0, rows, longest: rows, end: rows, count: 1, table: undefined };
  const { spans, unit, more } = rows;
  const { count, longest, end, table } = spans;
  return { unit, rows: more, longest: longest * unit + more, end: end * unit + more, count, table };
}
