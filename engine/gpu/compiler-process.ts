/** The process that has the driver compile kernels for the engine (parallel-compiler.ts). */
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { serveThread } from '../platform/thread.ts';
import { value } from '../util/rpc.ts';
import { openAdapter } from './open-adapter.ts';
import type { DeviceOptions } from './open-adapter.ts';

/** The description of a pipeline, which can be posted to a process. */
export interface CompileJob {
  readonly label: string;
  readonly code: string;
  readonly constants: Readonly<Record<string, number>>;
  /** Entries of its only bind group. */
  readonly entries: readonly GPUBindGroupLayoutEntry[];
}

export interface CompileRequest extends CompileJob {
  /** The descriptor with which the engine's device was requested. */
  readonly options: DeviceOptions;
}

export const COMPILER_OPERATIONS = { compile: value<CompileRequest, void>() };

/** Size of the dummy bindings: larger than any kernel's params, and than an element of any binding. */
const DUMMY_BYTES = 1024;

/** Compiles what comes through the port until the process is ended. */
export function main(platform: Platform, port: WorkerPort): void {
  let opened: Promise<GPUDevice> | undefined;
  const compile = async ({ options, ...job }: CompileRequest): Promise<void> => {
    opened ??= openAdapter(platform, options).then(({ gpu }) => gpu);
    await compileOn(await opened, job);
  };
  serveThread(COMPILER_OPERATIONS, { compile }, port, (line) => platform.log(line));
}

/** Dispatches the pipeline with no workgroups: the driver compiles it all the same, and nothing runs on dummy memory. */
async function compileOn(gpu: GPUDevice, { label, code, constants, entries }: CompileJob): Promise<void> {
  const layout = gpu.createBindGroupLayout({ label, entries: [...entries] });
  const module = gpu.createShaderModule({ label, code });
  const pipeline = await gpu.createComputePipelineAsync({
    label,
    layout: gpu.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: 'main', constants: { ...constants } },
  });
  const bound = entries.map((entry) => ({ binding: entry.binding, ...dummy(gpu, entry) }));
  // The count of 0 comes from a buffer, because Dawn warns of a literal one.
  const noWork = gpu.createBuffer({ label: 'no work', size: 12, usage: GPUBufferUsage.INDIRECT });
  const encoder = gpu.createCommandEncoder({ label });
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(
    0,
    gpu.createBindGroup({ label, layout, entries: bound }),
    entries.flatMap(({ buffer }) => (buffer?.hasDynamicOffset ? [0] : [])),
  );
  pass.dispatchWorkgroupsIndirect(noWork, 0);
  pass.end();
  gpu.queue.submit([encoder.finish()]);
  await gpu.queue.onSubmittedWorkDone();
  for (const { memory } of bound) memory.destroy();
  noWork.destroy();
}

/** A dummy resource for a binding. */
function dummy(gpu: GPUDevice, { buffer, storageTexture }: GPUBindGroupLayoutEntry): { readonly resource: GPUBindingResource; readonly memory: GPUBuffer | GPUTexture } {
  if (storageTexture) {
    const memory = gpu.createTexture({ size: [1, 1], format: storageTexture.format, usage: GPUTextureUsage.STORAGE_BINDING });
    return { resource: memory.createView(), memory };
  }
  const usage = buffer?.type === 'uniform' ? GPUBufferUsage.UNIFORM : GPUBufferUsage.STORAGE;
  const memory = gpu.createBuffer({ size: DUMMY_BYTES, usage });
  return { resource: { buffer: memory, size: buffer?.minBindingSize || DUMMY_BYTES }, memory };
} // prettier-ignore
