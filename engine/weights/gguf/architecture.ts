/** GGUF architectures, as llama.cpp's converter writes each family (conversion/*.py). */
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { apertus } from './apertus.ts';
import { deepseek2, minicpm3 } from './deepseek.ts';
import { falconH1 } from './falcon-h1.ts';
import { FOUR_NORMS, gemma, gemma3, gemma3n, gemma4 } from './gemma.ts';
import type { Architecture } from './family.ts';
import { granite, graniteHybrid } from './granite.ts';
import { gpt2, gptNeoX, phi2 } from './gpt.ts';
import type { Metadata } from './metadata.ts';
import { nemotronH, nemotronHExperts } from './nemotron-h.ts';
import { qwen35, qwen3Next } from './qwen3-5.ts';
import { ropeOf } from './rope.ts';
import { FUSED, glm } from './glm.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';
import {
  dots1Experts,
  ernieExperts,
  glm4Experts,
  hunyuanExperts,
  miniMaxExperts,
  qwen2Experts,
  withGatedExpert,
} from './shared-experts.ts';

/**
 * OLMo's norms, after each half of a layer. An OLMo 2 file with a sliding window is an OLMo 3, in which every fourth layer has full
 * attention unless the file says otherwise (llama.cpp: models/olmo2.cpp).
 */
function olmo(): Pick<Architecture, 'settings' | 'parts' | 'otherTypes'> {
  return {
    otherTypes: ['olmo3'],
    parts: new Map([...FOUR_NORMS].filter(([stored]) => stored !== 'ffn_norm')),
    settings: (metadata, key) => (hasWindow(metadata, key) ? { model_type: 'olmo3' } : {}),
  };
}

/** Norms after each half of a layer, as OLMo's. Files of 64 layers have a window though they may not say so (models/exaone4.cpp). */
function exaone4(): Pick<Architecture, 'settings' | 'parts'> {
  return {
    parts: olmo().parts!,
    settings: (metadata, key, { layers }) => (hasWindow(metadata, key) || layers === 64 ? {} : { sliding_window: null }),
  };
}

/** Files of Mistral and Mixtral name the architecture llama; a sliding window tells the one, experts the other. */
function llama(): Pick<Architecture, 'settings' | 'reads' | 'parts' | 'otherTypes'> {
  const { parts, reads, settings } = expertsOnly();
  return {
    otherTypes: ['mistral', 'mixtral'],
    parts,
    reads,
    settings: (metadata, key, sizes) => {
      if ((metadata.number(key(KEYS.num_experts)) ?? 0) > 0) return { model_type: 'mixtral', ...settings(metadata, key, sizes) };
      return hasWindow(metadata, key) ? { model_type: 'mistral' } : {};
    },
  };
}

function hasWindow(metadata: Metadata, key: (rest: string) => string): boolean {
  return (metadata.number(key(KEYS.sliding_window)) ?? 0) > 0;
}

/** Command R and R7B. Their rows keep Hugging Face's order, whose pairs are adjacent too (conversion/command_r.py). */
function cohere(modelType: string): Architecture {
  return {
    modelType,
    permuted: false,
    activation: 'silu',
    layerNormEps: 'layer_norm_eps',
    reads: ['logit_scale'],
    settings: (metadata, key, { has }) => ({
      logit_scale: metadata.number(key('logit_scale')) ?? metadata.refuse(`${key('logit_scale')} is missing`),
      use_qk_norm: has('blk.0.attn_q_norm.weight'),
    }),
  };
}

/** StarCoder2. Files do not say whether there is a window, and llama.cpp has none. */
function starcoder2(): Architecture {
  return {
    modelType: 'starcoder2',
    permuted: false,
    activation: 'gelu_pytorch_tanh',
    layerNormEps: 'norm_epsilon',
    parts: new Map([
      ['ffn_up', 'mlp.c_fc'],
      ['ffn_down', 'mlp.c_proj'],
    ]),
    settings: (_, _key, { has }) => ({ use_bias: has('blk.0.attn_q.bias') }),
  };
}

