/**
 * A checkpoint of random weights: matrices that the device generates, and vectors of ones, so that norms do nothing and activations keep
 * their magnitude.
 */
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { widenBlocks } from '../block-format.ts';
import { BLOCK_FORMATS } from '../block-types.ts';
import type { BlockType } from '../block-types.ts';
import { shapeOf } from '../checkpoint.ts';
import type { Checkpoint, RandomTensor, StoredFloat, TensorInfo } from '../checkpoint.ts';
import { blocksOf, floatsOf, randomBlocks, randomFloats } from './random-values.ts';

/** Storage type of matrices. */
export type RandomType = StoredFloat | BlockType;

/** Storage types by the name that a user writes, such as q4_k: ggml's types, and floats. */
export const RANDOM_TYPES: ReadonlyMap<string, RandomType> = new Map(
  (['F32', 'F16', 'BF16', ...(Object.keys(BLOCK_FORMATS) as BlockType[])] as const).map((type) => [type.toLowerCase(), type]),
);

/** Types with blocks of 32 for rows that blocks of 256 would cut, as llama.cpp chooses them (tensor_type_fallback); IQ4_NL for the others. */
const NARROW: Partial<Readonly<Record<BlockType, BlockType>>> = { Q4_K: 'Q5_0', Q5_K: 'Q5_1', Q6_K: 'Q8_0' };

export class RandomCheckpoint implements Checkpoint {
  readonly #shapes: ReadonlyMap<string, readonly number[]>;
  readonly #type: RandomType;
  readonly #seed: number;

  constructor(shapes: Readonly<Record<string, readonly number[]>>, type: RandomType, seed: number) {
    this.#shapes = new Map(Object.entries(shapes));
    this.#type = type;
    this.#seed = seed;
  }

  names(): readonly string[] {
    return [...this.#shapes.keys()];
  }

  tensor(name: string): TensorInfo | undefined {
    const shape = this.#shapes.get(name);
    if (!shape) return undefined;
    if (shape.length < 2) return { dtype: 'F32', shape };
    const type = storedFor(this.#type, shape[1]!);
    return isFloat(type) ? { dtype: type, shape } : { dtype: type, blocks: type, shape };
  }

  random(name: string): RandomTensor | undefined {
    const info = this.tensor(name);
    if (!info || info.shape.length < 2) return undefined;
    const width = product(info.shape.slice(1));
    const seed = hashOf(`${this.#seed} ${name}`);
    return info.blocks ? randomBlocks(seed, info.blocks, width) : randomFloats(seed, width);
  }

  read(name: string, elements?: Range): Promise<Float32Array> {
    const { from, to } = elements ?? { from: 0, to: product(shapeOf(this, name)) };
    const random = this.random(name);
    if (!random) return Promise.resolve(new Float32Array(to - from).fill(1));
    if (!('type' in random)) return Promise.resolve(floatsOf(random, { from, to }));
    const format = BLOCK_FORMATS[random.type];
    const blocks = { from: Math.floor(from / format.values), to: Math.ceil(to / format.values) };
    const out = new Float32Array((blocks.to - blocks.from) * format.values);
    widenBlocks(format, blocksOf(random, blocks), out);
    const first = from - blocks.from * format.values;
    return Promise.resolve(out.subarray(first, first + to - from));
  }

  readIds(): Promise<Int32Array> {
    return Promise.resolve(new Int32Array());
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function isFloat(type: RandomType): type is StoredFloat {
  return !(type in BLOCK_FORMATS);
}

/** Storage of a matrix with rows of this width, in a model of `type`. */
function storedFor(type: RandomType, width: number): RandomType {
  if (isFloat(type) || width % BLOCK_FORMATS[type].values === 0) return type;
  const narrow = NARROW[type] ?? 'IQ4_NL';
  return BLOCK_FORMATS[type].values === 256 && width % BLOCK_FORMATS[narrow].values === 0 ? narrow : 'F16';
}

/** FNV-1a hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
