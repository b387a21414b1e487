/** Families that no file of llama.cpp's own stands for here: tiny checkpoints of transformers, under the names that its converter gives them (conversion/phi.py, olmo.py, qwen.py, lfm2.py, mistral3.py, gemma.py). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import {
  FIXTURES,
  LLAMA,
  PARTS,
  TOP,
  converted,
  expectFixtureLogits,
  f32,
  floats,
  i32s,
  metadataOf,
  paired,
  platform,
  u32,
} from '../support/gguf-fixtures.ts';
import type { Stored, StoredTensor } from '../support/gguf-file.ts';

const PHI3 = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.qkv_proj': 'attn_qkv',
  'mlp.gate_up_proj': 'ffn_up',
};
const OLMO = {
  post_attention_layernorm: 'post_attention_norm',
  post_feedforward_layernorm: 'post_ffw_norm',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
};

const MINISTRAL = {
  'attention.key_length': u32(24), 'attention.value_length': u32(24), 'attention.temperature_scale': f32(0.3), 'rope.dimension_count': u32(24),
  'rope.scaling.type': { type: 'string', value: 'yarn' }, 'rope.scaling.factor': f32(4), 'rope.scaling.yarn_log_multiplier': f32(1),
  'rope.scaling.yarn_beta_fast': f32(4), 'rope.scaling.yarn_beta_slow': f32(1), 'rope.scaling.original_context_length': u32(10),
} as const; // prettier-ignore

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const expectLogits = (name: string, file: Uint8Array): Promise<void> => expectFixtureLogits(device, name, file);

interface Config extends Readonly<Record<string, number>> {}
interface Rope {
  readonly rope_theta: number;
  readonly short_factor?: readonly number[];
  readonly long_factor?: readonly number[];
}

test.each([
  ['phi3', 'phi3', PHI3, { 'rope.dimension_count': u32(10), 'rope.scaling.attn_factor': f32(Math.sqrt(1 + Math.log(4) / Math.log(512))) }],
  ['phi3-long', 'phi3', PHI3, { 'rope.scaling.attn_factor': f32(Math.sqrt(1 + Math.log(16) / Math.log(32))) }],
  ['olmo2', 'olmo2', OLMO, {}],
  ['ministral3', 'mistral3', LLAMA, MINISTRAL],
])('%s: the logits are transformers', async (name, architecture, own, more) => {
  const source = join(FIXTURES, name);
  const config = JSON.parse(readFileSync(join(source, 'config.json'), 'utf8')) as Config & { readonly rope_parameters: Rope };
  const { rope_theta, short_factor, long_factor } = config.rope_parameters;
  const settings: Record<string, Stored> = {
    block_count: u32(config['num_hidden_layers']!),
    context_length: u32(config['max_position_embeddings']!),
    embedding_length: u32(config['hidden_size']!),
    feed_forward_length: u32(config['intermediate_size']!),
    'attention.head_count': u32(config['num_attention_heads']!),
    'attention.head_count_kv': u32(config['num_key_value_heads']!),
    'attention.layer_norm_rms_epsilon': f32(config['rms_norm_eps']!),
    'attention.sliding_window': u32(config['sliding_window'] ?? 0),
    'rope.freq_base': f32(rope_theta),
    'rope.scaling.original_context_length': u32(config['original_max_position_embeddings'] ?? 512),
    ...more,
  };
  const metadata: Record<string, Stored> = { 'general.architecture': { type: 'string', value: architecture } };
  for (const [key, value] of Object.entries(settings)) metadata[`${architecture}.${key}`] = value;
  const tensors: Record<string, StoredTensor> = {};
  const checkpoint = await openSafetensors(platform, source, 'model.safetensors');
  for (const stored of checkpoint.names()) {
    const [, layer, part] = /^model\.layers\.(\d+)\.(.*)\.weight$/.exec(stored) ?? [];
    const given =
      layer === undefined ? TOP[stored.replace('.weight', '')] : `blk.${layer}.${({ ...PARTS, ...own } as typeof PARTS)[part!]}`;
    const { shape } = checkpoint.tensor(stored)!;
    const values = await checkpoint.read(stored);
    const isPaired = architecture === 'mistral3' && /self_attn\.[qk]_proj/.test(stored);
    tensors[`${given}.weight`] = floats(isPaired ? paired(values, shape[1]!, config['head_dim']!) : values, shape.toReversed());
  }
  await checkpoint.close();
  for (const [length, factors] of Object.entries({ short: short_factor, long: long_factor })) {
    if (factors) tensors[`rope_factors_${length}.weight`] = floats(Float32Array.from(factors), [factors.length]);
  }

  await expectLogits(name, ggufFile({ metadata, tensors }));
});

const QWEN35 = {
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'post_attention_norm',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'linear_attn.in_proj_qkv': 'attn_qkv',
  'linear_attn.in_proj_z': 'attn_gate',
  'linear_attn.in_proj_b': 'ssm_beta',
  'linear_attn.in_proj_a': 'ssm_alpha',
  'linear_attn.conv1d': 'ssm_conv1d',
  'linear_attn.norm': 'ssm_norm',
  'linear_attn.out_proj': 'ssm_out',
};

/** Value heads of a [rows, columns] as the converter puts them, from row or column `first` on: from grouped by key head to one of each group in turn. */
function tiled(values: Float32Array, shape: readonly number[], size: number, first: number, columns: boolean): Float32Array {
  const width = shape.length === 1 ? 1 : values.length / shape[0]!;
  const place = (at: number): number => {
    if (at < first) return at;
    const head = Math.floor((at - first) / size);
    // Two key heads with three value heads each.
    return first + ((head % 3) * 2 + Math.floor(head / 3)) * size + ((at - first) % size);
  };
  const out = new Float32Array(values.length);
  values.forEach((value, i) => {
    const [row, column] = [Math.floor(i / width), i % width];
    out[columns ? row * width + place(column) : place(row) * width + column] = value;
  });
  return out;
}

