/** Reads the sizes of a mixture of experts, by the field names of Qwen and LFM2. */
import { EngineError } from '../errors.ts';
import { describe } from '../util/json.ts';
import type { Json } from '../util/json.ts';
import { integer, number } from './config-fields.ts';
import { MOST_GROUPS } from '../ops/experts.ts';
import type { ExpertGroups } from '../ops/experts.ts';
import type { ExpertsConfig } from './layers/mlp.ts';
import { kindOf } from './layers/stack-config.ts';
import type { DecoderStackConfig } from './layers/stack-config.ts';

/** More experts than any model has, and as many as the kernel that sorts them has workgroup memory for; a file with more is damaged. */
const MOST_EXPERTS = 1024;

/** A family's defaults for fields that a file leaves out. */
export interface ExpertDefaults {
  readonly count: number;
  readonly perRow: number;
  readonly intermediate: number;
}

/**
 * Reads `num_experts`, `num_experts_per_tok` and the columns of an expert, by default from `moe_intermediate_size`; throws EngineError
 * naming the field that is wrong.
 */
export function expertSizes(
  json: Json,
  defaults: ExpertDefaults,
  field = 'moe_intermediate_size',
): Pick<ExpertsConfig, keyof ExpertDefaults> {
  // transformers 5 writes `num_local_experts`.
  const count = integer(json, 'num_experts', integer(json, 'num_local_experts', defaults.count));
  if (count > MOST_EXPERTS) throw new EngineError('invalid_model', `config.json: ${count} experts, expected at most ${MOST_EXPERTS}`);
  const perRow = integer(json, 'num_experts_per_tok', defaults.perRow);
  if (perRow > count) throw new EngineError('invalid_model', `config.json: num_experts_per_tok is ${perRow} of ${count} experts`);
  return { count, perRow, intermediate: columnsOf(json, field, defaults.intermediate) };
}

/** Reads the columns of an MLP, which must be a multiple of 4. */
export function columnsOf(json: Json, field: string, fallback: number): number {
  const columns = integer(json, field, fallback);
  if (columns % 4 !== 0) throw new EngineError('unsupported', `config.json: ${field} is ${columns}, expected a multiple of 4`);
  return columns;
}

/**
 * By layer, whether it has experts, by the fields of Qwen: every `decoder_sparse_step`-th layer does unless `mlp_only_layers` names it.
 */
export function sparseLayers(json: Json, layers: number): readonly boolean[] {
  const step = integer(json, 'decoder_sparse_step', 1);
  const dense = json['mlp_only_layers'] ?? [];
  if (!Array.isArray(dense) || !dense.every((layer) => Number.isInteger(layer))) {
    throw new EngineError('invalid_model', `config.json: mlp_only_layers is ${describe(dense)}, expected a list of layer numbers`);
  }
  return Array.from({ length: layers }, (_, layer) => (layer + 1) % step === 0 && !dense.includes(layer));
}

/** Reads `n_group` and `topk_group`: the groups of experts, of which a row has the best few; undefined where it may have any expert. */
export function expertGroups(json: Json, { count, perRow }: Pick<ExpertDefaults, 'count' | 'perRow'>): ExpertGroups | undefined {
  const [groups, kept] = [integer(json, 'n_group', 1), integer(json, 'topk_group', 1)];
  if (groups > MOST_GROUPS || count % groups !== 0 || kept > groups || perRow > (count / groups) * kept) {
    throw new EngineError('invalid_model', `config.json: topk_group is ${kept} of ${groups} groups (n_group) of ${count} experts, ${perRow} of which a row has`); // prettier-ignore
  }
  if (kept === groups) return undefined;
  if (count / groups >= 2) return { count: groups, kept };
  throw new EngineError('unsupported', `config.json: n_group is ${groups} of ${count} experts, expected groups of at least 2`);
}

/** Added to the sum of a row's shares before dividing by it (transformers, DeepseekV3TopkRouter). */
const SHARES_FLOOR = 1e-20;

/** Experts beside shared ones in all layers after the first `first_k_dense_replace`, chosen by sigmoids and a bias, by the fields of DeepSeek-V3. */
export function sigmoidExperts(json: Json, layers: number, defaults: ExpertDefaults): ExpertsConfig {
  const sizes = expertSizes({ ...json, num_experts: json['n_routed_experts'] }, defaults);
  const dense = number(json, 'first_k_dense_replace', 1);
  return {
    ...sizes,
    routing: { sigmoid: true, hasBias: true, groups: expertGroups(json, sizes) },
    shares: { normalised: json['norm_topk_prob'] !== false, floor: SHARES_FLOOR, scale: number(json, 'routed_scaling_factor', 1) },
    hasShared: 'ungated',
    layers: Array.from({ length: layers }, (_, layer) => layer >= dense),
  };
}

/** The config with experts in every layer, of as many columns as its MLP would have; `normalised`: the shares of a row's experts sum to 1. */
export function withExpertsOnly(
  config: DecoderStackConfig,
  json: Json,
  defaults: Omit<ExpertDefaults, 'intermediate'>,
  normalised: boolean,
): DecoderStackConfig {
  const { intermediate, layers } = config;
  const sizes = expertSizes(json, { ...defaults, intermediate }, 'intermediate_size');
  return { ...config, experts: { ...sizes, shares: { normalised }, layers: new Array<boolean>(layers).fill(true) } };
}

/** The config with experts beside a shared expert of `shared` columns; layers with an MLP instead keep that of `config`. */
export function withSharedExpert(config: DecoderStackConfig, experts: ExpertsConfig, shared: number): DecoderStackConfig {
  const { intermediate } = config;
  const kinds = experts.layers.map((hasExperts, layer) => {
    const kind = kindOf(config, layer);
    return hasExperts || kind.only === 'attention' ? kind : { ...kind, intermediate };
  });
  return { ...config, intermediate: shared, experts, ...(experts.layers.includes(false) && { kinds }) };
}
