/** GGUF's architectures: what llama.cpp's converter makes of each family (conversion/*.py). */
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { FOUR_NORMS, gemma, gemma3, gemma3n, gemma4 } from './gemma.ts';
import type { Architecture } from './family.ts';
import type { Metadata } from './metadata.ts';
import { ropeOf } from './rope.ts';
import { SETTING_KEYS as KEYS } from './setting-keys.ts';

/** Phi's tensors of several projections; llama.cpp calls gate and up together "up". */
const FUSED: ReadonlyMap<string, string> = new Map([
  ['attn_qkv', 'self_attn.qkv_proj'],
  ['ffn_up', 'mlp.gate_up_proj'],
]);

/** OLMo's norms: behind each half of a layer. A file of OLMo 2 with a window is of OLMo 3, whose every fourth layer sees everything where it says no other (llama.cpp: models/olmo2.cpp). */
function olmo(): Pick<Architecture, 'settings' | 'parts'> {
  return {
    parts: new Map([...FOUR_NORMS].filter(([stored]) => stored !== 'ffn_norm')),
    settings: (metadata, key) => (hasWindow(metadata, key) ? { model_type: 'olmo3' } : {}),
  };
}

/** Mistral's files say llama; those with a window are known by it. */
function llama(): Pick<Architecture, 'settings'> {
  return { settings: (metadata, key) => (hasWindow(metadata, key) ? { model_type: 'mistral' } : {}) };
}

function hasWindow(metadata: Metadata, key: (rest: string) => string): boolean {
  return (metadata.number(key(KEYS.sliding_window)) ?? 0) > 0;
}

function granite(): Pick<Architecture, 'settings' | 'reads'> {
  const names = ['embedding_multiplier', 'residual_multiplier', 'attention_multiplier', 'logits_scaling'] as const;
  return {
    reads: names.map((name) => KEYS[name]),
    settings: (metadata, key, { headDim }) => {
      const given = names.map((name) => [name, metadata.number(key(KEYS[name])) ?? 1] as const);
      const settings = Object.fromEntries(given);
      // 0, as llama.cpp has it, is the usual divisor.
      return { ...settings, attention_multiplier: metadata.number(key(KEYS.attention_multiplier)) || headDim ** -0.5 };
    },
  };
}

/** An expert's gates, then its ups. */
const FUSED_EXPERTS = 'mlp.experts.gate_up_proj';

/** How llama.cpp makes shares of a router's logits, by `expert_gating_func`. */
const GATINGS = { softmax: 1, sigmoid: 2 } as const;

/** A layer's experts, each part as one matrix of all; llama.cpp makes the shares of a row's experts sum to 1 (models/qwen3moe.cpp), as published models want. */
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

/** An architecture with experts: its own names and settings, and those of experts. */
function withExperts<Own extends Partial<Architecture>>(
  own: Own,
  more: Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>>,
): Own & typeof more {
  // prettier-ignore
  const settings: typeof more.settings = (...given) => ({ ...own.settings?.(...given), ...more.settings(...given) });
  return { ...own, ...more, parts: new Map([...(own.parts ?? []), ...more.parts]), settings };
}

/** Qwen3.5's experts, and the one of all rows, whose columns are the only ones of an MLP (models/qwen35moe.cpp). */
function qwen35Experts(): Required<Pick<Architecture, 'settings' | 'reads' | 'parts'>> {
  const { parts, reads, settings } = experts();
  return {
    reads,
    parts: new Map([...parts, ['ffn_gate_inp_shexp', 'mlp.shared_expert_gate'], ...['gate', 'up', 'down'].map((part) => [`ffn_${part}_shexp`, `mlp.shared_expert.${part}_proj`] as const)]), // prettier-ignore
    settings: (metadata, key, sizes) => ({
      ...settings(metadata, key, sizes),
      shared_expert_intermediate_size: metadata.number(key('expert_shared_feed_forward_length')) ?? metadata.refuse(`${key('expert_shared_feed_forward_length')} is missing`), // prettier-ignore
    }),
  };
}

