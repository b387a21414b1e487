/**
 * NVFP4 of compressed-tensors (`weight_packed`, `weight_scale`, `weight_global_scale`, by which scales are divided) and of ModelOpt (`weight`,
 * `weight_scale`, `weight_scale_2`, by which they are multiplied): E2M1 codes [rows, columns / 2], two per byte, the first in the low bits, and
 * an E4M3 scale for each 16 columns. Scales of activations, which are for computing in 4 bits, are not needed.
 */
import type { Nvfp4Scheme } from '../../util/integer-config.ts';
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { groupsInOrder, misfit, spell } from './integer-matrix.ts';
import type { CodeRows, Found, IntegerMatrix } from './integer-matrix.ts';
import { bytesOf, wordsOf } from './stored-numbers.ts';
import { unpackRows } from './unpack-codes.ts';

const FORMAT = BLOCK_FORMATS.NVFP4;
/** Columns that share a scale, and bytes of their codes. */
const GROUP = 16;
const CODES = GROUP / 2;
/** Values of E2M1. */
const STEPS = Float32Array.from(FORMAT.table!, (doubled) => doubled / 2);
/** The first byte of an E4M3 float that is no scale: not a number, or below zero. */
const NO_SCALE = 0x7f;
const MINUS_ZERO = 0x80;
const OF_ACTIVATIONS = /\.(?:input_scale|input_global_scale|[kqv]_scale)$/;

/** The tensors of a module. */
interface Parts {
  readonly name: string;
  readonly codes: string;
  readonly scales: string;
  readonly whole: string;
}

/** Finds NVFP4 matrices: those of U8. */
export function findNvfp4(checkpoint: Checkpoint, path: string, { isDivided }: Nvfp4Scheme): Found {
  const names = checkpoint.names();
  const end = isDivided ? '.weight_packed' : '.weight';
  const found = names
    .filter((name) => name.endsWith(end) && checkpoint.tensor(name)!.dtype === 'U8')
    .map((codes): Parts => {
      const name = `${codes.slice(0, -end.length)}.weight`;
      return { name, codes, scales: `${name}_scale`, whole: isDivided ? `${name}_global_scale` : `${name}_scale_2` };
    });
  const matrices = found.map((parts) => [parts.name, matrixOf(checkpoint, path, parts, isDivided)] as const);
  const hidden = found.flatMap(({ codes, scales, whole }) => [codes, scales, whole]);
  return { matrices: new Map(matrices), hidden: [...hidden, ...names.filter((name) => OF_ACTIVATIONS.test(name))] };
}

function matrixOf(checkpoint: Checkpoint, path: string, parts: Parts, isDivided: boolean): IntegerMatrix {
  const { codes, scales, whole } = parts;
  const [info, steps, one] = [codes, scales, whole].map((name) => checkpoint.tensor(name));
  const [rows = 0, inRow = 0] = info!.shape;
  const columns = 2 * inRow;
  const fits = steps?.dtype === 'F8_E4M3' && steps.shape.join() === `${rows},${columns / GROUP}` && one && product(one.shape) === 1;
  if (!fits || info!.shape.length !== 2) {
    throw misfit(path, codes, `needs a scale of E4M3 for each ${GROUP} columns and one for all beside it; ${spell(scales, steps)}, ${spell(whole, one)}, ${spell(codes, info)}`); // prettier-ignore
  }
  const groups = groupsInOrder(GROUP, columns);
  const part = ({ from, to }: Range, width: number): Range => ({ from: from * width, to: to * width });
  const factor = async (): Promise<number> => {
    const [scale = 0] = await checkpoint.read(whole);
    return Math.fround(isDivided ? 1 / scale : scale);
  };
  const readRows = async (range: Range): Promise<CodeRows> => {
    const all = await factor();
    const stored = await checkpoint.read(scales, part(range, groups.count));
    return {
      unpack: unpackRows(wordsOf(await bytesOf(checkpoint, codes, part(range, inRow))), inRow / 4, 4),
      scales: stored.map((scale) => scale * all),
    };
  };
  const readBlocks = async (range: Range, out: Uint8Array): Promise<void> => {
    const [packed, bytes] = [
      await bytesOf(checkpoint, codes, part(range, inRow)),
      await bytesOf(checkpoint, scales, part(range, groups.count)),
    ];
    const bad = bytes.findIndex((byte) => byte >= NO_SCALE && byte !== MINUS_ZERO);
    if (bad >= 0)
      throw misfit(path, scales, `holds the byte ${bytes[bad]} at element ${range.from * groups.count + bad}, expected a scale of E4M3`);
    putBlocks(packed, bytes, await factor(), out);
  };
  const isWhole = columns % FORMAT.values === 0;
  return {
    dtype: 'NVFP4',
    shape: [rows, columns],
    groups,
    zero: 0,
    table: STEPS,
    readRows,
    ...(isWhole && { blocks: 'NVFP4', readBlocks }),
  };
}

/** Blocks of 64 values: the scale of all, four scales, and for each 16 values 8 bytes with the first 8 codes in the low bits. */
function putBlocks(packed: Uint8Array, scales: Uint8Array, whole: number, out: Uint8Array): void {
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  const inBlock = FORMAT.values / GROUP;
  for (let group = 0; group < scales.length; group++) {
    const place = group % inBlock;
    const block = ((group - place) / inBlock) * FORMAT.bytes;
    if (place === 0) view.setFloat32(block + FORMAT.places.scale, whole, true);
    out[block + FORMAT.places.scales! + place] = scales[group]!;
    const [source, target] = [group * CODES, block + FORMAT.places.codes + place * CODES];
    for (let i = 0; i < CODES / 2; i++) {
      const low = packed[source + i]!;
      const high = packed[source + CODES / 2 + i]!;
      out[target + 2 * i] = (low & 15) | ((high & 15) << 4);
      out[target + 2 * i + 1] = (low >> 4) | (high & 0xf0);
    }
  }
}
