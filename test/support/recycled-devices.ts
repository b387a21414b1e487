/**
 * A platform that gives the devices of closed ranks to the ranks after them. Most of what a small split model costs on a software adapter is the making of
 * pipelines, and a device of the same adapter has made the same ones before.
 */
import type { Platform } from '../../engine/platform/platform.ts';

/** A device that outlives those who borrow it, with what it has made that depends on nothing but its description. */
interface Kept {
  readonly gpu: GPUDevice;
  readonly made: Map<string, unknown>;
  readonly ids: Map<unknown, number>;
}

/** The same platform, whose devices are taken up again once they are destroyed: without the buffers they had, with the pipelines. */
export function recycling(platform: Platform): Platform {
  const free = new Map<string, Kept[]>();
  const requestAdapter = async (request: { readonly name?: string }): Promise<GPUAdapter> => {
    const adapter = await platform.requestAdapter(request);
    const requestDevice = async (descriptor: GPUDeviceDescriptor): Promise<GPUDevice> => {
      const key = JSON.stringify([request.name, descriptor]);
      const resting = free.get(key) ?? [];
      free.set(key, resting);
      const kept = resting.pop() ?? { gpu: await adapter.requestDevice(descriptor), made: new Map(), ids: new Map() };
      return borrowed(kept, () => resting.push(kept));
    };
    return withMethods(adapter, { requestDevice });
  };
  return { ...platform, requestAdapter };
}

/** A device for one borrower, which ends with `destroy`, as a device does. */
function borrowed(kept: Kept, giveBack: () => void): GPUDevice {
  const { gpu } = kept;
  const buffers = new Set<GPUBuffer>();
  const listeners = new AbortController();
  let end: (reason: GPUDeviceLostInfo) => void;
  const ended = new Promise<GPUDeviceLostInfo>((resolve) => (end = resolve));
  const methods = {
    lost: Promise.race([gpu.lost, ended]),
    createBuffer: (descriptor: GPUBufferDescriptor) => {
      const buffer = gpu.createBuffer(descriptor);
      buffers.add(buffer);
      return buffer;
    },
    addEventListener: (type: string, listener: (event: Event) => void) => {
      gpu.addEventListener(type, listener);
      // Dawn leaves out the option that names the signal.
      listeners.signal.addEventListener('abort', () => gpu.removeEventListener(type, listener));
    },
    destroy: () => {
      if (listeners.signal.aborted) return undefined;
      listeners.abort();
      for (const buffer of buffers) buffer.destroy();
      end({ reason: 'destroyed', message: 'given back' } as GPUDeviceLostInfo);
      giveBack();
      return undefined;
    },
    createShaderModule: once(kept, 'createShaderModule'),
    createBindGroupLayout: once(kept, 'createBindGroupLayout'),
    createPipelineLayout: once(kept, 'createPipelineLayout'),
    createComputePipeline: once(kept, 'createComputePipeline'),
    createComputePipelineAsync: once(kept, 'createComputePipelineAsync'),
  };
  return withMethods(gpu, methods);
}

/** A method that makes each thing once; objects in a description count as the things they are. */
function once<
  Name extends
    | 'createShaderModule'
    | 'createBindGroupLayout'
    | 'createPipelineLayout'
    | 'createComputePipeline'
    | 'createComputePipelineAsync',
>({ gpu, made, ids }: Kept, name: Name): GPUDevice[Name] {
  const make = (descriptor: object): unknown => {
    const key = `${name} ${JSON.stringify(descriptor, (_, value: unknown) => ids.get(value) ?? value)}`;
    if (!made.has(key)) {
      const thing = (gpu[name] as (descriptor: object) => object).call(gpu, descriptor);
      made.set(key, thing);
      ids.set(thing, ids.size + 1);
    }
    return made.get(key);
  };
  return make as GPUDevice[Name];
}

/** An object of Dawn's with some of its members replaced; the others are called on the object itself. */
function withMethods<T extends object>(object: T, members: Partial<T>): T {
  const bound = new Map<PropertyKey, unknown>();
  return new Proxy(object, {
    get: (target, name) => {
      if (name in members) return members[name as keyof T];
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      if (!bound.has(name)) bound.set(name, value.bind(target));
      return bound.get(name);
    },
  });
}
