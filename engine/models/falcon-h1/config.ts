import { EngineError } from '../../errors.ts';
import { describe } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { expectValue, integer, layerTypes, number } from '../config-fields.ts';
import { mamba2 } from '../layers/mamba2.ts';
import type { Mamba2Config } from '../layers/mamba2.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { BAMBA, bambaConfig } from '../mamba2-config.ts';
import type { RowFactors } from '../scaled-checkpoint.ts';

/** Defaults of FalconH1Config (transformers, configuration_falcon_h1.py). */
const DEFAULTS = {
  vocab_size: 128_000,
  hidden_size: 4096,
  intermediate_size: 14_336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 8192,
  rms_norm_eps: 1e-5,
  mamba_d_ssm: 1024,
  eos_token_id: 2,
};
const WITHOUT_BIAS = ['attention_bias', 'projectors_bias', 'mlp_bias'];

/** Reads config.json of Falcon-H1. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
export function parseFalconH1Config(json: Json): DecoderStackConfig {
  const settings: Json = { ...DEFAULTS, ...json };
  for (const field of WITHOUT_BIAS) expectValue(settings, field, false);
  const config = parseLlamaConfig({ ...settings, layer_types: undefined, model_type: 'llama' });
  const { rope, layers } = config;
  // Refuse what is none.
  layerTypes({ layer_types: json['layer_types'] ?? json['layers_block_type'] }, layers, ['hybrid']);
  falconH1Factors(settings);
  return {
    ...config,
    kinds: Array.from({ length: layers }, () => ({ rope, isHybrid: true })),
    recurrent: mamba2(mambaConfig(settings, config)),
    embeddingScale: number(settings, 'embedding_multiplier', 1),
    logitScale: number(settings, 'lm_head_multiplier', 1),
  };
}

/** Columns of the Mamba half. */
function mambaColumns(json: Json): number {
  const isGiven = (json['mamba_d_ssm'] ?? undefined) !== undefined;
  return isGiven ? integer(json, 'mamba_d_ssm') : integer(json, 'mamba_expand', 2) * integer(json, 'hidden_size');
}

function mambaConfig(json: Json, { hidden, eps }: Pick<DecoderStackConfig, 'hidden' | 'eps'>): Mamba2Config {
  const hasNorm = json['mamba_rms_norm'] === true;
  // transformers has the norm first where a file does not say it.
  if (hasNorm && json['mamba_norm_before_gate'] !== false) throw new EngineError('unsupported', `config.json: mamba_norm_before_gate is ${describe(json['mamba_norm_before_gate'])}, expected false`); // prettier-ignore
  return { hidden, ...bambaConfig(json, mambaColumns(json), 'mamba_d_ssm'), hasNorm, eps };
}

/** By the name of a tensor, what its rows are multiplied with: all multipliers but those of embedding and head, each at the product that it is beside. */
export function falconH1Factors(given: Json): (name: string) => RowFactors | undefined {
  const json: Json = { ...DEFAULTS, ...given };
  const one = (field: string): number => number(json, field, 1);
  const all = (factor: number): RowFactors => [{ to: Infinity, factor }];
  const [gate, down] = multipliers(json, 'mlp_multipliers', 2) as [number, number];
  const input = one('attention_in_multiplier');
  const factors = new Map<string, RowFactors>([
    ['self_attn.q_proj', all(input)],
    ['self_attn.k_proj', all(input * one('key_multiplier'))],
    ['self_attn.v_proj', all(input)],
    ['self_attn.o_proj', all(one('attention_out_multiplier'))],
    ['mlp.gate_proj', all(gate)],
    ['mlp.down_proj', all(down)],
    ['mamba.in_proj', ofMambaInput(json)],
    ['mamba.out_proj', all(one('ssm_out_multiplier'))],
  ]);
  return (name) => factors.get(/^model\.layers\.\d+\.(.+)\.weight$/.exec(name)?.[1] ?? '');
}

/** Of z, x, B, C and the time steps. */
function ofMambaInput(json: Json): RowFactors {
  const inner = mambaColumns(json);
  const groups = integer(json, ...BAMBA.groups) * integer(json, ...BAMBA.stateDim);
  const ends = [inner, 2 * inner, 2 * inner + groups, 2 * inner + 2 * groups, Infinity];
  const input = number(json, 'ssm_in_multiplier', 1);
  return multipliers(json, 'ssm_multipliers', ends.length).map((factor, i) => ({ to: ends[i]!, factor: input * factor }));
}

function multipliers(json: Json, field: string, count: number): readonly number[] {
  const given = json[field] ?? new Array<number>(count).fill(1);
  if (Array.isArray(given) && given.length === count && given.every((value) => Number.isFinite(value))) return given as number[];
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(given)}, expected a list of ${count} numbers`);
}
