import { assert } from '../errors.ts';
import { alignUp, product } from '../util/math.ts';

/** Storage types. f16 is read as two halves per u32, so it needs no adapter feature. Integer types hold ids, packed int8 (4 per u32) and packed int4 (8 per u32). */
export type DType = 'f32' | 'f16' | 'u32' | 'i32';

export type TypedArray = Float32Array | Uint32Array | Int32Array | Uint16Array;

/** Bytes of one element. */
function dtypeBytes(dtype: DType): number {
  return dtype === 'f16' ? 2 : 4;
}

/** Bytes of a contiguous tensor, padded to the 4 bytes that WebGPU copies in. */
export function byteSize(dtype: DType, shape: readonly number[]): number {
  return Math.max(4, alignUp(product(shape) * dtypeBytes(dtype), 4));
}

/** Collects the tensors that a workspace owns, at any depth; views are left out. */
export function ownedTensors(workspace: object): Tensor[] {
  if (workspace instanceof Tensor) return workspace.isView ? [] : [workspace];
  return Object.values(workspace).flatMap((part: unknown) => (typeof part === 'object' && part !== null ? ownedTensors(part) : []));
}

/** Bytes of a texel of rgba32uint. */
export const TEXEL_BYTES = 16;
/** Texels per row of a texture: a power of two, so that kernels find a texel by a shift and a mask. */
export const TEXEL_ROW = 512;

/**
 * A contiguous row-major array on the device. It owns its memory unless it is a view (`rows`, `reshape`): a buffer, or, of words that kernels only read, a
 * storage texture (Device.texels). Identity matters: bind groups are cached by tensor, so workspaces keep their tensors.
 */
export class Tensor {
  readonly label: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly memory: GPUBuffer | GPUTexture;
  /** Offset in the buffer, in bytes; a multiple of 256 for views. */
  readonly offset: number;
  readonly byteLength: number;
  /** `buffer id:offset:length`, this tensor's part in the keys of bind groups. */
  readonly key: string;
  readonly isView: boolean;

  constructor(
    label: string,
    dtype: DType,
    shape: readonly number[],
    memory: GPUBuffer | GPUTexture,
    bufferId: string,
    offset: number,
    isView: boolean,
  ) {
    this.label = label;
    this.dtype = dtype;
    this.shape = shape;
    this.memory = memory;
    this.offset = offset;
    this.byteLength = byteSize(dtype, shape);
    this.key = `${bufferId}:${offset}:${this.byteLength}`;
    this.isView = isView;
  }

  /** The tensor's buffer; throws if it lies in a texture. */
  get buffer(): GPUBuffer {
    assert(!isTexture(this.memory), `${this.label} lies in a texture`);
    return this.memory;
  }

  /** The tensor's texture; undefined if it lies in a buffer. */
  get texture(): GPUTexture | undefined {
    return isTexture(this.memory) ? this.memory : undefined;
  }

  /** Number of elements. */
  get size(): number {
    return product(this.shape);
  }

  /** View of rows [from, to) of the first dimension. Two views of one buffer cannot be input and output of one dispatch. */
  rows(from: number, to: number): Tensor {
    const [first = 1, ...rest] = this.shape;
    assert(from >= 0 && from < to && to <= first, `rows ${from}..${to} of ${this.label} [${this.shape.join(', ')}]`);
    const offset = this.offset + from * product(rest) * dtypeBytes(this.dtype);
    assert(offset % 256 === 0, `row ${from} of ${this.label} starts at byte ${offset}, expected a multiple of 256`);
    return new Tensor(this.label, this.dtype, [to - from, ...rest], this.memory, this.bufferId, offset, true);
  }

  /** A view of the same bytes with another shape, of at most the same size. */
  reshape(shape: readonly number[]): Tensor {
    assert(byteSize(this.dtype, shape) <= this.byteLength, `reshape ${this.label} [${this.shape.join(', ')}] to [${shape.join(', ')}]`);
    return new Tensor(this.label, this.dtype, shape, this.memory, this.bufferId, this.offset, true);
  }

  get bufferId(): string {
    return this.key.slice(0, this.key.indexOf(':'));
  }
}

function isTexture(memory: GPUBuffer | GPUTexture): memory is GPUTexture {
  return 'format' in memory;
}
