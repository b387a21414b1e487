/** GGUF architectures of the Granite family (conversion/granite.py). */
import type { Json } from '../../util/json.ts';
import type { Architecture } from './family.ts';
import { MAMBA2, mamba2Sizes } from './mamba2.ts';
import type { Metadata } from './metadata.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';
import { SHARED } from './shared-experts.ts';

const MULTIPLIERS = ['embedding_multiplier', 'residual_multiplier', 'attention_multiplier', 'logits_scaling'] as const;

/** Granite 3, and the models of Granite 4 that have attention in every layer and no experts. */
export function granite(): Pick<Architecture, 'settings' | 'reads' | 'otherTypes'> {
  return {
    otherTypes: ['granitemoehybrid'],
    reads: MULTIPLIERS.map((name) => KEYS[name]),
    settings: (metadata, key, { headDim, layers }) => {
      const settings = multipliers(metadata, key, headDim);
      if (isRotated(metadata, key)) return settings;
      const types = new Array<string>(layers).fill('attention');
      const columns = metadata.everyLayer(key(KEYS.intermediate_size));
      return { ...settings, model_type: 'granitemoehybrid', layer_types: types, shared_intermediate_size: columns, num_local_experts: 0 };
    },
  };
}

function multipliers(metadata: Metadata, key: (rest: string) => string, headDim: number): Json {
  const settings = Object.fromEntries(MULTIPLIERS.map((name) => [name, metadata.number(key(KEYS[name])) ?? 1] as const));
  // 0 means the default, as in llama.cpp.
  return { ...settings, attention_multiplier: metadata.number(key(KEYS.attention_multiplier)) || headDim ** -0.5 };
}

/** Files without rotary embedding say that it was not "finetuned" (llama.cpp: models/granite.cpp and granite-hybrid.cpp). */
function isRotated(metadata: Metadata, key: (rest: string) => string): boolean {
  return metadata.flag(key('rope.scaling.finetuned')) !== false;
}

/** Layers with 0 key/value heads have Mamba 2; a number of heads that is no list is that of all layers. */
function layerTypes(metadata: Metadata, key: (rest: string) => string, layers: number): readonly string[] {
  const name = key(KEYS.num_key_value_heads);
  const heads = Array.isArray(metadata.get(name)) ? metadata.numbers(name)! : new Array<number>(layers).fill(1);
  return heads.map((count) => (count > 0 ? 'attention' : 'mamba'));
}

/** Granite 4 with Mamba 2; `experts`: names of the tensors of experts. */
export function graniteHybrid(experts: ReadonlyMap<string, string>): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    parts: new Map([...experts, ...SHARED, ...MAMBA2.parts]),
    tensors: MAMBA2.tensors,
    values: MAMBA2.values,
    reads: [...MULTIPLIERS.map((name) => KEYS[name]), KEYS.num_experts],
    settings: (metadata, key, sizes) => {
      const { hidden, headDim, layers, has } = sizes;
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      const hasExperts = (metadata.number(key(KEYS.num_experts)) ?? 0) > 0;
      const inAny = (tensor: string): boolean => Array.from({ length: layers }, (_, layer) => `blk.${layer}.${tensor}`).some(has);
      const rotated = isRotated(metadata, key);
      const channels = metadata.number(key('rope.dimension_count')) ?? headDim;
      if (rotated && channels !== headDim) metadata.refuse(`it rotates ${channels} of ${headDim} channels, which is not supported`);
      const mamba = mamba2Sizes(metadata, key, sizes);
      return {
        ...multipliers(metadata, key, headDim),
        layer_types: layerTypes(metadata, key, layers),
        position_embedding_type: rotated ? 'rope' : 'nope',
        attention_bias: inAny('attn_q.bias'),
        num_local_experts: metadata.number(key(KEYS.num_experts)) ?? 0,
        num_experts_per_tok: hasExperts ? size(KEYS.num_experts_per_tok) : 0,
        shared_intermediate_size: hasExperts ? size('expert_shared_feed_forward_length') : metadata.everyLayer(key(KEYS.intermediate_size)),
        mamba_n_heads: mamba.heads,
        mamba_d_head: mamba.headDim,
        mamba_expand: mamba.inner / hidden,
        mamba_n_groups: mamba.groups,
        mamba_d_state: mamba.stateDim,
        mamba_d_conv: mamba.taps,
        mamba_conv_bias: mamba.hasConvBias,
      };
    },
  };
}
