import type { AdapterInfo } from '../api.ts';
import { EngineError, assert } from '../errors.ts';
import type { Platform } from '../platform/platform.ts';
import { alignUp, ceilDiv, product } from '../util/math.ts';
import { capsWithout } from './caps.ts';
import type { Caps, DeviceStats, OptionalFeature } from './caps.ts';
import type { BufferOwner } from './buffer-owner.ts';
import { openAdapter } from './open-adapter.ts';
import type { DeviceOptions, OpenedAdapter } from './open-adapter.ts';
import { ParallelCompiler } from './parallel-compiler.ts';
import { ParamsArena, PlanParams } from './params.ts';
import { PipelineCache } from './pipeline-cache.ts';
import { Profiler } from './profiler.ts';
import { QueueWaits, answersLate } from './queue-waits.ts';
import { Recorder } from './recorder.ts';
import type { Plan } from './recorder.ts';
import { StagingRing } from './staging.ts';
import { TEXEL_BYTES, TEXEL_ROW, Tensor, byteSize } from './tensor.ts';
import type { DType, TypedArray } from './tensor.ts';
import type { Chooser } from './tunable.ts';

/** One WebGPU device with its caches. Creates every buffer of the engine; nothing else calls createBuffer. */
export class Device implements BufferOwner {
  readonly gpu: GPUDevice;
  readonly info: AdapterInfo;
  readonly platform: Platform;
  readonly stats: DeviceStats;
  readonly waits: QueueWaits;
  readonly pipelines: PipelineCache;
  readonly staging: StagingRing;
  readonly profiler: Profiler;
  /** Resolves (never rejects) with the reason when the device is gone. */
  readonly lost: Promise<string>;
  /** Uncaptured validation errors: always a bug of ours. */
  readonly errors: string[] = [];
  /** Labels of pipelines that the self-test has run. */
  readonly tested = new Set<string>();
  /** `caps.tuned`. */
  readonly tuned: Map<string, string>;
  /** Measures what ops offer it, where anything is to be measured. */
  tuning: Chooser<Recorder> | undefined;
  readonly uniformAlignment: number;
  #caps: Caps;
  readonly #arenas: ParamsArena[] = [];
  readonly #planParams = new PlanParams(this);
  readonly #adapter: OpenedAdapter;
  readonly #options: DeviceOptions;
  readonly #scratch = new Map<string, Tensor>();
  #nextBuffer = 0;
  /** Bytes counted by `measure`, while it does. */
  #measured: number | undefined;
  #closed = false;

