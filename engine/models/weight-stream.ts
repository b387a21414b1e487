/**
 * Streams matrices from a file to the device, chunk by chunk: the host moves bytes, the device widens, narrows, quantises, checks and lays
 * them out.
 */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import type { TapOrder } from '../ops/conv.ts';
import { packBlocks, uploadGrid } from '../ops/pack-blocks.ts';
import { packFloats, packTaps } from '../ops/pack-floats.ts';
import { emptyLinear } from '../ops/pack-linear.ts';
import { randomBlocks, randomFloats } from '../ops/random-weights.ts';
import { TapFill, WeightFill } from '../ops/weight-fill.ts';
import type { WordPlace } from '../ops/weight-place.ts';
import type { LinearWeight } from '../ops/weight.ts';
import { nextPowerOfTwo, sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { storedFloat } from '../weights/checkpoint.ts';
import type { Checkpoint, StoredFloat } from '../weights/checkpoint.ts';
import { BLOCK_FORMATS } from '../weights/block-types.ts';
import type { BlockType } from '../weights/block-types.ts';
import type { FloatType, QuantizedType } from '../weights/storage.ts';

/** Bytes of a chunk. One chunk is on the host and two are on the device, one being packed while the other is uploaded. */
const CHUNK_BYTES = 16 * 2 ** 20;

/** Computes elements [from, to), always whole rows, to use instead of a tensor's own values. */
export type Values = (elements: Range) => Promise<Float32Array>;

/** A range of rows of a matrix in the file. */
export interface StreamedRows {
  readonly name: string;
  readonly rows: Range;
  readonly values?: Values | undefined;
}

/** A tensor with a value that cannot be stored, and the float type that could not hold it. */
export interface BadTensor {
  readonly name: string;
  readonly limit: FloatType;
}

/** The bytes of a chunk, uploaded from the host or generated on the device. */
interface Content {
  readonly byteLength: number;
  put(rec: Recorder, raw: Tensor): void;
}

/** Inputs of a kernel that packs a chunk. */
interface Sent {
  readonly raw: Tensor;
  readonly flags: Tensor;
  readonly tensor: number;
}

export class WeightStream {
  readonly #device: Device;
  readonly #checkpoint: Checkpoint;
  readonly #numbers: ReadonlyMap<string, number>;
  /** By streamed tensor: f16 where its values, or the scales of its blocks, are stored in f16. */
  readonly #limits = new Map<string, FloatType>();
  /** Reused for every chunk: fresh memory would have to be zeroed first and collected later. */
  readonly #host = new Uint8Array(CHUNK_BYTES);
  /** Used alternately: while the device packs one chunk, the next is uploaded. */
  readonly #slots: { raw?: Tensor; packed: Promise<void> }[] = [{ packed: Promise.resolve() }, { packed: Promise.resolve() }];
  #flags: Tensor | undefined;
  /** Grids of the types that were streamed; undefined for a type without. */
  readonly #grids = new Map<BlockType, Tensor | undefined>();

  constructor(device: Device, checkpoint: Checkpoint) {
    this.#device = device;
    this.#checkpoint = checkpoint;
    this.#numbers = new Map(checkpoint.names().map((name, i) => [name, i]));
  }

  /**
   * Streams columns [from, to) of rows of `width` values, stacked, as a matrix of `dtype`. Whether all values could be stored is reported
   * by `bad`.
   */
  async matrix(
    label: string,
    parts: readonly StreamedRows[],
    width: number,
    columns: Range,
    dtype: FloatType | QuantizedType,
    place?: WordPlace,
  ): Promise<LinearWeight> {
    const total = parts.reduce((sum, { rows }) => sum + sizeOf(rows), 0);
    const weight = emptyLinear(this.#device, label, total, sizeOf(columns), dtype, place);
    const fill = new WeightFill(this.#device, weight);
    let above = 0;
    for (const part of parts) {
      await this.rows(weight, fill, above, part, width, columns);
      above += sizeOf(part.rows);
    }
    fill.finish();
    return weight;
  }

  /** Streams columns [from, to) of rows of `width` values into the output features of `weight` from `first` on. */
  async rows(
    weight: LinearWeight,
    fill: WeightFill,
    first: number,
    { name, rows, values }: StreamedRows,
    width: number,
    columns: Range,
  ): Promise<void> {
    for (const chunk of chunksOf(rows, width)) {
      const begin = first + chunk.from - rows.from;
      const end = first + chunk.to - rows.from;
      const { content, source } = await this.#floats(name, { from: chunk.from * width, to: chunk.to * width }, values);
      await this.#send(name, floatLimit(weight), content, (rec, sent) => {
        for (const { into, from, count } of fill.pieces(rec, begin, end)) {
          packFloats(rec, {
            ...sent, source, width, firstRow: from - begin, rows: count, column: columns.from, columns: sizeOf(columns), into,
          }); // prettier-ignore
        }
      });
    }
  }

  /**
   * Streams columns [from, to) of rows of `width` values, stacked, in the file's quantised blocks; `from` and `to` must not cut a block.
   */
  async blocks(label: string, parts: readonly StreamedRows[], width: number, columns: Range, type: BlockType): Promise<LinearWeight> {
    const { values, bytes } = BLOCK_FORMATS[type];
    const total = parts.reduce((sum, { rows }) => sum + sizeOf(rows), 0);
    const weight = emptyLinear(this.#device, label, total, sizeOf(columns), type);
    const fill = new WeightFill(this.#device, weight);
    if (!this.#grids.has(type)) this.#grids.set(type, uploadGrid(this.#device, type));
    const grid = this.#grids.get(type);
    let above = 0;
    for (const { name, rows } of parts) {
      for (const chunk of chunksOf(rows, ((width / values) * bytes) / 4)) {
        const begin = above + chunk.from - rows.from;
        const content = await this.#blocks(name, chunk, width, type);
        await this.#send(name, 'f32', content, (rec, sent) => {
          for (const { into, from, count } of fill.pieces(rec, begin, begin + sizeOf(chunk))) {
            packBlocks(rec, {
              ...sent, grid, width, firstRow: from - begin, rows: count, column: columns.from, columns: sizeOf(columns), into,
            }); // prettier-ignore
          }
        });
      }
      above += sizeOf(rows);
    }
    fill.finish();
    return weight;
  }

  /** Streams the weights of a convolution, stored as floats. */
  async taps(
    label: string,
    name: string,
    order: TapOrder,
    { dtype, place, values }: { readonly dtype: FloatType; readonly place: WordPlace; readonly values?: Values | undefined },
  ): Promise<LinearWeight> {
    const weight = emptyLinear(this.#device, label, order.columns, order.depth, dtype, place);
    const fill = new TapFill(this.#device, weight);
    for (const chunk of chunksOf({ from: 0, to: order.fileRows }, order.fileWidth)) {
      const elements = { from: chunk.from * order.fileWidth, to: chunk.to * order.fileWidth };
      const { outColumn, ...layout } = order.of(chunk);
      const { content, source } = await this.#floats(name, elements, values);
      await this.#send(name, floatLimit(weight), content, (rec, sent) => {
        for (const into of fill.targets(outColumn)) packTaps(rec, { ...sent, source, ...layout, into });
      });
    }
    fill.finish();
    return weight;
  }

  /** Returns the tensors with values that could not be stored. Frees the stream's buffers: nothing can be streamed after this. */
  async bad(): Promise<readonly BadTensor[]> {
    if (!this.#flags) return [];
    const values = await this.#device.read(this.#flags);
    this.#device.destroy(
      this.#flags,
      ...this.#slots.flatMap(({ raw }) => raw ?? []),
      ...[...this.#grids.values()].flatMap((grid) => grid ?? []),
    );
    this.#flags = undefined;
    this.#grids.clear();
    for (const slot of this.#slots) delete slot.raw;
    return [...this.#numbers].flatMap(([name, i]) => (values[i] ? [{ name, limit: this.#limits.get(name)! }] : []));
  }

  /** Content of rows of `width` values, in quantised blocks as the file stores them. */
  async #blocks(name: string, rows: Range, width: number, type: BlockType): Promise<Content> {
    const { values, bytes } = BLOCK_FORMATS[type];
    const random = this.#checkpoint.random?.(name);
    if (!random) return this.#bytes(await this.#checkpoint.blocks!(name, rows, this.#host));
    assert('type' in random && random.type === type, `${name}: no blocks of ${type}`);
    const blocks = { from: (rows.from * width) / values, to: (rows.to * width) / values };
    return { byteLength: sizeOf(blocks) * bytes, put: (rec, raw) => randomBlocks(rec, { raw, random, blocks }) };
  }

  /** Content of a tensor's elements as the file stores them, or widened to f32 where the device cannot read that type. */
  async #floats(
    name: string,
    elements: Range,
    values: Values | undefined,
  ): Promise<{ readonly content: Content; readonly source: StoredFloat }> {
    const source = values ? undefined : storedFloat(this.#checkpoint.tensor(name)!);
    const random = source && this.#checkpoint.random?.(name);
    if (random && !('type' in random)) {
      const byteLength = sizeOf(elements) * (source === 'F32' ? 4 : 2);
      return { content: { byteLength, put: (rec, raw) => randomFloats(rec, { raw, random, values: elements, source }) }, source };
    }
    const stored = source && this.#checkpoint.stored?.(name, elements, this.#host);
    if (stored) return { content: this.#bytes(await stored), source };
    return { content: this.#bytes(await (values?.(elements) ?? this.#checkpoint.read(name, elements))), source: 'F32' };
  }

  #bytes(data: Uint8Array | Float32Array): Content {
    return { byteLength: data.byteLength, put: (_, raw) => this.#device.write(raw, data) };
  }

  /**
   * Puts a chunk on the device and packs it, as soon as the chunk before the last one is packed; `limit` is the type that must hold its
   * values.
   */
  async #send(name: string, limit: FloatType, content: Content, pack: (rec: Recorder, sent: Sent) => void): Promise<void> {
    const device = this.#device;
    const slot = this.#slots.shift()!;
    this.#slots.push(slot);
    await slot.packed;
    if (!slot.raw || slot.raw.byteLength < content.byteLength) {
      if (slot.raw) device.destroy(slot.raw);
      // Most chunks are of one size; those of a small model need no large buffer.
      slot.raw = device.tensor('raw weights', 'u32', [nextPowerOfTwo(Math.max(256, content.byteLength)) / 4]);
    }
    this.#flags ??= device.tensor('bad weights', 'u32', [this.#numbers.size]);
    if (this.#limits.get(name) !== 'f16') this.#limits.set(name, limit);
    const rec = device.record('pack weights');
    content.put(rec, slot.raw);
    pack(rec, { raw: slot.raw, flags: this.#flags, tensor: this.#numbers.get(name)! });
    slot.packed = rec.submit().finished();
  }
}

/** The float type that limits the values of a weight; the scales of quantised blocks are f16 too. */
function floatLimit({ parts }: LinearWeight): FloatType {
  return parts[0]!.dtype === 'f32' ? 'f32' : 'f16';
}

/** Cuts rows of `width` values into chunks that hold CHUNK_BYTES in f32: multiples of 4 rows, unless rows are too long for that. */
export function chunksOf(rows: Range, width: number): readonly Range[] {
  const most = Math.max(1, Math.floor(CHUNK_BYTES / 4 / width));
  const step = most > 4 ? most - (most % 4) : most;
  const chunks: Range[] = [];
  for (let from = rows.from; from < rows.to; from += step) chunks.push({ from, to: Math.min(rows.to, from + step) });
  return chunks;
}
