/** Tensors and sizes of Mamba 2 layers, as llama.cpp's converter writes them (conversion/mamba.py, Mamba2Model). */
import type { Architecture, Sizes } from './family.ts';
import type { Metadata } from './metadata.ts';

/** Names of the layers' parts and tensors, and values that are stored as others. */
export const MAMBA2: Required<Pick<Architecture, 'parts' | 'tensors' | 'values'>> = {
  parts: new Map([
    ['ssm_in', 'mamba.in_proj'],
    ['ssm_conv1d', 'mamba.conv1d'],
    ['ssm_norm', 'mamba.norm'],
    ['ssm_out', 'mamba.out_proj'],
  ]),
  tensors: new Map([
    ['ssm_a', 'mamba.A_log'],
    ['ssm_d', 'mamba.D'],
    ['ssm_dt.bias', 'mamba.dt_bias'],
  ]),
  values: new Map([['ssm_a', (stored) => Math.log(-stored)]]),
};

/** What a file says of its Mamba 2 layers. */
export function mamba2Sizes(metadata: Metadata, key: (rest: string) => string, { layers, has }: Sizes) {
  const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
  const [inner, heads] = [size('ssm.inner_size'), size('ssm.time_step_rank')];
  return {
    inner,
    heads,
    headDim: inner / heads,
    groups: size('ssm.group_count'),
    stateDim: size('ssm.state_size'),
    taps: size('ssm.conv_kernel'),
    hasConvBias: Array.from({ length: layers }, (_, layer) => `blk.${layer}.ssm_conv1d.bias`).some(has),
  };
}
