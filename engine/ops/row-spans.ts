import { assert } from '../errors.ts';
import type { Tensor } from '../gpu/tensor.ts';

/** Sequences that follow each other in the tensors of a batch, each with a whole number of units such as phonemes or frames. */
export interface RowSpans {
  /** [>= count, 4] u32: first unit, number of units, and two numbers for kernels that read them. */
  readonly table: Tensor;
  readonly count: number;
  /** Units of the longest sequence. */
  readonly longest: number;
  /** Units from the beginning of the first sequence to the end of the last. */
  readonly end: number;
}

/** The rows of each sequence in a tensor: sequence s begins at row `first unit * unit` and has `units * unit + more` rows. */
export interface SpanRows {
  readonly spans: RowSpans;
  readonly unit: number;
  readonly more: number;
}

/** Values per sequence, as rows of a tensor [>= row + sequences, S]: sequence s has row `row + s`. */
export interface SequenceStyles {
  readonly tensor: Tensor;
  readonly row: number;
}

/** Index of value `first` of the first sequence, and the stride to the next sequence. */
export function styleAt({ tensor, row }: SequenceStyles, first: number): { readonly first: number; readonly stride: number } {
  const stride = tensor.shape.at(-1) ?? 0;
  return { first: row * stride + first, stride };
}

/** Rows of one sequence, or of each of several. */
export type Rows = number | SpanRows;

/** Sizes for a kernel with lib/row_spans.wgsl: its grid has `count` in z, and its rows in x are `longest`. */
export interface RowShape {
  readonly unit: number;
  readonly rows: number;
  readonly longest: number;
  /** Rows from 0 to the end of the last sequence. */
  readonly end: number;
  readonly count: number;
  readonly table: Tensor | undefined;
}

/** Rows of a batch of sequences: `unit` rows per unit, and `more` at the end of each sequence. */
export function spanRows(spans: RowSpans, unit: number, more = 0): SpanRows {
  return { spans, unit, more };
}

/** The rows of the same sequences in a tensor with `factor` times as many. */
export function scaleRows({ spans, unit, more }: SpanRows, factor: number): SpanRows {
  return { spans, unit: unit * factor, more: more * factor };
}

/** Output rows of a layer that turns n rows into `of(n)`: `factor` times as many per unit, whatever happens at the ends. */
export function outputRows(rows: Rows, of: (rows: number) => number, factor: number): Rows {
  if (typeof rows === 'number') return of(rows);
  const unit = rows.unit * factor;
  assert(Number.isInteger(unit), `${rows.unit} rows a unit make ${unit}`);
  return { spans: rows.spans, unit, more: of(rows.unit + rows.more) - unit };
}

/** The RowShape of rows. */
export function rowShape(rows: Rows): RowShape {
  if (typeof rows === 'number') return { unit: 0, rows, longest: rows, end: rows, count: 1, table: undefined };
  const { spans, unit, more } = rows;
  const { count, longest, end, table } = spans;
  return { unit, rows: more, longest: longest * unit + more, end: end * unit + more, count, table };
}
