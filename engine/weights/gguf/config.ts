/** Derives Hugging Face's config.json from a GGUF file's metadata. */
import type { Json } from '../../util/json.ts';
import { architectureOf, layersOf } from './architecture.ts';
import { describeValue } from './header.ts';
import type { Metadata } from './metadata.ts';
import type { PartTensor } from './parts.ts';
import { ropeOf } from './rope.ts';
import type { RopeFactors } from './rope.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';

/** Settings that would change what a model computes but that no decoder here supports, with the value that changes nothing. */
const NEUTRAL: readonly (readonly [key: string, neutral: number | boolean])[] = [
  ['expert_count', 0],
  ['logit_scale', 1],
  ['embedding_scale', 1],
  ['residual_scale', 1],
  ['attention.scale', 0],
  ['attention.clamp_kqv', 0],
  ['attention.max_alibi_bias', 0],
  ['attn_logit_softcapping', 0],
  ['final_logit_softcapping', 0],
  ['attention.causal', true],
  ['use_parallel_residual', false],
];

/** The config.json of a file; `ropeFactors` are the values of its ROPE_FACTORS tensors, if it has them. */
export function configOf(metadata: Metadata, tensors: ReadonlyMap<string, PartTensor>, ropeFactors: RopeFactors | undefined): Json {
  const { name, modelType, activation, settings, layerNormEps, byLayer = false, latent = false, reads = [] } = architectureOf(metadata);
  const key = (rest: string): string => `${name}.${rest}`;
  for (const [rest, neutral] of NEUTRAL) {
    const value = metadata.get(key(rest)) ?? neutral;
    if (value !== neutral && !reads.includes(rest)) metadata.refuse(`${key(rest)} is ${describeValue(value)}, which is not supported`);
  }
  const every = (rest: string): number | undefined => (byLayer ? undefined : metadata.everyLayer(key(rest)));
  const size = (rest: string): number => metadata.everyLayer(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
  const hidden = size(KEYS.hidden_size);
  const heads = size(KEYS.num_attention_heads);
  const layers = layersOf(metadata, name) ?? metadata.refuse(`${key(KEYS.num_hidden_layers)} is missing`);
  const headDim = metadata.number(key(KEYS.head_dim)) ?? hidden / heads;
  const valueDim = metadata.number(key('attention.value_length')) ?? headDim;
  if (valueDim !== headDim && !latent) metadata.refuse(`keys have ${headDim} channels and values ${valueDim}, which is not supported`);
  const rotated = metadata.number(key('rope.dimension_count')) ?? headDim;
  const embedding = tensors.get('token_embd.weight') ?? metadata.refuse('tensor token_embd.weight is missing');
  const window = metadata.number(key(KEYS.sliding_window));
  return {
    model_type: modelType,
    hidden_size: hidden,
    // Files whose layers all have experts may lack feed_forward_length.
    intermediate_size: byLayer || metadata.has(key(KEYS.num_experts)) ? every(KEYS.intermediate_size) : size(KEYS.intermediate_size),
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: every(KEYS.num_key_value_heads) ?? heads,
    head_dim: headDim,
    vocab_size: embedding.shape[0],
    max_position_embeddings: size(KEYS.max_position_embeddings),
    ...(layerNormEps === undefined ? { rms_norm_eps: size(KEYS.rms_norm_eps) } : { [layerNormEps]: size('attention.layer_norm_epsilon') }),
    hidden_act: activation,
    attention_bias: tensors.has('blk.0.attn_q.bias'),
    tie_word_embeddings: !tensors.has('output.weight'),
    ...ropeOf(metadata, key, ropeFactors),
    ...(rotated !== headDim && { partial_rotary_factor: rotated / headDim }),
    ...(window !== undefined && window > 0 && { use_sliding_window: true, sliding_window: window, max_window_layers: 0, ...windowsOf(metadata, key, layers) }), // prettier-ignore
    ...settings?.(metadata, key, {
      layers,
      hidden,
      heads,
      headDim,
      vocabulary: embedding.shape[0]!,
      ropeFactors,
      has: (tensor) => tensors.has(tensor),
      rowsOf: (tensor) => tensors.get(tensor)?.shape[0],
    }),
    bos_token_id: metadata.number('tokenizer.ggml.bos_token_id') ?? null,
    eos_token_id: metadata.number('tokenizer.ggml.eos_token_id') ?? null,
  };
}

/**
 * Layer types where a file gives them: a flag per layer, or a number n if every n-th layer has no sliding window (llama.cpp,
 * load_swa_pattern). Other files have the default of their family.
 */
function windowsOf(metadata: Metadata, key: (rest: string) => string, layers: number): Json {
  const name = key('attention.sliding_window_pattern');
  const pattern = metadata.get(name);
  if (pattern === undefined) return {};
  const every = Array.isArray(pattern) ? 0 : metadata.number(name)!;
  const listed = Array.isArray(pattern) ? pattern : Array.from({ length: layers }, (_, layer) => every === 0 || (layer + 1) % every !== 0);
  if (listed.length < layers) metadata.refuse(`${name} has ${listed.length} values for ${layers} layers`);
  return { layer_types: listed.slice(0, layers).map((slides) => (slides ? 'sliding_attention' : 'full_attention')) };
}
