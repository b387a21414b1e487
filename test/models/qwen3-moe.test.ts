/** A mixture of experts from GGUF, where a layer's experts are one tensor, in blocks and as floats, beside the same as a Hugging Face folder. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createRng } from '../../engine/util/rng.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { checkpointBytes } from '../../engine/weights/storage.ts';
import { quantizeRows } from '../reference/quantize.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { StoredTensor } from '../support/gguf-file.ts';
import { unlessPassed } from '../support/known-cases.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';
import { TOKENS, f32, text, tiny, u32 } from '../support/tiny-gguf.ts';

const HIDDEN = 64;
const EXPERTS = 5;
const COLUMNS = 32;
const GGML = { F32: 0, Q8_0: 8 } as const;
const TOKEN_IDS = Array.from({ length: 21 }, (_, i) => (i * 11) % TOKENS.length);
const STEP = [{ sequence: 0, start: 0, tokens: TOKEN_IDS }];
const BLOCKS = { float: 'f32', keepBlocks: true, quantization: 'none' } as const;

const platform = createNodePlatform({ log: () => undefined });
let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

/** Two layers of random weights, matrices in Q8_0. */
function randomGguf(): Uint8Array {
  const rng = createRng(5);
  const matrix = (...columnsFirst: readonly number[]): StoredTensor => {
    const size = columnsFirst.reduce((a, b) => a * b, 1);
    const values = Float32Array.from({ length: size }, () => (2 * rng.normal()) / Math.sqrt(columnsFirst[0]!));
    return { dimensions: columnsFirst, type: GGML.Q8_0, data: quantizeRows(values, 'Q8_0') };
  };
  const floats = (...columnsFirst: readonly number[]): StoredTensor => {
    const size = columnsFirst.reduce((a, b) => a * b, 1);
    const scale = columnsFirst.length > 1 ? 2 / Math.sqrt(columnsFirst[0]!) : 1;
    const values = Float32Array.from({ length: size }, () => scale * rng.normal());
    return { dimensions: columnsFirst, type: GGML.F32, data: new Uint8Array(values.buffer) };
  };
  const tensors: Record<string, StoredTensor> = {
    'token_embd.weight': matrix(HIDDEN, TOKENS.length),
    'output_norm.weight': floats(HIDDEN),
  };
  for (const at of ['blk.0', 'blk.1']) {
    Object.assign(tensors, {
      [`${at}.attn_norm.weight`]: floats(HIDDEN),
      [`${at}.attn_q.weight`]: matrix(HIDDEN, 32),
      [`${at}.attn_k.weight`]: matrix(HIDDEN, 16),
      [`${at}.attn_v.weight`]: matrix(HIDDEN, 16),
      [`${at}.attn_q_norm.weight`]: floats(16),
      [`${at}.attn_k_norm.weight`]: floats(16),
      [`${at}.attn_output.weight`]: matrix(32, HIDDEN),
      [`${at}.ffn_norm.weight`]: floats(HIDDEN),
      [`${at}.ffn_gate_inp.weight`]: floats(HIDDEN, EXPERTS),
      [`${at}.ffn_gate_exps.weight`]: matrix(HIDDEN, COLUMNS, EXPERTS),
      [`${at}.ffn_up_exps.weight`]: matrix(HIDDEN, COLUMNS, EXPERTS),
      [`${at}.ffn_down_exps.weight`]: matrix(COLUMNS, HIDDEN, EXPERTS),
    });
  }
  const words = Object.entries(tiny().metadata).filter(([key]) => key.startsWith('tokenizer.'));
  const metadata = {
    'general.architecture': text('qwen3moe'),
    'general.file_type': u32(7),
    'qwen3moe.block_count': u32(2),
    'qwen3moe.context_length': u32(512),
    'qwen3moe.embedding_length': u32(HIDDEN),
    'qwen3moe.feed_forward_length': u32(96),
    'qwen3moe.attention.head_count': u32(2),
    'qwen3moe.attention.head_count_kv': u32(1),
    'qwen3moe.attention.key_length': u32(16),
    'qwen3moe.attention.value_length': u32(16),
    'qwen3moe.attention.layer_norm_rms_epsilon': f32(1e-6),
    'qwen3moe.expert_count': u32(EXPERTS),
    'qwen3moe.expert_used_count': u32(2),
    'qwen3moe.expert_feed_forward_length': u32(COLUMNS),
    ...Object.fromEntries(words),
  };
  return ggufFile({ metadata, tensors });
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-experts-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

/** The model of a GGUF file as transformers would write it: experts one by one, values in f32. */
async function asHuggingFace(gguf: string): Promise<string> {
  const model = await openModelFolder(platform, gguf);
  const weights = await model.weights();
  const tensors: Tensors = {};
  for (const name of weights.names()) {
    const { shape } = weights.tensor(name)!;
    const data = await weights.read(name);
    const [, at, part] = /^(.*\.experts)\.(\w+)\.weight$/.exec(name) ?? [];
    if (at === undefined) tensors[name] = { shape, data };
    else {
      const size = data.length / EXPERTS;
      for (let e = 0; e < EXPERTS; e++) {
        tensors[`${at}.${e}.${part}.weight`] = { shape: [shape[0]! / EXPERTS, shape[1]!], data: data.slice(e * size, (e + 1) * size) };
      }
    }
  }
  await weights.close();
  const path = folder();
  writeFileSync(join(path, 'model.safetensors'), safetensorsFile(tensors));
  writeFileSync(join(path, 'config.json'), JSON.stringify(await model.json('config.json')));
  return path;
}

test('experts in the blocks of a GGUF file give the bits that their values give, stacked and one by one', async () => {
  const path = join(folder(), 'experts-Q8_0.gguf');
  writeFileSync(path, randomGguf());
  // The plan for memory counts them as they are stored.
  const weights = await (await openModelFolder(platform, path)).weights();
  expect(checkpointBytes(weights, BLOCKS)).toBeLessThan(checkpointBytes(weights, floatStorage('f32')) / 3);
  await weights.close();
  const [published, flat] = [
    await asHuggingFace(path),
    (rows: readonly Float32Array[]) => Float32Array.from(rows.flatMap((row) => [...row])),
  ];
  await unlessPassed(
    device,
    { expected: [] },
    async (on) => {
      const unpacked = await DecoderHarness.load(on, path);
      const packed = await DecoderHarness.load(on, path, { storage: BLOCKS });
      const single = await DecoderHarness.load(on, published);
      // The values are those of blocks already, so that packing them again loses what rounding loses.
      const again = await DecoderHarness.load(on, published, { storage: { ...BLOCKS, quantization: 'q8_0' } });
      for (const { weightBytes } of [packed, again]) expect(weightBytes).toBeLessThan(unpacked.weightBytes / 2);
      return { logits: await unpacked.step(STEP), same: [await packed.step(STEP), await single.step(STEP)], near: await again.step(STEP) };
    },
    ({ logits, same, near }) => {
      expect(same).toEqual([logits, logits]);
      expectClose('packed to q8_0', flat(near), flat(logits), 1e-3);
    },
  );
  expect(device.errors).toEqual([]);
});

test.each([
  [{ num_experts: 4, num_experts_per_tok: 5 }, /num_experts_per_tok is 5 of 4 experts/],
  [{ num_experts: 1e9 }, /1000000000 experts, expected at most 1024/],
  [{ moe_intermediate_size: 30 }, /moe_intermediate_size is 30, expected a multiple of 4/],
  [{ mlp_only_layers: ['1'] }, /mlp_only_layers is .*, expected a list of layer numbers/],
])('config.json with %j is refused by name', (fields, message) => {
  const json = { model_type: 'qwen3_moe', hidden_size: 64, num_attention_heads: 4, intermediate_size: 96, num_hidden_layers: 2, vocab_size: 50, ...fields }; // prettier-ignore
  expect(() => decoderFor(json).parseConfig(json)).toThrow(message);
});
