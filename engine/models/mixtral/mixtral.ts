import type { Json } from '../../util/json.ts';
import type { DecoderDefinition } from '../decoder.ts';
import { withExpertsOnly } from '../experts-config.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import type { DecoderStackConfig } from '../layers/stack-config.ts';
import { parseLlamaConfig } from '../llama/config.ts';
import { withUsualNames } from '../text-part.ts';

/** Defaults of MixtralConfig that parseLlamaConfig has no others for (transformers, configuration_mixtral.py). */
const DEFAULTS = { vocab_size: 32_000, hidden_size: 4096, intermediate_size: 14_336, num_hidden_layers: 32, num_attention_heads: 32 };

/** Reads config.json of Mixtral. Throws EngineError naming the field that is wrong or beyond what the forward pass does. */
function parseMixtralConfig(json: Json): DecoderStackConfig {
  const settings = { ...DEFAULTS, ...json };
  return withExpertsOnly(parseLlamaConfig(settings), settings, { count: 8, perRow: 2 }, true);
}

const STACK = decoderStack({ parseConfig: parseMixtralConfig, mlp: expertMlp('silu') });

/** Mixtral's tensor names, mapped to those of other families. */
export const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.block_sparse_moe\./, '.mlp.'],
  [/\.w1\./, '.gate_proj.'],
  [/\.w3\./, '.up_proj.'],
  [/\.w2\./, '.down_proj.'],
];

/** Mixtral: Mistral with experts in every layer. Shapes and names: MODEL.md. */
export const MIXTRAL: DecoderDefinition = { ...STACK, load: (loader, ...rest) => STACK.load(withUsualNames(loader, NAMES), ...rest) };
