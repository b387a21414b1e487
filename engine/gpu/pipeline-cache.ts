import { EngineError } from '../errors.ts';
import type { DeviceStats } from './caps.ts';
import { assembleWgsl, variantLabel } from './kernel.ts';
import type { Kernel, Variant } from './kernel.ts';
import type { ParamsSlot } from './params.ts';
import type { Tensor } from './tensor.ts';
import { alignUp } from '../util/math.ts';

interface KernelState {
  readonly layout: GPUBindGroupLayout;
  readonly pipelineLayout: GPUPipelineLayout;
  readonly paramsBytes: number;
  readonly pipelines: Map<string, GPUComputePipeline>;
  readonly compiling: Map<string, Promise<void>>;
  readonly bindGroups: Map<string, GPUBindGroup>;
}

/** Pipelines by (kernel, variant) and bind groups by (kernel, tensors). */
export class PipelineCache {
  readonly #gpu: GPUDevice;
  readonly #shaders: ReadonlyMap<string, string>;
  readonly #stats: DeviceStats;
  readonly #kernels = new Map<Kernel, KernelState>();
  /** Buffer id -> the cached bind groups that hold it. */
  readonly #users = new Map<string, Set<{ readonly state: KernelState; readonly key: string }>>();
  #uniformIds = 0;

  constructor(gpu: GPUDevice, shaders: ReadonlyMap<string, string>, stats: DeviceStats) {
    this.#gpu = gpu;
    this.#shaders = shaders;
    this.#stats = stats;
  }

  nextUniformId(): number {
    return this.#uniformIds++;
  }

  /** The pipeline of a variant; compiled here and now if no warm-up asked for it before. */
  pipeline(kernel: Kernel, variant: Variant): GPUComputePipeline {
    const state = this.#state(kernel);
    const key = variantLabel(kernel, variant);
    let pipeline = state.pipelines.get(key);
    if (!pipeline) {
      pipeline = this.#gpu.createComputePipeline(this.#descriptor(kernel, variant, state, key));
      this.#add(state, key, pipeline);
    }
    return pipeline;
  }

  /** Starts compiling in the background; `settled` waits for all. */
  compile(kernel: Kernel, variant: Variant): void {
    const state = this.#state(kernel);
    const key = variantLabel(kernel, variant);
    if (state.pipelines.has(key) || state.compiling.has(key)) return;
    const descriptor = this.#descriptor(kernel, variant, state, key);
    const done = this.#gpu.createComputePipelineAsync(descriptor).then(
      (pipeline) => this.#add(state, key, pipeline),
      async (error: unknown) => {
        throw new EngineError('internal', await explain(key, descriptor.compute.module, error), { cause: error });
      },
    );
    state.compiling.set(key, done);
  }

  /** Resolves when everything asked for is compiled; rejects with the compiler's message. */
  async settled(): Promise<void> {
    for (const state of this.#kernels.values()) {
      try {
        await Promise.all(state.compiling.values());
      } finally {
        state.compiling.clear();
      }
    }
  }

  bindGroup(kernel: Kernel, tensors: Readonly<Record<string, Tensor>>, params: ParamsSlot): GPUBindGroup {
    const state = this.#state(kernel);
    let key = params.bufferId;
    for (const name in kernel.spec.bindings) {
      const tensor = tensors[name];
      if (!tensor) throw new EngineError('internal', `kernel ${kernel.name}: binding ${name} is missing`);
      key += `|${tensor.key}`;
    }
    const cached = state.bindGroups.get(key);
    if (cached) return cached;
    const entries: GPUBindGroupEntry[] = [];
    for (const name in kernel.spec.bindings) {
      const { buffer, offset, byteLength } = tensors[name]!;
      entries.push({ binding: entries.length, resource: { buffer, offset, size: alignUp(byteLength, 16) } });
    }
    entries.push({ binding: entries.length, resource: { buffer: params.buffer, offset: 0, size: state.paramsBytes } });
    const group = this.#gpu.createBindGroup({ label: kernel.name, layout: state.layout, entries });
    state.bindGroups.set(key, group);
    this.#stats.bindGroups++;
    const use = { state, key };
    for (const id of new Set([params.bufferId, ...Object.keys(kernel.spec.bindings).map((name) => tensors[name]!.bufferId)])) {
      const users = this.#users.get(id) ?? new Set();
      users.add(use);
      this.#users.set(id, users);
    }
    return group;
  }

  /** Drops the bind groups that hold a buffer about to be destroyed. */
  forget(bufferId: string): void {
    for (const { state, key } of this.#users.get(bufferId) ?? []) state.bindGroups.delete(key);
    this.#users.delete(bufferId);
  }

  #add(state: KernelState, key: string, pipeline: GPUComputePipeline): void {
    if (!state.pipelines.has(key)) this.#stats.pipelines++;
    state.pipelines.set(key, pipeline);
  }

  #state(kernel: Kernel): KernelState {
    const known = this.#kernels.get(kernel);
    if (known) return known;
    const { spec, name } = kernel;
    const entries: GPUBindGroupLayoutEntry[] = Object.values(spec.bindings).map((access, binding) => ({
      binding,
      visibility: GPUShaderStage.COMPUTE,
      buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' },
    }));
    const paramsBytes = alignUp(Object.keys(spec.params).length * 4, 16);
    entries.push({
      binding: entries.length,
      visibility: GPUShaderStage.COMPUTE,
      buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: paramsBytes },
    });
    const layout = this.#gpu.createBindGroupLayout({ label: name, entries });
    const pipelineLayout = this.#gpu.createPipelineLayout({ label: name, bindGroupLayouts: [layout] });
    const state: KernelState = { layout, pipelineLayout, paramsBytes, pipelines: new Map(), compiling: new Map(), bindGroups: new Map() };
    this.#kernels.set(kernel, state);
    return state;
  }

  #descriptor(kernel: Kernel, variant: Variant, state: KernelState, label: string): GPUComputePipelineDescriptor {
    const code = assembleWgsl(kernel, variant, this.#shaders);
    const module = this.#gpu.createShaderModule({ label, code });
    return { label, layout: state.pipelineLayout, compute: { module, entryPoint: 'main', constants: { ...variant.overrides } } };
  }
}

async function explain(label: string, module: GPUShaderModule, error: unknown): Promise<string> {
  const { messages } = await module.getCompilationInfo();
  const lines = messages.map((m) => `  line ${m.lineNum}:${m.linePos} ${m.type}: ${m.message}`);
  return [`kernel ${label} does not compile: ${String(error)}`, ...lines].join('\n');
}