/** StableLM. As in llama.cpp, halves are in parallel where there is no second norm (models/stablelm.cpp). */
function stablelm(): Architecture {
  return {
    modelType: 'stablelm',
    permuted: false,
    activation: 'silu',
    layerNormEps: 'layer_norm_eps',
    reads: ['use_parallel_residual'],
    settings: (_, _key, { has }) => ({
      use_qkv_bias: has('blk.0.attn_q.bias'),
      use_parallel_residual: !has('blk.0.ffn_norm.weight'),
      qk_layernorm: has('blk.0.attn_q_norm.weight'),
    }),
  };
}

/** ERNIE 4.5. As Command R's, rows keep Hugging Face's order, whose pairs are adjacent (conversion/ernie.py). */
function ernie(): Architecture {
  return {
    modelType: 'ernie4_5',
    permuted: false,
    activation: 'silu',
    settings: (_, _key, { has }) => ({ use_bias: has('blk.0.attn_q.bias') }),
  };
}

/** Seed-OSS, whose norm before the MLP is called as others' behind attention (models/seed-oss.cpp). */
function seedOss(): Architecture {
  return {
    modelType: 'seed_oss',
    permuted: false,
    activation: 'silu',
    parts: new Map([['post_attention_norm', 'post_attention_layernorm']]),
    settings: (_, _key, { has }) => ({ attention_out_bias: has('blk.0.attn_output.bias') }),
  };
}

/** Name of the tensor with each expert's gates, then its ups. */
const FUSED_EXPERTS = 'mlp.experts.gate_up_proj';

/** Router functions by their `expert_gating_func` in llama.cpp. */
const GATINGS = { softmax: 1, sigmoid: 2 } as const;

/**
 * Mixtures of experts, which files store as one matrix of all experts per part. llama.cpp normalises a row's shares to 1
 * (models/qwen3moe.cpp), as published models need.
 */
function experts(gating: keyof typeof GATINGS = 'softmax'): Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>> {
  return {
    parts: new Map([
      ['ffn_gate_inp', 'mlp.gate'],
      ['ffn_gate_exps', 'mlp.experts.gate_proj'],
      ['ffn_up_exps', 'mlp.experts.up_proj'],
      ['ffn_gate_up_exps', FUSED_EXPERTS],
      ['ffn_down_exps', 'mlp.experts.down_proj'],
    ]),
    reads: [KEYS.num_experts],
    settings: (metadata, key) => {
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      const given = metadata.number(key('expert_gating_func')) ?? GATINGS[gating];
      if (given !== GATINGS[gating]) metadata.refuse(`${key('expert_gating_func')} is ${given}, expected ${GATINGS[gating]} (${gating})`);
      return {
        num_experts: size(KEYS.num_experts),
        num_experts_per_tok: size(KEYS.num_experts_per_tok),
        moe_intermediate_size: metadata.everyLayer(key(KEYS.moe_intermediate_size)) ?? size(KEYS.moe_intermediate_size),
        norm_topk_prob: true,
      };
    },
  };
}

/** Experts in every layer, with the MLP's columns; `normalised`: whether the shares of a row's experts sum to 1, which files do not say. */
function expertsOnly(normalised = true): Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>> {
  const { parts, reads } = experts();
  return {
    parts,
    reads,
    settings: (metadata, key) => ({
      num_experts: metadata.number(key(KEYS.num_experts)),
      num_experts_per_tok: metadata.number(key(KEYS.num_experts_per_tok)) ?? metadata.refuse(`${key(KEYS.num_experts_per_tok)} is missing`),
      norm_topk_prob: normalised,
    }),
  };
}