  private constructor(
    platform: Platform,
    adapter: OpenedAdapter,
    options: DeviceOptions,
    shaders: ReadonlyMap<string, string>,
    waits: QueueWaits,
  ) {
    const { gpu, caps, info, tuned } = adapter;
    this.platform = platform;
    this.#adapter = adapter;
    this.#options = options;
    this.gpu = gpu;
    this.waits = waits;
    this.tuned = tuned;
    this.#caps = caps;
    this.info = info;
    this.stats = {
      buffers: 0, bufferBytes: 0, bindGroups: 0, pipelines: 0, dispatches: 0, submits: 0, bytesRead: 0, uploads: 0, bytesWritten: 0,
      lastProgress: performance.now(), pending: 0,
    }; // prettier-ignore
    this.uniformAlignment = gpu.limits.minUniformBufferOffsetAlignment;
    this.pipelines = new PipelineCache(gpu, shaders, this.stats, info.name);
    this.staging = new StagingRing(this);
    this.profiler = new Profiler(this);
    this.lost = gpu.lost.then((reason) => (this.#closed ? 'closed' : `${reason.reason}: ${reason.message}`));
    gpu.addEventListener('uncapturederror', (event) => {
      this.errors.push(event.error.message);
      platform.log(`WebGPU error: ${event.error.message}`);
    });
  }

  /** Takes the adapter the request names (or the platform's best) with all the features and limits we can use. */
  static async create(platform: Platform, options: DeviceOptions = {}): Promise<Device> {
    const adapter = await openAdapter(platform, options);
    const { queue } = adapter.gpu;
    const [shaders, nudge] = await Promise.all([platform.shaders(), answersLate(queue)]);
    if (nudge) platform.log('WebGPU answers on a timer here: empty submissions make it answer at once');
    return new Device(platform, adapter, options, shaders, new QueueWaits(queue, { nudge }));
  }

  /** What ops choose their variants by. */
  get caps(): Caps {
    return this.#caps;
  }

  /**
   * From here on ops choose as on an adapter that lacks these, and no others; what is compiled stays. For tests, to which another device costs its pipelines.
   * Returns whether the adapter had one of them.
   */
  pretend(disable: readonly OptionalFeature[]): boolean {
    const had = this.#adapter.caps;
    this.#caps = capsWithout(had, disable);
    return (Object.keys(had) as (keyof Caps)[]).some((name) => this.#caps[name] !== had[name]);
  }

  /** A tensor with its own zero-filled buffer. */
  tensor(label: string, dtype: DType, shape: readonly number[]): Tensor {
    return this.#allocate(label, dtype, shape, byteSize(dtype, shape), 0);
  }

  /**
   * A tensor of words in a storage texture of its own, zeros until Recorder.fill or a kernel: one that reads or writes it does so four words at a time. With
   * `f32` its texels are floats, which kernels only read.
   */
  texels(label: string, shape: readonly number[], dtype: 'u32' | 'f32' = 'u32'): Tensor {
    const texels = byteSize('u32', shape) / TEXEL_BYTES;
    assert(
      Number.isInteger(texels) && texels <= this.caps.maxTexels,
      `${label} [${shape.join(', ')}] in a texture of ${this.caps.maxTexels} texels`,
    );
    const [width, height] = [Math.min(texels, TEXEL_ROW), ceilDiv(texels, TEXEL_ROW)];
    return new Tensor(label, dtype, shape, this.createTexture(label, width, height, dtype), String(this.#nextBuffer++), 0, false);
  }

  /** Every texture, of texels of four words. */
  createTexture(label: string, width: number, height: number, dtype: 'u32' | 'f32' = 'u32'): GPUTexture {
    const bytes = width * height * TEXEL_BYTES;
    const format = dtype === 'f32' ? 'rgba32float' : 'rgba32uint';
    if (this.#measured !== undefined) {
      this.#measured += bytes;
      return { label, width, height, format } as GPUTexture;
    }
    this.stats.buffers++;
    this.stats.bufferBytes += bytes;
    const usage = GPUTextureUsage.STORAGE_BINDING | GPUTextureUsage.COPY_DST | GPUTextureUsage.COPY_SRC;
    return this.gpu.createTexture({ label, size: [width, height], format, usage });
  }

  /** A tensor that lies `guard` bytes inside a larger buffer; tests fill the guards with a pattern. */
  guardedTensor(label: string, dtype: DType, shape: readonly number[], guard: number): Tensor {
    return this.#allocate(label, dtype, shape, alignUp(byteSize(dtype, shape), 256) + 2 * guard, guard);
  }

  #allocate(label: string, dtype: DType, shape: readonly number[], bytes: number, offset: number): Tensor {
    const size = alignUp(bytes, 16);
    if (size > this.caps.maxBufferBytes || byteSize(dtype, shape) > this.caps.maxBindingBytes) {
      throw new EngineError(
        'out_of_memory',
        `tensor ${label} [${shape.join(', ')}] ${dtype} takes ${bytes} bytes; this adapter binds at most ${this.caps.maxBindingBytes}`,
      );
    }
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = this.createBuffer(label, size, usage);
    return new Tensor(label, dtype, shape, buffer, String(this.#nextBuffer++), offset, false);
  }

  /**
   * A tensor that nothing keeps between two dispatches, shared by all who name it. It only grows, and what it outgrew stays: steps being
   * recorded, and plans, may hold it.
   */
  scratch(label: string, dtype: DType, size: number): Tensor {
    return this.#scratchOf(label, size, () => this.tensor(label, dtype, [size]));
  }

  /** The same in a storage texture, of `texels`. */
  scratchTexels(label: string, texels: number, dtype?: 'u32' | 'f32'): Tensor {
    return this.#scratchOf(label, 4 * texels, () => this.texels(label, [4 * texels], dtype));
  }

  #scratchOf(label: string, size: number, make: () => Tensor): Tensor {
    if (this.#measured !== undefined) return make();
    const known = this.#scratch.get(label);
    if (known && known.size >= size) return known;
    const made = make();
    this.#scratch.set(label, made);
    return made;
  }

  /** Bytes of the buffers that `make` makes; none of them comes to be, and nothing is written or recorded. */
  measure(make: () => void): number {
    assert(this.#measured === undefined, 'a measurement within a measurement');
    this.#measured = 0;
    try {
      make();
      return this.#measured;
    } finally {
      this.#measured = undefined;
    }
  }

  /** Every buffer of the engine is made here, so that the counters are true. */
  createBuffer(label: string, size: number, usage: GPUBufferUsageFlags): GPUBuffer {
    if (this.#measured !== undefined) {
      this.#measured += size;
      return { label, size, usage } as GPUBuffer;
    }
    this.stats.buffers++;
    this.stats.bufferBytes += size;
    return this.gpu.createBuffer({ label, size, usage });
  }

  destroyBuffer(buffer: GPUBuffer): void {
    this.stats.buffers--;
    this.stats.bufferBytes -= buffer.size;
    buffer.destroy();
  }

  /** Frees a tensor's buffer and the bind groups that hold it; views are not freed. */
  destroy(...tensors: readonly Tensor[]): void {
    for (const tensor of tensors) {
      assert(!tensor.isView, `${tensor.label} is a view and owns nothing`);
      this.pipelines.forget(tensor.bufferId);
      if (tensor.texture) this.#destroyTexture(tensor.texture);
      else this.destroyBuffer(tensor.buffer);
    }
  }

  #destroyTexture(texture: GPUTexture): void {
    this.stats.buffers--;
    this.stats.bufferBytes -= texture.width * texture.height * TEXEL_BYTES;
    texture.destroy();
  }

  /** A tensor holding `data`; for f16 pass half bits (util/f16.ts). */
  upload(label: string, dtype: DType, shape: readonly number[], data: TypedArray): Tensor {
    assert(data.length === product(shape), `${label}: ${data.length} values for shape [${shape.join(', ')}]`);
    const tensor = this.tensor(label, dtype, shape);
    this.write(tensor, data);
    return tensor;
  }

  /** Queues a copy of host data into a tensor, from its element `first` on (byte offset a multiple of 4). */
  write(tensor: Tensor, data: TypedArray | Uint8Array, first = 0): void {
    let bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (bytes.length % 4 !== 0) {
      const padded = new Uint8Array(alignUp(bytes.length, 4));
      padded.set(bytes);
      bytes = padded;
    }
    const start = first * data.BYTES_PER_ELEMENT;
    assert(
      start + bytes.length <= alignUp(tensor.byteLength, 4),
      `write of ${bytes.length} bytes at ${start} into ${tensor.label} (${tensor.byteLength})`,
    );
    if (this.#measured !== undefined) return;
    this.stats.uploads++;
    this.stats.bytesWritten += bytes.length;
    this.gpu.queue.writeBuffer(tensor.buffer, tensor.offset + start, bytes as Uint8Array<ArrayBuffer>);
  }

  /** Copies a tensor back. For tests and final results; a step uses Recorder.readback. */
  async read(tensor: Tensor): Promise<TypedArray> {
    const rec = this.record(`read ${tensor.label}`);
    const readback = rec.readback(tensor);
    rec.submit();
    return viewAs(tensor.dtype, await readback.data(), tensor.size);
  }

  /** Starts the recording of one step. Record and submit within one tick. */
  record(label: string): Recorder {
    const arena = this.#arenas.pop() ?? new ParamsArena(this, 'params');
    return new Recorder(this, label, arena, 'record', () => this.#arenas.push(arena));
  }

  /** From here to `endParallelCompiling` what is compiled takes all cores, where the driver takes one and can be helped. For the start of an engine. */
  beginParallelCompiling(): void {
    const { diskCompiler, info } = this.#adapter;
    if (diskCompiler) this.pipelines.parallel ??= new ParallelCompiler(diskCompiler, info.name, this.#options);
  }

  async endParallelCompiling(): Promise<void> {
    const { parallel } = this.pipelines;
    this.pipelines.parallel = undefined;
    await parallel?.close();
  }

  /** Starts compiling everything `forward` dispatches, in parallel and without blocking; returns the labels of the pipelines. */
  compile(forward: (rec: Recorder) => void): ReadonlySet<string> {
    const rec = new Recorder(this, 'dry', this.#planParams, 'dry', () => undefined);
    forward(rec);
    return rec.variants;
  }

  /**
   * Compiles everything `forward` dispatches, then runs it once (software drivers compile at the first dispatch). Call it at load for every
   * shape bucket that chooses other kernels. Returns the labels of the pipelines. Of work whose results nobody reads, what is in `ran` is left out.
   */
  async warmUp(forward: (rec: Recorder) => void, ran?: Set<string>): Promise<ReadonlySet<string>> {
    const variants = this.compile(forward);
    await this.pipelines.settled();
    const rec = this.record('warm-up');
    if (ran) rec.leaveOut(ran);
    forward(rec);
    const { finished } = rec.submit();
    await finished();
    return variants;
  }

  /** Records a fixed sequence once so that it can be replayed (Recorder.replay) without any of its JavaScript: a captured graph. */
  capture(label: string, forward: (rec: Recorder) => void): Plan {
    const rec = new Recorder(this, label, this.#planParams, 'capture', () => undefined);
    forward(rec);
    return rec.freeze();
  }

  /** The reason when the device is gone by now; undefined when it still answers. */
  async whyLost(): Promise<string | undefined> {
    const answered = this.gpu.queue.onSubmittedWorkDone().then(
      () => undefined,
      () => undefined,
    );
    return Promise.race([this.lost, answered]);
  }

  close(): void {
    this.#closed = true;
    this.gpu.destroy();
  }
}

/** Views raw bytes as the elements of a dtype (f16 stays bits). */
export function viewAs(dtype: DType, bytes: ArrayBuffer, length: number): TypedArray {
  if (dtype === 'f32') return new Float32Array(bytes, 0, length);
  if (dtype === 'u32') return new Uint32Array(bytes, 0, length);
  if (dtype === 'i32') return new Int32Array(bytes, 0, length);
  return new Uint16Array(bytes, 0, length);
}
