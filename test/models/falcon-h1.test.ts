/** How config.json of Falcon-H1 reads. The numbers are in families.test.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { falconH1Factors, parseFalconH1Config } from '../../engine/models/falcon-h1/config.ts';
import type { Json } from '../../engine/util/json.ts';

const fixture = (name: string): Json => JSON.parse(readFileSync(fileURLToPath(new URL(`../fixtures/llama-tiny-random/${name}/config.json`, import.meta.url)), 'utf8')) as Json; // prettier-ignore
const GATED = fixture('falcon_h1');
const NORMED = fixture('falcon_h1-norm');
const parse = (fields: Json, config = GATED) => parseFalconH1Config({ ...config, ...fields });

test('every layer has pages and a state; Mamba has a width of its own, with a norm or without', () => {
  const config = parse({});
  expect(config).toMatchObject({ layers: 2, embeddingScale: 3, logitScale: 0.5 });
  expect(config.kinds!.every(({ isHybrid }) => isHybrid)).toBe(true);
  expect(config.recurrent).toMatchObject({
    state: { tail: 3 * (64 + 2 * 2 * 24), matrix: 64 * 24 },
    config: { hasNorm: false, headDim: 8 },
  });
  expect(parse({}, NORMED).recurrent).toMatchObject({ config: { hasNorm: true, heads: 5, headDim: 16 } });
  expect(parse({ mamba_d_ssm: null, mamba_d_head: 'auto' }).recurrent).toMatchObject({ config: { headDim: 8 } });
});

test('multipliers are in the weights beside them', () => {
  const factors = falconH1Factors(GATED);
  const of = (part: string): readonly number[] | undefined => factors(`model.layers.1.${part}.weight`)?.map(({ factor }) => factor);
  expect(of('self_attn.k_proj')).toEqual([1.2 * 0.4]);
  expect(of('self_attn.o_proj')).toEqual([0.9]);
  expect(of('mlp.gate_proj')).toEqual([0.8]);
  expect(of('mlp.up_proj')).toBeUndefined();
  expect(of('mamba.in_proj')).toEqual([0.35, 0.25, 0.3, 0.5, 0.7].map((factor) => 1.25 * factor));
  expect(factors('model.layers.1.mamba.in_proj.weight')!.map(({ to }) => to)).toEqual([64, 128, 176, 224, Infinity]);
  expect(factors('model.embed_tokens.weight')).toBeUndefined();
});

test.each([
  [{ attention_bias: true }, /attention_bias is true, expected false/],
  [{ projectors_bias: true }, /projectors_bias is true, expected false/],
  [{ mamba_proj_bias: true }, /mamba_proj_bias is true, expected false/],
  [{ mlp_bias: true }, /mlp_bias is true, expected false/],
  [{ mamba_rms_norm: true, mamba_norm_before_gate: true }, /mamba_norm_before_gate is true, expected false/],
  [{ mlp_multipliers: [1] }, /mlp_multipliers is a list of 1, expected a list of 2 numbers/],
  [{ ssm_multipliers: 3 }, /ssm_multipliers is 3, expected a list of 5 numbers/],
  [{ key_multiplier: 'one' }, /key_multiplier is "one", expected a number/],
  [{ layer_types: ['hybrid', 'mamba'] }, /layer_types has "mamba"; known are hybrid/],
  [{ mamba_d_head: 4 }, /mamba_n_heads is 8 and mamba_d_head 4, expected a product of 64/],
  [{ time_step_limit: [0.001, 0.1] }, /time_step_limit is .*, expected 0 and infinity/],
  [{ sliding_window: 64 }, /sliding_window is 64, expected null/],
])('%j is refused by name', (fields, message) => {
  expect(() => parse(fields)).toThrow(message);
});
