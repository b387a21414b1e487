/** Gemma 3n: what its config.json says. The numbers are compared in families.test.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseGemma3nConfig } from '../../engine/models/gemma3n/config.ts';
import { GEMMA3N } from '../../engine/models/gemma3n/gemma3n.ts';
import { hasPages } from '../../engine/models/layers/stack-config.ts';
import type { Json } from '../../engine/util/json.ts';
import { normalQuantile } from '../../engine/util/math.ts';

const FIXTURE = fileURLToPath(new URL('../fixtures/llama-tiny-random/gemma3n/config.json', import.meta.url));
const written = JSON.parse(readFileSync(FIXTURE, 'utf8')) as Record<string, unknown>;

test('transformers 4 and 5 write the same of rotary embeddings and columns', () => {
  const older = {
    ...written,
    rope_parameters: undefined,
    rope_theta: 1e6,
    rope_local_base_freq: 1e4,
    rope_scaling: null,
    intermediate_size: 52,
  };
  expect(parseGemma3nConfig(older)).toEqual(parseGemma3nConfig(written));
});

test('of E4B what a file does not say: 20 layers with pages, four of them of all positions, ten with cut gates', () => {
  const { kinds = [], cuts, streams, laurelRank, embeddingScale } = parseGemma3nConfig({ model_type: 'gemma3n', text_config: {} }); // prettier-ignore
  expect({ streams, laurelRank, embeddingScale }).toEqual({ streams: 4, laurelRank: 64, embeddingScale: Math.fround(Math.sqrt(2048)) });
  expect(kinds.filter(hasPages)).toHaveLength(20);
  expect([...new Set(kinds.map(({ keysOf, window }) => [keysOf, window].join()))]).toEqual([',512', ',', '18,512', '19,']);
  expect(cuts).toEqual([...Array<number>(10).fill(Math.fround(1.6448536269514722)), ...Array<undefined>(25)]);
  expect(GEMMA3N.parseConfig({ model_type: 'gemma3n', text_config: {} }).pages.filter(({ window }) => window === undefined)).toHaveLength(
    4,
  );
});

test.each([
  [{ altup_active_idx: 1 }, /altup_active_idx is 1/],
  [{ altup_num_inputs: 3 }, /altup_num_inputs is 3/],
  [{ altup_correct_scale: false }, /altup_correct_scale is false/],
  [{ hidden_activation: 'silu' }, /hidden_activation is "silu"/],
  [{ intermediate_size: [52, 52, 52, 52, 56] }, /intermediate_size is .*, expected the same number for each of 5 layers/],
  [{ activation_sparsity_pattern: [0.5, 0, 0, 0, 1] }, /activation_sparsity_pattern is/],
  [{ layer_types: Array(5).fill('chunked_attention') }, /layer_types has "chunked_attention"/],
  [{ num_kv_shared_layers: 3, layer_types: ['sliding_attention', 'sliding_attention', 'full_attention', 'full_attention', 'full_attention'] }, /layer 2 reads the keys/],
  [{ rope_parameters: { full_attention: { rope_type: 'spiral' }, sliding_attention: { rope_type: 'default' } } }, /rope type "spiral"/],
] as const)('refused by name: %j', (fields: Json, message) => {
  expect(() => parseGemma3nConfig({ ...written, ...fields })).toThrow(message);
}); // prettier-ignore

test('quantiles of a normal distribution have nine digits', () => {
  // scipy.stats.norm.ppf
  const known = [[0.5, 0], [0.95, 1.6448536269514722], [0.9, 1.2815515655446004], [0.6, 0.2533471031357997], [0.01, -2.3263478740408408], [0.999, 3.090232306167813]] as const; // prettier-ignore
  for (const [p, value] of known) expect(Math.abs(normalQuantile(p) - value)).toBeLessThan(4e-9);
});
