import type { Caps } from '../gpu/caps.ts';
import type { Variant } from '../gpu/kernel.ts';
import { fixedSubgroups } from './lanes.ts';
import type { SubgroupVariant } from './lanes.ts';
import { avoids } from './replaceable.ts';

/**
 * Chooses between lib/reduce.wgsl, lib/reduce_subgroup.wgsl and lib/reduce_lanes.wgsl (one subgroup), for kernels that reduce over a
 * workgroup: subgroups only where their size is known. On software adapters the workgroup is one SIMD register, so no workgroup memory is
 * used.
 */
export function reduceVariant(
  caps: Caps,
  columns: number,
): { readonly wg: number; readonly variant: SubgroupVariant & Pick<Variant, 'consts'> } {
  const wg = caps.family === 'cpu' ? 8 : columns <= 64 ? 64 : columns <= 1024 ? 128 : 256;
  return { wg, variant: reduceWithin(caps, wg) };
}

/** reduceVariant for a workgroup of `wg` invocations. */
export function reduceWithin(caps: Caps, wg: number): SubgroupVariant & Pick<Variant, 'consts'> {
  const fixed = fixedSubgroups(caps);
  if (!fixed || wg % fixed.size !== 0 || avoids(caps, wg === fixed.size ? 'reduce_lanes' : 'reduce_subgroup')) return {};
  return { ...fixed.variant, ...(wg !== fixed.size && { consts: { SUBGROUP: fixed.size } }) };
}

/** The WGSL fragment for a variant of reduceVariant. */
export function reduceFragment(variant: Variant): string {
  if (!variant.subgroups) return 'lib/reduce.wgsl';
  return variant.consts?.['SUBGROUP'] === undefined ? 'lib/reduce_lanes.wgsl' : 'lib/reduce_subgroup.wgsl';
}

/** The WGSL fragment for kernels that reduce several rows at once, in the workgroup memory of lib/sums_split.wgsl. */
export function reduceRowsFragment(variant: Variant): string {
  return reduceFragment(variant).replace('reduce', 'reduce_rows');
}
