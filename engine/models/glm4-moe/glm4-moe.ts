import type { DecoderDefinition } from '../decoder.ts';
import { decoderStack } from '../layers/decoder-stack.ts';
import { expertMlp } from '../layers/experts.ts';
import { withoutDraftLayers } from '../text-part.ts';
import { DEFAULTS, parseGlm4MoeConfig } from './config.ts';

const STACK = decoderStack({ parseConfig: parseGlm4MoeConfig, mlp: expertMlp('silu') });

/** GLM's tensor names, mapped to those of other families. */
export const NAMES: readonly (readonly [RegExp, string])[] = [
  [/\.mlp\.shared_experts\./, '.mlp.shared_expert.'],
  [/\.mlp\.gate\.e_score_correction_bias$/, '.mlp.expert_bias'],
];

/** GLM-4.5, 4.6 and 4.7: experts beside a shared one behind the first layers, and partial rotary embeddings. Shapes and names: MODEL.md. */
export const GLM4_MOE: DecoderDefinition = withoutDraftLayers(STACK, DEFAULTS.num_hidden_layers, NAMES);
