import type { Caps } from '../gpu/caps.ts';
import { avoids } from './replaceable.ts';

/** Lanes of a workgroup whose invocations hand each other values, and whether they are one subgroup that can shuffle. */
export function lanesOf(caps: Caps): { readonly lanes: number; readonly subgroups: boolean } {
  const { subgroupMinSize: size, subgroupMaxSize } = caps;
  const fixed = caps.subgroups && size === subgroupMaxSize && size <= 32 && !avoids(caps, 'lanes_subgroup');
  return { lanes: fixed ? size : caps.family === 'cpu' ? 8 : 32, subgroups: fixed };
}
