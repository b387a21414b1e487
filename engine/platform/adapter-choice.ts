/** Naming one of several adapters: Dawn has no list of them, but a name that matches none is answered with one. */
import { EngineError } from '../errors.ts';

/** An adapter as Dawn lists it. */
export interface ListedAdapter {
  readonly name: string;
  /** `vulkan`, `metal`, `d3d12`, ... */
  readonly backend: string;
  /** Environment in which the driver offers it first; empty where its name is enough. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The adapters in Dawn's answer to an impossible name. */
export function parseAdapterList(message: string): ListedAdapter[] {
  const lines = message.matchAll(/^ *\* backend: '([^']*)', name: '(.*)'$/gm);
  return [...lines].map(([, backend = '', name = '']) => ({ backend, name, environment: {} }));
}

/** `part` of a name, or `part#index` among the adapters whose name has that part, counted from 0. */
export function parseAdapterChoice(wanted: string): { readonly part: string; readonly index: number | undefined } {
  const [, part = wanted, index] = /^(.*)#(\d+)$/s.exec(wanted) ?? [];
  return { part, index: index === undefined ? undefined : Number(index) };
}

/** The adapters a wanted name may mean, whatever the case of its letters. */
export function matchingAdapters<T extends { readonly name: string }>(listed: readonly T[], part: string): T[] {
  return listed.filter(({ name }) => name.toLowerCase().includes(part.toLowerCase()));
}

/** Says what is there instead. */
export function noSuchAdapter(wanted: string, listed: readonly { readonly name: string }[]): EngineError {
  const names = listed.map(({ name }) => `'${name}'`).join(', ');
  return new EngineError(
    'no_adapter',
    `no WebGPU adapter matches '${wanted}'; there ${listed.length === 1 ? 'is' : 'are'} ${names || 'none'}`,
  );
}

/**
 * The adapters of every driver file, each with the environment that makes its driver offer it first: the file itself, and for the second
 * and later devices of one name the number that Mesa's device-select layer (which sorts the devices of every driver) takes in DRI_PRIME.
 */
export async function listByDriver(
  files: readonly string[],
  list: (environment: Readonly<Record<string, string>>) => Promise<readonly ListedAdapter[]>,
): Promise<ListedAdapter[]> {
  const all: ListedAdapter[] = [];
  for (const file of files) {
    const seen = new Map<string, number>();
    for (const adapter of await list({ VK_DRIVER_FILES: file })) {
      const ordinal = seen.get(adapter.name) ?? 0;
      seen.set(adapter.name, ordinal + 1);
      all.push({ ...adapter, environment: { VK_DRIVER_FILES: file, ...(ordinal > 0 && { DRI_PRIME: String(ordinal) }) } });
    }
  }
  return all;
}
