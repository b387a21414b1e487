/** Reads parts of stored tensors: bytes, words and floats of a range of columns. */
import { sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { missingTensor } from '../checkpoint.ts';
import type { Checkpoint } from '../checkpoint.ts';

/** Sizes of a tensor that is held for its next columns: a smaller one is soon read again, and of a larger one only pieces are read. */
const HELD_BYTES = { least: 4 * 2 ** 20, most: 64 * 2 ** 20 };
/** Reads that are under way at once. */
const AT_ONCE = 64;

/** Reads columns of tensors whose rows hold a column of the matrix each. */
export class ColumnReader {
  readonly #checkpoint: Checkpoint;
  /** The tensor that was read last: a matrix is loaded in a few pieces, one after the other, and each needs all of its rows. */
  #held: { readonly name: string; readonly bytes: Promise<Uint8Array> } | undefined;

  constructor(checkpoint: Checkpoint) {
    this.#checkpoint = checkpoint;
  }

  /** Reads columns [from, to) of all rows of a stored tensor [rows, columns], as u32 words [rows, columns]. */
  async words(name: string, columns: Range): Promise<Uint32Array> {
    const [rows = 0, width = 0] = this.#checkpoint.tensor(name)!.shape;
    const kept = sizeOf(columns);
    const size = rows * width * 4;
    const whole = (): Promise<Uint8Array> => bytesOf(this.#checkpoint, name, { from: 0, to: rows * width });
    if (kept === width) return wordsOf(await whole());
    if (size > HELD_BYTES.most) return this.#pieces(name, rows, width, columns);
    if (size >= HELD_BYTES.least && this.#held?.name !== name) this.#held = { name, bytes: whole() };
    const all = wordsOf(await (this.#held?.name === name ? this.#held.bytes : whole()));
    const out = new Uint32Array(rows * kept);
    for (let row = 0; row < rows; row++) out.set(all.subarray(row * width + columns.from, row * width + columns.to), row * kept);
    return out;
  }

  /** Reads each row's piece on its own. */
  async #pieces(name: string, rows: number, width: number, { from, to }: Range): Promise<Uint32Array> {
    const out = new Uint32Array(rows * (to - from));
    const read = async (row: number): Promise<void> => {
      const bytes = await bytesOf(this.#checkpoint, name, { from: row * width + from, to: row * width + to });
      out.set(wordsOf(bytes), row * (to - from));
    };
    for (let row = 0; row < rows; row += AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, rows - row) }, (_, i) => read(row + i)));
    }
    return out;
  }
}

/** Elements [from, to) of a stored tensor, in the file's byte order; the bytes are aligned to words. */
export async function bytesOf(checkpoint: Checkpoint, name: string, elements: Range): Promise<Uint8Array> {
  const reading = checkpoint.stored?.(name, elements);
  if (!reading) throw missingTensor(name);
  const bytes = await reading;
  return bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
}

/** Bytes as u32 words. */
export function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, byteLength >> 2);
}

/** Reads columns [from, to) of stored floats [rows, columns] as [columns, rows]. */
export async function readTurned(checkpoint: Checkpoint, name: string, columns: Range): Promise<Float32Array> {
  const [rows = 0, width = 0] = checkpoint.tensor(name)!.shape;
  const kept = sizeOf(columns);
  const row = (i: number): Promise<Float32Array> => checkpoint.read(name, { from: i * width + columns.from, to: i * width + columns.to });
  const pieces = kept === width ? [await checkpoint.read(name)] : await Promise.all(Array.from({ length: rows }, (_, i) => row(i)));
  const out = new Float32Array(rows * kept);
  pieces.forEach((values, piece) => {
    for (let i = 0; i < values.length; i++) out[(i % kept) * rows + piece + Math.floor(i / kept)] = values[i]!;
  });
  return out;
}
