/** Dawn's null backend: it checks all WGSL, and computes nothing. What a model would take on an adapter that is not here is loaded on it in a fraction of a second. */
import { create } from 'webgpu';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';

export interface NullAdapter {
  /** Such as `llvmpipe`, which the engine knows as a software adapter. */
  readonly name: string;
  /** Lanes of a subgroup; absent = it has none. */
  readonly lanes?: number | undefined;
}

/** A platform whose one adapter says that it is this, and is the null backend. It must stay referenced as long as its devices live. */
export function nullPlatform({ name, lanes }: NullAdapter): Platform & { readonly held: GPU } {
  const node = createNodePlatform({ log: () => undefined });
  const held = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']);
  const requestAdapter = async (): Promise<GPUAdapter> => {
    const adapter = (await held.requestAdapter())!;
    const info = { vendor: 'none', architecture: '', device: '', description: name, subgroupMinSize: lanes, subgroupMaxSize: lanes, isFallbackAdapter: false }; // prettier-ignore
    const features = new Set([...adapter.features].filter((feature) => lanes !== undefined || !feature.startsWith('subgroup')));
    return new Proxy(adapter, {
      get(target, key) {
        if (key === 'info') return info;
        if (key === 'features') return features;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  };
  // Nothing is compiled.
  return { ...node, held, requestAdapter, diskCompiler: () => undefined };
}