/** Phi-3.5-MoE, whose layer norms' eps has the key of RMS norms (conversion/phi.py). */
function phimoe(): Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>> {
  const { settings, ...names } = expertsOnly(false);
  return { ...names, settings: (metadata, key, sizes) => ({ ...settings(metadata, key, sizes), lm_head_bias: sizes.has('output.bias') }) };
}

/** Adds the names and settings of experts to an architecture. */
function withExperts<Own extends Partial<Architecture>>(
  own: Own,
  more: Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>>,
): Own & typeof more {
  // prettier-ignore
  const settings: typeof more.settings = (...given) => ({ ...own.settings?.(...given), ...more.settings(...given) });
  const reads = [...(own.reads ?? []), ...more.reads];
  return { ...own, ...more, reads, parts: new Map([...(own.parts ?? []), ...more.parts]), settings };
}

/** LFM2's experts, in all layers after the first ones, chosen by sigmoid scores and a bias (models/lfm2moe.cpp). */
function lfm2Experts(): Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>> {
  const { parts, reads, settings } = experts('sigmoid');
  return {
    parts,
    reads,
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      num_dense_layers: metadata.number(key('leading_dense_block_count')) ?? 0,
      routed_scaling_factor: metadata.number(key('expert_weights_scale')) || 1,
    }),
  };
}

/**
 * gpt-oss. Files do not say that every other layer has a sliding window and that YaRN's ramp is not truncated (conversion/gpt_oss.py). The
 * MLP size is that of an expert.
 */
function gptOss(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  const { parts, reads, settings } = experts();
  return {
    reads,
    // Published fused tensors alternate gates and ups; a converter's file would not say whether its tensor does.
    parts: new Map([...[...parts].filter(([, name]) => name !== FUSED_EXPERTS), ['post_attention_norm', 'post_attention_layernorm']]),
    tensors: new Map([['attn_sinks.weight', 'self_attn.sinks']]),
    settings: (metadata, key, sizes) => {
      const { moe_intermediate_size: intermediate_size, ...own } = settings(metadata, key, sizes);
      const { rope_scaling } = ropeOf(metadata, key, undefined);
      return {
        ...own,
        intermediate_size,
        attention_bias: true,
        ...(isObject(rope_scaling) && { rope_scaling: { ...rope_scaling, truncate: false } }),
      };
    },
  };
}

/** LFM2's short convolutions, in the layers with 0 key/value heads. The file's MLP columns are the actual number. */
function lfm2(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  return {
    parts: new Map([
      ['attn_norm', 'operator_norm'],
      ['ffn_norm', 'ffn_norm'],
    ]),
    tensors: new Map([
      ...['conv', 'in_proj', 'out_proj'].map((name) => [`shortconv.${name}.weight`, `conv.${name}.weight`] as const),
      ['exp_probs_b.bias', 'mlp.expert_bias'],
    ]),
    settings: (metadata, key) => ({
      norm_eps: metadata.number(key(KEYS.norm_eps)),
      conv_L_cache: metadata.number(key(KEYS.conv_L_cache)) ?? metadata.refuse(`${key(KEYS.conv_L_cache)} is missing`),
      block_auto_adjust_ff_dim: false,
      layer_types: metadata.numbers(key('attention.head_count_kv'))?.map((count) => (count > 0 ? 'full_attention' : 'conv')),
    }),
  };
}

/**
 * Ministral 3's position-dependent query scale, and YaRN with two factors that cancel out (llama.cpp: models/mistral3.cpp). Files of
 * Mistral Small 3 have neither.
 */
function ministral(): Pick<Architecture, 'settings' | 'otherTypes'> {
  return {
    otherTypes: ['mistral'],
    settings: (metadata, key) => {
      const rate = metadata.number(key('attention.temperature_scale')) ?? 0;
      const rope = ropeOf(metadata, key, undefined);
      const scaling = { attention_factor: 1, llama_4_scaling_beta: rate };
      return rate === 0
        ? { model_type: 'mistral', ...(!hasWindow(metadata, key) && { sliding_window: null }) }
        : { rope_parameters: { ...(rope['rope_scaling'] as Json), ...scaling }, rope_scaling: undefined };
    },
  };
}

