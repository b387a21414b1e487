/** FP8 weights and the scales stored beside them, read as one tensor each: value times scale. */
import { EngineError } from '../errors.ts';
import { ceilDiv, product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import type { Fp8Scheme } from '../util/fp8-config.ts';
import type { Checkpoint, TensorInfo } from './checkpoint.ts';

/** Suffixes of the name of a matrix's scale. DeepSeek's `inv` means the same: stored values are multiplied by it. */
const SCALE_NAMES = ['_scale', '_scale_inv'];
/** Scales of activations and of the KV cache, which are not quantised to FP8 here. */
const OF_ACTIVATIONS = /\.(?:input_scale|input_scale_ub|activation_scale|output_scale|prob_output_scale|kv_scale|[qkv]_scale)$/;
const SCALE_TYPES = /^(?:F32|F16|BF16|F8_E8M0)$/;
/** Other tools' names of a scale. */
const SOME_SCALE = /scale|amax/i;

interface Scaled {
  readonly scale: string;
  /** Rows and columns that share a scale, and the number of scales per row of blocks. */
  readonly rows: number;
  readonly columns: number;
  readonly across: number;
}

/**
 * The checkpoint with its FP8 tensors multiplied by their scales, which are no longer listed as tensors; the same checkpoint when it has
 * none. Throws EngineError('invalid_model') for an FP8 tensor whose scale is not known. `path` names the checkpoint in messages; `scheme`
 * is what its config.json says of FP8, if anything.
 */
export function withFp8Scales(checkpoint: Checkpoint, path: string, scheme?: Fp8Scheme): Checkpoint {
  const names = checkpoint.names();
  const fp8 = names.filter((name) => /^F8_E[45]/.test(checkpoint.tensor(name)!.dtype));
  if (fp8.length === 0) return checkpoint;
  const scaled = new Map<string, Scaled>();
  for (const name of fp8) {
    const found = findScale(checkpoint, path, name, scheme);
    if (found) scaled.set(name, found);
  }
  const hidden = new Set([...[...scaled.values()].map(({ scale }) => scale), ...names.filter((name) => OF_ACTIVATIONS.test(name))]);
  return new Fp8Checkpoint(checkpoint, scaled, names.filter((name) => !hidden.has(name))); // prettier-ignore
}

class Fp8Checkpoint implements Checkpoint {
  readonly #stored: Checkpoint;
  readonly #scaled: ReadonlyMap<string, Scaled>;
  readonly #names: readonly string[];

  constructor(stored: Checkpoint, scaled: ReadonlyMap<string, Scaled>, names: readonly string[]) {
    this.#stored = stored;
    this.#scaled = scaled;
    this.#names = names;
  }

  names(): readonly string[] {
    return this.#names;
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#stored.tensor(name);
  }

  async read(name: string, elements?: Range): Promise<Float32Array> {
    const values = await this.#stored.read(name, elements);
    const scaled = this.#scaled.get(name);
    if (!scaled) return values;
    const width = this.#stored.tensor(name)!.shape.at(-1) ?? 1;
    const scales = await this.#stored.read(scaled.scale);
    const from = elements?.from ?? 0;
    for (let i = 0; i < values.length; i++) {
      const row = Math.floor((from + i) / width);
      const column = (from + i) % width;
      values[i]! *= scales[Math.floor(row / scaled.rows) * scaled.across + Math.floor(column / scaled.columns)]!;
    }
    return values;
  }

  stored(name: string, elements: Range, into?: Uint8Array): Promise<Uint8Array> | undefined {
    return this.#scaled.has(name) ? undefined : this.#stored.stored?.(name, elements, into);
  }

  readIds(name: string): Promise<Int32Array> {
    return this.#stored.readIds(name);
  }

  close(): Promise<void> {
    return this.#stored.close();
  }
}

/** Finds a tensor's scale and the part of the tensor that shares it; undefined for a tensor that needs none. */
function findScale(checkpoint: Checkpoint, path: string, name: string, scheme: Fp8Scheme | undefined): Scaled | undefined {
  const { dtype, shape } = checkpoint.tensor(name)!;
  const refuse = (why: string): never => {
    throw new EngineError('invalid_model', `${path}: tensor ${name} is ${dtype}, ${why}`);
  };
  const found = SCALE_NAMES.map((end) => name + end).filter((scale) => checkpoint.tensor(scale));
  const [scale] = found;
  if (found.length > 1) refuse(`and both ${found.join(' and ')} lie beside it`);
  if (scale === undefined) {
    const module = name.replace(/[^.]*$/, '');
    const other = checkpoint.names().find((one) => one.startsWith(module) && SOME_SCALE.test(one.slice(module.length)) && !OF_ACTIVATIONS.test(one)); // prettier-ignore
    // E5M2 has the range of half precision, so that weights are stored as they are; in E4M3 small weights would be zeros.
    if (dtype === 'F8_E5M2' && !scheme && other === undefined) return undefined;
    return refuse(`whose scale is not known: expected ${SCALE_NAMES.map((end) => name + end).join(' or ')}${other === undefined ? '' : `, found ${other}`}`); // prettier-ignore
  }
  const scales = checkpoint.tensor(scale)!;
  if (!SCALE_TYPES.test(scales.dtype)) refuse(`and its scale ${scale} is ${scales.dtype}, expected F32, F16, BF16 or F8_E8M0`);
  return { scale, ...(sharing(shape, scales.shape, scheme?.block) ?? refuse(describeMisfit(shape, scales.shape, scheme))) };
}

/** The part of a tensor that shares a scale, by the scales' shape: the whole tensor, a row, or a block; undefined when none fits. */
function sharing(shape: readonly number[], scales: readonly number[], block: Fp8Scheme['block']): Omit<Scaled, 'scale'> | undefined {
  if (product(scales) === 1) return { rows: Infinity, columns: Infinity, across: 1 };
  const [height = 0, width = 0] = shape;
  if (shape.length !== 2) return undefined;
  if (scales[0] === height && product(scales) === height) return { rows: 1, columns: width, across: 1 };
  if (!block) return undefined;
  const [rows, columns] = block;
  const across = ceilDiv(width, columns);
  return scales.length === 2 && scales[0] === ceilDiv(height, rows) && scales[1] === across ? { rows, columns, across } : undefined;
}

function describeMisfit(shape: readonly number[], scales: readonly number[], scheme: Fp8Scheme | undefined): string {
  const blocks = scheme?.block ? `, or one for ${scheme.block.join(' x ')} elements` : ' (config.json says nothing of blocks)';
  return `[${shape.join(', ')}], and its scale [${scales.join(', ')}]; expected one for all, or one for each row${blocks}`;
}
