/** Weights on their way from a file: raw floats become a part of a weight on the device. */
import { defineKernel } from '../gpu/kernel.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { ceilDiv } from '../util/math.ts';
import type { StoredFloat } from '../weights/checkpoint.ts';
import type { LinearPart } from './weight.ts';

const SOURCES: Readonly<Record<StoredFloat, number>> = { F32: 0, F16: 1, BF16: 2 };

/** Four columns times this many are a cache line of 16-bit values. */
const QUADS = 8;

export const PACK_FLOATS = defineKernel({
  file: 'load/pack_floats.wgsl',
  bindings: { raw: 'read', packed: 'update', flags: 'update' },
  params: {
    rows: 'u32', first_row: 'u32', width: 'u32', column: 'u32', columns: 'u32', out_column: 'u32', padded: 'u32', tensor: 'u32',
  },
  overrides: { WG: 'u32', SOURCE: 'u32', HALF: 'bool', QUADS: 'u32', PAIRS: 'bool' },
}); // prettier-ignore

export interface PackFloatsArgs {
  /** The file's bytes of whole rows of `width` values of type `source`, as words. */
  readonly raw: Tensor;
  readonly source: StoredFloat;
  readonly width: number;
  /** Rows of `raw`: the first, and how many. */
  readonly firstRow: number;
  readonly rows: number;
  /** Values of a row that are kept: the first, and how many. */
  readonly column: number;
  readonly columns: number;
  /** A part in floats, and the output feature in it that the first row becomes. */
  readonly part: LinearPart;
  readonly outColumn: number;
  /** [tensors] u32: `flags[tensor]` becomes 1 when a value is not finite, or too large for f16 where that is stored. */
  readonly flags: Tensor;
  readonly tensor: number;
}

/** part[.., outColumn + i] = row firstRow + i of raw, as packLinear lays it out and rounds it, to the bit. */
export function packFloats(rec: Recorder, args: PackFloatsArgs): void {
  const { raw, source, width, firstRow, rows, column, columns, part, outColumn, flags, tensor } = args;
  const WG = rec.caps.family === 'cpu' ? 8 : 64;
  const pairs = source !== 'F32' && width % 2 === 0 && column % 2 === 0 && columns % 4 === 0;
  rec.dispatch(
    PACK_FLOATS,
    { overrides: { WG, SOURCE: SOURCES[source], HALF: part.dtype === 'f16' ? 1 : 0, QUADS, PAIRS: pairs ? 1 : 0 } },
    { raw, packed: part.weight, flags },
    { rows, first_row: firstRow, width, column, columns, out_column: outColumn, padded: part.padded, tensor },
    [ceilDiv(rows, WG), ceilDiv(columns, 4 * QUADS)],
  );
}