test("qwen35: value heads in the converter's order, norms with their one, a head that guesses: the logits are transformers", async () => {
  const source = join(FIXTURES, 'qwen3_5');
  const settings: Record<string, Stored> = {
    block_count: u32(5), nextn_predict_layers: u32(1), context_length: u32(512), embedding_length: u32(36), feed_forward_length: u32(52),
    'attention.head_count': u32(2), 'attention.head_count_kv': u32(1), 'attention.key_length': u32(256), 'attention.value_length': u32(256),
    'attention.layer_norm_rms_epsilon': f32(1e-6), 'rope.freq_base': f32(10000), 'rope.dimension_count': u32(64), full_attention_interval: u32(4),
    'ssm.conv_kernel': u32(4), 'ssm.state_size': u32(24), 'ssm.group_count': u32(2), 'ssm.time_step_rank': u32(6), 'ssm.inner_size': u32(120),
  }; // prettier-ignore
  const metadata: Record<string, Stored> = { 'general.architecture': { type: 'string', value: 'qwen35' } };
  for (const [key, value] of Object.entries(settings)) metadata[`qwen35.${key}`] = value;
  const tensors: Record<string, StoredTensor> = {
    'blk.4.attn_norm.weight': floats(new Float32Array(36), [36]),
    'blk.4.nextn.eh_proj.weight': floats(new Float32Array(72 * 36), [72, 36]),
  };
  const heads: Readonly<Record<string, readonly [size: number, first: number]>> = { attn_qkv: [20, 96], attn_gate: [20, 0], ssm_beta: [1, 0], ssm_alpha: [1, 0], ssm_conv1d: [20, 96], ssm_out: [20, 0], ssm_a: [1, 0], 'ssm_dt.bias': [1, 0] }; // prettier-ignore
  const checkpoint = await openSafetensors(platform, source, 'model.safetensors');
  for (const stored of checkpoint.names()) {
    const [, layer, part = ''] = /^model\.layers\.(\d+)\.(.*?)(?:\.weight)?$/.exec(stored) ?? [];
    const bare: Readonly<Record<string, string>> = { 'linear_attn.A_log': 'ssm_a', 'linear_attn.dt_bias': 'ssm_dt.bias' };
    const own = bare[part] ?? ({ ...PARTS, ...QWEN35 } as typeof PARTS)[part]!;
    const shape = checkpoint.tensor(stored)!.shape.filter((size, i, all) => !(all.length === 3 && i === 1 && size === 1));
    let data = await checkpoint.read(stored);
    if (own === 'ssm_a') data = data.map((value) => -Math.exp(value));
    if (/norm/.test(stored) && own !== 'ssm_norm') data = data.map((value) => value + 1);
    const order = layer === undefined ? undefined : heads[own];
    if (order) data = tiled(data, shape, ...order, own === 'ssm_out');
    const name = layer === undefined ? `${TOP[stored.replace('.weight', '')]}.weight` : `blk.${layer}.${own}${bare[part] ? '' : '.weight'}`;
    tensors[name] = floats(data, shape.toReversed());
  }
  await checkpoint.close();
  await expectLogits('qwen3_5', ggufFile({ metadata, tensors }));
});

