/** Reads the sizes of a mixture of experts, by the field names of Qwen and LFM2. */
import { EngineError } from '../errors.ts';
import type { Json } from '../util/json.ts';
import { integer } from './config-fields.ts';
import type { ExpertsConfig } from './layers/mlp.ts';

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
  const intermediate = integer(json, field, defaults.intermediate);
  if (intermediate % 4 !== 0) throw new EngineError('unsupported', `config.json: ${field} is ${intermediate}, expected a multiple of 4`);
  return { count, perRow, intermediate };
}
