/** GGUF's architectures as Hugging Face's config.json and tensor names (llama.cpp: conversion/*.py, gguf-py/gguf/tensor_mapping.py). */
import type { Json } from '../../util/json.ts';
import { product } from '../../util/math.ts';
import type { GgufTensor } from './header.ts';
import type { PartTensor } from './parts.ts';
import type { Metadata } from './metadata.ts';

/** What a file's tensors are, by GGUF's name. */
export type Tensors = ReadonlyMap<string, PartTensor>;

/** What llama.cpp's converter makes of a family. */
export interface Architecture {
  /** config.json's `model_type`. */
  readonly modelType: string;
  /** Rows of q and k stand as llama.cpp's rotation wants them: pairs of channels beside each other. */
  readonly permuted: boolean;
  /** config.json's `hidden_act`. */
  readonly activation: string;
  /** Names of a layer's parts that are not as in PARTS. */
  readonly parts?: ReadonlyMap<string, string>;
  /** Names of a layer's tensors that are not a part's weight or bias. */
  readonly tensors?: ReadonlyMap<string, string>;
  /** What the values of a layer's tensor stand for, where that is not themselves and not normOffset's. */
  readonly values?: ReadonlyMap<string, (stored: number) => number>;
  /** What the converter added to the weights of norms. */
  readonly normOffset?: number;
  /** Settings that only this family has, and what they are called in config.json; others must be neutral. */
  readonly settings?: (metadata: Metadata, key: (rest: string) => string, sizes: Sizes) => Json;
  /** Keys of NEUTRAL that `settings` reads. */
  readonly reads?: readonly string[];
}

interface Sizes {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly headDim: number;
}

/** Gemma's norms: before and behind each half of a layer. */
const FOUR_NORMS: ReadonlyMap<string, string> = new Map([
  ['post_attention_norm', 'post_attention_layernorm'],
  ['ffn_norm', 'pre_feedforward_layernorm'],
  ['post_ffw_norm', 'post_feedforward_layernorm'],
]);

