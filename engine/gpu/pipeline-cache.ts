import { EngineError } from '../errors.ts';
import type { DeviceStats } from './caps.ts';
import { KernelFault, faultOf } from './kernel-fault.ts';
import { assembleWgsl, inTextures, variantLabel } from './kernel.ts';
import type { Access, Kernel, Variant } from './kernel.ts';
import type { ParallelCompiler } from './parallel-compiler.ts';
import type { ParamsSlot } from './params.ts';
import type { Tensor } from './tensor.ts';
import { alignUp } from '../util/math.ts';

/** The layouts that kernels with the same accesses share, so that, say, the kernels for few and for many rows can use the same bind groups. */
interface Layout {
  readonly entries: readonly GPUBindGroupLayoutEntry[];
  readonly group: GPUBindGroupLayout;
  readonly pipeline: GPUPipelineLayout;
  readonly paramsBytes: number;
  readonly bindGroups: Map<string, GPUBindGroup>;
}

/** A pipeline with its layout. */
interface Source {
  readonly code: string;
  readonly constants: Readonly<Record<string, number>>;
  readonly layout: Layout;
}

interface KernelState {
  /** Layouts of a kernel, by the bindings that are textures. */
  readonly layouts: Map<string, Layout>;
  readonly pipelines: Map<string, GPUComputePipeline>;
  readonly variants: Map<string, Variant>;
  readonly compiling: Map<string, Promise<void>>;
}

/** Pipelines by (kernel, variant) and bind groups by (layout, tensors). */
export class PipelineCache {
  /** Has processes compile what `compile` requests, for drivers that would compile at the first dispatch. */
  parallel: ParallelCompiler | undefined;
  readonly #gpu: GPUDevice;
  readonly #shaders: ReadonlyMap<string, string>;
  readonly #stats: DeviceStats;
  readonly #adapter: string;
  readonly #kernels = new Map<Kernel, KernelState>();
  readonly #layouts = new Map<string, Layout>();
  /** Buffer id -> the cached bind groups that hold it. */
  readonly #users = new Map<string, Set<{ readonly layout: Layout; readonly key: string }>>();
  #uniformIds = 0;

  constructor(gpu: GPUDevice, shaders: ReadonlyMap<string, string>, stats: DeviceStats, adapter: string) {
    this.#gpu = gpu;
    this.#shaders = shaders;
    this.#stats = stats;
    this.#adapter = adapter;
  }

  nextUniformId(): number {
    return this.#uniformIds++;
  }

  /** Returns the pipeline of a variant; compiles it synchronously if no warm-up has requested it before. */
  pipeline(kernel: Kernel, variant: Variant): GPUComputePipeline {
    const state = this.#state(kernel);
    const key = variantLabel(kernel, variant);
    let pipeline = state.pipelines.get(key);
    if (!pipeline) {
      pipeline = this.#gpu.createComputePipeline(this.#descriptor(this.#source(kernel, variant), key));
      this.#add(state, key, variant, pipeline);
    }
    return pipeline;
  }

  /** Starts compiling a variant in the background, unless that is done already; `settled` waits for all. Returns the pipeline's label. */
  compile(kernel: Kernel, variant: Variant): string {
    const state = this.#state(kernel);
    const key = variantLabel(kernel, variant);
    if (state.pipelines.has(key) || state.compiling.has(key)) return key;
    const source = this.#source(kernel, variant);
    const byDriver = this.parallel?.compile({ label: key, code: source.code, constants: source.constants, entries: source.layout.entries });
    const descriptor = this.#descriptor(source, key);
    const done = this.#gpu.createComputePipelineAsync(descriptor).then(
      (pipeline) => this.#add(state, key, variant, pipeline),
      async (error: unknown) => {
        const why = await explain(descriptor.compute.module, error);
        throw new KernelFault(this.#adapter, [faultOf(kernel, variant, why)], error);
      },
    );
    state.compiling.set(key, byDriver ? done.then(() => byDriver) : done);
    return key;
  }

