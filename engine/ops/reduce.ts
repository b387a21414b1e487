import type { Caps } from '../gpu/caps.ts';
import type { Variant } from '../gpu/kernel.ts';
import { fixedSubgroups } from './lanes.ts';
import type { SubgroupVariant } from './lanes.ts';
import { avoids } from './replaceable.ts';

/**
 * The choice between lib/reduce.wgsl and lib/reduce_subgroup.wgsl for kernels that reduce over a workgroup: subgroups only where
 * their size is known. On software adapters the workgroup is one SIMD register, so no workgroup memory is touched.
 */
export function reduceVariant(
  caps: Caps,
  columns: number,
): { readonly wg: number; readonly variant: SubgroupVariant & Pick<Variant, 'consts'> } {
  const wg = caps.family === 'cpu' ? 8 : columns <= 64 ? 64 : columns <= 1024 ? 128 : 256;
  const fixed = avoids(caps, 'reduce_subgroup') ? undefined : fixedSubgroups(caps);
  return { wg, variant: fixed && wg % fixed.size === 0 ? { ...fixed.variant, consts: { SUBGROUP: fixed.size } } : {} };
}

/** The fragment that belongs to a variant of reduceVariant. */
export function reduceFragment(variant: Variant): string {
  return variant.subgroups ? 'lib/reduce_subgroup.wgsl' : 'lib/reduce.wgsl';
}
