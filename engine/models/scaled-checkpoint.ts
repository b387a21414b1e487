/** A checkpoint some of whose matrices are multiplied as they are read: what a model multiplies the outputs of products with. */
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { Checkpoint, TensorInfo } from '../weights/checkpoint.ts';

/** Factors of consecutive runs of a tensor's rows, each up to row `to`; the last is that of all rows behind. */
export type RowFactors = readonly { readonly to: number; readonly factor: number }[];

/** The checkpoint with the rows of tensors times `factorsOf` their names; tensors without factors, and those whose factors are all 1, are as they are. */
export function scaledCheckpoint(checkpoint: Checkpoint, factorsOf: (name: string) => RowFactors | undefined): Checkpoint {
  const scaled = (name: string): RowFactors | undefined => {
    const factors = factorsOf(name);
    return factors?.some(({ factor }) => factor !== 1) ? factors : undefined;
  };
  return {
    names: () => checkpoint.names(),
    tensor(name) {
      const info = checkpoint.tensor(name);
      return info && scaled(name) ? ({ ...info, blocks: undefined } satisfies TensorInfo) : info;
    },
    async read(name, elements) {
      const values = await checkpoint.read(name, elements);
      const factors = scaled(name);
      if (!factors) return values;
      const [, ...rest] = checkpoint.tensor(name)!.shape;
      return times(values, elements?.from ?? 0, product(rest), factors);
    },
    ...(checkpoint.blocks && { blocks: (name: string, rows: Range, into?: Uint8Array) => checkpoint.blocks!(name, rows, into) }),
    ...(checkpoint.stored && {
      stored: (name: string, elements: Range, into?: Uint8Array) => (scaled(name) ? undefined : checkpoint.stored!(name, elements, into)),
    }),
    ...(checkpoint.random && { random: (name: string) => (scaled(name) ? undefined : checkpoint.random!(name)) }),
    readIds: (name) => checkpoint.readIds(name),
    close: () => checkpoint.close(),
  };
}

/** Values from element `first` on, of rows of `width`, times their rows' factors. What a checkpoint gives may be its own, so it is left. */
function times(given: Float32Array, first: number, width: number, factors: RowFactors): Float32Array {
  const values = given.slice();
  let at = 0;
  for (const [i, { to, factor }] of factors.entries()) {
    const end = i === factors.length - 1 ? values.length : Math.min(values.length, to * width - first);
    for (; at < end; at++) values[at]! *= factor;
  }
  return values;
}
