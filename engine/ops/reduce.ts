import type { Caps } from '../gpu/caps.ts';
import type { Variant } from '../gpu/kernel.ts';
import { avoids } from './replaceable.ts';

/**
 * The choice between lib/reduce.wgsl and lib/reduce_subgroup.wgsl for kernels that reduce over a workgroup: subgroups only where
 * their size is fixed. On software adapters the workgroup is one SIMD register, so no workgroup memory is touched.
 */
export function reduceVariant(
  caps: Caps,
  columns: number,
): { readonly wg: number; readonly variant: Pick<Variant, 'subgroups' | 'consts'> } {
  const wg = caps.family === 'cpu' ? 8 : columns <= 64 ? 64 : columns <= 1024 ? 128 : 256;
  const usable = caps.subgroups && !avoids(caps, 'reduce_subgroup');
  const fixed = usable && caps.subgroupMinSize === caps.subgroupMaxSize && wg % caps.subgroupMinSize === 0;
  return { wg, variant: fixed ? { subgroups: true, consts: { SUBGROUP: caps.subgroupMinSize } } : {} };
}

/** The fragment that belongs to a variant of reduceVariant. */
export function reduceFragment(variant: Variant): string {
  return variant.subgroups ? 'lib/reduce_subgroup.wgsl' : 'lib/reduce.wgsl';
}
