/**
 * MLX: `weight` of words [rows, columns * bits / 32], and `scales` and `biases` [rows, groups]: scale * code + bias. Matrices of experts are
 * stacked in one tensor [experts, rows, ..], named `switch_mlp`; they are read as one matrix, as those of GGUF files are.
 */
import type { MlxScheme } from '../../util/integer-config.ts';
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { blocksOf, groupsInOrder, misfit, spell } from './integer-matrix.ts';
import type { CodeRows, Found, IntegerMatrix } from './integer-matrix.ts';
import { bytesOf, wordsOf } from './stored-numbers.ts';
import { unpackRows } from './unpack-codes.ts';

const FLOATS = /^(?:F16|BF16|F32)$/;
/** mlx-lm's name of a layer's experts, which others call `experts`. */
const EXPERTS = '.switch_mlp.';
const BITS: readonly number[] = [2, 3, 4, 5, 6, 8];

/** Finds MLX's matrices: those of U32. */
export function findMlx(checkpoint: Checkpoint, path: string, scheme: MlxScheme): Found {
  const modules = checkpoint
    .names()
    .filter((name) => name.endsWith('.weight') && checkpoint.tensor(name)!.dtype === 'U32')
    .map((name) => name.slice(0, -'.weight'.length));
  const matrices = modules.map(
    (module) => [`${module.replace(EXPERTS, '.experts.')}.weight`, matrixOf(checkpoint, path, module, scheme)] as const,
  );
  const hidden = modules.flatMap((module) => [
    `${module}.scales`,
    `${module}.biases`,
    ...(module.includes(EXPERTS) ? [`${module}.weight`] : []),
  ]);
  return { matrices: new Map(matrices), hidden };
}

function matrixOf(checkpoint: Checkpoint, path: string, module: string, scheme: MlxScheme): IntegerMatrix {
  const [codes, scales, biases] = [`${module}.weight`, `${module}.scales`, `${module}.biases`];
  const { shape } = checkpoint.tensor(codes)!;
  const [inRow = 0, rows] = [shape.at(-1), product(shape.slice(0, -1))];
  const size = scheme.groupSizes.get(module) ?? scheme.groupSize;
  const steps = checkpoint.tensor(scales);
  const columns = (steps?.shape.at(-1) ?? 0) * size;
  const bits = (inRow * 32) / columns;
  const isPair = [scales, biases].every((name) => {
    const info = checkpoint.tensor(name);
    return info && FLOATS.test(info.dtype) && info.shape.join() === [...shape.slice(0, -1), columns / size].join();
  });
  const isMatrix = shape.length === 2 || (shape.length === 3 && module.includes(EXPERTS));
  if (!isPair || !isMatrix || !BITS.includes(bits)) {
    const beside = `${spell(scales, steps)}, ${spell(biases, checkpoint.tensor(biases))}`;
    throw misfit(
      path,
      codes,
      `is U32 [${shape.join(', ')}] and needs scales and biases of groups of ${size} columns beside it, floats [${rows}, groups]; ${beside}`,
    );
  }
  const groups = groupsInOrder(size, columns);
  const part = ({ from, to }: Range, width: number): Range => ({ from: from * width, to: to * width });
  const readRows = async (range: Range): Promise<CodeRows> => ({
    unpack: unpackRows(wordsOf(await bytesOf(checkpoint, codes, part(range, inRow))), inRow, bits),
    scales: await checkpoint.read(scales, part(range, groups.count)),
    offsets: await checkpoint.read(biases, part(range, groups.count)),
  });
  return {
    dtype: `MLX ${bits}-bit`,
    blocks: blocksOf({ bits, zero: 'offsets' }, columns, groups),
    shape: [rows, columns],
    groups,
    zero: 0,
    readRows,
  };
}