test('lfm2: convolutions where a layer has no heads of keys: the logits are transformers', async () => {
  const source = join(FIXTURES, 'lfm2');
  const own: Readonly<Record<string, string>> = {
    operator_norm: 'attn_norm', ffn_norm: 'ffn_norm', 'self_attn.out_proj': 'attn_output', 'self_attn.q_layernorm': 'attn_q_norm', 'self_attn.k_layernorm': 'attn_k_norm',
    'feed_forward.w1': 'ffn_gate', 'feed_forward.w3': 'ffn_up', 'feed_forward.w2': 'ffn_down',
    'conv.conv': 'shortconv.conv', 'conv.in_proj': 'shortconv.in_proj', 'conv.out_proj': 'shortconv.out_proj',
  }; // prettier-ignore
  const settings: Record<string, Stored> = {
    block_count: u32(5), context_length: u32(512), embedding_length: u32(40), feed_forward_length: u32(64), 'attention.head_count': u32(5),
    'attention.head_count_kv': { type: 'i32s', value: [0, 1, 0, 1, 0] }, 'attention.layer_norm_rms_epsilon': f32(1e-5), 'rope.freq_base': f32(10000),
    'shortconv.l_cache': u32(3),
  }; // prettier-ignore
  const metadata: Record<string, Stored> = { 'general.architecture': { type: 'string', value: 'lfm2' } };
  for (const [key, value] of Object.entries(settings)) metadata[`lfm2.${key}`] = value;
  const tensors: Record<string, StoredTensor> = {};
  const checkpoint = await openSafetensors(platform, source, 'model.safetensors');
  for (const stored of checkpoint.names()) {
    const [, layer, part = ''] = /^model\.layers\.(\d+)\.(.*)\.weight$/.exec(stored) ?? [];
    const name =
      layer === undefined ? (stored.includes('norm') ? 'token_embd_norm' : 'token_embd') : `blk.${layer}.${own[part] ?? PARTS[part]}`;
    const shape = checkpoint.tensor(stored)!.shape.filter((size, i, all) => !(all.length === 3 && i === 1 && size === 1));
    tensors[`${name}.weight`] = floats(await checkpoint.read(stored), shape.toReversed());
  }
  await checkpoint.close();
  await expectLogits('lfm2', ggufFile({ metadata, tensors }));
});

const EXPERTS: Readonly<Record<string, string>> = {
  'mlp.gate': 'ffn_gate_inp',
  'mlp.shared_expert_gate': 'ffn_gate_inp_shexp',
  ...Object.fromEntries(['gate', 'up', 'down'].map((part) => [`mlp.shared_expert.${part}_proj`, `ffn_${part}_shexp`])),
};

test("qwen35moe: experts as one tensor each part, the row of the shared expert's gate: the logits are transformers", async () => {
  const settings: Record<string, Stored> = {
    block_count: u32(3), context_length: u32(512), embedding_length: u32(36), 'attention.head_count': u32(7), 'attention.head_count_kv': u32(1),
    'attention.key_length': u32(48), 'attention.value_length': u32(48), 'attention.layer_norm_rms_epsilon': f32(1e-6), 'rope.freq_base': f32(10000),
    'rope.dimension_count': u32(12), 'attention.recurrent_layers': { type: 'i32s', value: [1, 0, 1] },
    expert_count: u32(5), expert_used_count: u32(2), expert_feed_forward_length: u32(20), expert_shared_feed_forward_length: u32(28),
    'ssm.conv_kernel': u32(4), 'ssm.state_size': u32(16), 'ssm.group_count': u32(1), 'ssm.time_step_rank': u32(3), 'ssm.inner_size': u32(36),
  }; // prettier-ignore
  const tensors = await converted('qwen3_5_moe', {
    top: TOP,
    parts: {
      ...PARTS, ...QWEN35, ...EXPERTS, 'linear_attn.A_log': 'ssm_a', 'linear_attn.dt_bias': 'ssm_dt.bias',
      gate_proj: 'ffn_gate_exps', up_proj: 'ffn_up_exps', down_proj: 'ffn_down_exps',
    }, // prettier-ignore
    value: (own, values) => {
      if (own === 'ssm_a') return values.map((value) => -Math.exp(value));
      return own.endsWith('norm') && own !== 'ssm_norm' ? values.map((value) => value + 1) : values;
    },
  });
  const metadata = metadataOf('qwen35moe', settings);
  await expectLogits('qwen3_5_moe', ggufFile({ metadata, tensors }));
  // Gates and ups of an expert in one tensor.
  const fused = Object.entries(tensors).flatMap(([name, tensor]): readonly (readonly [string, StoredTensor])[] => {
    if (name.includes('ffn_up_exps')) return [];
    if (!name.includes('ffn_gate_exps')) return [[name, tensor]];
    return [[name.replace('gate', 'gate_up'), together(tensor, tensors[name.replace('gate', 'up')]!)]];
  });
  await expectLogits('qwen3_5_moe', ggufFile({ metadata, tensors: Object.fromEntries(fused) }));
});

