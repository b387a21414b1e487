/**
 * A GPU that computes nothing. Of all that is read back from it, it knows what that would be computed from: its provenance, a digest of the uploaded bytes, the WGSL, the
 * constants, the parameters and the grids of the dispatches that it depends on, in the order in which they depend on each other. Equal provenances mean equal bytes on the same
 * adapter. What leads to nothing that is read does not count, nor does where in memory something lies.
 */
import { createHash } from 'node:crypto';
import { Device } from '../../engine/gpu/device.ts';
import type { Platform } from '../../engine/platform/platform.ts';

/** Digest of texts, numbers and bytes, as 16 characters. */
export function digestOf(...parts: readonly unknown[]): string {
  const hash = createHash('sha256');
  for (const part of parts)
    if (ArrayBuffer.isView(part))
      hash.update(`${part.byteLength} bytes\n`).update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
    else hash.update(`${JSON.stringify(part)}\n`);
  return hash.digest('base64url').slice(0, 16);
}

/** A buffer or a texture. */
class Memory {
  readonly size: number;
  readonly usage: number;
  readonly width: number;
  readonly height: number;
  readonly format: string | undefined;
  /** What it holds: the digest of how that came to be. */
  state = 'zeros';
  /** The bytes of a uniform buffer, of which a dispatch reads few. */
  readonly bytes: Uint8Array | undefined;
  /** Behind this byte it holds zeros. */
  #end = 0;

  constructor({ size, usage, format }: { readonly size: number | readonly number[]; readonly usage: number; readonly format?: string }) {
    const [width, height = 1] = typeof size === 'number' ? [size] : (size as [number, number]);
    this.width = width;
    this.height = height;
    this.size = width * height * (format === undefined ? 1 : 16);
    this.usage = usage;
    this.format = format;
    if (format === undefined) delete (this as { format?: string }).format;
    if (usage & GPUBufferUsage.UNIFORM && format === undefined) this.bytes = new Uint8Array(this.size);
  }

  /** It holds `what` from byte `first` on. */
  put(what: string, first: number, length: number): void {
    const isAll = first === 0 && length >= this.#end;
    this.state = digestOf('put', isAll ? '' : this.state, what, first, length);
    this.#end = Math.max(this.#end, first + length);
  }

  /** A dispatch has written to it. */
  become(state: string): void {
    this.state = state;
    this.#end = this.size;
  }

  createView(): Memory {
    return this;
  }

  destroy(): void {
    this.state = 'destroyed';
  }

  /** The mapped range of a buffer that is read: zeros. */
  getMappedRange(first = 0, length = this.size - first): ArrayBuffer {
    return new ArrayBuffer(length);
  }

  unmap(): void {
    // Nothing was mapped.
  }
}

/** A pipeline: what is computed, without the memory that it is computed from. */
interface Pipeline {
  readonly what: string;
}

interface Binding {
  readonly memory: Memory;
  readonly first: number;
  readonly length: number;
  readonly isUniform: boolean;
  readonly isWritten: boolean;
}

type Command = () => void;

/** The WebGPU of it: what the engine calls, and nothing else. */
class ProvenanceGpu {
  /** Provenances of what was read, in order. */
  readonly read: string[] = [];
  readonly lost = new Promise<never>(() => undefined);
  readonly limits: GPUSupportedLimits;
  readonly queue = {
    writeBuffer: (to: Memory, first: number, data: ArrayBuffer | ArrayBufferView, from = 0, length?: number): void => {
      const whole = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
      // Offset and length count elements of a typed array.
      const unit = ArrayBuffer.isView(data) && 'BYTES_PER_ELEMENT' in data ? (data.BYTES_PER_ELEMENT as number) : 1;
      const bytes = whole.subarray(from * unit, length === undefined ? undefined : (from + length) * unit);
      if (to.bytes) to.bytes.set(bytes, first);
      else to.put(digestOf(bytes), first, bytes.length);
    },
    submit: (buffers: readonly (readonly Command[])[]): void => {
      for (const commands of buffers) for (const command of commands) command();
    },
    onSubmittedWorkDone: () => Promise.resolve(),
  };

  constructor(limits: GPUSupportedLimits) {
    this.limits = limits;
  }

  addEventListener(): void {
    // It has no errors.
  }

  destroy(): void {
    // It has nothing.
  }

  pushErrorScope(): void {
    // As above.
  }

  popErrorScope(): Promise<null> {
    return Promise.resolve(null);
  }

  createBuffer(descriptor: GPUBufferDescriptor): object {
    const memory = new Memory(descriptor);
    const mapAsync = (_: number, first = 0, length = memory.size - first): Promise<void> => {
      this.read.push(digestOf('read', memory.state, first, length));
      return Promise.resolve();
    };
    return Object.assign(memory, { mapAsync });
  }

  createTexture(descriptor: { readonly size: readonly number[]; readonly usage: number; readonly format: string }): Memory {
    return new Memory(descriptor);
  }

  createShaderModule({ code }: GPUShaderModuleDescriptor): object {
    return { code, getCompilationInfo: () => Promise.resolve({ messages: [] }) };
  }

  createBindGroupLayout({ entries }: GPUBindGroupLayoutDescriptor): object {
    return { entries };
  }

  createPipelineLayout({ bindGroupLayouts }: GPUPipelineLayoutDescriptor): object {
    return { bindGroupLayouts };
  }

  createComputePipeline({ layout, compute }: GPUComputePipelineDescriptor): object {
    const { code } = compute.module as unknown as { code: string };
    return { what: digestOf(code, compute.entryPoint, compute.constants, layout) } satisfies Pipeline;
  }