/** Architectures by `general.architecture`. */
export const ARCHITECTURES: ReadonlyMap<string, Architecture> = new Map([
  ['llama', { modelType: 'llama', permuted: true, activation: 'silu', ...llama() }],
  ['qwen2', { modelType: 'qwen2', permuted: false, activation: 'silu' }],
  ['qwen3', { modelType: 'qwen3', permuted: false, activation: 'silu' }],
  ['qwen2moe', { modelType: 'qwen2_moe', permuted: false, activation: 'silu', ...qwen2Experts(experts()) }],
  ['qwen3moe', { modelType: 'qwen3_moe', permuted: false, activation: 'silu', ...experts() }],
  ['gemma', { modelType: 'gemma', permuted: false, activation: 'gelu_pytorch_tanh', normOffset: 1 }],
  ['gemma2', { modelType: 'gemma2', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma(46) }],
  ['gemma3', { modelType: 'gemma3_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma3() }],
  ['gemma3n', { modelType: 'gemma3n_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma3n() }],
  ['gemma4', { modelType: 'gemma4_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma4() }],
  ['granite', { modelType: 'granite', permuted: true, activation: 'silu', ...granite() }],
  ['granitehybrid', { modelType: 'granitemoehybrid', permuted: true, activation: 'silu', ...graniteHybrid(experts().parts) }],
  ['granitemoe', { modelType: 'granitemoe', permuted: true, activation: 'silu', ...withExperts(granite(), expertsOnly()) }],
  // SmolLM3's files do not name the layers without rotary embedding, which are every fourth.
  ['smollm3', { modelType: 'smollm3', permuted: true, activation: 'silu' }],
  ['mistral3', { modelType: 'ministral3', permuted: true, activation: 'silu', ...ministral() }],
  ['apertus', apertus()],
  ['arcee', { modelType: 'arcee', permuted: true, activation: 'relu2' }],
  ['command-r', cohere('cohere')],
  ['cohere2', cohere('cohere2')],
  ['starcoder2', starcoder2()],
  ['stablelm', stablelm()],
  ['nemotron', { modelType: 'nemotron', permuted: false, activation: 'relu2', layerNormEps: 'norm_eps', normOffset: 1 }],
  ['ernie4_5', ernie()],
  ['ernie4_5-moe', { modelType: 'ernie4_5_moe', permuted: false, activation: 'silu', ...ernieExperts(experts()) }],
  // The base of a file has its alpha in it, and its norms come behind the rotation.
  ['hunyuan-dense', { modelType: 'hunyuan_v1_dense', permuted: false, activation: 'silu' }],
  ['hunyuan-moe', { modelType: 'hunyuan_v1_moe', permuted: false, activation: 'silu', ...hunyuanExperts(experts()) }],
  ['seed_oss', seedOss()],
  ['nemotron_h', { modelType: 'nemotron_h', permuted: false, activation: 'relu2', ...nemotronH() }],
  ['nemotron_h_moe', { modelType: 'nemotron_h', permuted: false, activation: 'relu2', ...nemotronHExperts(experts('sigmoid')) }],
  ['deepseek2', { modelType: 'deepseek_v3', permuted: false, activation: 'silu', ...deepseek2(experts()) }],
  ['minicpm3', { modelType: 'minicpm3', permuted: false, activation: 'silu', ...minicpm3() }],
  ['falcon-h1', { modelType: 'falcon_h1', permuted: false, activation: 'silu', ...falconH1() }],
  ['gpt2', gpt2()],
  ['gptneox', gptNeoX()],
  ['phi2', phi2()],
  ['phi3', { modelType: 'phi3', permuted: false, activation: 'silu', parts: FUSED }],
  ['phimoe', { modelType: 'phimoe', permuted: false, activation: 'silu', ...phimoe() }],
  ['olmo2', { modelType: 'olmo2', permuted: false, activation: 'silu', ...olmo() }],
  ['exaone4', { modelType: 'exaone4', permuted: false, activation: 'silu', ...exaone4() }],
  ['olmoe', { modelType: 'olmoe', permuted: false, activation: 'silu', ...expertsOnly(false) }],
  ['chatglm', glm('glm')],
  ['glm4', glm('glm4')],
  ['glm4moe', { modelType: 'glm4_moe', permuted: false, activation: 'silu', ...glm4Experts(experts('sigmoid')) }],
  ['dots1', { modelType: 'dots1', permuted: false, activation: 'silu', ...dots1Experts(experts('sigmoid')) }],
  ['minimax-m2', { modelType: 'minimax_m2', permuted: false, activation: 'silu', ...miniMaxExperts(experts('sigmoid')) }],
  ['lfm2', { modelType: 'lfm2', permuted: false, activation: 'silu', ...lfm2() }],
  ['lfm2moe', { modelType: 'lfm2_moe', permuted: false, activation: 'silu', ...withExperts(lfm2(), lfm2Experts()) }],
  ['gpt-oss', { modelType: 'gpt_oss', permuted: false, activation: 'silu', ...gptOss() }],
  ['qwen3next', { modelType: 'qwen3_next', permuted: false, activation: 'silu', ...withExperts(qwen3Next(), withGatedExpert(experts())) }],
  ['qwen35', { modelType: 'qwen3_5_text', permuted: false, activation: 'silu', ...qwen35() }],
  [
    'qwen35moe',
    { modelType: 'qwen3_5_moe_text', permuted: false, activation: 'silu', ...withExperts(qwen35(), withGatedExpert(experts())) },
  ],
]);

/** The architecture that a file names; throws EngineError('invalid_model') that lists those that are read. */
export function architectureOf(metadata: Metadata): Architecture & { readonly name: string } {
  const name = metadata.text('general.architecture') ?? metadata.refuse('general.architecture is missing');
  const kind = metadata.text('general.type') ?? 'model';
  if (kind !== 'model')
    metadata.refuse(`it is no model of its own, but of type ${JSON.stringify(kind)} (general.type); give the model's file`);
  const architecture = ARCHITECTURES.get(name);
  if (architecture) return { ...architecture, name };
  return metadata.refuse(`its architecture is ${JSON.stringify(name)}; GGUF files of ${[...ARCHITECTURES.keys()].join(', ')} are read`);
}

/** The values of `model_type` that models of an architecture have; none for one that is not known. */
export function modelTypesOf(name: string): readonly string[] {
  const known = ARCHITECTURES.get(name);
  return known ? [known.modelType, ...(known.otherTypes ?? [])] : [];
}

/** More layers than any model has; a file with more is damaged. */
const MOST_LAYERS = 1024;

/**
 * Number of the model's layers, without the draft head's, which come after them. It is checked because lists of settings are made as long.
 */
export function layersOf(metadata: Metadata, architecture: string): number | undefined {
  const [key, headKey] = [`${architecture}.${KEYS.num_hidden_layers}`, `${architecture}.nextn_predict_layers`];
  const all = metadata.everyLayer(key);
  if (all === undefined) return undefined;
  if (!Number.isInteger(all) || all < 1) metadata.refuse(`${key} is ${all}, expected a positive integer`);
  if (all > MOST_LAYERS) metadata.refuse(`${key} is ${all}, expected at most ${MOST_LAYERS}`);
  const ofHead = metadata.number(headKey) ?? 0;
  if (!Number.isInteger(ofHead) || ofHead < 0 || ofHead >= all) metadata.refuse(`${headKey} is ${ofHead}, expected less than the ${all} of ${key}`); // prettier-ignore
  return all - ofHead;
}
