import { EngineError } from '../errors.ts';
import type { AdapterRequest } from './platform.ts';

/** Whose `navigator` is asked, as the subject of a sentence. */
export interface NavigatorWords {
  readonly who: string;
  /** Where that is a page, what the adapter would be for. */
  readonly to: string;
}

/** The adapter that `navigator.gpu` offers. It tells no list of adapters, so a name is compared with the one it gives. */
export async function requestNavigatorAdapter({ name }: AdapterRequest, { who, to }: NavigatorWords): Promise<GPUAdapter> {
  // Absent on plain http, in old browsers and where it is switched off, whatever the types say.
  const gpu = (globalThis.navigator as Partial<Navigator>).gpu;
  if (!gpu) throw new EngineError('no_adapter', `${who} offers no WebGPU here`);
  // A machine's two graphics cards are told apart by what they are for.
  const preference = name === 'low-power' ? name : 'high-performance';
  const adapter = await gpu.requestAdapter({ powerPreference: preference });
  if (!adapter) throw new EngineError('no_adapter', `WebGPU is there, but it offers no adapter (graphics card) to ${to}`);
  const { description, device, vendor, architecture } = adapter.info;
  const found = [description, device, vendor, architecture].join(' ').trim();
  if (name !== undefined && name !== preference && !found.toLowerCase().includes(name.toLowerCase())) {
    throw new EngineError('no_adapter', `no WebGPU adapter matches '${name}'; ${who} offers '${found}'`);
  }
  return adapter;
}
