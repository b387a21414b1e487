/** How config.json of Granite 4 reads. The numbers are in families.test.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseGraniteHybridConfig } from '../../engine/models/granite-hybrid/config.ts';
import type { Json } from '../../engine/util/json.ts';

const fixture = (name: string): Json => JSON.parse(readFileSync(fileURLToPath(new URL(`../fixtures/llama-tiny-random/${name}/config.json`, import.meta.url)), 'utf8')) as Json; // prettier-ignore
const HYBRID = fixture('granitemoehybrid-mamba');
const parse = (fields: Json) => parseGraniteHybridConfig({ ...HYBRID, ...fields });

/** What the published config.json of h-350m says of its sizes, with layers of attention where it has them. */
const H_350M: Json = {
  model_type: 'granitemoehybrid', hidden_size: 768, intermediate_size: 2048, shared_intermediate_size: 2048, num_hidden_layers: 32, num_attention_heads: 12,
  num_key_value_heads: 4, vocab_size: 100_352, max_position_embeddings: 32_768, rms_norm_eps: 1e-5, tie_word_embeddings: true, position_embedding_type: 'nope',
  rope_theta: 10_000, attention_multiplier: 0.015625, embedding_multiplier: 12, residual_multiplier: 0.246, logits_scaling: 3, num_local_experts: 0,
  num_experts_per_tok: 0, mamba_n_heads: 48, mamba_d_head: 32, mamba_d_state: 128, mamba_n_groups: 1, mamba_d_conv: 4, mamba_conv_bias: true, mamba_proj_bias: false,
  layer_types: Array.from({ length: 32 }, (_, layer) => ([10, 13, 17, 27].includes(layer) ? 'attention' : 'mamba')),
}; // prettier-ignore

test('a published hybrid model: sizes of its state, no rotation, an eps for each kind of norm', () => {
  const config = parseGraniteHybridConfig(H_350M);
  expect(config).toMatchObject({
    headDim: 64,
    intermediate: 2048,
    embeddingScale: 12 / 0.246,
    logitScale: 1 / 3,
    scores: { scale: 1 / 64 },
  });
  expect(config.kinds!.flatMap(({ isRecurrent }, layer) => (isRecurrent ? [] : [layer]))).toEqual([10, 13, 17, 27]);
  expect(config.rope.scaling).toEqual({ kind: 'none' });
  expect(config.recurrent).toMatchObject({ state: { tail: 3 * (1536 + 256), matrix: 1536 * 128 }, config: { eps: 1e-5 } });
  expect(config.eps).toBeCloseTo(1e-5 / 0.246 ** 2, 12);
  expect(config.experts).toBeUndefined();
});

test('a published model with experts: columns of each and of the MLP beside them', () => {
  const sizes = { hidden_size: 1536, intermediate_size: 512, shared_intermediate_size: 1024, num_local_experts: 64, num_experts_per_tok: 6, mamba_d_head: 64 };
  const config = parseGraniteHybridConfig({ ...H_350M, ...sizes });
  expect(config).toMatchObject({ intermediate: 1024, experts: { count: 64, perRow: 6, intermediate: 512, hasShared: 'ungated' } });
  expect(config.experts!.layers).toEqual(new Array(32).fill(true));
}); // prettier-ignore

test('other names and values of the same', () => {
  const { layer_types: types, ...rest } = HYBRID;
  const kinds = parse({}).kinds;
  expect(types).toEqual(['linear_attention', 'full_attention', 'linear_attention']);
  expect(parse({ layer_types: ['mamba', 'attention', 'mamba'] }).kinds).toEqual(kinds);
  expect(parseGraniteHybridConfig({ ...rest, layers_block_type: types }).kinds).toEqual(kinds);
  expect(parse({ mamba_d_head: 'auto' }).recurrent).toMatchObject({ config: { headDim: 8 } });
  expect(parse({ position_embedding_type: 'rope' }).rope.scaling).toBeUndefined();
  expect(parse({ layer_types: ['attention', 'attention', 'attention'] }).recurrent).toBeUndefined();
});

test.each([
  [{ layer_types: ['mamba', 'attention', 'conv'] }, /layer_types has "conv"; known are mamba and attention and/],
  [{ layer_types: undefined }, /no layer has attention/],
  [{ position_embedding_type: 'alibi' }, /position_embedding_type is "alibi", expected "rope", "nope" or null/],
  [{ mamba_proj_bias: true }, /mamba_proj_bias is true, expected false/],
  [{ mamba_d_conv: 1 }, /mamba_d_conv is 1, expected 2 to 16/],
  [{ mamba_d_head: 4 }, /mamba_n_heads is 8 and mamba_d_head 4, expected a product of 64/],
  [{ mamba_n_groups: 3 }, /mamba_n_heads is 8, expected a multiple of mamba_n_groups, 3/],
  [{ mamba_d_state: 6 }, /mamba_d_state 6, expected multiples of 4/],
  [{ time_step_limit: [0.001, 0.1] }, /time_step_limit is .*, expected 0 and infinity/],
  [{ num_local_experts: 4, num_experts_per_tok: 5 }, /num_experts_per_tok is 5 of 4 experts/],
  [{ num_local_experts: -1 }, /num_local_experts is -1, expected a positive integer/],
])('%j is refused by name', (fields, message) => {
  expect(() => parse(fields)).toThrow(message);
});