/** LFM2's: behind the first layers, chosen by their sigmoids and a bias (models/lfm2moe.cpp). */
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
    head: new Map([
      ['nextn.eh_proj.weight', 'mtp.fc.weight'],
      ['nextn.enorm.weight', 'mtp.pre_fc_norm_embedding.weight'],
      ['nextn.hnorm.weight', 'mtp.pre_fc_norm_hidden.weight'],
      ['nextn.shared_head_norm.weight', 'mtp.norm.weight'],
    ]),
    normOffset: 1,
    settings: (metadata, key, { headDim, layers }) => {
      const size = (rest: string): number => metadata.number(key(rest)) ?? metadata.refuse(`${key(rest)} is missing`);
      const recurrent = metadata.get(key('attention.recurrent_layers'));
      return {
        ...Object.fromEntries(Object.entries(sizes).map(([stored, name]) => [name, size(`ssm.${stored}`)])),
        linear_value_head_dim: size('ssm.inner_size') / size('ssm.time_step_rank'),
        linear_value_heads_tiled: true,
        partial_rotary_factor: size('rope.dimension_count') / headDim,
        full_attention_interval: metadata.number(key('full_attention_interval')) ?? 4,
        mtp_num_hidden_layers: metadata.number(key('nextn_predict_layers')) ?? 0,
        ...(Array.isArray(recurrent) && {
          layer_types: recurrent.slice(0, layers).map((is) => (is ? 'linear_attention' : 'full_attention')),
        }),
      };
    },
  };
}

/** gpt-oss: windows by turns and a ramp of YaRN that nothing is cut off, neither of which files say (conversion/gpt_oss.py); no columns but the experts'. */
function gptOss(): Omit<Architecture, 'modelType' | 'permuted' | 'activation'> {
  const { parts, reads, settings } = experts();
  return {
    reads,
    // Its own files in one tensor have gates and ups by turns; those of converters would not say so.
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

/** Short convolutions, in the layers without heads of keys; the columns of the MLP are those that there are. */
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

/** Queries that grow with their position, and YaRN with two factors that cancel each other (llama.cpp: models/mistral3.cpp). Files of Mistral Small 3 lack both. */
function ministral(): Pick<Architecture, 'settings'> {
  return {
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

/** By `general.architecture`. */
export const ARCHITECTURES: ReadonlyMap<string, Architecture> = new Map([
  ['llama', { modelType: 'llama', permuted: true, activation: 'silu', ...llama() }],
  ['qwen2', { modelType: 'qwen2', permuted: false, activation: 'silu' }],
  ['qwen3', { modelType: 'qwen3', permuted: false, activation: 'silu' }],
  ['qwen3moe', { modelType: 'qwen3_moe', permuted: false, activation: 'silu', ...experts() }],
  ['gemma2', { modelType: 'gemma2', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma(46) }],
  ['gemma3', { modelType: 'gemma3_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma3() }],
  ['gemma3n', { modelType: 'gemma3n_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma3n() }],
  ['gemma4', { modelType: 'gemma4_text', permuted: false, activation: 'gelu_pytorch_tanh', ...gemma4() }],
  // Granite's multipliers; SmolLM3's unrotated layers are not in its files, but every fourth.
  ['granite', { modelType: 'granite', permuted: true, activation: 'silu', ...granite() }],
  ['smollm3', { modelType: 'smollm3', permuted: true, activation: 'silu' }],
  ['mistral3', { modelType: 'ministral3', permuted: true, activation: 'silu', ...ministral() }],
  ['arcee', { modelType: 'arcee', permuted: true, activation: 'relu2' }],
  ['phi3', { modelType: 'phi3', permuted: false, activation: 'silu', parts: FUSED }],
  ['olmo2', { modelType: 'olmo2', permuted: false, activation: 'silu', ...olmo() }],
  ['lfm2', { modelType: 'lfm2', permuted: false, activation: 'silu', ...lfm2() }],
  ['lfm2moe', { modelType: 'lfm2_moe', permuted: false, activation: 'silu', ...withExperts(lfm2(), lfm2Experts()) }],
  ['gpt-oss', { modelType: 'gpt_oss', permuted: false, activation: 'silu', ...gptOss() }],
  ['qwen35', { modelType: 'qwen3_5_text', permuted: false, activation: 'silu', ...qwen35() }],
  ['qwen35moe', { modelType: 'qwen3_5_moe_text', permuted: false, activation: 'silu', ...withExperts(qwen35(), qwen35Experts()) }],
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

/** More than any model has; a file that says so is damaged. */
const MOST_LAYERS = 1024;

/** Layers of the model; those behind them are of a head that guesses tokens. Lists of settings are made as long, so that they are few and whole. */
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
