/** Falcon-H1 (conversion/falcon_h1.py): all multipliers are in the weights; where there is a norm, the gate comes before it. */
import type { Architecture } from './family.ts';
import { MAMBA2, mamba2Sizes } from './mamba2.ts';

export function falconH1(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    parts: MAMBA2.parts,
    // The norm before the MLP has no `.weight` behind its name.
    tensors: new Map([...MAMBA2.tensors, ['ffn_norm', 'pre_ff_layernorm.weight']]),
    values: MAMBA2.values,
    settings: (metadata, key, sizes) => {
      const { inner, heads, headDim, groups, stateDim, taps, hasConvBias } = mamba2Sizes(metadata, key, sizes);
      return {
        mamba_d_ssm: inner,
        mamba_n_heads: heads,
        mamba_d_head: headDim,
        mamba_n_groups: groups,
        mamba_d_state: stateDim,
        mamba_d_conv: taps,
        mamba_conv_bias: hasConvBias,
        mamba_rms_norm: sizes.has('blk.0.ssm_norm.weight'),
        mamba_norm_before_gate: false,
      };
    },
  };
}
