/** How config.json of LFM2 reads. The numbers are in families.test.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseLfm2Config } from '../../engine/models/lfm2/lfm2.ts';
import type { Json } from '../../engine/util/json.ts';

const FIXTURE = JSON.parse(readFileSync(fileURLToPath(new URL('../fixtures/llama-tiny-random/lfm2/config.json', import.meta.url)), 'utf8')) as Json; // prettier-ignore
const parse = (fields: Json) => parseLfm2Config({ ...FIXTURE, ...fields });

test('the MLP has two thirds of the columns, rounded up, or those that the file says', () => {
  // LFM2-350M, LFM2-1.2B.
  expect(parse({ block_multiple_of: 256, intermediate_size: 6656 }).intermediate).toBe(4608);
  expect(parse({ block_multiple_of: 256, intermediate_size: 12288 }).intermediate).toBe(8192);
  expect(parse({ block_multiple_of: 256, intermediate_size: 12288, block_ffn_dim_multiplier: 1.1 }).intermediate).toBe(9216);
  expect(parse({ intermediate_size: 96, block_ffn_dim_multiplier: null }).intermediate).toBe(64);
  expect(parse({ block_auto_adjust_ff_dim: false, intermediate_size: 72 }).intermediate).toBe(72);
});

test('fields of the first days', () => {
  const { layer_types: _, tie_word_embeddings: __, intermediate_size: ___, ...older } = FIXTURE;
  const config = parseLfm2Config({ ...older, block_ff_dim: 70, tie_embedding: false, full_attn_idxs: [0, 2] });
  expect(config).toMatchObject({ intermediate: 48, tied: false });
  expect(config.kinds!.map(({ isRecurrent }) => isRecurrent)).toEqual([false, true, false, true, true]);
  expect(parseLfm2Config({ ...older, full_attn_idxs: null }).recurrent).toBeUndefined();
});

test('with experts the columns are those that the file says, and shares are sigmoids', () => {
  const config = parse({
    model_type: 'lfm2_moe',
    intermediate_size: 72,
    num_dense_layers: 2,
    use_expert_bias: false,
    norm_topk_prob: false,
  });
  expect(config).toMatchObject({ intermediate: 72, experts: { count: 32, perRow: 4, intermediate: 1792 } });
  expect(config.experts).toMatchObject({ routing: { sigmoid: true, hasBias: false }, layers: [false, false, true, true, true] });
  expect(config.experts!.shares).toEqual({ normalised: false, floor: 1e-6, scale: 1 });
});

test.each([
  [{ layer_types: ['conv', 'full_attention', 'conv', 'conv', 'mamba'] }, /layer_types has "mamba"; known are full_attention and conv/],
  [{ layer_types: ['conv', 'conv', 'conv', 'conv', 'conv'] }, /no layer has attention/],
  [{ conv_bias: true }, /conv_bias is true, expected false/],
  [{ conv_L_cache: 1 }, /conv_L_cache is 1, expected 2 to 16/],
])('%j is refused by name', (fields, message) => {
  expect(() => parse(fields)).toThrow(message);
});
