/** Drivers that spoil kernels. */
import type { Platform } from '../../engine/platform/platform.ts';

/** What becomes of a kernel's text, by file. */
export type Spoil = Readonly<Record<string, (text: string) => string>>;

/** The platform with such a driver. */
export function spoiled(platform: Platform, spoil: Spoil): Platform {
  return {
    ...platform,
    shaders: async () => new Map([...(await platform.shaders())].map(([path, text]) => [path, spoil[path]?.(text) ?? text])),
  };
}

/** The text with `to` in place of `from`, which must be there. */
export function once(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`a kernel has no ${from}`);
  return text.replace(from, to);
}

/** The last of a lane's channels is lost, in the kernels of products of few rows, and sums of lanes are a hundredth too large. */
export const SPOILED_SUMS: Spoil = {
  'lib/sums_rows.wgsl': (text) => once(text, 'fma(a.w, w[j].w,', 'fma(0.0, w[j].w,'),
  'lib/reduce_lanes.wgsl': (text) => once(text, 'return subgroupAdd(value);', 'return 1.01 * subgroupAdd(value);'),
};
