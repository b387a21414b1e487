import type { Json } from '../../util/json.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of GraniteMoeConfig (transformers, configuration_granitemoe.py). */
const DEFAULTS = { vocab_size: 32_000, hidden_size: 4096, intermediate_size: 11_008, num_hidden_layers: 32, num_attention_heads: 32 };

/**
 * Reads config.json of Granite 3 with experts: Granite's fields and the experts'. Throws EngineError naming the field that is wrong or
 * beyond what the forward pass does.
 */
function parseGraniteMoeConfig(json: Json): DecoderStackConfig {
  const settings = { ...DEFAULTS, ...json };
  const config = parseLlamaConfig({ ...settings, model_type: 'granite' });
  // A softmax over the chosen experts equals a softmax over all, normalised over the chosen ones.
  return withExpertsOnly(config, settings, { count: 8, perRow: 2 }, true);
}

const STACK = decoderStack({ parseConfig: parseGraniteMoeConfig, mlp: expertMlp('silu') });

/** Tensor names of checkpoints, and those that transformers 5 has in memory, mapped to those of other families. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.block_sparse_moe\.router\.(layer\.)?weight$/, '.mlp.gate.weight'],
  [/\.block_sparse_moe\.input_linear\.weight$/, '.mlp.experts.gate_up_proj'],
  [/\.block_sparse_moe\.output_linear\.weight$/, '.mlp.experts.down_proj'],
  [/\.block_sparse_moe\./, '.mlp.'],
];

/** Granite 3 with experts: Granite's multipliers, and experts in every layer. Shapes and names: MODEL.md. */
export const GRANITE_MOE: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