test.each([
  ['ssm_in', 'as older files have them, by key head'],
  ['attn_qkv', 'apart'],
])('qwen3next: projections of delta-nets in %s, %s: the logits are transformers', async (first) => {
  const settings: Record<string, Stored> = {
    block_count: u32(3), context_length: u32(512), embedding_length: u32(32), feed_forward_length: u32(44), 'attention.head_count': u32(5),
    'attention.head_count_kv': u32(1), 'attention.key_length': u32(48), 'attention.value_length': u32(48), 'attention.layer_norm_rms_epsilon': f32(1e-6),
    'rope.freq_base': f32(10000), 'rope.dimension_count': u32(12), 'attention.recurrent_layers': { type: 'i32s', value: [1, 0, 1] },
    expert_count: u32(5), expert_used_count: u32(2), expert_feed_forward_length: u32(20), expert_shared_feed_forward_length: u32(28),
    'ssm.conv_kernel': u32(4), 'ssm.state_size': u32(16), 'ssm.group_count': u32(2), 'ssm.time_step_rank': u32(6), 'ssm.inner_size': u32(72),
  }; // prettier-ignore
  const tensors = await converted('qwen3_next', {
    top: TOP,
    parts: {
      ...PARTS, ...QWEN35, ...EXPERTS, 'linear_attn.in_proj_qkvz': 'ssm_in', 'linear_attn.in_proj_ba': 'ssm_ba', 'linear_attn.A_log': 'ssm_a',
      'linear_attn.dt_bias': 'ssm_dt.bias', gate_proj: 'ffn_gate_exps', up_proj: 'ffn_up_exps', down_proj: 'ffn_down_exps',
    }, // prettier-ignore
    value: (own, values) => {
      if (own === 'ssm_a') return values.map((value) => -Math.exp(value));
      return own.endsWith('norm') && own !== 'ssm_norm' ? values.map((value) => value + 1) : values;
    },
  });
  for (const layer of first === 'ssm_in' ? [] : [0, 2]) {
    const { dimensions, data } = tensors[`blk.${layer}.ssm_in.weight`]!;
    const row = 4 * dimensions[0]!;
    // Of a key head 16 rows of queries, 16 of keys, three heads of values with 12 each, and as many of gates.
    const rows = (from: number, to: number): Uint8Array[] => [0, 104].map((head) => data.subarray((head + from) * row, (head + to) * row));
    const parts = { attn_qkv: [...rows(0, 16), ...rows(16, 32), ...rows(32, 68)], attn_gate: rows(68, 104) };
    for (const [name, of] of Object.entries(parts)) {
      const joined = Buffer.concat(of);
      tensors[`blk.${layer}.${name}.weight`] = { dimensions: [dimensions[0]!, joined.length / row], type: 0, data: joined };
    }
    delete tensors[`blk.${layer}.ssm_in.weight`];
  }
  await expectLogits('qwen3_next', ggufFile({ metadata: metadataOf('qwen3next', settings), tensors }));
});

/** Of two stacks of matrices: of each expert the first's rows, then the second's. */
function together(first: StoredTensor, second: StoredTensor): StoredTensor {
  const [columns = 0, rows = 0, experts = 0] = first.dimensions;
  const size = 4 * columns * rows;
  const data = Buffer.concat(
    Array.from({ length: experts }, (_, i) => [first, second].map(({ data }) => data.subarray(i * size, (i + 1) * size))).flat(),
  );
  return { dimensions: [columns, 2 * rows, experts], type: 0, data };
}

