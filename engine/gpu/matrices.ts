/** Subgroup matrices: products of small matrices that an adapter has instructions for, which a subgroup computes together. */

/** A feature that only Dawn has. */
export const SUBGROUP_MATRIX = 'chromium-experimental-subgroup-matrix';

/** What kernels with them need beside it. */
export const HALVES = 'shader-f16';

/** Rows, columns and depth that kernels are made for, the best first: as many of each, of halves whose products are added up in f32. */
const SIZES = [16, 8] as const;

/** A row of GPUAdapterInfo.subgroupMatrixConfigs, which @webgpu/types does not know. */
interface Listed {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** Rows, columns and depth of the matrices that kernels take on an adapter; 0 = it lists none that they are made for. */
export function matrixSize(info: GPUAdapterInfo): number {
  const { subgroupMatrixConfigs: listed } = info as { readonly subgroupMatrixConfigs?: Iterable<Listed> };
  const ofHalves = [...(listed ?? [])].filter((one) => one.componentType === 'f16' && one.resultComponentType === 'f32');
  return SIZES.find((size) => ofHalves.some(({ M, N, K }) => M === size && N === size && K === size)) ?? 0;
}
