import type { Caps } from '../gpu/caps.ts';
import type { Variant } from '../gpu/kernel.ts';
import { avoids } from './replaceable.ts';

/** Lanes of a subgroup on most hardware, which one-subgroup kernels are shaped for. */
const USUAL = 32;

export type SubgroupVariant = Pick<Variant, 'subgroups' | 'subgroupSize'>;

/** Lanes of a subgroup, where that is known because all are alike or because a kernel sets it; undefined otherwise. */
export function fixedSubgroups({
  subgroups,
  subgroupMinSize: least,
  subgroupMaxSize: most,
  subgroupSizeControl,
}: Caps): { readonly size: number; readonly variant: SubgroupVariant } | undefined {
  if (!subgroups) return undefined;
  if (least === most) return { size: least, variant: { subgroups: true } };
  const size = Math.max(least, Math.min(USUAL, most));
  return subgroupSizeControl ? { size, variant: { subgroups: true, subgroupSize: size } } : undefined;
}

/** Lanes of a workgroup whose invocations exchange values, and the variant in which they are one subgroup that can shuffle. */
export function lanesOf(caps: Caps): { readonly lanes: number; readonly variant: SubgroupVariant } {
  const fixed = avoids(caps, 'lanes_subgroup') || avoids(caps, 'lane_sums_subgroup') ? undefined : fixedSubgroups(caps);
  if (fixed && fixed.size <= USUAL) return { lanes: fixed.size, variant: fixed.variant };
  return { lanes: caps.family === 'cpu' ? 8 : USUAL, variant: {} };
}
