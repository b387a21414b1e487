/** GGUF architectures of Gemma, as llama.cpp's converter writes them (conversion/gemma.py). */
import type { Json } from '../../util/json.ts';
import type { Architecture, Sizes } from './family.ts';
import type { Metadata } from './metadata.ts';
import { SETTING_KEYS } from './setting-keys.ts';

/** Gemma's norms, before and after each half of a layer. */
export const FOUR_NORMS: ReadonlyMap<string, string> = new Map([
  ['post_attention_norm', 'post_attention_layernorm'],
  ['ffn_norm', 'pre_feedforward_layernorm'],
  ['post_ffw_norm', 'post_feedforward_layernorm'],
]);

/**
 * Gemma's settings. Files lack the divisor of attention scores, which differs from the head size only in the 27 B models, told by their
 * number of layers (llama.cpp: models/gemma*.cpp).
 */
export function gemma(layersOf27B: number): Required<Pick<Architecture, 'settings' | 'reads' | 'parts' | 'normOffset'>> {
  return {
    parts: FOUR_NORMS,
    normOffset: 1,
    reads: ['attn_logit_softcapping', 'final_logit_softcapping'],
    settings: (metadata, key, { layers, hidden, heads, headDim }) => ({
      query_pre_attn_scalar: layers === layersOf27B ? hidden / heads : headDim,
      attn_logit_softcapping: metadata.number(key('attn_logit_softcapping')) ?? null,
      final_logit_softcapping: metadata.number(key('final_logit_softcapping')) ?? null,
      ...(metadata.has(key('rope.freq_base_swa')) && { rope_local_base_freq: metadata.number(key('rope.freq_base_swa')) }),
    }),
  };
}

/**
 * Gemma 3. Files without a sliding window are models with full attention in all layers and one rotary embedding, such as Rnj-1 (llama.cpp:
 * models/gemma3.cpp).
 */
export function gemma3(): ReturnType<typeof gemma> {
  const own = gemma(62);
  return {
    ...own,
    settings: (metadata, key, sizes) => ({
      ...own.settings(metadata, key, sizes),
      ...(!metadata.number(key(SETTING_KEYS.sliding_window)) && { layer_types: new Array<string>(sizes.layers).fill('full_attention') }),
    }),
  };
}

/** Per-layer embeddings: a layer's parts. */
const LAYER_INPUTS = [
  ['inp_gate', 'per_layer_input_gate'],
  ['proj', 'per_layer_projection'],
  ['post_norm', 'post_per_layer_input_norm'],
] as const;

/**
 * Gemma 3n. The converter turns sparsity shares into cuts of gates, in standard deviations above their mean (-infinity = none). The token
 * table has no more rows than the table of per-layer embeddings.
 */
export function gemma3n(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    parts: new Map([
      ...FOUR_NORMS,
      ...LAYER_INPUTS,
      ['altup_router', 'altup.modality_router'],
      ['altup_router_norm', 'altup.router_norm'],
      ['altup_predict_coef', 'altup.prediction_coefs'],
      ['altup_correct_coef', 'altup.correction_coefs'],
      ['laurel_l', 'laurel.linear_left'],
      ['laurel_r', 'laurel.linear_right'],
      ['laurel_post_norm', 'laurel.post_laurel_norm'],
    ]),
    tensors: new Map([['altup_correct_scale.weight', 'altup.correct_output_scale']]),
    reads: ['final_logit_softcapping'],
    settings: (metadata, key, { layers, vocabulary, rowsOf }) => {
      const listed = (rest: string): readonly unknown[] => {
        const found = metadata.get(key(rest));
        return Array.isArray(found) && found.length >= layers
          ? found.slice(0, layers)
          : metadata.refuse(`${key(rest)} is no list of ${layers}`);
      };
      const settings = {
        hidden_activation: 'gelu_pytorch_tanh',
        layer_types: listed('attention.sliding_window_pattern').map((slides) => (slides ? 'sliding_attention' : 'full_attention')),
        num_kv_shared_layers: metadata.number(key('attention.shared_kv_layers')),
        hidden_size_per_layer_input: metadata.number(key('embedding_length_per_layer_input')),
        vocab_size_per_layer_input: vocabulary,
        laurel_rank: rowsOf('blk.0.laurel_l.weight'),
        altup_num_inputs: metadata.number(key('altup.num_inputs')),
        altup_active_idx: metadata.number(key('altup.active_idx')),
        activation_sparsity_scale: listed('activation_sparsity_scale'),
        final_logit_softcapping: metadata.number(key('final_logit_softcapping')),
      };
      // Fields that a file lacks have the values of E2B and E4B.
      return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
    },
  };
}

