/** GGUF files as model folders: settings, names, order of rows, parts; gguf-refused.test.ts has what is no model. No GPU. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { taskOf } from '../../engine/model-types.ts';
import { GEMMA } from '../../engine/models/gemma/gemma.ts';
import { parseLlamaConfig } from '../../engine/models/llama/config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { parseOlmoConfig } from '../../engine/models/olmo/olmo.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { modelName } from '../../engine/util/model-name.ts';
import { ARCHITECTURES } from '../../engine/weights/gguf/architecture.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import type { GgufContent, Stored, StoredTensor } from '../support/gguf-file.ts';
import { TOKENS, counting, f32, folder, open, text, tiny, u32, withMetadata, write } from '../support/tiny-gguf.ts';

const platform = createNodePlatform();

test('a file is a folder: config.json in Hugging Face words, absent keys filled', async () => {
  const model = await open(tiny());
  expect(model.id).toBe('Tiny');
  expect(model.format).toBe('GGUF Q4_K_M');
  const config = await model.json('config.json');
  expect(config).toMatchObject({
    model_type: 'llama',
    hidden_size: 16,
    head_dim: 8,
    rope_theta: 10000,
    tie_word_embeddings: true,
    vocab_size: TOKENS.length,
  });
  expect(parseLlamaConfig(config)).toMatchObject({ layers: 1, heads: 2, kvHeads: 1, headDim: 8, maxPositions: 64, tied: true });
  expect(await model.json('generation_config.json')).toEqual({ bos_token_id: 42, eos_token_id: [41] });
  expect(await model.json('preprocessor_config.json', { optional: true })).toEqual({});
  await expect(model.json('preprocessor_config.json')).rejects.toThrow(/Tiny-Q4_K_M.gguf: a GGUF file has no preprocessor_config.json/);
});

test.each([
  ['SmolLM2-135M-Instruct.Q4_1.gguf', 'SmolLM2-135M-Instruct'],
  ['gemma-3-270m-q4_k_m.gguf', 'gemma-3-270m'],
  ['Qwen3-0.6B-UD-Q4_K_XL.gguf', 'Qwen3-0.6B'],
  ['Llama-3.2-1B-Instruct-f16.gguf', 'Llama-3.2-1B-Instruct'],
  ['Big-IQ4_XS-00001-of-00003.gguf', 'Big'],
  ['gpt-oss-mxfp4.gguf', 'gpt-oss'],
  ['Qwen3-30B-A3B-UD-IQ2_XXS.gguf', 'Qwen3-30B-A3B'],
  ['Kimi-K2-Instruct-UD-TQ1_0-00001-of-00005.gguf', 'Kimi-K2-Instruct'],
  ['Qwen3-8B-NVFP4.gguf', 'Qwen3-8B'],
  ['Qwen2.5-Coder-0.5B-Instruct.gguf', 'Qwen2.5-Coder-0.5B-Instruct'],
  ['models/Qwen3-0.6B/', 'Qwen3-0.6B'],
  ['kokoro-v1.0.int8.onnx', 'kokoro-v1.0.int8'],
  ['C:\\models\\faster-whisper-base\\model.bin', 'faster-whisper-base'],
  ['/models/kokoro/onnx/model_quantized.onnx', 'kokoro'],
  ['model.bin', 'model'],
])('%s is served as %s', (name, id) => {
  expect(modelName(name)).toBe(id);
});

test('version 2 and other alignments are read', async () => {
  const two = await open({ ...tiny(), version: 2 });
  expect((await two.json('config.json'))['num_hidden_layers']).toBe(1);
  const wide = await open({ ...withMetadata({ 'general.alignment': u32(128) }), alignment: 128 });
  const weights = await wide.weights();
  expect([...(await weights.read('model.norm.weight'))].slice(0, 3)).toEqual([0, 1, 2]);
  await weights.close();
});

test('Gemma 3: what its files leave out, its four norms, and 1 taken from their weights', async () => {
  const { metadata, tensors } = tiny();
  const renamed = Object.entries(metadata).map(([key, value]) => [key.replace(/^llama\./, 'gemma3.'), value] as const);
  const own = {
    'general.architecture': text('gemma3'),
    'gemma3.attention.sliding_window': u32(512),
    'gemma3.rope.freq_base': f32(1e6),
    'gemma3.attention.key_length': u32(8),
    'gemma3.attention.value_length': u32(8),
  };
  const norms = { 'blk.0.post_attention_norm.weight': counting(16), 'blk.0.post_ffw_norm.weight': counting(16) };
  const model = await open({ metadata: { ...Object.fromEntries(renamed), ...own }, tensors: { ...tensors, ...norms } });
  const config = await model.json('config.json');
  expect(GEMMA.parseConfig(config)).toMatchObject({
    rope: { theta: 1e6, scaling: undefined },
    kinds: [{ window: 512, rope: { theta: 1e4 } }],
    scores: { scale: 8 ** -0.5, softCap: undefined },
    embeddingScale: 4,
  });
  const weights = await model.weights();
  for (const name of ['input', 'post_attention', 'pre_feedforward', 'post_feedforward']
    .map((where) => `layers.0.${where}_layernorm`)
    .concat('norm')) {
    expect([...(await weights.read(`model.${name}.weight`))].slice(0, 3)).toEqual([-1, 0, 1]);
  }
  expect([...(await weights.read('model.layers.0.self_attn.q_proj.weight'))].slice(0, 3)).toEqual([0, 1, 2]);
  await weights.close();
});

test.each([
  [
    'granite',
    {
      'granite.embedding_scale': f32(12),
      'granite.residual_scale': f32(0.5),
      'granite.attention.scale': f32(0.25),
      'granite.logit_scale': f32(8),
    },
    { embeddingScale: 24, eps: expect.closeTo(4e-5, 10), scores: { scale: 0.25 }, logitScale: 0.125 },
  ],
  ['granite', {}, { embeddingScale: 1, scores: { scale: 8 ** -0.5 }, logitScale: 1 }],
  [
    'smollm3',
    { 'smollm3.block_count': u32(4) },
    { layers: 4, kinds: [...Array.from({ length: 3 }, () => ({ rope: { scaling: undefined } })), { rope: { scaling: { kind: 'none' } } }] },
  ],
])('what files of %s say and leave out: %o', async (name, more, expected) => {
  const { metadata, tensors } = tiny();
  const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace(/^llama\./, `${name}.`), value] as const));
  const model = await open({ metadata: { ...renamed, 'general.architecture': text(name), ...more }, tensors });
  expect(parseLlamaConfig(await model.json('config.json'))).toMatchObject(expected);
});

test('Granite without rotary embedding', async () => {
  const { metadata, tensors } = tiny();
  const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace(/^llama\./, 'granite.'), value] as const));
  const finetuned = { 'granite.rope.scaling.finetuned': { type: 'bool', value: false } } as const;
  const model = await open({ metadata: { ...renamed, 'general.architecture': text('granite'), ...finetuned }, tensors });
  const config = await model.json('config.json');
  expect(decoderFor(config).parseConfig(config)).toMatchObject({
    rope: { scaling: { kind: 'none' } },
    scores: { scale: 8 ** -0.5 },
    intermediate: 24,
  });
});

test('tensors have Hugging Face names, and rows of q and k its order, also in part', async () => {
  const model = await open(tiny());
  const weights = await model.weights();
  expect(weights.names()).toContain('model.layers.0.mlp.down_proj.weight');
  expect(weights.tensor('model.layers.0.mlp.down_proj.weight')).toMatchObject({ dtype: 'F32', shape: [16, 24] });
  const q = await weights.read('model.layers.0.self_attn.q_proj.weight');
  // Row j of a head of 8 is row 2j of the file, row j + 4 is row 2j + 1.
  const rows = Array.from({ length: 16 }, (_, row) => q[row * 16]! / 16);
  expect(rows).toEqual([0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]);
  for (const [from, to] of [
    [0, 256],
    [16, 32],
    [100, 200],
    [128, 256],
    [7, 9],
  ] as const) {
    expect(await weights.read('model.layers.0.self_attn.q_proj.weight', { from, to })).toEqual(q.slice(from, to));
  }
  const v = await weights.read('model.layers.0.self_attn.v_proj.weight', { from: 5, to: 7 });
  expect([...v]).toEqual([5, 6]);
  await weights.close();
});

test('every architecture is of a model that has a decoder', async () => {
  for (const [name, { modelType }] of ARCHITECTURES) {
    const { metadata, tensors } = tiny();
    const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace('llama.', `${name}.`), value]));
    const experts = {
      [`${name}.expert_count`]: u32(3),
      [`${name}.expert_used_count`]: u32(2),
      [`${name}.expert_feed_forward_length`]: u32(8),
      [`${name}.expert_shared_feed_forward_length`]: u32(8),
      [`${name}.expert_shared_count`]: u32(1),
    };
    const layerNorms = { [`${name}.attention.layer_norm_epsilon`]: f32(1e-5), [`${name}.logit_scale`]: f32(1) };
    const windows = { [`${name}.attention.sliding_window_pattern`]: { type: 'i32s', value: [0] } as const, [`${name}.attention.key_length_swa`]: u32(8), [`${name}.attention.shared_kv_layers`]: u32(0), [`${name}.activation_sparsity_scale`]: { type: 'f32s', value: [-Infinity] } as const }; // prettier-ignore
    const sizes = { conv_kernel: 4, state_size: 8, group_count: 1, time_step_rank: 2, inner_size: 16 };
    const recurrent = {
      ...Object.fromEntries(Object.entries(sizes).map(([key, value]) => [`${name}.ssm.${key}`, u32(value)])),
      [`${name}.full_attention_interval`]: u32(1),
      [`${name}.rope.dimension_count`]: u32(4),
    };
    const convolutions = {
      [`${name}.shortconv.l_cache`]: u32(3),
      [`${name}.attention.head_count_kv`]: { type: 'i32s', value: [1] } as const,
    };
    const mamba = Object.fromEntries(
      Object.entries({ conv_kernel: 4, state_size: 8, group_count: 1, time_step_rank: 4, inner_size: 32 }).map(
        ([key, value]) => [`${name}.ssm.${key}`, u32(value)] as const,
      ),
    );
    const latent = {
      ...(name === 'deepseek2' && experts),
      [`${name}.attention.kv_lora_rank`]: u32(8),
      [`${name}.attention.key_length`]: u32(12),
      [`${name}.attention.value_length`]: u32(4),
      [`${name}.rope.dimension_count`]: u32(8),
      [`${name}.expert_gating_func`]: u32(2),
    };
    const curves = Object.fromEntries(['alpha_p', 'alpha_n', 'beta', 'eps'].map((number) => [`xielu.${number}`, f32(0.5)] as const));
    const growing = {
      [`${name}.attention.temperature_scale`]: f32(0.1),
      [`${name}.rope.scaling.type`]: text('yarn'),
      [`${name}.rope.scaling.factor`]: f32(4),
      [`${name}.rope.scaling.original_context_length`]: u32(16),
    };
    const more = {
      'general.architecture': text(name),
      ...layerNorms,
      ...(/moe$|^gpt-oss$|^qwen3next$|^dots1$|^minimax-m2$/.test(name) && experts),
      ...(/^qwen3(5|next)/.test(name) && recurrent),
      ...(name.startsWith('lfm2') && convolutions),
      ...(/^granitehybrid$|^nemotron_h|^falcon-h1$/.test(name) && mamba),
      ...(name === 'mistral3' && growing),
      ...(name === 'apertus' && curves),
      ...(/^deepseek2$|^minicpm3$/.test(name) && latent),
      ...(/^gemma(3n|4)$/.test(name) && windows),
    };
    const config = await (await open({ metadata: { ...renamed, ...more }, tensors })).json('config.json');
    expect(config['model_type']).toBe(modelType);
    expect(taskOf(modelType)).toBe('chat');
    expect(decoderFor(config).parseConfig(config)).toMatchObject({ heads: 2, headDim: /^deepseek2$|^minicpm3$/.test(name) ? 16 : 8 });
  }
});

test('other architectures keep the order of rows', async () => {
  const { metadata, tensors } = tiny();
  const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace('llama.', 'qwen3.'), value]));
  const model = await open({
    metadata: { ...renamed, 'general.architecture': text('qwen3'), 'qwen3.attention.key_length': u32(8) },
    tensors,
  });
  expect(await model.json('config.json')).toMatchObject({ model_type: 'qwen3', head_dim: 8 });
  const weights = await model.weights();
  expect([...(await weights.read('model.layers.0.self_attn.q_proj.weight'))]).toEqual(Array.from({ length: 256 }, (_, i) => i));
  await weights.close();
});

test('a range that begins within a block is cut out of it', async () => {
  const { metadata, tensors } = tiny();
  const data = new Uint8Array(16 * 34 * 2);
  for (let at = 0; at < data.length; at += 34) {
    data[at + 1] = 0x3c;
    for (let i = 0; i < 32; i++) data[at + 2 + i] = (at / 34) * 3 + i;
  }
  const model = await open({ metadata, tensors: { ...tensors, 'blk.0.attn_output.weight': { dimensions: [32, 32], type: 8, data } } });
  const weights = await model.weights();
  const all = await weights.read('model.layers.0.self_attn.o_proj.weight');
  expect(all.length).toBe(1024);
  expect(await weights.read('model.layers.0.self_attn.o_proj.weight', { from: 45, to: 100 })).toEqual(all.slice(45, 100));
  await weights.close();
});

test('a file of OLMo 2 with a window is of OLMo 3', async () => {
  const { metadata, tensors } = tiny();
  const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace(/^llama\./, 'olmo2.'), value] as const));
  const own = { 'general.architecture': text('olmo2'), 'olmo2.block_count': u32(5), 'olmo2.rope.freq_base': f32(500000) };
  const kinds = async (more: Record<string, Stored>): Promise<readonly (number | undefined)[] | undefined> => {
    const model = await open({ metadata: { ...renamed, ...own, ...more }, tensors });
    return parseOlmoConfig(await model.json('config.json')).kinds?.map(({ window }) => window);
  };
  expect(await kinds({})).toBeUndefined();
  const window = { 'olmo2.attention.sliding_window': u32(32) };
  expect(await kinds(window)).toEqual([32, 32, 32, undefined, 32]);
  // What a file says of its layers goes before what is usual.
  const pattern = (value: Stored): Record<string, Stored> => ({ ...window, 'olmo2.attention.sliding_window_pattern': value });
  expect(await kinds(pattern({ type: 'i32s', value: [1, 0, 0, 1, 1] }))).toEqual([32, undefined, undefined, 32, 32]);
  expect(await kinds(pattern(u32(2)))).toEqual([32, undefined, 32, undefined, 32]);
  await expect(kinds(pattern({ type: 'i32s', value: [1] }))).rejects.toThrow(/sliding_window_pattern has 1 values for 5 layers/);
});

test('a file of Gemma 3 without a window has layers that see everything and are rotated alike', async () => {
  const { metadata, tensors } = tiny();
  const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace(/^llama\./, 'gemma3.'), value] as const));
  const own = {
    'general.architecture': text('gemma3'),
    'gemma3.block_count': u32(2),
    'gemma3.rope.freq_base': f32(7e4),
    'gemma3.rope.scaling.type': text('yarn'),
    'gemma3.rope.scaling.factor': f32(4),
  };
  const config = await (await open({ metadata: { ...renamed, ...own }, tensors })).json('config.json');
  const { kinds, rope } = GEMMA.parseConfig(config) as unknown as ReturnType<typeof parseOlmoConfig>;
  expect(rope).toMatchObject({ theta: f32(7e4).value, scaling: { kind: 'yarn', factor: 4 } });
  expect(kinds).toEqual([{ rope }, { rope }]);
});

test("Mistral's files, which say llama or mistral3, have the window that they say, and no other", async () => {
  const { metadata, tensors } = tiny();
  const windows = async (name: string, more: Record<string, Stored>): Promise<readonly (number | undefined)[] | undefined> => {
    const renamed = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key.replace(/^llama\./, `${name}.`), value]));
    const model = await open({ metadata: { ...renamed, 'general.architecture': text(name), ...more }, tensors });
    const config = await model.json('config.json');
    return (decoderFor(config).parseConfig(config) as unknown as ReturnType<typeof parseOlmoConfig>).kinds?.map(({ window }) => window);
  };
  for (const name of ['llama', 'mistral3']) {
    expect(await windows(name, {})).toBeUndefined();
    expect(new Set(await windows(name, { [`${name}.attention.sliding_window`]: u32(32) }))).toEqual(new Set([32]));
  }
});

describe('positions', () => {
  const scaled = async (more: Record<string, Stored>, tensors: Record<string, StoredTensor> = {}): Promise<unknown> => {
    const content = withMetadata(more);
    const model = await open({ ...content, tensors: { ...content.tensors, ...tensors } });
    return parseLlamaConfig(await model.json('config.json')).rope;
  };
  const factors = { dimensions: [4], type: 0, data: new Uint8Array(Float32Array.of(1, 1, 2.5, 8).buffer) };

  test('a base and linear scaling', async () => {
    const more = { 'llama.rope.freq_base': f32(500000), 'llama.rope.scaling.type': text('linear'), 'llama.rope.scaling.factor': f32(4) };
    expect(await scaled(more)).toEqual({ theta: 500000, headDim: 8, scaling: { kind: 'linear', factor: 4 } });
    expect(await scaled({ 'llama.rope.scale_linear': f32(2) })).toMatchObject({ scaling: { kind: 'linear', factor: 2 } });
  });

  test('YaRN', async () => {
    const more = {
      'llama.rope.scaling.type': text('yarn'),
      'llama.rope.scaling.factor': f32(4),
      'llama.rope.scaling.original_context_length': u32(16),
    };
    const scaling = {
      kind: 'yarn',
      factor: 4,
      originalContext: 16,
      betaFast: 32,
      betaSlow: 1,
      truncate: true,
      attentionFactor: 0.1 * Math.log(4) + 1,
    };
    expect(await scaled(more)).toEqual({ theta: 10000, headDim: 8, scaling });
  });

  test("Llama 3's factors, which stand in a tensor", async () => {
    expect(await scaled({}, { 'rope_freqs.weight': factors })).toEqual({
      theta: 10000,
      headDim: 8,
      scaling: { kind: 'factors', factors: [1, 1, 2.5, 8] },
    });
    const model = await open({ ...tiny(), tensors: { ...tiny().tensors, 'rope_freqs.weight': factors } });
    const weights = await model.weights();
    expect(weights.names()).not.toContain('rope_freqs.weight');
    await weights.close();
  });

  test('of the two lists of LongRoPE, one alone is refused', async () => {
    await expect(scaled({}, { 'rope_factors_short.weight': factors })).rejects.toThrow(/it has one of rope_factors_short.weight and rope_factors_long.weight, expected both/); // prettier-ignore
  });

  test('scaling that is not known, or only of a part of the channels, is refused', async () => {
    await expect(scaled({ 'llama.rope.scaling.type': text('wide') })).rejects.toThrow(/rope type "wide"; known are/);
    await expect(scaled({ 'llama.rope.dimension_count': u32(4) })).rejects.toThrow(/partial_rotary_factor 0.5/);
  });
});

describe('parts', () => {
  const split = (no: number, names: readonly string[], { of = 2, total = 11 } = {}): GgufContent => {
    const { metadata, tensors } = tiny();
    const own: Record<string, Stored> = { 'split.no': { type: 'u16', value: no }, 'split.count': { type: 'u16', value: of }, 'split.tensors.count': { type: 'i32', value: total } }; // prettier-ignore
    return { metadata: no === 0 ? { ...metadata, ...own } : own, tensors: Object.fromEntries(names.map((name) => [name, tensors[name]!])) };
  };
  const names = Object.keys(tiny().tensors);
  const part = (no: number): string => `Big-Q8_0-0000${no}-of-00002.gguf`;

  test('are one model, whichever is named', async () => {
    const path = folder();
    write(split(0, names.slice(0, 4)), part(1), path);
    write(split(1, names.slice(4)), part(2), path);
    for (const no of [1, 2]) {
      const model = await openModelFolder(platform, join(path, part(no)));
      expect(model.id).toBe('Big');
      const weights = await model.weights();
      expect(weights.names().length).toBe(11);
      expect((await weights.read('model.layers.0.mlp.up_proj.weight'))[5]).toBe(5);
      await weights.close();
    }
  });

  test('and a lone file, are what their folder stands for, beside files that are no models', async () => {
    const path = folder();
    write(split(0, names.slice(0, 4)), part(1), path);
    write(split(1, names.slice(4)), part(2), path);
    write(new Uint8Array(), 'mmproj-Big-f16.gguf', path);
    write(new Uint8Array(), 'Big.mmproj-Q8_0.gguf', path);
    write(new Uint8Array(), 'README.md', path);
    expect(await (await openModelFolder(platform, path, 'x')).json('config.json')).toMatchObject({ model_type: 'llama' });
    const lone = await openModelFolder(platform, join(write(tiny()), '..'), 'lone');
    expect([lone.id, lone.format, lone.path.endsWith('/Tiny-Q4_K_M.gguf')]).toEqual(['lone', 'GGUF Q4_K_M', true]);
    write(tiny(), 'Other-Q8_0.gguf', path);
    await expect(openModelFolder(platform, path)).rejects.toThrow(/is a GGUF file; give the file itself, not the folder/);
  });

  test('that are missing, twice there, or of another model are named', async () => {
    const path = folder();
    const first = write(split(0, names.slice(0, 4)), part(1), path);
    const opened = (): Promise<unknown> => openModelFolder(platform, first);
    await expect(opened()).rejects.toThrow(/-00001-of-00002.gguf is in 2 parts, of which .*-00002-of-00002.gguf is missing$/);
    write(split(1, names.slice(3)), part(2), path);
    await expect(opened()).rejects.toThrow(/-00002-of-00002.gguf: tensor blk.0.attn_q.weight is in two parts/);
    write(split(1, names.slice(5)), part(2), path);
    await expect(opened()).rejects.toThrow(/its parts should have 11 tensors \(split.tensors.count\) and have 10/);
    write(split(0, names.slice(4)), part(2), path);
    await expect(opened()).rejects.toThrow(/it is part 1 of 2 of a model, but its name says part 2 of 2/);
    const renamed = write(split(0, names.slice(0, 4)), 'big.gguf', path);
    await expect(openModelFolder(platform, renamed)).rejects.toThrow(/big.gguf: it is part 1 of 2 of a model/);
  });
});
