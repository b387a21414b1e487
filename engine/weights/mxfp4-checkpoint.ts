/**
 * MXFP4 in safetensors, as gpt-oss is published: `NAME_blocks` and `NAME_scales` are read as one tensor NAME in ggml's blocks, which the
 * kernels read.
 */
import { EngineError } from '../errors.ts';
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { widenBlocks } from './block-format.ts';
import { BLOCK_FORMATS } from './block-types.ts';
import { finite, missingTensor } from './checkpoint.ts';
import type { Checkpoint, TensorInfo } from './checkpoint.ts';

const FORMAT = BLOCK_FORMATS.MXFP4;
/** Bytes of a block's codes; its scale is stored in another tensor. */
const CODES = FORMAT.bytes - 1;

/**
 * The checkpoint with its MXFP4 matrices as single tensors; the same checkpoint when it has none. Blocks are [.., K / 32, 16] bytes of two
 * codes each, the first in the low bits; scales are [.., K / 32] bytes, 2^(byte - 127). Throws EngineError('invalid_model') for blocks
 * without scales that fit. `path` names the checkpoint in messages.
 */
export function withMxfp4Blocks(checkpoint: Checkpoint, path: string): Checkpoint {
  const names = checkpoint.names().filter((name) => name.endsWith('_blocks') && checkpoint.tensor(name)!.dtype === 'U8');
  if (names.length === 0) return checkpoint;
  const tensors = new Map(names.map((stored) => [stored.slice(0, -'_blocks'.length), tensorOf(checkpoint, path, stored)] as const));
  return new Mxfp4Checkpoint(checkpoint, path, tensors);
}

interface Packed extends TensorInfo {
  readonly codes: string;
  readonly scales: string;
}

function tensorOf(checkpoint: Checkpoint, path: string, codes: string): Packed {
  const scales = codes.replace(/_blocks$/, '_scales');
  const { shape } = checkpoint.tensor(codes)!;
  const found = checkpoint.tensor(scales);
  const blocks = shape.slice(0, -1);
  const fits = found?.dtype === 'U8' && shape.length > 2 && shape.at(-1) === CODES && found.shape.join() === blocks.join();
  if (!fits) {
    const beside = found ? `${scales} beside it is ${found.dtype} [${found.shape.join(', ')}]` : `${scales} is missing beside it`;
    throw new EngineError('invalid_model', `${path}: tensor ${codes} is U8 [${shape.join(', ')}], and ${beside}; expected blocks of ${CODES} bytes and a U8 scale of each`); // prettier-ignore
  }
  return { dtype: FORMAT.name, blocks: FORMAT.name, shape: [...blocks.slice(0, -1), blocks.at(-1)! * FORMAT.values], codes, scales };
}

class Mxfp4Checkpoint implements Checkpoint {
  readonly #stored: Checkpoint;
  readonly #path: string;
  readonly #tensors: ReadonlyMap<string, Packed>;
  readonly #names: readonly string[];

  constructor(stored: Checkpoint, path: string, tensors: ReadonlyMap<string, Packed>) {
    this.#stored = stored;
    this.#path = path;
    this.#tensors = tensors;
    const hidden = new Set([...tensors.values()].flatMap(({ codes, scales }) => [codes, scales]));
    this.#names = [...stored.names().filter((name) => !hidden.has(name)), ...tensors.keys()];
  }

  names(): readonly string[] {
    return this.#names;
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#tensors.get(name) ?? this.#stored.tensor(name);
  }

  async read(name: string, elements?: Range): Promise<Float32Array> {
    const tensor = this.#tensors.get(name);
    if (!tensor) return this.#stored.read(name, elements);
    const { from, to } = elements ?? { from: 0, to: product(tensor.shape) };
    const blocks = { from: Math.floor(from / FORMAT.values), to: Math.ceil(to / FORMAT.values) };
    const values = new Float32Array((blocks.to - blocks.from) * FORMAT.values);
    widenBlocks(FORMAT, await this.#blocks(tensor, blocks), values);
    const first = blocks.from * FORMAT.values;
    return finite(values.subarray(from - first, to - first), this.#path, name, from);
  }

  async blocks(name: string, rows: Range): Promise<Uint8Array> {
    const tensor = this.#tensors.get(name);
    if (!tensor) throw missingTensor(name);
    const inRow = tensor.shape.at(-1)! / FORMAT.values;
    return this.#blocks(tensor, { from: rows.from * inRow, to: rows.to * inRow });
  }

  /**
   * Blocks [from, to) in ggml's layout: the scale, then 16 bytes with the codes of the first half in the low bits and those of the second
   * half in the high bits.
   */
  async #blocks({ codes, scales }: Packed, { from, to }: Range): Promise<Uint8Array> {
    const packed = await this.#bytes(codes, { from: from * CODES, to: to * CODES });
    const powers = await this.#bytes(scales, { from, to });
    const out = new Uint8Array((to - from) * FORMAT.bytes);
    for (let block = 0; block < powers.length; block++) {
      const [source, target] = [block * CODES, block * FORMAT.bytes];
      out[target] = powers[block]!;
      for (let i = 0; i < CODES / 2; i++) {
        const [low, high] = [packed[source + i]!, packed[source + CODES / 2 + i]!];
        out[target + 1 + 2 * i] = (low & 15) | ((high & 15) << 4);
        out[target + 2 + 2 * i] = (low >> 4) | (high & 0xf0);
      }
    }
    return out;
  }

  #bytes(name: string, bytes: Range): Promise<Uint8Array> {
    const read = this.#stored.stored?.(name, bytes);
    if (!read) throw missingTensor(name);
    return read;
  }

  stored(name: string, elements: Range, into?: Uint8Array): Promise<Uint8Array> | undefined {
    return this.#tensors.has(name) ? undefined : this.#stored.stored?.(name, elements, into);
  }

  readIds(name: string): Promise<Int32Array> {
    return this.#stored.readIds(name);
  }

  close(): Promise<void> {
    return this.#stored.close();
  }
}