/** Gemma's settings: files do not have the divisor of scores, which is not the head size in the models of 27 B alone (llama.cpp: models/gemma*.cpp). */
function gemma(layersOf27B: number): Pick<Architecture, 'settings' | 'reads' | 'parts' | 'normOffset'> {
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

/** Phi's tensors of several projections; llama.cpp calls gate and up together "up". */
const FUSED: ReadonlyMap<string, string> = new Map([
  ['attn_qkv', 'self_attn.qkv_proj'],
  ['ffn_up', 'mlp.gate_up_proj'],
]);

/** OLMo's norms: behind each half of a layer. A file of OLMo 2 with a window is of OLMo 3, whose every fourth layer sees everything (llama.cpp: models/olmo2.cpp). */
function olmo(): Pick<Architecture, 'settings' | 'parts'> {
  return {
    parts: new Map([...FOUR_NORMS].filter(([stored]) => stored !== 'ffn_norm')),
    settings: (metadata, key) => ((metadata.number(key('attention.sliding_window')) ?? 0) > 0 ? { model_type: 'olmo3' } : {}),
  };
}

function granite(): Pick<Architecture, 'settings' | 'reads'> {
  const names = {
    embedding_scale: 'embedding_multiplier',
    residual_scale: 'residual_multiplier',
    'attention.scale': 'attention_multiplier',
    logit_scale: 'logits_scaling',
  };
  return {
    reads: Object.keys(names),
    settings: (metadata, key, { headDim }) => {
      const given = Object.entries(names).map(([stored, name]) => [name, metadata.number(key(stored)) ?? 1] as const);
      const settings = Object.fromEntries(given);
      // 0, as llama.cpp has it, is the usual divisor.
      return { ...settings, attention_multiplier: metadata.number(key('attention.scale')) || headDim ** -0.5 };
    },
  };
}

/** A layer's experts, each part as one matrix of all; llama.cpp makes the shares of a row's experts sum to 1 (models/qwen3moe.cpp), as published models want. */
function experts(): Pick<Architecture, 'settings' | 'reads' | 'parts'> {
  return {
    parts: new Map([
      ['ffn_gate_inp', 'mlp.gate'],
      ['ffn_gate_exps', 'mlp.experts.gate_proj'],
      ['ffn_up_exps', 'mlp.experts.up_proj'],
      ['ffn_down_exps', 'mlp.experts.down_proj'],
    ]),
    reads: ['expert_count'],
    settings: (metadata, key) => {
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      return {
        num_experts: size('expert_count'),
        num_experts_per_tok: size('expert_used_count'),
        moe_intermediate_size: size('expert_feed_forward_length'),
        norm_topk_prob: true,
      };
    },
  };
}

/**
 * Delta-nets. Value heads that share a key head are not neighbours in a file, but as many apart as there are key heads, in every tensor that has them: the
 * forward pass is told of it (conversion/qwen.py, _LinearAttentionVReorderBase).
 */
function qwen35(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  const sizes = {
    conv_kernel: 'linear_conv_kernel_dim',
    state_size: 'linear_key_head_dim',
    group_count: 'linear_num_key_heads',
    time_step_rank: 'linear_num_value_heads',
  };
  return {
    parts: new Map([
      ['post_attention_norm', 'post_attention_layernorm'],
      ['attn_qkv', 'linear_attn.in_proj_qkv'],
      ['attn_gate', 'linear_attn.in_proj_z'],
      ['ssm_beta', 'linear_attn.in_proj_b'],
      ['ssm_alpha', 'linear_attn.in_proj_a'],
      ['ssm_conv1d', 'linear_attn.conv1d'],
      ['ssm_norm', 'linear_attn.norm'],
      ['ssm_out', 'linear_attn.out_proj'],
    ]),
    tensors: new Map([
      ['ssm_a', 'linear_attn.A_log'],
      ['ssm_dt.bias', 'linear_attn.dt_bias'],
    ]),
    values: new Map([
      ['ssm_a', (stored) => Math.log(-stored)],
      ['ssm_norm.weight', (stored) => stored],
    ]),
    normOffset: 1,
    settings: (metadata, key, { headDim }) => {
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      const recurrent = metadata.get(key('attention.recurrent_layers'));
      return {
        ...Object.fromEntries(Object.entries(sizes).map(([stored, name]) => [name, size(`ssm.${stored}`)])),
        linear_value_head_dim: size('ssm.inner_size') / size('ssm.time_step_rank'),
        linear_value_heads_tiled: true,
        partial_rotary_factor: size('rope.dimension_count') / headDim,
        full_attention_interval: metadata.number(key('full_attention_interval')) ?? 4,
        ...(Array.isArray(recurrent) && { layer_types: recurrent.map((is) => (is ? 'linear_attention' : 'full_attention')) }),
      };
    },
  };
}

/** Short convolutions, in the layers without heads of keys; the columns of the MLP are those that there are. */
function lfm2(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    parts: new Map([
      ['attn_norm', 'operator_norm'],
      ['ffn_norm', 'ffn_norm'],
    ]),
    tensors: new Map(['conv', 'in_proj', 'out_proj'].map((name) => [`shortconv.${name}.weight`, `conv.${name}.weight`])),
    settings: (metadata, key) => ({
      norm_eps: metadata.number(key('attention.layer_norm_rms_epsilon')),
      conv_L_cache: metadata.number(key('shortconv.l_cache')) ?? metadata.refuse(`${key('shortconv.l_cache')} is missing`),
      block_auto_adjust_ff_dim: false,
      layer_types: metadata.numbers(key('attention.head_count_kv'))?.map((count) => (count > 0 ? 'full_attention' : 'conv')),
    }),
  };
}

/** Queries that grow with their position, and YaRN with two factors that cancel each other (llama.cpp: models/mistral3.cpp). Files of Mistral Small 3 lack both. */
function ministral(): Pick<Architecture, 'settings'> {
  return {
    settings: (metadata, key) => {
      const rate = metadata.number(key('attention.temperature_scale')) ?? 0;
      const rope = ropeOf(metadata, key, undefined);
      const scaling = { attention_factor: 1, llama_4_scaling_beta: rate };
      return rate === 0
        ? { model_type: 'mistral' }
        : { rope_parameters: { ...(rope['rope_scaling'] as Json), ...scaling }, rope_scaling: undefined };
    },
  };
}