/**
 * Gemma 4, whose layers have sizes of their own: `key_length_swa` is the head size of the sliding-window layers. The tensor of rotary
 * factors belongs to the full-attention layers: 1 for a pair that is rotated, 1e30 for one that is not (conversion/gemma.py).
 */
export function gemma4(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    byLayer: true,
    parts: new Map([
      ...FOUR_NORMS,
      ...LAYER_INPUTS,
      ['post_ffw_norm_1', 'post_feedforward_layernorm_1'],
      ['pre_ffw_norm_2', 'pre_feedforward_layernorm_2'],
      ['post_ffw_norm_2', 'post_feedforward_layernorm_2'],
      ['ffn_gate_inp', 'router.proj'],
      ...['gate', 'up', 'gate_up', 'down'].map((part) => [`ffn_${part}_exps`, `experts.${part}_proj`] as const),
    ]),
    tensors: new Map([
      ['layer_output_scale.weight', 'layer_scalar'],
      ['ffn_gate_inp.scale', 'router.scale'],
      ['ffn_down_exps.scale', 'router.per_expert_scale'],
    ]),
    reads: ['final_logit_softcapping', 'expert_count'],
    settings: gemma4Settings,
  };
}

function gemma4Settings(metadata: Metadata, key: (rest: string) => string, sizes: Sizes): Json {
  const { layers, headDim, ropeFactors } = sizes;
  const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
  const pattern = metadata.get(key('attention.sliding_window_pattern'));
  if (!Array.isArray(pattern) || pattern.length < layers)
    metadata.refuse(`${key('attention.sliding_window_pattern')} is no list of ${layers}`);
  const slides = pattern.map(Boolean);
  const shared = metadata.number(key('attention.shared_kv_layers')) ?? 0;
  const columns = metadata.byLayer(key('feed_forward_length'), layers);
  const kvHeads = metadata.byLayer(key('attention.head_count_kv'), layers);
  const [first = 0, last] = [columns[0], columns[layers - 1]];
  const wide = shared > 0 && last === 2 * first;
  const expected = (layer: number): number => (wide && layer >= layers - shared ? 2 * first : first);
  if (columns.some((found, layer) => found !== expected(layer))) metadata.refuse(`${key('feed_forward_length')} is ${columns.join(', ')}, which is not supported`); // prettier-ignore
  const local = size('attention.key_length_swa');
  const seesAll = slides.indexOf(false);
  const rotated = ropeFactors?.short.filter((factor) => factor === 1).length ?? headDim / 2;
  const experts = metadata.number(key('expert_count')) ?? 0;
  return {
    head_dim: local,
    num_key_value_heads: kvHeads[0],
    per_layer_config: Object.fromEntries(kvHeads.map((heads, layer) => [layer, { num_key_value_heads: heads, head_dim: slides[layer] ? local : headDim }])), // prettier-ignore
    layer_types: slides.map((slide) => (slide ? 'sliding_attention' : 'full_attention')),
    rope_scaling: undefined,
    rope_theta: undefined,
    partial_rotary_factor: undefined,
    rope_parameters: {
      full_attention: {
        rope_type: 'proportional',
        rope_theta: metadata.number(key('rope.freq_base')) ?? 1e6,
        partial_rotary_factor: (2 * rotated) / headDim,
      },
      sliding_attention: { rope_type: 'default', rope_theta: metadata.number(key('rope.freq_base_swa')) ?? 1e4 },
    },
    intermediate_size: first,
    use_double_wide_mlp: wide,
    num_kv_shared_layers: shared,
    attention_k_eq_v: seesAll >= 0 && !sizes.has(`blk.${seesAll}.attn_v.weight`),
    hidden_size_per_layer_input: metadata.number(key('embedding_length_per_layer_input')) ?? 0,
    vocab_size_per_layer_input: sizes.vocabulary,
    final_logit_softcapping: metadata.number(key('final_logit_softcapping')) || null,
    ...(experts > 0 && { enable_moe_block: true, num_experts: experts, top_k_experts: size('expert_used_count'), moe_intermediate_size: metadata.byLayer(key('expert_feed_forward_length'), layers)[0] }), // prettier-ignore
  };
}
