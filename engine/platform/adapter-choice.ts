/** Choosing an adapter by name. Dawn has no function that lists adapters, but the error for an unknown name contains the list. */
import { EngineError } from '../errors.ts';

/** An adapter as Dawn lists it. */
export interface ListedAdapter {
  readonly name: string;
  /** `vulkan`, `metal`, `d3d12`, ... */
  readonly backend: string;
  /** Environment variables that make the driver offer this adapter first; empty if its name is enough. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Parses the list of adapters in Dawn's error message. */
export function parseAdapterList(message: string): ListedAdapter[] {
  const lines = message.matchAll(/^ *\* backend: '([^']*)', name: '(.*)'$/gm);
  return [...lines].map(([, backend = '', name = '']) => ({ backend, name, environment: {} }));
}

/** Parses an adapter setting: a part of a name, or `part#index`, where the index counts the adapters with that part from 0. */
export function parseAdapterChoice(wanted: string): { readonly part: string; readonly index: number | undefined } {
  const [, part = wanted, index] = /^(.*)#(\d+)$/s.exec(wanted) ?? [];
  return { part, index: index === undefined ? undefined : Number(index) };
}

/** The adapters whose name contains `part`, ignoring case. */
export function matchingAdapters<T extends { readonly name: string }>(listed: readonly T[], part: string): T[] {
  return listed.filter(({ name }) => name.toLowerCase().includes(part.toLowerCase()));
}

/** The error for a setting that matches no adapter; it lists the available ones. */
export function noSuchAdapter(wanted: string, listed: readonly { readonly name: string }[]): EngineError {
  const names = listed.map(({ name }) => `'${name}'`).join(', ');
  return new EngineError(
    'no_adapter',
    `no WebGPU adapter matches '${wanted}'; there ${listed.length === 1 ? 'is' : 'are'} ${names || 'none'}`,
  );
}

/**
 * Lists the adapters of every Vulkan driver file, each with the environment that makes it the first: VK_DRIVER_FILES for the driver and, for the second and later
 * devices of the same name, DRI_PRIME with the index that Mesa's device-select layer expects.
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
