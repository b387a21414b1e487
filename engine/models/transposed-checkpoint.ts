/** A checkpoint some of whose matrices are stored the other way round: [in, out]. */
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { Checkpoint, TensorInfo } from '../weights/checkpoint.ts';

/** The checkpoint with the matrices whose names `isTransposed` transposed. Each is read whole, and the last one is kept for its other rows. */
export function transposedCheckpoint(checkpoint: Checkpoint, isTransposed: (name: string) => boolean): Checkpoint {
  let last: { readonly name: string; readonly values: Promise<Float32Array> } | undefined;
  const whole = (name: string): Promise<Float32Array> => {
    if (last?.name !== name) last = { name, values: readTransposed(checkpoint, name) };
    return last.values;
  };
  return {
    names: () => checkpoint.names(),
    tensor(name) {
      const info = checkpoint.tensor(name);
      return info && isTransposed(name) ? ({ ...info, shape: info.shape.toReversed(), blocks: undefined } satisfies TensorInfo) : info;
    },
    async read(name, elements) {
      if (!isTransposed(name)) return checkpoint.read(name, elements);
      const values = await whole(name);
      // What is read may be changed by the reader.
      return values.slice(elements?.from, elements?.to);
    },
    ...(checkpoint.blocks && { blocks: (name: string, rows: Range, into?: Uint8Array) => checkpoint.blocks!(name, rows, into) }),
    ...(checkpoint.stored && {
      stored: (name: string, elements: Range, into?: Uint8Array) =>
        isTransposed(name) ? undefined : checkpoint.stored!(name, elements, into),
    }),
    ...(checkpoint.random && { random: (name: string) => (isTransposed(name) ? undefined : checkpoint.random!(name)) }),
    readIds: (name) => checkpoint.readIds(name),
    close: () => checkpoint.close(),
  };
}

/** Square tiles in which a matrix is transposed, so that reads and writes stay within a cache. */
const TILE = 32;

async function readTransposed(checkpoint: Checkpoint, name: string): Promise<Float32Array> {
  const stored = await checkpoint.read(name);
  const [rows = 1, ...rest] = checkpoint.tensor(name)!.shape;
  const columns = product(rest);
  const values = new Float32Array(stored.length);
  for (let top = 0; top < rows; top += TILE) {
    for (let left = 0; left < columns; left += TILE) {
      for (let row = top; row < Math.min(rows, top + TILE); row++) {
        for (let column = left; column < Math.min(columns, left + TILE); column++)
          values[column * rows + row] = stored[row * columns + column]!;
      }
    }
  }
  return values;
}