test('lfm2moe: experts behind the first layer, chosen by a bias: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    block_count: u32(3), context_length: u32(512), embedding_length: u32(40), feed_forward_length: u32(52), 'attention.head_count': u32(5),
    'attention.head_count_kv': { type: 'i32s', value: [0, 1, 0] }, 'attention.layer_norm_rms_epsilon': f32(1e-5), 'rope.freq_base': f32(10000),
    'shortconv.l_cache': u32(3), expert_count: u32(7), expert_used_count: u32(3), expert_feed_forward_length: u32(20),
    leading_dense_block_count: u32(1), expert_gating_func: u32(2), expert_weights_scale: f32(1.5),
  }; // prettier-ignore
  const tensors = await converted('lfm2_moe', {
    top: { 'model.embed_tokens': 'token_embd', 'model.embedding_norm': 'token_embd_norm' },
    parts: {
      operator_norm: 'attn_norm', ffn_norm: 'ffn_norm', 'self_attn.q_proj': 'attn_q', 'self_attn.k_proj': 'attn_k', 'self_attn.v_proj': 'attn_v',
      'self_attn.out_proj': 'attn_output', 'self_attn.q_layernorm': 'attn_q_norm', 'self_attn.k_layernorm': 'attn_k_norm',
      'feed_forward.w1': 'ffn_gate', 'feed_forward.w3': 'ffn_up', 'feed_forward.w2': 'ffn_down', w1: 'ffn_gate_exps', w3: 'ffn_up_exps', w2: 'ffn_down_exps',
      'feed_forward.gate': 'ffn_gate_inp', 'feed_forward.expert_bias': 'exp_probs_b.bias',
      'conv.conv': 'shortconv.conv', 'conv.in_proj': 'shortconv.in_proj', 'conv.out_proj': 'shortconv.out_proj',
    }, // prettier-ignore
  });
  const metadata = metadataOf('lfm2moe', settings);
  await expectLogits('lfm2_moe', ggufFile({ metadata, tensors }));
  const softmax = ggufFile({ metadata: { ...metadata, 'lfm2moe.expert_gating_func': u32(1) }, tensors });
  await expect(expectLogits('lfm2_moe', softmax)).rejects.toThrow(/expert_gating_func is 1, expected 2 \(sigmoid\)/);
});

const GEMMA4 = {
  ...PARTS, input_layernorm: 'attn_norm', post_attention_layernorm: 'post_attention_norm', pre_feedforward_layernorm: 'ffn_norm',
  post_feedforward_layernorm: 'post_ffw_norm', 'self_attn.q_norm': 'attn_q_norm', 'self_attn.k_norm': 'attn_k_norm', layer_scalar: 'layer_output_scale',
  per_layer_input_gate: 'inp_gate', per_layer_projection: 'proj', post_per_layer_input_norm: 'post_norm',
  post_feedforward_layernorm_1: 'post_ffw_norm_1', pre_feedforward_layernorm_2: 'pre_ffw_norm_2', post_feedforward_layernorm_2: 'post_ffw_norm_2',
  'router.proj': 'ffn_gate_inp', 'router.scale': 'ffn_gate_inp.scale', 'router.per_expert_scale': 'ffn_down_exps.scale',
  'experts.gate_up_proj': 'ffn_gate_up_exps', 'experts.down_proj': 'ffn_down_exps',
}; // prettier-ignore
const GEMMA4_TOP = { ...TOP, 'model.embed_tokens_per_layer': 'per_layer_token_embd', 'model.per_layer_model_projection': 'per_layer_model_proj', 'model.per_layer_projection_norm': 'per_layer_proj_norm' }; // prettier-ignore

