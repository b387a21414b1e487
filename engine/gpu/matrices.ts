/** Subgroup matrices (tensor cores): products of small matrices that a subgroup computes together by instructions of the adapter. */

/** The WebGPU feature, which only Dawn has. */
export const SUBGROUP_MATRIX = 'chromium-experimental-subgroup-matrix';

/** The feature that kernels with subgroup matrices need as well: their factors are halves. */
export const HALVES = 'shader-f16';

/** M = N = K of the matrices that kernels are written for, the best first: factors in f16, sums in f32. */
const SIZES = [16, 8] as const;

/** A row of GPUAdapterInfo.subgroupMatrixConfigs, which @webgpu/types does not know. */
interface Listed {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** M = N = K of the matrices that kernels take on an adapter; 0 where it lists none of SIZES. */
export function matrixSize(info: GPUAdapterInfo): number {
  const { subgroupMatrixConfigs: listed } = info as { readonly subgroupMatrixConfigs?: Iterable<Listed> };
  const ofHalves = [...(listed ?? [])].filter((one) => one.componentType === 'f16' && one.resultComponentType === 'f32');
  return SIZES.find((size) => ofHalves.some(({ M, N, K }) => M === size && N === size && K === size)) ?? 0;
}
