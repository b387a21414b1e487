/** A checkpoint whose integer-quantised matrices are read as one tensor each, in ggml's blocks where some type holds them. */
import { EngineError } from '../../errors.ts';
import type { IntegerScheme } from '../../util/integer-config.ts';
import { product, sizeOf } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { widenBlocks } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import { finite, missingTensor } from '../checkpoint.ts';
import type { Checkpoint, TensorInfo } from '../checkpoint.ts';
import { findBitsAndBytes } from './bitsandbytes.ts';
import { findCompressed } from './compressed-tensors.ts';
import { encodeRows, widenRows } from './encode-rows.ts';
import { findAwq, findGptq } from './gptq-awq.ts';
import type { Found, IntegerMatrix } from './integer-matrix.ts';
import { findMlx } from './mlx.ts';
import { findNvfp4 } from './nvfp4.ts';

/** Values that are widened at once. */
const MOST_VALUES = 2 ** 20;

/**
 * The checkpoint with its matrices of integers as single tensors NAME.weight; the same checkpoint where config.json tells of none. Throws
 * EngineError('invalid_model') for codes without scales that fit, and for GPTQ's or AWQ's of which config.json says nothing. `path` names
 * the checkpoint in messages.
 */
export async function withIntegers(checkpoint: Checkpoint, path: string, scheme: IntegerScheme | undefined): Promise<Checkpoint> {
  if (!scheme) {
    const codes = checkpoint.names().find((name) => name.endsWith('.qweight'));
    if (codes === undefined) return checkpoint;
    throw new EngineError('invalid_model', `${path}: tensor ${codes} is quantised, and config.json does not say how (quantization_config)`);
  }
  return new IntegerCheckpoint(checkpoint, path, await find(checkpoint, path, scheme));
}

function find(checkpoint: Checkpoint, path: string, scheme: IntegerScheme): Promise<Found> | Found {
  switch (scheme.method) {
    case 'gptq':
      return findGptq(checkpoint, path, scheme);
    case 'awq':
      return findAwq(checkpoint, path, scheme);
    case 'compressed-tensors':
      return findCompressed(checkpoint, path, scheme);
    case 'mlx':
      return findMlx(checkpoint, path, scheme);
    case 'nvfp4':
      return findNvfp4(checkpoint, path, scheme);
    case 'bitsandbytes':
      return findBitsAndBytes(checkpoint, path, scheme);
  }
}

class IntegerCheckpoint implements Checkpoint {
  readonly #stored: Checkpoint;
  readonly #path: string;
  readonly #matrices: ReadonlyMap<string, IntegerMatrix>;
  readonly #hidden: ReadonlySet<string>;
  readonly #names: readonly string[];

  constructor(stored: Checkpoint, path: string, { matrices, hidden, optional = [] }: Found) {
    this.#stored = stored;
    this.#path = path;
    this.#matrices = matrices;
    this.#hidden = new Set(hidden);
    const unlisted = new Set([...this.#hidden, ...optional, ...matrices.keys()]);
    this.#names = [...stored.names().filter((name) => !unlisted.has(name)), ...matrices.keys()];
  }

  names(): readonly string[] {
    return this.#names;
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#matrices.get(name) ?? (this.#hidden.has(name) ? undefined : this.#stored.tensor(name));
  }

  async read(name: string, elements?: Range): Promise<Float32Array> {
    const matrix = this.#matrices.get(name);
    if (!matrix) return this.#stored.read(name, elements);
    const { from, to } = elements ?? { from: 0, to: product(matrix.shape) };
    const [, width] = matrix.shape;
    const out = new Float32Array(to - from);
    const step = Math.max(1, Math.floor(MOST_VALUES / width));
    for (let row = Math.floor(from / width); row * width < to; row += step) {
      const rows = { from: row, to: Math.min(row + step, Math.ceil(to / width)) };
      const [first, last] = [Math.max(from, rows.from * width), Math.min(to, rows.to * width)];
      const into = out.subarray(first - from, last - from);
      // Mostly whole rows are read, which need no copy.
      const whole = into.length === sizeOf(rows) * width ? into : new Float32Array(sizeOf(rows) * width);
      await widen(matrix, rows, whole);
      if (whole !== into) into.set(whole.subarray(first - rows.from * width, last - rows.from * width));
    }
    return finite(out, this.#path, name, from);
  }

  async blocks(name: string, rows: Range, into?: Uint8Array): Promise<Uint8Array> {
    const matrix = this.#matrices.get(name);
    if (!matrix?.blocks) throw missingTensor(name);
    const { values, bytes } = BLOCK_FORMATS[matrix.blocks];
    const length = ((sizeOf(rows) * matrix.shape[1]) / values) * bytes;
    const out = into && into.length >= length ? into.subarray(0, length) : new Uint8Array(length);
    await encoded(matrix, rows, out);
    return out;
  }

  stored(name: string, elements: Range, into?: Uint8Array): Promise<Uint8Array> | undefined {
    return this.#matrices.has(name) ? undefined : this.#stored.stored?.(name, elements, into);
  }

  readIds(name: string): Promise<Int32Array> {
    return this.#stored.readIds(name);
  }

  close(): Promise<void> {
    return this.#stored.close();
  }
}

/** Writes rows of a matrix in its type of blocks into `out`. */
async function encoded(matrix: IntegerMatrix, rows: Range, out: Uint8Array): Promise<void> {
  if (matrix.readBlocks) await matrix.readBlocks(rows, out);
  else encodeRows(matrix, await matrix.readRows(rows), sizeOf(rows), out);
}

/** Widens whole rows: to what blocks stand for, where the matrix is read in blocks, so that both ways give the same bits. */
async function widen(matrix: IntegerMatrix, rows: Range, out: Float32Array): Promise<void> {
  if (!matrix.blocks) return widenRows(matrix, await matrix.readRows(rows), sizeOf(rows), out);
  const format = BLOCK_FORMATS[matrix.blocks];
  const blocks = new Uint8Array((out.length / format.values) * format.bytes);
  await encoded(matrix, rows, blocks);
  widenBlocks(format, blocks, out);
}