  createComputePipelineAsync(descriptor: GPUComputePipelineDescriptor): Promise<object> {
    return Promise.resolve(this.createComputePipeline(descriptor));
  }

  createBindGroup({ layout, entries }: GPUBindGroupDescriptor): readonly Binding[] {
    const { entries: declared } = layout as unknown as { entries: readonly GPUBindGroupLayoutEntry[] };
    return [...entries].map(({ binding, resource }) => {
      const { buffer, storageTexture } = declared.find((entry) => entry.binding === binding)!;
      const bound = resource as unknown as Memory | { readonly buffer: Memory; readonly offset: number; readonly size: number };
      const [memory, first, length] = bound instanceof Memory ? [bound, 0, bound.size] : [bound.buffer, bound.offset, bound.size];
      const isWritten = buffer?.type === 'storage' || (storageTexture !== undefined && storageTexture.access !== 'read-only');
      return { memory, first, length, isUniform: buffer?.type === 'uniform', isWritten };
    });
  }

  createCommandEncoder(): object {
    const commands: Command[] = [];
    const copy = (from: Memory, to: Memory, put: (what: string) => void, ...how: readonly unknown[]): void =>
      void commands.push(() => put(digestOf('copy', from.state, from.format, to.format, ...how)));
    type Linear = { readonly buffer: Memory; readonly offset: number; readonly bytesPerRow?: number };
    type Texels = { readonly texture: Memory; readonly origin?: readonly number[] };
    const rows = ({ origin = [] }: Texels, [width, height]: readonly number[]): readonly [number, number] => {
      const [x = 0, y = 0] = origin;
      if (x !== 0) throw new Error('copies of whole rows only');
      return [y, width! * height! * 16];
    };
    return {
      beginComputePass: () => passInto(commands),
      copyBufferToBuffer: (from: Memory, fromByte: number, to: Memory, toByte: number, bytes: number) =>
        copy(from, to, (what) => to.put(what, toByte, bytes), fromByte, bytes),
      copyBufferToTexture: (from: Linear, to: Texels, size: readonly number[]) => {
        const [row, bytes] = rows(to, size);
        const first = row * to.texture.width * 16;
        copy(from.buffer, to.texture, (what) => to.texture.put(what, first, bytes), from.offset, from.bytesPerRow, size);
      },
      copyTextureToBuffer: (from: Texels, to: Linear, size: readonly number[]) => {
        const [row, bytes] = rows(from, size);
        copy(from.texture, to.buffer, (what) => to.buffer.put(what, to.offset, bytes), row, to.bytesPerRow, size, from.texture.width);
      },
      copyTextureToTexture: ({ texture: from }: Texels, { texture: to }: Texels, size: readonly number[]) =>
        copy(from, to, (what) => to.put(what, 0, size[0]! * size[1]! * 16), size, from.width, to.width),
      finish: () => commands,
    };
  }
}

/** A compute pass whose dispatches are appended to `commands`. */
function passInto(commands: Command[]): object {
  let pipeline: Pipeline;
  let group: readonly Binding[];
  let offsets: readonly number[];
  return {
    setPipeline: (next: Pipeline) => void (pipeline = next),
    setBindGroup: (_: number, next: readonly Binding[], dynamic: readonly number[]) => void ([group, offsets] = [next, dynamic]),
    dispatchWorkgroups: (...grid: readonly number[]) => {
      const [what, bindings, dynamic] = [pipeline.what, group, offsets];
      commands.push(() => dispatch(what, bindings, dynamic, grid));
    },
    end: () => undefined,
  };
}

function dispatch(what: string, bindings: readonly Binding[], offsets: readonly number[], grid: readonly number[]): void {
  let uniforms = 0;
  const parts: unknown[] = [what, grid];
  // Two bindings of the same memory read what the other writes, if they overlap.
  const memories = bindings.map(({ memory }) => memory);
  for (const { memory, first, length, isUniform } of bindings) {
    if (isUniform) {
      const at = first + offsets[uniforms++]!;
      parts.push(memory.bytes!.subarray(at, at + length));
    } else parts.push([memory.state, memory.format, memory.width, first, length, memories.indexOf(memory)]);
  }
  const done = digestOf(...parts);
  for (const [index, { memory, isWritten }] of bindings.entries()) if (isWritten) memory.become(digestOf(done, index));
}

/** A device that computes nothing and chooses kernels as `like` does, and the provenances of what was read from it. `shaders`: other texts of kernels. */
export async function provenanceDevice(
  like: Device,
  shaders: ReadonlyMap<string, string>,
): Promise<{ readonly device: Device; readonly read: readonly string[] }> {
  const gpu = new ProvenanceGpu(like.gpu.limits);
  const { limits, name: description } = like.info;
  const adapter = { info: { description }, features: new Set(), limits, requestDevice: () => Promise.resolve(gpu) };
  const platform: Platform = {
    ...like.platform,
    requestAdapter: () => Promise.resolve(adapter as unknown as GPUAdapter),
    deviceCreated: () => undefined,
    diskCompiler: () => undefined,
    shaders: () => Promise.resolve(shaders),
  };
  const device = await Device.create(platform);
  device.profiler.counter = like.profiler.counter;
  for (const [key, name] of like.tuned) device.tuned.set(key, name);
  Object.defineProperties(device, { info: { value: like.info }, caps: { get: () => ({ ...like.caps, tuned: device.tuned }) } });
  return { device, read: gpu.read };
}