  /** Resolves when everything requested is compiled; rejects with the compiler's message. */
  async settled(): Promise<void> {
    const states = [...this.#kernels.values()];
    // They are awaited together: otherwise one could reject unhandled while another is awaited.
    const all = await Promise.allSettled(states.flatMap(({ compiling }) => [...compiling.values()]));
    for (const { compiling } of states) compiling.clear();
    const failed = all.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** All compiled pipelines. */
  *compiled(): Generator<{ readonly label: string; readonly kernel: Kernel; readonly variant: Variant }> {
    for (const [kernel, { variants }] of this.#kernels) for (const [label, variant] of variants) yield { label, kernel, variant };
  }

  bindGroup(kernel: Kernel, tensors: Readonly<Record<string, Tensor>>, params: ParamsSlot): GPUBindGroup {
    let key = params.bufferId;
    const textures: string[] = [];
    for (const name in kernel.spec.bindings) {
      const tensor = tensors[name];
      if (!tensor) throw new EngineError('internal', `kernel ${kernel.name}: binding ${name} is missing`);
      key += `|${tensor.key}`;
      if (tensor.texture && !kernel.spec.bindings[name]!.endsWith('texels')) textures.push(name);
    }
    const layout = this.#layout(kernel, textures);
    const cached = layout.bindGroups.get(key);
    if (cached) return cached;
    const entries: GPUBindGroupEntry[] = [];
    for (const name in kernel.spec.bindings) {
      entries.push({ binding: entries.length, resource: resourceOf(tensors[name]!) });
    }
    entries.push({ binding: entries.length, resource: { buffer: params.buffer, offset: 0, size: layout.paramsBytes } });
    const group = this.#gpu.createBindGroup({ label: kernel.name, layout: layout.group, entries });
    layout.bindGroups.set(key, group);
    this.#stats.bindGroups++;
    const use = { layout, key };
    for (const id of new Set([params.bufferId, ...Object.keys(kernel.spec.bindings).map((name) => tensors[name]!.bufferId)])) {
      const users = this.#users.get(id) ?? new Set();
      users.add(use);
      this.#users.set(id, users);
    }
    return group;
  }

  /** Drops the bind groups that contain a buffer which is about to be destroyed. */
  forget(bufferId: string): void {
    for (const { layout, key } of this.#users.get(bufferId) ?? []) layout.bindGroups.delete(key);
    this.#users.delete(bufferId);
  }

  #add(state: KernelState, key: string, variant: Variant, pipeline: GPUComputePipeline): void {
    if (!state.pipelines.has(key)) this.#stats.pipelines++;
    state.variants.set(key, variant);
    state.pipelines.set(key, pipeline);
  }

  #state(kernel: Kernel): KernelState {
    const known = this.#kernels.get(kernel);
    if (known) return known;
    const state: KernelState = { layouts: new Map(), pipelines: new Map(), variants: new Map(), compiling: new Map() };
    this.#kernels.set(kernel, state);
    return state;
  }

  #layout(kernel: Kernel, textures: readonly string[]): Layout {
    const { layouts } = this.#state(kernel);
    const key = textures.join();
    let layout = layouts.get(key);
    if (!layout) {
      layout = this.#sharedLayout(kernel, textures);
      layouts.set(key, layout);
    }
    return layout;
  }

  #sharedLayout({ spec, name }: Kernel, textures: readonly string[]): Layout {
    const types = Object.entries(spec.bindings).map(([binding, access]) => bindingType(access, textures.includes(binding)));
    const paramsBytes = alignUp(Object.keys(spec.params).length * 4, 16);
    const key = `${types.join()} ${paramsBytes}`;
    const known = this.#layouts.get(key);
    if (known) return known;
    const visibility = GPUShaderStage.COMPUTE;
    const entries: GPUBindGroupLayoutEntry[] = types.map((type, binding) =>
      type === 'storage' || type === 'read-only-storage'
        ? { binding, visibility, buffer: { type } }
        : { binding, visibility, storageTexture: storageTexture(type) },
    );
    entries.push({
      binding: entries.length,
      visibility,
      buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: paramsBytes },
    });
    const group = this.#gpu.createBindGroupLayout({ label: name, entries });
    const pipeline = this.#gpu.createPipelineLayout({ label: name, bindGroupLayouts: [group] });
    const layout: Layout = { entries, group, pipeline, paramsBytes, bindGroups: new Map() };
    this.#layouts.set(key, layout);
    return layout;
  }

  #source(kernel: Kernel, variant: Variant): Source {
    return {
      code: assembleWgsl(kernel, variant, this.#shaders),
      constants: { ...variant.overrides },
      layout: this.#layout(kernel, inTextures(variant)),
    };
  }

  #descriptor({ code, constants, layout }: Source, label: string): GPUComputePipelineDescriptor {
    const module = this.#gpu.createShaderModule({ label, code });
    return { label, layout: layout.pipeline, compute: { module, entryPoint: 'main', constants } };
  }
}

type TextureType = 'texture' | 'f32 texture' | 'written texture';

/** The layout type of a binding; `inTexture` = this variant has a texture where the kernel declares a buffer. */
function bindingType(access: Access, inTexture: boolean): 'read-only-storage' | 'storage' | TextureType {
  if (access === 'texels') return 'texture';
  if (access === 'f32 texels') return 'f32 texture';
  if (inTexture) return access === 'read' ? 'texture' : 'written texture';
  return access === 'read' ? 'read-only-storage' : 'storage';
}

function storageTexture(type: TextureType): GPUStorageTextureBindingLayout {
  return { access: type === 'written texture' ? 'write-only' : 'read-only', format: type === 'f32 texture' ? 'rgba32float' : 'rgba32uint' };
}

function resourceOf({ memory, texture, offset, byteLength }: Tensor): GPUBindingResource {
  return texture?.createView() ?? { buffer: memory as GPUBuffer, offset, size: alignUp(byteLength, 16) };
}

async function explain(module: GPUShaderModule, error: unknown): Promise<string> {
  const { messages } = await module.getCompilationInfo();
  const lines = messages.map((m) => `  line ${m.lineNum}:${m.linePos} ${m.type}: ${m.message}`);
  return [`does not compile: ${String(error)}`, ...lines].join('\n');
}
