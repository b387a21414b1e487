/** Transposes gpt-oss's float experts, which files store as [experts, inFeatures, outFeatures], unlike every other matrix. */
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint, TensorInfo } from '../../weights/checkpoint.ts';

/** Tensor names of the experts' matrices; those in MXFP4 have output features first already. */
const EXPERTS = /\.experts\.(gate_up|down)_proj$/;
/** Values of a file that are transposed at a time. */
const STRIP = 2 ** 20;

/** The same checkpoint with the experts' matrices as [experts, outFeatures, inFeatures], transposed as they are read. */
export function withRowsFirst(from: Checkpoint): Checkpoint {
  const isTurned = (name: string): boolean => EXPERTS.test(name) && from.tensor(name)?.blocks === undefined;
  const tensor = (name: string): TensorInfo | undefined => {
    const info = from.tensor(name);
    const [experts, columns, rows, ...more] = info?.shape ?? [];
    const isKnown = experts !== undefined && columns !== undefined && rows !== undefined && more.length === 0;
    return info && isTurned(name) && isKnown ? { ...info, shape: [experts, rows, columns] } : info;
  };
  return {
    names: () => from.names(),
    tensor,
    read: (name, elements) => (isTurned(name) ? readTurned(from, name, tensor(name)!.shape, elements) : from.read(name, elements)),
    ...(from.blocks && { blocks: (name, rows, into) => from.blocks!(name, rows, into) }),
    stored: (name, elements, into) => (isTurned(name) ? undefined : from.stored?.(name, elements, into)),
    readIds: (name) => from.readIds(name),
    close: () => from.close(),
  };
}

/**
 * Reads elements of [experts, rows, columns] from a file's [experts, columns, rows], holding one strip of the file on the host at a time.
 */
async function readTurned(
  from: Checkpoint,
  name: string,
  shape: readonly number[],
  { from: first, to: last }: Range = { from: 0, to: product(shape) },
): Promise<Float32Array> {
  const [, rows = 1, columns = 1] = shape;
  const out = new Float32Array(last - first);
  const step = Math.max(1, Math.floor(STRIP / rows));
  const matrix = rows * columns;
  for (let expert = Math.floor(first / matrix); expert * matrix < last; expert++) {
    const wanted = { from: Math.max(first, expert * matrix), to: Math.min(last, (expert + 1) * matrix) };
    const [top, bottom] = [Math.floor((wanted.from % matrix) / columns), Math.ceil((wanted.to - expert * matrix) / columns)];
    for (let column = 0; column < columns; column += step) {
      const end = Math.min(columns, column + step);
      const strip = await from.read(name, { from: expert * matrix + column * rows, to: expert * matrix + end * rows });
      for (let row = top; row < bottom; row++) {
        for (let c = column; c < end; c++) {
          const at = expert * matrix + row * columns + c;
          if (at >= first && at < last) out[at - first] = strip[(c - column) * rows + row]!;
        }
      }
    }
  }
  return out;
}
