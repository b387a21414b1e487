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

const MOST_ERRORS = 64;

/** A WebGPU device with its caches. It creates all buffers of the engine: nothing else calls createBuffer. */
export class Device implements BufferOwner {
  readonly gpu: GPUDevice;
  readonly info: AdapterInfo;
  readonly platform: Platform;
  readonly stats: DeviceStats;
  readonly waits: QueueWaits;
  readonly pipelines: PipelineCache;
  readonly staging: StagingRing;
  readonly profiler: Profiler;
  /** Resolves, and never rejects, with the reason when the device is lost. */
  readonly lost: Promise<string>;
  /** The first MOST_ERRORS uncaptured errors: bugs of the engine, unless the device is out of memory. The log has all. */
  readonly errors: string[] = [];
  /** Labels of the pipelines that the self-test has tested. */
  readonly tested = new Set<string>();
  /** The map behind `caps.tuned`. */
  readonly tuned: Map<string, string>;
  /** The autotune, which measures the candidates that ops offer; undefined where there is nothing to measure. */
  tuning: Chooser<Recorder> | undefined;
  readonly uniformAlignment: number;
  #caps: Caps;
  readonly #arenas: ParamsArena[] = [];
  readonly #planParams = new PlanParams(this);
  readonly #adapter: OpenedAdapter;
  readonly #options: DeviceOptions;
  readonly #scratch = new Map<string, Tensor>();
  #nextBuffer = 0;
  /** Bytes that `measure` has counted so far; undefined unless it runs. */
  #measured: number | undefined;
  #closed = false;
  /** The error of an allocation, outside of `allocate`, that the device refused. */
  #refused: string | undefined;

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
    this.lost = gpu.lost.then((reason) => {
      if (this.#closed) return 'closed';
      return this.#refused === undefined ? `${reason.reason}: ${reason.message}` : `out of memory: ${this.#refused}`;
    });
    gpu.addEventListener('uncapturederror', ({ error }) => {
      if (this.errors.length < MOST_ERRORS) this.errors.push(error.message);
      platform.log(`WebGPU error: ${error.message}`);
      if (error instanceof GPUOutOfMemoryError) this.#giveUp(error.message);
    });
  }

  /** Opens the adapter that the request names, or the platform's best, with all features and limits that the engine can use. */
  static async create(platform: Platform, options: DeviceOptions = {}): Promise<Device> {
    const adapter = await openAdapter(platform, options);
    const { queue } = adapter.gpu;
    const [shaders, nudge] = await Promise.all([platform.shaders(), answersLate(queue)]);
    if (nudge) platform.log('WebGPU answers on a timer here: empty submissions make it answer at once');
    return new Device(platform, adapter, options, shaders, new QueueWaits(queue, { nudge }));
  }

  /** Destroys the device after it refused memory: work on a missing buffer is not done, so results would be stale memory. */
  #giveUp(refused: string): void {
    this.#refused ??= refused;
    this.gpu.destroy();
  }

  /** Capabilities, by which ops choose their kernels. */
  get caps(): Caps {
    return this.#caps;
  }

  /**
   * Has ops choose from here on as on an adapter that lacks exactly these features; compiled pipelines stay. For tests, since another device would have to
   * compile them again.
   * Returns whether the adapter has any of the features.
   */
  pretend(disable: readonly OptionalFeature[]): boolean {
    const had = this.#adapter.caps;
    this.#caps = capsWithout(had, disable);
    return (Object.keys(had) as (keyof Caps)[]).some((name) => this.#caps[name] !== had[name]);
  }

  /** Makes a tensor with a zero-filled buffer of its own. */
  tensor(label: string, dtype: DType, shape: readonly number[]): Tensor {
    return this.#allocate(label, dtype, shape, byteSize(dtype, shape), 0);
  }

  /**
   * Makes a tensor of words in a storage texture of its own, filled with zeros; Recorder.fill or a kernel writes it. Kernels access it four words at a time. With
   * `f32` its texels are floats, which kernels can only read.
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

  /** Creates a texture with texels of four words; all textures of the engine are made here. */
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

  /** Makes a tensor with `guard` bytes of a larger buffer before and after it, which tests fill with a pattern. */
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
   * Returns the scratch tensor of this name, which everybody shares and nobody may rely on after the dispatches that fill and read it. It only grows, and the
   * smaller one stays, because plans and steps that are being recorded may hold it.
   */
  scratch(label: string, dtype: DType, size: number): Tensor {
    return this.#scratchOf(label, size, () => this.tensor(label, dtype, [size]));
  }

  /** Returns a scratch tensor like `scratch` in a storage texture of `texels`. */
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

  /** Counts the bytes of the buffers that `make` would make. None is created, and nothing is written or recorded. */
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

  /** Creates a buffer. All buffers of the engine are made here, so that the counters are right. */
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

  /** Frees a tensor's buffer or texture and the bind groups that contain it; a view owns none. */
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

  /** Makes a tensor that holds `data`; f16 takes the bits of halves (util/f16.ts). */
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

  /** Starts the recording of a step, which must be recorded and submitted within one tick. */
  record(label: string): Recorder {
    const arena = this.#arenas.pop() ?? new ParamsArena(this, 'params');
    return new Recorder(this, label, arena, 'record', () => this.#arenas.push(arena));
  }

  /** Until `endParallelCompiling`, compiles on all cores if the driver would use one only and can be helped. Used while an engine starts. */
  beginParallelCompiling(): void {
    const { diskCompiler, info } = this.#adapter;
    if (diskCompiler) this.pipelines.parallel ??= new ParallelCompiler(diskCompiler, info.name, this.#options);
  }

  async endParallelCompiling(): Promise<void> {
    const { parallel } = this.pipelines;
    this.pipelines.parallel = undefined;
    await parallel?.close();
  }

  /** Starts compiling everything that `forward` dispatches, in parallel and without blocking; returns the labels of the pipelines. */
  compile(forward: (rec: Recorder) => void): ReadonlySet<string> {
    const rec = new Recorder(this, 'dry', this.#planParams, 'dry', () => undefined);
    forward(rec);
    return rec.variants;
  }

  /**
   * Compiles everything that `forward` dispatches, then runs it once, because software drivers compile at the first dispatch. Call it at load for every class of
   * shapes that takes kernels of its own. Returns the labels of the pipelines. With `ran`, pipelines in that set are not run again, so the results mean nothing.
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

  /** Records a fixed sequence of dispatches as a Plan (a captured graph), which Recorder.replay encodes without running the JavaScript that made it. */
  capture(label: string, forward: (rec: Recorder) => void): Plan {
    const rec = new Recorder(this, label, this.#planParams, 'capture', () => undefined);
    forward(rec);
    return rec.freeze();
  }

  /** Why the device is lost; undefined if it still answers. */
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

/** Views raw bytes as elements of a dtype; f16 stays the bits of halves. */
export function viewAs(dtype: DType, bytes: ArrayBuffer, length: number): TypedArray {
  if (dtype === 'f32') return new Float32Array(bytes, 0, length);
  if (dtype === 'u32') return new Uint32Array(bytes, 0, length);
  if (dtype === 'i32') return new Int32Array(bytes, 0, length);
  return new Uint16Array(bytes, 0, length);
}
