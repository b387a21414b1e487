/** GGUF files that are no models, broken or of another kind: refused by name. No GPU. */
import { describe, expect, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { describeModel } from '../../engine/tasks/describe-model.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import type { ModelFolder } from '../../engine/weights/model-folder.ts';
import { ggufFile } from '../support/gguf-file.ts';
import type { GgufContent, Stored, StoredTensor } from '../support/gguf-file.ts';
import { counting, f32, refusal, text, tiny, u32, withMetadata } from '../support/tiny-gguf.ts';

describe('what is refused, by name', () => {
  const bytes = (change: (file: Uint8Array, view: DataView) => void): Uint8Array => {
    const file = ggufFile(tiny());
    change(file, new DataView(file.buffer));
    return file;
  };

  test.each([
    [
      'an architecture',
      withMetadata({ 'general.architecture': text('mamba') }),
      /its architecture is "mamba"; GGUF files of llama, qwen2, qwen3, qwen2moe, qwen3moe, gemma, gemma2, gemma3, gemma3n, gemma4, granite, granitehybrid, granitemoe, smollm3, mistral3, apertus, arcee, command-r, cohere2, starcoder2, stablelm, nemotron, ernie4_5, ernie4_5-moe, hunyuan-dense, hunyuan-moe, seed_oss, nemotron_h, nemotron_h_moe, deepseek2, minicpm3, falcon-h1, gpt2, gptneox, phi2, phi3, phimoe, olmo2, exaone4, olmoe, chatglm, glm4, glm4moe, dots1, minimax-m2, lfm2, lfm2moe, gpt-oss, qwen3next, qwen35, qwen35moe are read/,
    ],
    ['a projector', withMetadata({ 'general.type': text('mmproj') }), /it is no model of its own, but of type "mmproj"/],
    ['a scale of logits', withMetadata({ 'llama.logit_scale': u32(8) }), /llama.logit_scale is 8, which is not supported/],
    ['experts of which none is said to be used', withMetadata({ 'llama.expert_count': u32(8) }), /llama.expert_used_count is missing/],
    [
      'layers that differ',
      withMetadata({ 'llama.attention.head_count_kv': { type: 'i32s', value: [1, 2] } }),
      /head_count_kv differs from layer to layer/,
    ],
    ['a missing setting', withMetadata({ 'llama.block_count': undefined }), /llama.block_count is missing/],
    ['a setting of another kind', withMetadata({ 'llama.block_count': text('one') }), /llama.block_count is "one", expected a number/],
    ['version 1', bytes((_, view) => view.setUint32(4, 1, true)), /it is of version 1, which llama.cpp has not written since 2023/],
    ['big-endian', bytes((_, view) => view.setUint32(4, 3, false)), /big-endian; only little-endian files are read/],
    ['a version of the future', bytes((_, view) => view.setUint32(4, 9, true)), /it is of version 9; versions 2 and 3 are read/],
    ['too many tensors', bytes((_, view) => view.setBigUint64(8, 2n ** 40n, true)), /it claims 1099511627776 tensors; at most 65536/],
    [
      'more than a number can count',
      bytes((_, view) => view.setBigUint64(16, 2n ** 64n - 1n, true)),
      /it claims 18446744073709551615 metadata keys/,
    ],
    ['a file cut in its header', ggufFile(tiny()).slice(0, 300), /it ends within its header, at byte 300 \(file cut short\?\)/],
    [
      'a file cut in its data',
      ggufFile(tiny()).slice(0, -64),
      /tensor "blk.0.ffn_down.weight" ends at byte \d+ of \d+ \(file cut short\?\)/,
    ],
    ['bytes behind the end', new Uint8Array([...ggufFile(tiny()), ...new Uint8Array(64)]), /its tensors end at byte \d+ of \d+/],
    ['an alignment that is none', withMetadata({ 'general.alignment': u32(48) }), /general.alignment is 48, expected a power of two/],
  ])('%s', async (_, content, message) => {
    expect(await refusal(content)).toMatch(message);
  });

  const tensor = (change: Partial<StoredTensor>): GgufContent => {
    const { metadata, tensors } = tiny();
    return { metadata, tensors: { ...tensors, 'output_norm.weight': { ...counting(16), ...change } } };
  };

  test.each([
    [
      'a type that is not read',
      tensor({ type: 42 }),
      /"output_norm.weight" is quantised as Q2_0, which is not read; take another file of the model, such as Q4_K_M/,
    ],
    ['blocks of sums', tensor({ type: 9 }), /quantised as Q8_1/],
    ['integers', tensor({ type: 26 }), /is I32, which is no type of weights/],
    ['an unknown type', tensor({ type: 99 }), /has the unknown type 99/],
    ['rows that are no whole blocks', tensor({ type: 8 }), /is Q8_0 with rows of 16, expected a multiple of 32/],
    ['five dimensions', tensor({ dimensions: [16, 1, 1, 1, 1] }), /has 5 dimensions, expected 1 to 4/],
    ['no values', tensor({ dimensions: [0] }), /has shape \[0\]/],
    ['more values than a file can hold', tensor({ dimensions: [2 ** 31, 2 ** 31] }), /has shape \[2147483648, 2147483648\]/],
    ['a size that leaves a gap', tensor({ dimensions: [8] }), /leaves a gap: it lies at byte \d+, expected \d+/],
    ['a size that overlaps', tensor({ dimensions: [32] }), /overlaps the one before/],
  ])('%s', async (_, content, message) => {
    expect(await refusal(content)).toMatch(message);
  });

  test('values that are no numbers, when they are read', async () => {
    const content = tensor({ data: new Uint8Array(Float32Array.of(...Array.from({ length: 15 }, () => 1), NaN).buffer) });
    const read = async (model: ModelFolder): Promise<void> => {
      await withWeights(model, (weights) => weights.read('model.norm.weight'));
    };
    expect(await refusal(content, read)).toBe('FILE: tensor output_norm.weight holds NaN at element 15, expected finite values');
  });

  test.each([
    ['llama.attention.head_count_kv', u32(0), 'llama.attention.head_count_kv is 0, expected a positive integer'],
    ['llama.block_count', u32(5000), 'llama.block_count is 5000, expected at most 1024'],
    ['llama.block_count', f32(1.5), 'llama.block_count is 1.5, expected a positive integer'],
    ['llama.nextn_predict_layers', u32(1), 'llama.nextn_predict_layers is 1, expected less than the 1 of llama.block_count'],
  ])('%s that no model has: the file and its key, not config.json', async (key, value, message) => {
    const describeFile = ({ path }: ModelFolder) => describeModel(createNodePlatform(), { path }, resolveConfig({}));
    expect(await refusal(withMetadata({ [key]: value }), describeFile)).toContain(`FILE: ${message}`);
  });

  /** A file of an architecture with as many layers. */
  const layered = (architecture: string, layers: Stored, more: Record<string, Stored> = {}): GgufContent => {
    const { metadata, tensors } = withMetadata({ 'llama.block_count': layers });
    const own = Object.entries({ ...metadata, 'general.architecture': text(architecture) }).map(
      ([key, value]) => [key.replace(/^llama\b/, architecture), value] as const,
    );
    return { metadata: { ...Object.fromEntries(own), ...more }, tensors };
  };
  const slides: Stored = { type: 'bools', value: [true] };

  test.each([
    ['gemma3', u32(2 ** 32 - 1), {}, 'is 4294967295, expected at most 1024'],
    ['gemma3', f32(1.5), {}, 'is 1.5, expected a positive integer'],
    ['gemma4', { type: 'i32', value: 2 ** 32 - 1 }, { 'gemma4.attention.sliding_window_pattern': slides }, 'is -1, expected a positive integer'],
    ['llama', u32(2 ** 32 - 1), { 'llama.attention.sliding_window': u32(4), 'llama.attention.sliding_window_pattern': u32(2) }, 'is 4294967295, expected at most 1024'],
  ] as const)('%s with settings of layers that no model has (%o)', async (architecture, layers, more, message) => {
    expect(await refusal(layered(architecture, layers, more))).toBe(`FILE: ${architecture}.block_count ${message}`);
  }); // prettier-ignore

  test('values are shown in a few words, and names on one line', async () => {
    const many: Stored = { type: 'f32s', value: Array.from({ length: 5000 }, () => 1) };
    expect(await refusal(withMetadata({ 'llama.logit_scale': many }))).toBe('FILE: llama.logit_scale is a list of 5000, which is not supported'); // prettier-ignore
    const colour = text('a\n\x1b[31mb\x9b');
    expect(await refusal(withMetadata({ 'llama.logit_scale': colour }))).toContain('llama.logit_scale is "a\\n\\u001b[31mb\\u009b", which');
    expect(await refusal(withMetadata({ 'general.alignment': many }))).toContain('general.alignment is a list of 5000, expected');
    const { metadata, tensors } = tiny();
    const named = { metadata, tensors: { ...tensors, 'a\nb': counting(16) } };
    expect(await refusal(named)).toContain('the name of a tensor is no text: "a\\nb"');
  });
});
