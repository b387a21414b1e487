/** Kernels and fragments that an adapter can do without, and what replaces them (README.md, "Choosing kernels"). */
import type { Caps } from '../gpu/caps.ts';
import type { Fault } from '../gpu/kernel-fault.ts';

/**
 * By file name: each kernel or fragment that an adapter may do without, and what takes its place. Products for GPUs fall back together,
 * because a row has the same bits in each.
 */
export const REPLACEABLE = {
  linear_rows: 'linear_tile',
  linear_broadcast: 'linear_tile',
  linear_texels: 'linear_broadcast',
  linear_quad: 'linear_tile',
  linear_split: 'linear_tile',
  linear_block: 'linear_tile',
  half_rows: 'products without matrices',
  linear_matrix: 'products without matrices',
  conv1d_texels: 'conv1d_broadcast',
  conv1d_broadcast: 'conv1d_tile',
  conv1d_quad: 'conv1d_tile',
  lstm_texels: 'lstm',
  dense_broadcast: 'dense',
  dense_texels: 'dense',
  dense_quad: 'dense',
  sort_slices: 'sample_threshold',
  slice_threshold: 'sample_threshold',
  lanes_subgroup: 'lanes',
  lane_sums_subgroup: 'lane_sums',
  reduce_subgroup: 'reduce',
  reduce_lanes: 'reduce',
  words_texture: 'words_of_columns',
  quads_texture: 'quads_buffer',
  paged_attention_wide: 'paged_attention',
  pages_texture: 'pages_buffer',
  store_pages_texels: 'store_pages',
  floats_texture: 'floats_of_columns',
  linear_fused: 'rms_norm and others',
  linear_normed: 'rms_norm and others',
  project_heads: 'rope_kv_store and others',
  project_heads_many: 'rope_kv_store and others',
} as const;

export type Replaceable = keyof typeof REPLACEABLE;

/** Whether an adapter does without a kernel or fragment. */
export function avoids({ avoid }: Caps, name: Replaceable): boolean {
  return avoid.has(name);
}

/** What to do without because of a fault; undefined = nothing can replace it, or it was replaced and its replacement is at fault. */
export function replaceableOf({ names }: Fault, avoided: ReadonlySet<string>): Replaceable | undefined {
  return names.find((name): name is Replaceable => name in REPLACEABLE && !avoided.has(name));
}
