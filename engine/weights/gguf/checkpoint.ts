import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import { ceilDiv, product, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { widenBlocks } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import { finite, missingTensor } from '../checkpoint.ts';
import type { Checkpoint, TensorInfo } from '../checkpoint.ts';
import { NVFP4_BYTES, scaledBlocks } from './nvfp4.ts';
import { rowLength } from './tensor-names.ts';
import type { NamedTensor } from './tensor-names.ts';
import type { GgufTensor } from './header.ts';

/** An open GGUF file: the model, or one part of it. */
export interface OpenPart {
  readonly path: string;
  readonly source: ByteSource;
}

/**
 * The tensors of a GGUF file, or of its parts, under Hugging Face's names and in its order of rows; read as f32 values or in the file's
 * blocks.
 */
export class GgufCheckpoint implements Checkpoint {
  readonly #tensors: ReadonlyMap<string, NamedTensor>;
  readonly #parts: readonly OpenPart[];
  readonly #read = new Map<string, Promise<Float32Array>>();

  constructor(tensors: ReadonlyMap<string, NamedTensor>, parts: readonly OpenPart[]) {
    this.#tensors = tensors;
    this.#parts = parts;
  }

  names(): readonly string[] {
    return [...this.#tensors.keys()];
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#tensors.get(name)?.tensor;
  }

  async read(name: string, elements?: Range): Promise<Float32Array> {
    const { tensor, pairedRows, value } = this.#named(name);
    const part = this.#parts[tensor.part]!;
    const range = elements ?? { from: 0, to: product(tensor.shape) };
    if (tensor.blocks === 'NVFP4') return finite(await this.#readScaled(name, range), part.path, tensor.name, range.from);
    const read = (elements: Range): Promise<Float32Array> => readValues(part.source, tensor, elements);
    const values = pairedRows ? await readPaired(read, rowLength(tensor), pairedRows, range) : await read(range);
    if (value) for (let i = 0; i < values.length; i++) values[i] = value(values[i]!);
    return finite(values, part.path, tensor.name, range.from);
  }

  async blocks(name: string, rows: Range, into?: Uint8Array): Promise<Uint8Array> {
    const named = this.#named(name);
    const rowBytes = bytesOfRow(named.tensor);
    const range = { from: rows.from * rowBytes, to: rows.to * rowBytes };
    if (named.tensor.blocks !== 'NVFP4') return this.#bytes(named, range, into);
    const scales = (await this.#scales(name)) ?? Float32Array.of(1);
    const blocks = product(named.tensor.shape) / named.tensor.type.values / scales.length;
    const first = range.from / NVFP4_BYTES;
    return scaledBlocks(await this.#bytes(named, range), (block) => scales[Math.floor((first + block) / blocks)]!);
  }

  stored(name: string, { from, to }: Range, into?: Uint8Array): Promise<Uint8Array> | undefined {
    const named = this.#named(name);
    const { bytes } = named.tensor.type;
    return named.value ? undefined : this.#bytes(named, { from: from * bytes, to: to * bytes }, into);
  }

  async readIds(name: string): Promise<Int32Array> {
    throw new EngineError('invalid_model', `tensor ${name} is ${this.tensor(name)?.dtype ?? 'missing'}; a GGUF file has no tensors of ids`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts.map(({ source }) => source.close()));
  }

  /** Elements [from, to) of a tensor of NVFP4, rounded as on the device. */
  async #readScaled(name: string, { from, to }: Range): Promise<Float32Array> {
    const width = rowLength(this.#named(name).tensor);
    const rows = { from: Math.floor(from / width), to: ceilDiv(to, width) };
    const values = new Float32Array(sizeOf(rows) * width);
    widenBlocks(BLOCK_FORMATS.NVFP4, await this.blocks(name, rows), values);
    return values.subarray(from - rows.from * width, to - rows.from * width);
  }

  /** The scales of a tensor that has them beside it, read once. */
  #scales(name: string): Promise<Float32Array> | undefined {
    const { scale } = this.#named(name);
    if (!scale) return undefined;
    let read = this.#read.get(name);
    if (!read) this.#read.set(name, (read = readValues(this.#parts[scale.part]!.source, scale, { from: 0, to: product(scale.shape) })));
    return read;
  }

  #named(name: string): NamedTensor {
    const named = this.#tensors.get(name);
    if (!named) throw missingTensor(name);
    return named;
  }

  /** Bytes [from, to) of a tensor as the file stores it, in Hugging Face's order of rows. */
  #bytes({ tensor, pairedRows }: NamedTensor, range: Range, into?: Uint8Array): Promise<Uint8Array> {
    const { source } = this.#parts[tensor.part]!;
    const read = ({ from, to }: Range, into?: Uint8Array): Promise<Uint8Array> => source.read(tensor.start + from, to - from, into);
    return pairedRows ? readPaired(read, bytesOfRow(tensor), pairedRows, range) : read(range, into);
  }
}

function bytesOfRow(tensor: GgufTensor): number {
  return (rowLength(tensor) / tensor.type.values) * tensor.type.bytes;
}

/** Reads elements [from, to) of a tensor, in the file's order, widened to f32. */
export async function readValues(source: ByteSource, { type, start }: GgufTensor, { from, to }: Range): Promise<Float32Array> {
  const first = Math.floor(from / type.values);
  const last = ceilDiv(to, type.values);
  const bytes = await source.read(start + first * type.bytes, (last - first) * type.bytes);
  const values = new Float32Array((last - first) * type.values);
  type.widen(bytes, values);
  return values.subarray(from - first * type.values, to - first * type.values);
}

/**
 * Reads values or bytes of a tensor whose rows, `width` each, are permuted: the file's rows 2j and 2j + 1 of a head are Hugging Face's rows
 * j and j + D/2, because llama.cpp's converter puts the two channels of a rotary pair next to each other (conversion/llama.py, permute).
 */
async function readPaired<T extends Float32Array | Uint8Array>(
  read: (range: Range) => Promise<T>,
  width: number,
  headRows: number,
  range: Range,
): Promise<T> {
  const head = headRows * width;
  // Read whole heads; the range may be a part of them.
  const heads = { from: Math.floor(range.from / head) * head, to: ceilDiv(range.to, head) * head };
  const paired = await read(heads);
  const found = paired.slice() as T;
  for (let at = 0; at < found.length; at += head) {
    for (let row = 0; row < headRows; row++) {
      const from = at + ((row % (headRows / 2)) * 2 + Math.floor(row / (headRows / 2))) * width;
      found.set(paired.subarray(from, from + width), at + row * width);
    }
  }
  return found.subarray(range.from - heads.from, range.to - heads.from) as T;
}
