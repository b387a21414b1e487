/** Nemotron-H with and without experts (conversion/nemotron.py, models/nemotron-h.cpp). Nothing is rotated, so the order of q's and k's rows means nothing. */
import type { Architecture, Sizes } from './family.ts';
import { MAMBA2, mamba2Sizes } from './mamba2.ts';
import type { Metadata } from './metadata.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';
import { SHARED } from './shared-experts.ts';

type Own = Omit<Architecture, 'modelType' | 'permuted' | 'activation'>;
type Experts = Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>>;

/** The models without experts. */
export function nemotronH(): Own {
  return {
    ...MAMBA2,
    byLayer: true,
    layerNormEps: 'layer_norm_epsilon',
    settings: (metadata, key, sizes) => {
      const { heads, headDim, groups, stateDim, taps, hasConvBias } = mamba2Sizes(metadata, key, sizes);
      const rmsEps = metadata.number(key(KEYS.rms_norm_eps));
      const types = layerTypes(metadata, sizes);
      return {
        layers_block_type: types,
        num_key_value_heads: metadata.everyLayer(key(KEYS.num_key_value_heads)),
        intermediate_size: sizes.rowsOf(`blk.${types.indexOf('mlp')}.ffn_up.weight`) ?? metadata.everyLayer(key(KEYS.intermediate_size)),
        mamba_num_heads: heads,
        mamba_head_dim: headDim,
        n_groups: groups,
        ssm_state_size: stateDim,
        conv_kernel: taps,
        use_conv_bias: hasConvBias,
        // The eps of llama.cpp's norms, where a file has both.
        ...(rmsEps !== undefined && { layer_norm_epsilon: rmsEps }),
      };
    },
  };
}

/** The models with experts. */
export function nemotronHExperts({ parts, reads, settings }: Experts): Own {
  const dense = nemotronH();
  return {
    ...dense,
    reads,
    parts: new Map([...dense.parts!, ...parts, ...SHARED]),
    tensors: new Map([...dense.tensors!, ['exp_probs_b.bias', 'mlp.expert_bias']]),
    settings: (metadata, key, sizes) => {
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      const groups = metadata.number(key('expert_group_count')) ?? 1;
      return {
        ...dense.settings!(metadata, key, sizes),
        ...settings(metadata, key, sizes),
        n_routed_experts: size(KEYS.num_experts),
        n_shared_experts: metadata.number(key('expert_shared_count')) ?? 1,
        moe_shared_expert_intermediate_size: size('expert_shared_feed_forward_length'),
        moe_latent_size: metadata.number(key('moe_latent_size')) || null,
        n_group: groups,
        topk_group: groups > 1 ? size('expert_group_used_count') : 1,
        routed_scaling_factor: metadata.number(key('expert_weights_scale')) || 1,
        norm_topk_prob: metadata.flag(key('expert_weights_norm')) === true,
      };
    },
  };
}

/** What a layer is, by the tensor that none of the others has. Lists of sizes do not tell: converters have written 0 columns for layers with an MLP. */
const TYPES = [
  ['ssm_in', 'mamba'],
  ['attn_q', 'attention'],
  ['ffn_gate_inp', 'moe'],
  ['ffn_up', 'mlp'],
] as const;

function layerTypes(metadata: Metadata, { layers, has }: Sizes): readonly string[] {
  return Array.from({ length: layers }, (_, layer) => {
    const found = TYPES.find(([part]) => has(`blk.${layer}.${part}.weight`));
    return found?.[1] ?? metadata.refuse(`layer ${layer} has none of ${TYPES.map(([part]) => part).join(', ')}`);
  });
}