/** By `general.architecture`. Mistral's files say llama. */
export const ARCHITECTURES: ReadonlyMap<string, Architecture> = new Map([
  ['llama', { modelType: 'llama', permuted: true, activation: 'silu' }],
  ['qwen2', { modelType: 'qwen2', permuted: false, activation: 'silu' }],
  ['qwen3', { modelType: 'qwen3', permuted: false, activation: 'silu' }],
  ['qwen3moe', { modelType: 'qwen3_moe', permuted: false, activation: 'silu', ...experts() }],
  ['gemma2', { modelType: 'gemma2', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma(46) }],
  ['gemma3', { modelType: 'gemma3_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma(62) }],
  // Granite's multipliers; SmolLM3's unrotated layers are not in its files, but every fourth.
  ['granite', { modelType: 'granite', permuted: true, activation: 'silu', ...granite() }],
  ['smollm3', { modelType: 'smollm3', permuted: true, activation: 'silu' }],
  ['mistral3', { modelType: 'ministral3', permuted: true, activation: 'silu', ...ministral() }],
  ['arcee', { modelType: 'arcee', permuted: true, activation: 'relu2' }],
  ['phi3', { modelType: 'phi3', permuted: false, activation: 'silu', parts: FUSED }],
  ['olmo2', { modelType: 'olmo2', permuted: false, activation: 'silu', ...olmo() }],
  ['lfm2', { modelType: 'lfm2', permuted: false, activation: 'silu', ...lfm2() }],
  ['qwen35', { modelType: 'qwen3_5_text', permuted: false, activation: 'silu', ...qwen35() }],
]);

/** The architecture that a file names; throws EngineError('invalid_model') that lists what there is. */
export function architectureOf(metadata: Metadata): Architecture & { readonly name: string } {
  const name = metadata.text('general.architecture') ?? metadata.refuse('general.architecture is missing');
  const kind = metadata.text('general.type') ?? 'model';
  if (kind !== 'model')
    metadata.refuse(`it is no model of its own, but of type ${JSON.stringify(kind)} (general.type); give the model's file`);
  const architecture = ARCHITECTURES.get(name);
  if (architecture) return { ...architecture, name };
  return metadata.refuse(`its architecture is ${JSON.stringify(name)}; GGUF files of ${[...ARCHITECTURES.keys()].join(', ')} are read`);
}

/** Settings that change what a model computes and that no decoder here follows, with the value that changes nothing. */
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

/** What rotary frequencies are divided by, for texts within the original context and for longer ones. */
export interface RopeFactors {
  readonly short: Float32Array;
  readonly long: Float32Array;
}

/** config.json of a file; `ropeFactors` are the values of ROPE_FACTORS where it has them. */
export function configOf(metadata: Metadata, tensors: Tensors, ropeFactors: RopeFactors | undefined): Json {
  const { name, modelType, activation, settings, reads = [] } = architectureOf(metadata);
  const key = (rest: string): string => `${name}.${rest}`;
  for (const [rest, neutral] of NEUTRAL) {
    const value = metadata.get(key(rest)) ?? neutral;
    if (value !== neutral && !reads.includes(rest)) metadata.refuse(`${key(rest)} is ${String(value)}, which is not supported`);
  }
  const size = (rest: string): number => metadata.everyLayer(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
  const hidden = size('embedding_length');
  const heads = size('attention.head_count');
  const layers = layersOf(metadata, name) ?? metadata.refuse(`${key('block_count')} is missing`);
  const headDim = metadata.number(key('attention.key_length')) ?? hidden / heads;
  const valueDim = metadata.number(key('attention.value_length')) ?? headDim;
  if (valueDim !== headDim) metadata.refuse(`keys have ${headDim} channels and values ${valueDim}, which is not supported`);
  const rotated = metadata.number(key('rope.dimension_count')) ?? headDim;
  const embedding = tensors.get('token_embd.weight') ?? metadata.refuse('tensor token_embd.weight is missing');
  const window = metadata.number(key('attention.sliding_window'));
  return {
    model_type: modelType,
    hidden_size: hidden,
    intermediate_size: size('feed_forward_length'),
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: metadata.everyLayer(key('attention.head_count_kv')) ?? heads,
    head_dim: headDim,
    vocab_size: embedding.shape[0],
    max_position_embeddings: size('context_length'),
    rms_norm_eps: size('attention.layer_norm_rms_epsilon'),
    hidden_act: activation,
    attention_bias: tensors.has('blk.0.attn_q.bias'),
    tie_word_embeddings: !tensors.has('output.weight'),
    ...ropeOf(metadata, key, ropeFactors),
    ...(rotated !== headDim && { partial_rotary_factor: rotated / headDim }),
    ...(window !== undefined && window > 0 && { use_sliding_window: true, sliding_window: window, max_window_layers: 0 }),
    ...settings?.(metadata, key, { layers, hidden, heads, headDim }),
    bos_token_id: metadata.number('tokenizer.ggml.bos_token_id') ?? null,
    eos_token_id: metadata.number('tokenizer.ggml.eos_token_id') ?? null,
  };
}

/** Layers of the model; those behind them guess several tokens at once (Qwen3.5's `mtp`), which nothing here asks. */
function layersOf(metadata: Metadata, architecture: string): number | undefined {
  const all = metadata.everyLayer(`${architecture}.block_count`);
  return all === undefined ? undefined : all - (metadata.number(`${architecture}.nextn_predict_layers`) ?? 0);
}

/** Base and scaling of the rotary embedding. Llama 3's scaling stands in a file as one factor a frequency, which transformers calls longrope, and LongRoPE as two. */
function ropeOf(metadata: Metadata, key: (rest: string) => string, factors: RopeFactors | undefined): Json {
  const rope_theta = metadata.number(key('rope.freq_base')) ?? 10000;
  const factor = metadata.number(key('rope.scaling.factor')) ?? metadata.number(key('rope.scale_linear')) ?? 1;
  const type = metadata.text(key('rope.scaling.type')) ?? (factor === 1 ? 'none' : 'linear');
  const scaled = type !== 'none' && !(type === 'linear' && factor === 1);
  if (scaled && factors) metadata.refuse(`it scales positions twice: by ${key('rope.scaling.type')} ${type} and by a tensor of factors`);
  const original = metadata.number(key('rope.scaling.original_context_length'));
  const ramp = {
    beta_fast: metadata.number(key('rope.scaling.yarn_beta_fast')),
    beta_slow: metadata.number(key('rope.scaling.yarn_beta_slow')),
  };
  const yarn = type === 'yarn' && { ...(original !== undefined && { original_max_position_embeddings: original }), ...ramp };
  if (scaled) return { rope_theta, rope_scaling: { rope_type: type, factor, ...yarn } };
  if (!factors) return { rope_theta };
  const longrope = {
    rope_type: 'longrope',
    short_factor: [...factors.short],
    long_factor: [...factors.long],
    attention_factor: metadata.number(key('rope.scaling.attn_factor')) ?? 1,
  };
  return { rope_theta, ...(original !== undefined && { original_max_position_embeddings: original }), rope_scaling: longrope };
}

/** The tensors of rotary factors, which belong to the configuration: Llama 3's, which are of all texts, and LongRoPE's. */
export const ROPE_FACTORS = { all: 'rope_freqs.weight', short: 'rope_factors_short.weight', long: 'rope_factors_long.weight' } as const;

/** Names outside of layers. */
const TOP: ReadonlyMap<string, string> = new Map([
  ['token_embd.weight', 'model.embed_tokens.weight'],
  ['output_norm.weight', 'model.norm.weight'],
  // LFM2's.
  ['token_embd_norm.weight', 'model.norm.weight'],
  ['output.weight', 'lm_head.weight'],
]);

/** Names of a layer's parts. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['attn_norm', 'input_layernorm'],
  ['attn_q', 'self_attn.q_proj'],
  ['attn_k', 'self_attn.k_proj'],
  ['attn_v', 'self_attn.v_proj'],
  ['attn_output', 'self_attn.o_proj'],
  ['attn_q_norm', 'self_attn.q_norm'],
  ['attn_k_norm', 'self_attn.k_norm'],
  ['ffn_norm', 'post_attention_layernorm'],
  ['ffn_gate', 'mlp.gate_proj'],
  ['ffn_up', 'mlp.up_proj'],
  ['ffn_down', 'mlp.down_proj'],
]);

/** A tensor under Hugging Face's name. */
export interface NamedTensor {
  readonly tensor: PartTensor;
  /** Rows of a head, where the file has them as pairs of channels. */
  readonly pairedRows: number | undefined;
  /** What a stored value stands for; undefined = itself. */
  readonly value: ((stored: number) => number) | undefined;
}

/** The tensors of a file by Hugging Face's name; those that nobody knows keep theirs, and the loader refuses what nobody takes. */
export function namedTensors(metadata: Metadata, tensors: Tensors): ReadonlyMap<string, NamedTensor> {
  const { name, permuted, parts, tensors: own, values, normOffset = 0 } = architectureOf(metadata);
  const layers = layersOf(metadata, name) ?? Infinity;
  const heads = metadata.everyLayer(`${name}.attention.head_count`);
  const headsOf: Readonly<Record<string, number | undefined>> = {
    attn_q: heads,
    attn_k: metadata.everyLayer(`${name}.attention.head_count_kv`) ?? heads,
  };
  const found = new Map<string, NamedTensor>();
  for (const tensor of tensors.values()) {
    if (Object.values<string>(ROPE_FACTORS).includes(tensor.name)) continue;
    const [, layer, stored = ''] = /^blk\.(\d+)\.(.+)$/.exec(tensor.name) ?? [];
    if (layer !== undefined && Number(layer) >= layers) continue;
    const [, part = '', kind] = /^(\w+)\.(weight|bias)$/.exec(stored) ?? [];
    const known = parts?.get(part) ?? PARTS.get(part);
    const inLayer = own?.get(stored) ?? (known && `${known}.${kind}`);
    const hugging = TOP.get(tensor.name) ?? (inLayer && `model.layers.${layer}.${inLayer}`) ?? tensor.name;
    const count = permuted ? headsOf[part] : undefined;
    const isShifted = normOffset !== 0 && tensor.name.endsWith('_norm.weight');
    const value = values?.get(stored) ?? (isShifted ? (value: number) => value - normOffset : undefined);
    const shaped = /conv(1d)?\.weight$/.test(stored) ? asFilters(tensor) : stackedByRows(tensor);
    found.set(hugging, { tensor: shaped, pairedRows: count && headRows(metadata, tensor, count), value });
  }
  return found;
}

/** Matrices of several experts as one. */
function stackedByRows(tensor: PartTensor): PartTensor {
  const [experts = 1, rows = 1, columns] = tensor.shape;
  return columns === undefined ? tensor : { ...tensor, shape: [experts * rows, columns] };
}

/** Filters of one channel each, [channels, taps], as PyTorch has them. */
function asFilters(tensor: PartTensor): PartTensor {
  const [channels = 1, taps = 1] = tensor.shape;
  return { ...tensor, shape: [channels, 1, taps] };
}

function headRows(metadata: Metadata, { name, shape }: GgufTensor, heads: number): number {
  const rows = shape[0]! / heads;
  if (!Number.isInteger(rows) || rows % 2 !== 0)
    metadata.refuse(`tensor ${name} has shape [${shape.join(', ')}], expected rows for ${heads} heads of an even size`);
  return rows;
}

/** Values of one row of a tensor: the rows are its first dimension. */
export function rowLength({ shape }: GgufTensor): number {
  return product(shape.slice(1));
}
