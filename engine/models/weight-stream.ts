/** Matrices of floats from a file to the device, a chunk at a time: the host moves bytes, the device widens, narrows, checks and lays them out. */
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { packFloats } from '../ops/pack-floats.ts';
import { emptyLinear } from '../ops/pack-linear.ts';
import type { LinearWeight } from '../ops/weight.ts';
import { sizeOf } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { storedFloat } from '../weights/checkpoint.ts';
import type { Checkpoint } from '../weights/checkpoint.ts';
import type { FloatType } from '../weights/storage.ts';

/** Bytes that are read and uploaded at a time. Two chunks are on the host at most, and one in the driver. */
const CHUNK_BYTES = 16 * 2 ** 20;

/** Rows of a matrix in the file. */
export interface StreamedRows {
  readonly name: string;
  readonly rows: Range;
}

export class WeightStream {
  readonly #device: Device;
  readonly #checkpoint: Checkpoint;
  readonly #numbers: ReadonlyMap<string, number>;
  #buffers: { readonly raw: Tensor; readonly flags: Tensor } | undefined;
  /** The chunk that the device is at. */
  #running: Promise<void> = Promise.resolve();

  constructor(device: Device, checkpoint: Checkpoint) {
    this.#device = device;
    this.#checkpoint = checkpoint;
    this.#numbers = new Map(checkpoint.names().map((name, i) => [name, i]));
  }

  /** Whether a matrix with rows of `width` values can come this way. */
  takes(name: string, width: number): boolean {
    return this.#checkpoint.stored !== undefined && storedFloat(this.#checkpoint.tensor(name)!) !== undefined && width * 4 <= CHUNK_BYTES;
  }

  /** The columns [from, to) of rows of `width` values, one below the other. Whether the values can be stored, `bad` tells. */
  async matrix(label: string, parts: readonly StreamedRows[], width: number, columns: Range, dtype: FloatType): Promise<LinearWeight> {
    const total = parts.reduce((sum, { rows }) => sum + sizeOf(rows), 0);
    const weight = emptyLinear(this.#device, label, total, sizeOf(columns), dtype);
    let above = 0;
    for (const { name, rows } of parts) {
      const step = Math.floor(CHUNK_BYTES / 4 / width);
      for (let from = rows.from; from < rows.to; from += step) {
        const to = Math.min(rows.to, from + step);
        await this.#chunk(weight, above + from - rows.from, { name, rows: { from, to } }, width, columns);
      }
      above += sizeOf(rows);
    }
    return weight;
  }

  /** Names of tensors with values that cannot be stored; nothing can be streamed after this. */
  async bad(): Promise<readonly string[]> {
    if (!this.#buffers) return [];
    const { raw, flags } = this.#buffers;
    const values = await this.#device.read(flags);
    this.#device.destroy(raw, flags);
    this.#buffers = undefined;
    return [...this.#numbers].flatMap(([name, i]) => (values[i] ? [name] : []));
  }

  /** Rows that become the output features from `first` on. */
  async #chunk(weight: LinearWeight, first: number, { name, rows }: StreamedRows, width: number, columns: Range): Promise<void> {
    const device = this.#device;
    const bytes = await this.#checkpoint.stored!(name, { from: rows.from * width, to: rows.to * width });
    await this.#running;
    const { raw, flags } = (this.#buffers ??= {
      raw: device.tensor('raw weights', 'u32', [CHUNK_BYTES / 4]),
      flags: device.tensor('bad weights', 'u32', [this.#numbers.size]),
    });
    device.write(raw, bytes);
    const rec = device.record('pack weights');
    const end = first + sizeOf(rows);
    for (const part of weight.parts) {
      const from = Math.max(first, part.first);
      const count = Math.min(end, part.first + part.count) - from;
      if (count <= 0) continue;
      const source = storedFloat(this.#checkpoint.tensor(name)!)!;
      packFloats(rec, {
        raw, source, width, firstRow: from - first, rows: count, column: columns.from, columns: sizeOf(columns), part, outColumn: from - part.first,
        flags, tensor: this.#numbers.get(name)!,
      }); // prettier-ignore
    }
    this.#running = rec.submit().finished();
  }
}