test('gemma3n: the projections of all streams in one tensor, cuts as deviations: the logits are transformers', async () => {
  const settings: Record<string, Stored> = {
    block_count: u32(5), context_length: u32(512), embedding_length: u32(40), feed_forward_length: i32s(52, 52, 52, 52, 52), 'attention.head_count': u32(5),
    'attention.head_count_kv': u32(1), 'attention.key_length': u32(24), 'attention.value_length': u32(24), 'attention.layer_norm_rms_epsilon': f32(1e-6),
    'attention.sliding_window': u32(10), 'attention.sliding_window_pattern': i32s(1, 1, 0, 1, 0), 'attention.shared_kv_layers': u32(2),
    'rope.freq_base': f32(1e6), embedding_length_per_layer_input: u32(32), final_logit_softcapping: f32(3),
    'altup.num_inputs': u32(4), 'altup.active_idx': u32(0),
    activation_sparsity_scale: { type: 'f32s', value: [1.2815515655446004, -Infinity, 0.2533471031357997, -Infinity, 0.2533471031357997] },
  }; // prettier-ignore
  const tensors = await converted('gemma3n', {
    top: {
      ...GEMMA4_TOP,
      ...Object.fromEntries([0, 1, 2].flatMap((i) => [[`model.altup_projections.${i}`, `altup_proj.${i}`], [`model.altup_unembed_projections.${i}`, `altup_unembd_proj.${i}`]])),
    },
    parts: {
      ...GEMMA4, 'altup.modality_router': 'altup_router', 'altup.router_norm': 'altup_router_norm', 'altup.prediction_coefs': 'altup_predict_coef',
      'altup.correction_coefs': 'altup_correct_coef', 'altup.correct_output_scale': 'altup_correct_scale', 'laurel.linear_left': 'laurel_l',
      'laurel.linear_right': 'laurel_r', 'laurel.post_laurel_norm': 'laurel_post_norm',
    },
  }); // prettier-ignore
  for (const name of ['altup_proj', 'altup_unembd_proj']) {
    const each = [0, 1, 2].map((i) => tensors[`${name}.${i}.weight`]!);
    for (let i = 0; i < 3; i++) delete tensors[`${name}.${i}.weight`];
    tensors[`${name}.weight`] = { dimensions: [40, 40, 3], type: 0, data: Buffer.concat(each.map(({ data }) => data)) };
  }
  // Files have as many rows in both tables: here those that token 0 stands for.
  const { data } = tensors['per_layer_token_embd.weight']!;
  const first = data.subarray(0, 4 * 160);
  tensors['per_layer_token_embd.weight'] = {
    dimensions: [160, 160],
    type: 0,
    data: Buffer.concat([data, ...Array.from({ length: 10 }, () => first)]),
  };
  await expectLogits('gemma3n', ggufFile({ metadata: metadataOf('gemma3n', settings), tensors }));
});

test.each([
  ['gemma4', 10, 40, {
    block_count: u32(5), embedding_length: u32(32), feed_forward_length: i32s(44, 44, 44, 88, 88), 'attention.head_count': u32(5), 'attention.head_count_kv': u32(1),
    'attention.key_length': u32(80), 'attention.value_length': u32(80), 'attention.key_length_swa': u32(24), 'attention.sliding_window': u32(10),
    'attention.sliding_window_pattern': i32s(1, 1, 0, 1, 0), 'attention.shared_kv_layers': u32(2), embedding_length_per_layer_input: u32(32),
    'rope.dimension_count': u32(80), final_logit_softcapping: f32(3),
  }],
  ['gemma4-experts', 3, 12, {
    block_count: u32(2), embedding_length: u32(36), feed_forward_length: u32(28), 'attention.head_count': u32(7), 'attention.head_count_kv': i32s(1, 1),
    'attention.key_length': u32(24), 'attention.value_length': u32(24), 'attention.key_length_swa': u32(16), 'attention.sliding_window': u32(12),
    'attention.sliding_window_pattern': i32s(1, 0), embedding_length_per_layer_input: u32(0), 'rope.dimension_count': u32(24),
    expert_count: u32(5), expert_used_count: u32(2), expert_feed_forward_length: u32(32),
  }],
] as const)('%s: layers with sizes of their own, pairs that are not rotated: the logits are transformers', async (fixture, rotated, pairs, own) => {
  const common = { context_length: u32(512), 'attention.layer_norm_rms_epsilon': f32(1e-6), 'rope.freq_base': f32(1e6), 'rope.freq_base_swa': f32(1e4) };
  const tensors = await converted(fixture, { top: GEMMA4_TOP, parts: GEMMA4 });
  tensors['rope_freqs.weight'] = floats(new Float32Array(pairs).fill(1, 0, rotated).fill(1e30, rotated), [pairs]);
  const metadata = metadataOf('gemma4', { ...common, ...own });
  await expectLogits(fixture, ggufFile({ metadata, tensors }));
  const uneven = { ...metadata, 'gemma4.feed_forward_length': i32s(44, 40, 44, 88, 88) };
  await expect(expectLogits(fixture, ggufFile({ metadata: uneven, tensors }))).rejects.toThrow(/feed_forward_length is 44, 40.*, which is not supported/);
}); // prettier-ignore
